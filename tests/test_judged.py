"""Raw files are parsed once in a campaign, and its measurements equal those of parsing all of them again."""

from __future__ import annotations

import io
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from fleetmark import parsers, workloads
from fleetmark.base.measurement import Status
from fleetmark.campaign import judged as judging
from fleetmark.campaign import run as campaign
from fleetmark.campaign.drive import fields_of
from fleetmark.campaign.judged import Judged
from fleetmark.campaign.options import Options
from fleetmark.campaign.rebuild import rebuild
from fleetmark.record.archive import Archive
from fleetmark.record.documents import KEY
from fleetmark.record.spool import NAME
from fleetmark.record.steps import Step
from tests.drives import save_step

FIXTURES = Path(__file__).parent / "parsers" / "fixtures"
TOOLS = [t for t in parsers.tools() if t in workloads.names() and (FIXTURES / t).is_dir()]
RESULT = {"ended": "exit", "rc": 0, "started": 1.7e9, "wall_s": 1.25, "left_out": ["a.log: too large"]}


def outputs() -> list[Path]:
    """Every third recorded output of each tool that has a manifest."""
    files = ([f for f in sorted((FIXTURES / t).iterdir()) if f.is_file() and f.suffix != ".md"] for t in TOOLS)
    return [file for of_tool in files for file in of_tool[::3]]


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    document = {"hosts": [{"name": "h1", "labels": {}}], "created": "2026-11-01T00:00:00Z"}
    campaign_archive = Archive.create(tmp_path, "c1", document).writable()
    yield campaign_archive
    campaign_archive.close()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each raw file was parsed."""
    count: Counter[str] = Counter()
    real = parsers.parse_file

    def counting(tool: str, file: Any, argv: Any = ()) -> Any:
        count[str(Path(f"/proc/self/fd/{file.fileno()}").readlink())] += 1
        return real(tool, file, argv)

    monkeypatch.setattr(parsers, "parse_file", counting)
    return count


def steps() -> list[tuple[dict[str, Any], bytes]]:
    """What a host ran, with what it printed; the last is of a pair, a warm-up among them, and one is damaged."""
    listed = []
    for number, file in enumerate(outputs()):
        step = asdict(
            Step(
                id=f"{number:05d}",
                workload=file.parent.name,
                case="c",
                repeat=number,
                argv=("x",),
                env={},
                expect_s=1.0,
                timeout_s=5.0,
                output="out",
            )
        )
        listed.append((step, file.read_bytes()))
    listed[-1][0].update(subject="h1>h2", members=("h1", "h2"))
    listed.append(({**listed[0][0], "id": "99998", "repeat": 98}, b""))
    listed.append(({**listed[0][0], "id": "99999", "repeat": 99, "case": "cut"}, listed[0][1][:100]))
    return listed


def keep(archive: Archive, step: dict[str, Any], output: bytes) -> Path:
    return save_step(archive, "h1", step, {"result.json": json.dumps(RESULT).encode(), "out": output})


def measurements(archive: Archive, judged: Judged | None = None) -> bytes:
    rows = rebuild(archive, (lambda folder, _: judged.outcome(folder)) if judged else None)
    return archive.write_measurements(rows).read_bytes()


def judge_all(archive: Archive) -> list[Path]:
    """A controller judges each step as it comes, and is killed."""
    folders = [keep(archive, step, output) for step, output in reversed(steps())]
    with Judged(archive) as judged:
        statuses = {judged.outcome(folder).status for folder in folders}
    assert statuses >= {Status.PASSED, Status.FAILED}
    return folders


def test_measurements_of_the_memory_are_those_of_all_raw_files(archive: Archive, parsed: Counter[str]) -> None:
    folders = judge_all(archive)
    warm = {"host": "h1", "workload": "stream", "subject": "host", "case": "c", "warm_up": [0], "steps": []}
    archive.note("enough", **warm, repeats=1, half_width=None)
    archive.note("rejected", host="h1", workload="fio", subject="host", repeat=1, reason="noise")
    assert set(parsed.values()) == {1} and len(parsed) == len(folders)
    with Judged(archive) as judged:
        rows = measurements(archive, judged)
    assert set(parsed.values()) == {1}
    assert rows == measurements(archive)
    assert set(parsed.values()) == {2}, "without the memory all are parsed again"
    rows = list(rebuild(archive))
    assert len(rows) > 500 and len({r["workload"] for r in rows}) == len(TOOLS)
    assert [asdict(judging.judge(archive, f)) for f in folders] == [asdict(Judged(archive).outcome(f)) for f in folders]


DAMAGE = {
    "gone": lambda raw: b"",
    "cut": lambda raw: raw[: len(raw) // 2],
    "noise": lambda raw: b"\xff\x00\n" * 1000,
    "other digits": lambda raw: raw.replace(b"1", b"2"),
    "half a line before it": lambda raw: b"1234 half a li" + raw,
    "lines swapped": lambda raw: b"".join(line[:9] + other[9:] for line, other in pairs(raw)),
    "no line of mine": lambda raw: b"%s{}\n" % (b"0" * 8 + b" " + b"0" * 64 + b" "),
}


def pairs(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    lines = raw.splitlines(keepends=True)
    return zip(lines, [*lines[1:], lines[0]], strict=True)


@pytest.mark.parametrize("way", DAMAGE)
def test_what_is_damaged_in_the_memory_is_parsed_again(archive: Archive, parsed: Counter[str], way: str) -> None:
    folders = judge_all(archive)
    file = archive.path / NAME
    file.write_bytes(DAMAGE[way](file.read_bytes()))
    with Judged(archive) as judged:
        rows = measurements(archive, judged)
        again = sum(n == 2 for n in parsed.values())
        assert 0 < again <= len(folders) and (way != "cut" or again < len(folders))
        assert rows == measurements(archive, judged), "and is found from then on"
    assert sum(n == 2 for n in parsed.values()) == again and max(parsed.values()) == 2
    assert rows == measurements(archive)


def test_steps_whose_raw_files_changed_alone_are_parsed_again(archive: Archive, parsed: Counter[str]) -> None:
    folders = judge_all(archive)
    changed, redone = folders[0], folders[2]
    (changed / "out").write_bytes(b"it says something else now")
    archive.set_aside(redone)
    step, output = steps()[::-1][2]
    keep(archive, step, output.replace(b"1", b"2"))
    with Judged(archive) as judged:
        rows = measurements(archive, judged)
    assert {str(Path(f).parent) for f, n in parsed.items() if n == 2} == {str(changed), str(redone)}
    assert rows == measurements(archive)


def test_other_parsers_and_another_name_of_the_campaign_parse_again(
    archive: Archive, parsed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = judge_all(archive)
    with monkeypatch.context() as m:
        m.setattr(judging, "code", lambda: "of tomorrow")
        with Judged(archive) as judged:
            measurements(archive, judged)
    assert set(parsed.values()) == {2} and len(parsed) == len(folders)
    moved = Archive(archive.path.rename(archive.path.with_name("c2")))
    with Judged(moved) as judged:
        rows = list(rebuild(moved, lambda folder, _: judged.outcome(folder)))
    assert rows == list(rebuild(moved)) and {r["campaign"] for r in rows} == {"c2"}


@pytest.mark.parametrize("obstacle", ["a folder", "a link", "a pipe", "a full disk"])
def test_without_a_place_for_the_memory_all_is_as_before(
    archive: Archive, obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = archive.path / NAME
    (tmp_path / "other").write_text("mine")
    folders = [keep(archive, step, output) for step, output in steps()]
    match obstacle:
        case "a folder":
            file.mkdir()
        case "a link":
            file.symlink_to(tmp_path / "other")
        case "a pipe":
            os.mkfifo(file)
        case _:
            monkeypatch.setattr(os, "write", full)
    with Judged(archive) as judged:
        for folder in folders:
            judged.outcome(folder)
        rows = list(rebuild(archive, lambda folder, _: judged.outcome(folder)))
    assert rows == list(rebuild(archive)) and (tmp_path / "other").read_text() == "mine"


def full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_campaign_keeps_its_memory_while_it_owes_anything(
    archive: Archive, parsed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two controllers, the first of which is interrupted: what the second starts from is not parsed again."""
    listed = steps()
    of_controller = [listed[: len(listed) // 2], listed[len(listed) // 2 :]]

    def follow(archive: Archive, *arguments: Any) -> bool:
        (judged,) = [a for a in arguments if isinstance(a, Judged)]
        for step, output in of_controller.pop(0):
            outcome = judged.outcome(keep(archive, step, output))
            archive.note("outcome", **{k: {"host": "h1", **step}[k] for k in KEY}, **fields_of(outcome))
        return bool(of_controller)

    request = SimpleNamespace(hosts=[SimpleNamespace(name="h1")], exchanges=())
    monkeypatch.setattr(campaign, "request_of", lambda _: request)
    monkeypatch.setattr(campaign.scheduled, "jobs", lambda *_: {"h1": {"steps": [step for step, _ in listed]}})
    monkeypatch.setattr(campaign, "_follow", follow)
    options = Options(suite="s.yml")
    assert campaign._drive(archive, options, Console(file=io.StringIO()), [], {})
    memory = archive.path / NAME
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    assert not campaign._drive(archive, options, Console(file=io.StringIO()), [], {})
    assert not memory.exists()
    assert len(parsed) == len(listed) and set(parsed.values()) == {1}
    stored = (archive.path / "measurements.parquet").read_bytes()
    assert stored == measurements(archive)
