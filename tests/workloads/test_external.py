"""Test workloads from outside the package: how they are found and recorded, and that a record never selects one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fleetmark import parsers, workloads
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.campaign import judged, launch
from fleetmark.campaign import run as campaigns
from fleetmark.campaign.options import Options
from fleetmark.campaign.outcome import judge
from fleetmark.record.archive import Archive
from fleetmark.record.steps import Step
from fleetmark.verbs import skeleton
from fleetmark.workloads import declared, external
from tests.commands import refused, run
from tests.drives import save_step
from tests.workloads.scheduling import scheduled

HOUSE = Path(__file__).parents[2]
OUTPUT = b"requests/s: 3000\np99 ms: 1.5\n"
RESULT = {"ended": "exit", "rc": 0, "started": 1.7e9, "wall_s": 1.0}


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the workload ``acme_bench``, selected through the environment."""
    folder = tmp_path / "acme"
    skeleton.write("acme_bench", folder)
    monkeypatch.setenv(extensions.VARIABLE, str(folder))
    return folder


def campaign(root: Path, *outputs: bytes) -> tuple[Archive, list[Path]]:
    """Write a campaign of ``acme_bench`` on one host, with one step for each of ``outputs``."""
    document = {
        "hosts": [{"name": "h1", "labels": {}}],
        "created": "2026-11-01T00:00:00Z",
        "suite": "acme_bench",
        "seed": 7,
        "command": ["fleetmark", "run"],
        "workloads": ["acme_bench"],
        "versions": {"fleetmark": "0.1.0"},
        "extensions": external.recorded(["acme_bench"]),
    }
    archive = Archive.create(root, "c1", document).writable()
    folders = []
    for repeat, output in enumerate(outputs):
        step = asdict(
            Step(
                id=f"{repeat:05}",
                workload="acme_bench",
                case="default",
                repeat=repeat,
                argv=("sh",),
                env={},
                expect_s=1.0,
                timeout_s=5.0,
                output="stdout",
            )
        )
        files = {"result.json": json.dumps(RESULT).encode(), "stdout": output}
        folders.append(save_step(archive, "h1", {**step, "headline": ["rate"]}, files))
    return archive, folders


def test_it_is_a_workload_as_ours_are(acme: Path) -> None:
    assert "acme_bench" in workloads.names() and workloads.load_suite("acme_bench").chosen()
    (step,) = scheduled("acme_bench", 1, rounds=7)["h1"]
    assert step.argv == ("sh", "-c", "echo requests/s: $((7 * 1000)); echo p99 ms: 1.5")
    assert declared.declaration("acme_bench", "default", "response_p99", "app", "s", "lower").kind == "responsiveness"


