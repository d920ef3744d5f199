"""The wheel and the sdist, each installed without the checkout: all files are there, and it works from any folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

import openpyxl
import pytest
from packaging.requirements import Requirement

from fleetmark.campaign.bundle.fetch import TARGETS
from tests import demands, programs
from tests.reports.compared import archives

pytestmark = pytest.mark.job
ROOT = Path(__file__).parents[1]
_ENV = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
_ENV |= {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
_SMALL = (  # what `quick` measures, in seconds
    *("stream.array_elements=1000000", "stream.ntimes=3", "fio.size=16MiB", "fio.runtime=1", "fio.ramp=0"),
    *("lmbench.max_size=4MiB", "lmbench.bw_size=4MiB", "lmbench.bw_caches=false", "lmbench.ctx_procs=16"),
    *("iperf3.duration=1", "iperf3.omit=0"),
)
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_OFFLINE = ("No matching distribution", "Connection", "Could not find a version")


def _pip(python: Path, *words: str | Path) -> None:
    """Run this environment's pip for ``python``, which has none. Skip the test if there is no package index."""
    command = [*_PIP, "--python", python, "install", "--quiet", "--no-compile", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and any(sign in done.stderr for sign in _OFFLINE):
        pytest.skip("no package index to install from")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the wheel and the sdist by kind. The checkout that they were built from is gone."""
    place = tmp_path_factory.mktemp("built")
    source = place / "source"  # a copy, so that building leaves nothing in the tree
    left_out = shutil.ignore_patterns(".git", ".venv*", "*.egg-info", "__pycache__", ".*_cache", "tests", "benchmarks")
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    python = place / "venv/bin/python"
    _pip(python, "hatchling")
    build = [
        python,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--target",
        "sdist",
        "--directory",
        place / "dist",
    ]
    done = subprocess.run(build, capture_output=True, text=True, cwd=source, env=_ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)
    (wheel,), (sdist,) = (place / "dist").glob("*.whl"), (place / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture(scope="module")
def environment(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel, the packages that it asks for, pandas' types, pip, and nothing else."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    _pip(place / "bin/python", "--no-deps", built["wheel"])
    (site,) = (place / "lib").glob("python*/site-packages")
    for package in _asked("fleetmark[all]", "pandas-stubs", "pip", path=[str(site), *sys.path]):
        if package.name != "fleetmark":
            for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                (site / name).exists() or (site / name).symlink_to(package.locate_file(name))
            for program in package.entry_points.select(group="console_scripts"):
                start = f"#!{place / 'bin/python'}\nfrom {program.module} import {program.attr} as main\nraise SystemExit(main())\n"
                (place / "bin" / program.name).write_text(start)
                (place / "bin" / program.name).chmod(0o755)
    return place


def _asked(*requirements: str, path: list[str]) -> Iterator[Distribution]:
    """Yield the packages that these requirements ask for, directly or not, as they are installed in ``path``.

    Installing them anew would take pip half a minute of resolving and unpacking.
    """
    todo, done = [Requirement(text) for text in requirements], set()
    while todo:
        wanted = todo.pop()
        package = next(iter(Distribution.discover(name=wanted.name, path=path)))
        assert wanted.specifier.contains(package.version, prereleases=True), f"{wanted}: {package.version}"
        for extra in {"", *wanted.extras} - {extra for name, extra in done if name == package.name}:
            done.add((package.name, extra))
            more = [Requirement(text) for text in package.requires or ()]
            todo += [each for each in more if not each.marker or each.marker.evaluate({"extra": extra})]
            yield package


@pytest.fixture(scope="module")
def installed(environment: Path) -> Path:
    """Return the program that the wheel installs."""
    return environment / "bin" / "fleetmark"


def _files(environment: Path) -> dict[str, bytes]:
    """Return what an installed Fleetmark is, but for where it came from and the interpreter's path."""
    (site,) = (environment / "lib").glob("python*/site-packages")
    ours = [path for path in site.glob("fleetmark*/**/*") if path.is_file() and "__pycache__" not in path.parts]
    files = {str(p.relative_to(site)): p.read_bytes() for p in ours if p.name not in ("RECORD", "direct_url.json")}
    return files | {"program": (environment / "bin/fleetmark").read_bytes().partition(b"\n")[2]}


def test_the_sdist_installs_what_the_wheel_does(installed: Path, built: dict[str, Path]) -> None:
    """So the tests below, with the wheel, hold for both. The builder's environment has hatchling, and no Fleetmark."""
    place = built["sdist"].parents[1] / "venv"
    _pip(place / "bin/python", "--no-deps", "--no-build-isolation", built["sdist"])
    of_wheel = _files(installed.parents[1])
    assert len(of_wheel) > 500 and _files(place) == of_wheel
    with zipfile.ZipFile(built["wheel"]) as wheel:
        assert {
            name: wheel.read(name) for name in wheel.namelist() if "/RECORD" not in name
        }.items() <= of_wheel.items()
    (metadata,) = (text.decode() for name, text in of_wheel.items() if name.endswith("/METADATA"))
    assert sum(line.startswith("Requires-Dist:") for line in metadata.splitlines()) > 10


def run(installed: Path, folder: Path, *words: str, timeout: float = 300) -> str:
    done = subprocess.run([installed, *words], capture_output=True, text=True, cwd=folder, env=_ENV, timeout=timeout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def test_the_self_test_runs_from_anywhere(installed: Path, tmp_path: Path) -> None:
    doc = json.loads(run(installed, tmp_path, "run", "--suite", "selftest", "--format", "json"))
    assert {o["status"] for o in doc["outcomes"]} == {"passed"}
    assert len(doc["measurements"]) == 6
    page = Path(doc["page"])
    assert page.is_relative_to(tmp_path)
    assert page.read_text().startswith("<!doctype html>")


def test_the_quick_suite_runs_and_the_interface_reads_it(installed: Path, tmp_path: Path) -> None:
    """What this machine lacks is skipped with a reason; what runs passes."""
    words = [installed, "run", "--suite", "quick", "--repeats", "1", "--format", "json"]
    words += [f"--set={setting}" for setting in _SMALL]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=_ENV, timeout=900)
    doc = json.loads(done.stdout)
    statuses = [o["status"] for o in doc["outcomes"]]
    assert statuses.count("passed") > 3 and set(statuses) <= {"passed", "skipped", "invalid"}, done.stderr
    assert all(o["reason"] for o in doc["outcomes"] if o["status"] != "passed")
    program = (
        "import fleetmark, json; record = fleetmark.open('fleetmark-results');"
        "frame = record.figures(by='host'); assert len(frame) and frame['value'].notna().all();"
        "print(json.dumps([len(record.campaigns()), len(record.values()), len(fleetmark.parse('selftest', b'1.5 2.5\\n'))]))"
    )
    words = [installed.with_name("python"), "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=_ENV)
    assert done.returncode == 0, done.stderr
    passed = sum(m["status"] == "passed" for m in doc["measurements"])
    assert json.loads(done.stdout) == [1, passed, 1]


def test_comparisons_and_plans_are_written_in_every_format(installed: Path, tmp_path: Path) -> None:
    archives(tmp_path / "results")
    sides = ["compare", "--baseline", "gen=icelake", "--candidate", "gen=genoa", "--results", "results"]
    answer = json.loads(run(installed, tmp_path, *sides, "--format", "json"))["answer"]["sentence"]
    assert answer.startswith("One genoa replaces ")
    assert answer in run(installed, tmp_path, *sides, "--format", "md")
    assert run(installed, tmp_path, *sides, "--format", "csv").startswith("candidate,class,")
    run(installed, tmp_path, *sides, "--html", "c.html", "--pdf", "c.pdf", "--xlsx", "c.xlsx")
    run(installed, tmp_path, "plan", "init", "example.yml")  # it travels; the small question is solved at once
    (tmp_path / "demand.yml").write_text(demands.SMALL)
    words = ["plan", "demand.yml", "--draws", "100", "--format", "json"]
    plan = json.loads(run(installed, tmp_path, *words, "--html", "p.html", "--pdf", "p.pdf", "--xlsx", "p.xlsx"))
    assert plan["plan"]["stock"]
    for name, text in (("c", answer), ("p", plan["summary"]["answer"])):
        assert text.split(";")[0][:40] in (tmp_path / f"{name}.html").read_text()
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF-")
        assert len(openpyxl.load_workbook(tmp_path / f"{name}.xlsx", read_only=True).sheetnames) > 3


def test_a_users_program_passes_strict_type_checks(installed: Path, tmp_path: Path) -> None:
    programs.check_types(tmp_path, installed.with_name("python"))


def test_what_runs_here_has_the_limits_of_who_started_it(installed: Path, tmp_path: Path) -> None:
    """Ansible's worker limits its own memory before it takes a host's answer; here, tools would have inherited that."""

    def limits(pid: int | str) -> list[str]:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
        return [line for line in lines if line.startswith(("Max data", "Max address", "Max stack", "Max file size"))]

    suite = tmp_path / "slow.yml"
    suite.write_text("description: slow\nrepeats: 1\nworkloads:\n  selftest: {set: {commands: 1, seconds: 3600}}\n")
    words = [installed, "run", "--suite", str(suite), "--work-dir", str(tmp_path)]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while not (tools := list(_children_in(tmp_path))):
            assert time.monotonic() < deadline and running.poll() is None, "the self-test did not begin"
            time.sleep(0.1)
        assert [limits(pid) for pid in tools] == [limits("self")] * len(tools)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(180)


def _children_in(folder: Path) -> Iterator[int]:
    """Processes that work in a folder below ``folder`` named scratch: a campaign's tools."""
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            place = entry.readlink()
            if place.is_relative_to(folder) and "scratch" in place.parts:
                yield int(entry.parent.name)


def test_a_controller_without_a_route_installs_from_the_wheels_of_a_bundle(installed: Path, tmp_path: Path) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    target = next((name for name, target in TARGETS.items() if target.python == running), None)
    if not target:
        pytest.skip(f"no distribution that bundles know has Python {running}")
    words = [installed, "bundle", "--for", target, "--suite", "selftest", "-o", "site.tar"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=_ENV, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(tmp_path / "site.tar") as tar:
        tar.extractall(tmp_path, [m for m in tar if m.name.startswith("wheels/")])
    lonely = ["unshare", "-n"] if os.geteuid() == 0 and shutil.which("unshare") else []
    env = {**_ENV, "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path)}
    python = tmp_path / "fm/bin/python"
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", "fm"],
        [
            *_PIP,
            "--python",
            python,
            "install",
            "--quiet",
            "--no-compile",
            "--no-index",
            "--find-links",
            "wheels",
            "fleetmark",
        ],
    ):
        done = subprocess.run([*lonely, *command], capture_output=True, text=True, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
    words = [*lonely, python.with_name("fleetmark"), "run", "--suite", "selftest", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {o["status"] for o in json.loads(done.stdout)["outcomes"]} == {"passed"}


def test_manifests_suites_roles_and_templates_travel(installed: Path, tmp_path: Path) -> None:
    listed = subprocess.run([installed, "workloads", "--format", "json"], capture_output=True, text=True, cwd=tmp_path)
    names = {m["name"] for m in json.loads(listed.stdout)}
    assert names == {p.stem for p in (ROOT / "workloads").glob("*.yml")}
    (site,) = (installed.parents[1] / "lib").glob("python*/site-packages")
    for folder in ("workloads", "playbooks", "parsers", "planner", "reports"):
        assert not (site / folder).exists(), f"site-packages gains {folder}, which is not a name of ours"
        ours = {p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts}
        assert ours and all((site / "fleetmark" / p).exists() for p in ours), f"{folder} travels incomplete"
