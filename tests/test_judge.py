"""Judging is total: whatever bytes an archive holds, a step has a status and a reason, and `--resume` runs it again."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.campaign.outcome import judge
from fleetmark.campaign.rebuild import rebuild
from fleetmark.campaign.resumed import owed
from fleetmark.cli.app import app
from fleetmark.record.archive import Archive
from fleetmark.record.steps import Step
from tests.drives import save_step

RESULT = {"ended": "exit", "rc": 0, "started": 1.7e9, "wall_s": 1.0}
CREATED = "2026-11-01T00:00:00Z"


def step(workload: str = "fio", output: str = "fio.json") -> dict[str, Any]:
    return asdict(
        Step(
            id="00000",
            workload=workload,
            case="c",
            repeat=0,
            argv=("true",),
            env={},
            expect_s=1.0,
            timeout_s=5.0,
            output=output,
        )
    )


def recorded(root: Path, result: Any = RESULT, **more: Any) -> tuple[Archive, Path]:
    archive = Archive.create(root, "c1", {"hosts": [{"name": "h1", "labels": {}}], "created": CREATED}).writable()
    return archive, save_step(archive, "h1", {**step(), **more}, {"result.json": json.dumps(result).encode()})


ANYTHING = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ).map(lambda doc: json.dumps(doc).encode()),
)
FIELDS = st.sampled_from(["ended", "rc", "started", "wall_s", "reason", "telemetry", "workload", "output", "argv",
    "repeat", "subject", "serves", "headline", "members", "class_", "case", "host", "excuse"])  # fmt: skip
NASTY = st.sampled_from(
    [None, "x", -1, 1e300, 10**400, [], {}, "\0", "../../../etc/passwd", "/etc/passwd", "\ud800", True]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(step_json=ANYTHING | st.none(), result_json=ANYTHING | st.none(), output=ANYTHING | st.none())
def test_any_bytes_give_a_status(tmp_path: Path, step_json: Any, result_json: Any, output: Any) -> None:
    shutil.rmtree(tmp_path / "c1", ignore_errors=True)
    archive, folder = recorded(tmp_path)
    for name, data in (("step.json", step_json), ("result.json", result_json), ("fio.json", output)):
        if data is not None:
            (folder / name).write_bytes(data)
    outcome = judge(archive, folder)
    assert outcome.status is not Status.SKIPPED
    assert outcome.reason or outcome.status is Status.PASSED
    archive.write_measurements(rebuild(archive))
    ((_, step_keys),) = archive.steps()
    assert (step_keys["host"], step_keys["workload"], step_keys["case"], step_keys["repeat"]) == ("h1", "fio", "c", 0)
    archive.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(FIELDS, NASTY, max_size=3), tool=st.sampled_from(parsers.tools()), output=ANYTHING)
def test_any_field_of_another_kind_gives_a_status(tmp_path: Path, changes: Any, tool: str, output: bytes) -> None:
    shutil.rmtree(tmp_path / "c1", ignore_errors=True)
    archive, folder = recorded(tmp_path)
    (folder / "step.json").write_text(json.dumps({"host": "h1", **step(), **changes}))
    (folder / "result.json").write_text(json.dumps({**RESULT, **changes}))
    (folder / "fio.json").write_bytes(output)
    outcome = judge(archive, folder)
    assert outcome.reason or outcome.status is Status.PASSED
    archive.write_measurements(rebuild(archive))
    archive.close()


@pytest.mark.parametrize("tool", parsers.tools())
@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"a":' * 100_000, b"9" * 100_000, b"\xff\xfe\0" * 1000])
def test_no_parser_ends_a_campaign(tool: str, raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_bytes(raw)
    with file.open("rb") as source, pytest.raises(FleetmarkError):
        parsers.parse_file(tool, source)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(os.urandom(300)),
    "a list": lambda file: file.write_text("[]"),
    "deep": lambda file: file.write_text("[" * 100_000),
    "gone": lambda file: file.unlink(),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a link": lambda file: (file.unlink(), file.symlink_to("/etc/passwd")),
    "too large": lambda file: os.truncate(file, 9 << 20),
}


@pytest.mark.parametrize("name", ["result.json", "step.json"])
@pytest.mark.parametrize("way", DAMAGE)
def test_what_is_damaged_is_lost_and_says_which_file(tmp_path: Path, name: str, way: str) -> None:
    archive, folder = recorded(tmp_path)
    archive.note("outcome", **{k: {**step(), "host": "h1"}[k] for k in ("host", "workload", "case", "repeat", "subject")},
        status="passed", reason="")  # fmt: skip
    DAMAGE[way](folder / name)
    outcome = judge(archive, folder)
    assert outcome.status is Status.LOST
    assert outcome.reason.startswith(f"raw/h1/fio/c/0/{name} cannot be read: ")
    assert "root:" not in outcome.reason
    archive.close()
    done = CliRunner().invoke(app, ["rebuild", "c1", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0 and "1 outcome changed" in done.output
    archive = Archive.open(tmp_path / "c1").writable()
    owed.set_aside_lost(archive)
    assert not folder.exists() and len(list(archive.path.glob("superseded/*/h1/fio/c/0"))) == 1
    job = {"steps": [step()]}
    assert owed.owed_steps(archive, {"h1": job}, ()) == {"h1": {"00000"}}


@pytest.mark.parametrize("status", ["failed", "invalid"])
def test_failed_steps_are_owed_again_and_their_files_are_kept(tmp_path: Path, status: str) -> None:
    archive, folder = recorded(tmp_path)
    run = {"host": "h1", "workload": "fio", "repeat": 0, "subject": "host", "reason": ""}
    archive.note("outcome", **run, case="c", status=status)
    archive.note("outcome", **run, case="not deployed", status="failed")
    archive.note("outcome", **run, case="fine", status="passed")
    assert owed.set_aside_failed(archive) == 2
    assert not folder.exists() and len(list(archive.path.glob("superseded/*/h1/fio/c/0/step.json"))) == 1
    cases = {"1": "c", "2": "not deployed", "3": "fine"}
    steps = [{**step(), "id": number, "case": case} for number, case in cases.items()]
    assert owed.owed_steps(archive, {"h1": {"steps": steps}}, ()) == {"h1": {"1", "2"}}
    assert owed.set_aside_failed(archive) == 0


def test_a_damaged_step_that_had_passed_is_owed_again_without_parsing_first(tmp_path: Path) -> None:
    archive, folder = recorded(tmp_path)
    archive.note("outcome", host="h1", workload="fio", case="c", repeat=0, subject="host", status="passed", reason="")
    (folder / "result.json").write_bytes(b"")
    printed = io.StringIO()
    owed.set_aside_lost(archive, Console(file=printed, width=1000))
    assert printed.getvalue().startswith("1 finished step will run again, because files changed")
    (*_, last) = [e for e in archive.journal() if e["e"] == "outcome"]
    assert last["status"] == "lost" and "result.json cannot be read" in last["reason"]
    assert owed.owed_steps(archive, {"h1": {"steps": [step()]}}, ()) == {"h1": {"00000"}}


def test_an_output_that_no_longer_parses_is_owed_again(tmp_path: Path) -> None:
    uptime = {**step("selftest", "stdout"), "case": "uptime-1"}
    archive, _ = recorded(tmp_path)
    files = {"result.json": json.dumps(RESULT).encode(), "stdout": b"41369.83 80000.00\n"}
    folder = save_step(archive, "h1", uptime, files)
    passed = judge(archive, folder)
    assert passed.status is Status.PASSED, passed.reason
    archive.note("outcome", host="h1", **{k: uptime[k] for k in owed.KEY if k != "host"}, status="passed", reason="")
    (folder / "stdout").write_bytes(b"41369.83 1")
    owed.set_aside_lost(archive)
    (*_, last) = [e for e in archive.journal() if e["e"] == "outcome"]
    assert last["status"] == "lost" and last["reason"].startswith("damaged after it passed: ")
    assert owed.owed_steps(archive, {"h1": {"steps": [uptime]}}, ()) == {"h1": {"00000"}}


def test_of_a_step_whose_own_file_is_damaged_the_job_tells_the_rest(tmp_path: Path) -> None:
    long = "x" * 300  # of which the folder's name has a part only
    archive, folder = recorded(tmp_path, case=long, subject="h1>h2")
    (folder / "step.json").write_bytes(b"\0")
    job = {**step(), "case": long, "subject": "h1>h2"}
    archive.save_job("h1", json.dumps({"host": "h1", "steps": [job], "deploy": [], "skipped": {}}))
    ((_, step_keys),) = archive.steps()
    assert (step_keys["host"], step_keys["case"], step_keys["subject"]) == ("h1", long, "h1>h2")


@pytest.mark.parametrize("ended", ["lost", "error", "cancelled"])
def test_the_controllers_excuse_goes_before_what_the_host_says(tmp_path: Path, ended: str) -> None:
    archive, folder = recorded(
        tmp_path, {**RESULT, "ended": ended, "rc": None, "reason": "code 7"}, excuse="its peer is gone"
    )
    assert judge(archive, folder).reason.startswith("its peer is gone")
    assert Step.from_json(archive.step(folder)).workload == "fio"


def test_what_ended_by_itself_has_no_excuse(tmp_path: Path) -> None:
    archive, folder = recorded(tmp_path, {**RESULT, "rc": 3}, excuse="never mind")
    assert judge(archive, folder).reason.startswith("exit status 3: it printed nothing")


def test_an_output_that_no_parser_may_hold_is_failed_with_both_sizes(tmp_path: Path) -> None:
    archive, folder = recorded(tmp_path)
    with (folder / "fio.json").open("wb") as out:
        out.truncate((300 << 20) + 1)
    outcome = judge(archive, folder)
    assert outcome.status is Status.FAILED
    assert "it is 300.0 MiB, and at most 16 MiB are read at once" in outcome.reason
    done = CliRunner().invoke(app, ["parse", "fio", str(folder / "fio.json")], catch_exceptions=False)
    assert done.exit_code == 1 and "at most 16 MiB" in done.output


def test_a_link_out_of_the_archive_is_not_followed(tmp_path: Path) -> None:
    archive, folder = recorded(tmp_path)
    (tmp_path / "secret").write_text("password")
    (folder / "fio.json").symlink_to(tmp_path / "secret")
    outcome = judge(archive, folder)
    assert outcome.status is Status.FAILED and "a symlink leads out of the campaign" in outcome.reason
    (folder / "stderr").symlink_to(tmp_path / "secret")
    assert archive.tail(folder, "stderr", 100) == b""
    shutil.move(folder, tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert judge(archive, folder).status is Status.LOST