def test_without_its_folder_it_is_unknown(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workloads.load("acme_bench")
    monkeypatch.delenv(extensions.VARIABLE)
    assert "acme_bench" not in workloads.names()
    with pytest.raises(FleetmarkError, match=r"add your own folder with --workloads DIR or FLEETMARK_WORKLOADS$"):
        workloads.load("acme_bench")


def test_several_folders_and_their_suites(acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skeleton.write("other", tmp_path / "b")
    (tmp_path / "b" / "suites").mkdir()
    (tmp_path / "b" / "suites" / "nightly.yml").write_text(
        "description: x\nworkloads:\n  acme_bench:\n    set: {rounds: 2}\n  other:\n"
    )
    monkeypatch.setenv(extensions.VARIABLE, f"{acme}{os.pathsep}{tmp_path / 'b'}")
    assert {"acme_bench", "other"} <= set(workloads.names())
    assert list(workloads.load_suite("nightly").chosen()) == ["acme_bench", "other"]


@pytest.mark.parametrize("name", ["acme_bench", "fio"])
def test_a_name_that_two_folders_use_is_refused(
    acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / f"{name}.yml").write_text((acme / "acme_bench.yml").read_text())
    monkeypatch.setenv(extensions.VARIABLE, f"{acme}{os.pathsep}{tmp_path / 'b'}")
    with pytest.raises(FleetmarkError, match=rf"the workload {name}: two files have this name, .+ and .+; rename one"):
        workloads.load(name)


def test_the_name_of_a_role_that_ours_share_is_refused(acme: Path) -> None:
    (acme / "unpacked.yml").write_text((acme / "acme_bench.yml").read_text())
    with pytest.raises(FleetmarkError, match="unpacked is already the name of a Fleetmark role; rename the workload"):
        workloads.load("unpacked")


def test_a_manifest_of_a_newer_schema_is_one_sentence(acme: Path) -> None:
    path = acme / "acme_bench.yml"
    path.write_text(path.read_text().replace("schema: 1", "schema: 2\nnovelty: true"))
    with pytest.raises(FleetmarkError) as error:
        workloads.load("acme_bench")
    assert (
        str(error.value) == f"{path}: schema 2 is newer than the schema of this Fleetmark version (1); update Fleetmark"
    )


@pytest.mark.parametrize(("folder", "problem"), [("none", "it does not exist"), ("file", "it is a file")])
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, problem: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(extensions.VARIABLE, "")
    sentence = refused(tmp_path, "rebuild", "last", "--workloads", str(tmp_path / folder))
    assert sentence.startswith(f"--workloads {tmp_path / folder}: {problem}; choose a folder with manifests")


def test_its_roles_are_found_by_ansible_behind_the_users_own(acme: Path) -> None:
    assert launch._roles({"DEFAULT_ROLES_PATH": ["/srv/roles"]}) == {
        "ANSIBLE_ROLES_PATH": f"{acme}/roles{os.pathsep}/srv/roles"
    }


def test_a_record_keeps_names_versions_and_hashes_and_no_path(acme: Path, tmp_path: Path) -> None:
    def sha(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    (entry,) = external.recorded(["acme_bench", "acme_bench@long", "fio"])
    assert entry == {
        "name": "acme",
        "package": "",
        "version": "",
        "workloads": {
            "acme_bench": {
                "version": "1",
                "manifest_sha256": sha(acme / "acme_bench.yml"),
                "parser_sha256": sha(acme / "parsers" / "acme_bench.py"),
            }
        },
    }
    assert str(tmp_path) not in json.dumps(entry)


def test_a_folder_may_hold_more_than_workloads(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a folder that contains Fleetmark's own sources: their workloads still belong to Fleetmark."""
    monkeypatch.setenv(extensions.VARIABLE, f"{acme}{os.pathsep}{HOUSE}")
    assert extensions.owner(workloads.manifest.path_of("fio")) is None
    (entry,) = external.recorded(["acme_bench", "fio"])
    assert entry["name"] == "acme"


def test_a_parser_that_crashes_costs_its_own_run_only(acme: Path, tmp_path: Path) -> None:
    parser = acme / "parsers" / "acme_bench.py"
    parser.write_text(parser.read_text().replace('    """Return', '    assert b"3000" in raw\n    """Return'))
    archive, (good, bad) = campaign(tmp_path / "r", OUTPUT, OUTPUT.replace(b"3000", b"2999"))
    assert judge(archive, good).status is Status.PASSED
    outcome = judge(archive, bad)
    assert outcome.status is Status.FAILED and not outcome.rows
    assert outcome.reason.startswith(
        "acme_bench: its parser acme/parsers/acme_bench.py raised AssertionError on line 12"
    )
    assert str(tmp_path) not in outcome.reason


def test_another_parser_reads_the_outputs_again(acme: Path) -> None:
    states = []
    for path in (acme / "notes.txt", acme / "acme_bench.yml", acme / "parsers" / "acme_bench.py"):
        judged._state_of.cache_clear()
        states.append(judged.code())
        path.write_text((path.read_text() if path.exists() else "") + "# changed\n")
    judged._state_of.cache_clear()
    states.append(judged.code())
    assert states[0] == states[1] and len(set(states)) == 3, "a file that is not a code changes nothing"


def test_a_record_never_decides_which_code_runs(acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that neither paths in campaign.json nor a folder beside it select code."""
    archive, _ = campaign(tmp_path / "r", OUTPUT)
    archive.close()
    assert "2 measurements" in run(tmp_path / "r", "rebuild", "c1")
    monkeypatch.delenv(extensions.VARIABLE)
    archive = archive.writable()
    recorded = archive.campaign()
    proof = tmp_path / "ran"
    evil = f"open({str(proof)!r}, 'w').close()\ndef parse(raw, command=()): pass\n"
    for place in (archive.path, tmp_path / "evil"):
        skeleton.write("acme_bench", place / "workloads")
        (place / "workloads" / "parsers" / "acme_bench.py").write_text(evil)
    evil_folder = str(tmp_path / "evil" / "workloads")
    entry = {**recorded["extensions"][0], "path": evil_folder, "package": evil_folder}
    archive.save_campaign(
        {**recorded, "extensions": [entry], "command": ["fleetmark", "run", "--workloads", evil_folder]}
    )
    archive.close()
    sentence = refused(tmp_path / "r", "rebuild", "c1")
    assert sentence == (
        "c1: workload acme_bench comes from acme 1, which is not installed; "
        "pass its folder with --workloads DIR or FLEETMARK_WORKLOADS, or install its package"
    )
    document = json.loads(run(tmp_path / "r", "report", "c1", "--format", "json"))
    assert {m["metric"] for m in document["measurements"]} == {"rate", "response_p99"}, (
        "its figures are read as they are"
    )
    assert not proof.exists()


def test_a_campaign_goes_on_only_where_its_workloads_are_at_hand(
    acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, _ = campaign(tmp_path / "r", OUTPUT)
    archive.close()
    monkeypatch.delenv(extensions.VARIABLE)
    with pytest.raises(FleetmarkError, match=r"c1: workload acme_bench comes from acme 1, which is not installed"):
        campaigns.resume(archive, Options(suite="quick"), Console())
    archive.close()


@pytest.mark.parametrize("entries", [7, ["x"], [{"name": "a", "workloads": [1]}]])
def test_damage_where_a_record_names_its_extensions_is_a_sentence(entries: Any) -> None:
    with pytest.raises(FleetmarkError, match=r"^c1: campaign.json: extensions is invalid; restore the file$"):
        external.require("c1", {"extensions": entries})


def installed(target: Path, module: str = "acme_bench_pkg") -> None:
    """Install a distribution with a workload into ``target``, as installing a wheel would."""
    skeleton.write("acme_bench", target / "acme_bench_pkg")
    (target / "acme_bench_pkg" / "__init__.py").write_text("raise RuntimeError('this package is never imported')\n")
    info = target / "acme_benchmarks-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-benchmarks\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(f"[fleetmark.workloads]\nacme = {module}\n")


def fleetmark(*words: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from fleetmark.cli import main; main()"
    env = {k: v for k, v in os.environ.items() if k != extensions.VARIABLE}
    env["PYTHONPATH"] = os.pathsep.join([str(HOUSE), str(path)])
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=env, cwd=cwd)


def test_a_package_is_found_while_it_is_installed(tmp_path: Path) -> None:
    target, output = tmp_path / "site", tmp_path / "out.txt"
    target.mkdir()
    output.write_bytes(OUTPUT)
    installed(target)
    parsed = fleetmark("parse", "acme_bench", str(output), "--format", "json", path=target, cwd=tmp_path)
    assert {m["metric"]: m["value"] for m in json.loads(parsed.stdout)} == {"rate": 3000.0, "response_p99": 0.0015}
    shown = fleetmark("workloads", "acme_bench", path=target, cwd=tmp_path)
    assert "Acme bench" in shown.stdout and "acme_bench.rounds" in shown.stdout
    code = "from workloads.external import recorded; import json; print(json.dumps(recorded(['acme_bench'])))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOUSE), str(target)])}
    kept = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout)
    assert [(e["name"], e["package"], e["version"]) for e in kept] == [("acme-benchmarks", "acme-benchmarks", "2.5")]
    for path in (target / "acme_benchmarks-2.5.dist-info").iterdir():
        path.unlink()
    gone = fleetmark("parse", "acme_bench", str(output), path=target, cwd=tmp_path)
    assert gone.returncode == 2 and "no parser for 'acme_bench'" in gone.stderr


def test_a_package_that_comes_and_goes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def packages() -> list[str]:
        return [extension.package for extension in extensions.extensions() if extension.package == "acme-benchmarks"]

    monkeypatch.syspath_prepend(tmp_path)
    assert packages() == []
    installed(tmp_path)
    assert packages() == packages() == ["acme-benchmarks"]
    shutil.rmtree(tmp_path / "acme_benchmarks-2.5.dist-info")
    assert packages() == []


def test_an_entry_point_that_names_nothing_is_one_sentence(tmp_path: Path) -> None:
    target = tmp_path / "site"
    target.mkdir()
    installed(target, "acme_nowhere")
    done = fleetmark("workloads", path=target, cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "the installed package acme-benchmarks: its entry point fleetmark.workloads names acme_nowhere" in (
        " ".join(done.stderr.split())
    )


def test_the_written_test_passes(acme: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(HOUSE)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(acme / "tests")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, cwd=acme)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
    lines = sum(len(path.read_text().splitlines()) for path in [*acme.glob("*.yml"), *acme.rglob("*.py")])
    assert lines < 60


def test_parsers_of_other_folders_are_read_by_name(acme: Path) -> None:
    assert parsers.parse("acme_bench", OUTPUT).measurements[0].value == 3000
