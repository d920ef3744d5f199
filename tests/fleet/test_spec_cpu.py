"""SPEC CPU over real SSH, with a stand-in for the medium: installed, built with the hosts' gcc, run, broken and resumed."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.fleet.command import LONG_S, Command
from tests.fleet.hosts import Fleet
from tests.standins.spec_cpu import medium

pytestmark = pytest.mark.fleet

# Where the machine has no Fortran compiler the hosts get one that knows the stand-in's only program.
GFORTRAN = r"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift ;; esac; shift; done
[ -z "$out" ] || { printf '#!/bin/sh\nsleep "$1"\necho "$2"\nexit ${3:-0}\n' >"$out" && chmod 755 "$out"; }
"""


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Path]:
    """What a user has from SPEC: 2017 as an ISO image, 2026 as a tar."""
    if not shutil.which("xorriso"):
        pytest.skip("xorriso makes the stand-in's medium")
    folder = tmp_path_factory.mktemp("media")
    return {2017: medium.make(folder / "cpu2017.iso"), 2026: medium.make(folder / "cpu2026.tar", 2026)}


@pytest.fixture(scope="module")
def hosts(fleet: Fleet) -> Iterator[Fleet]:
    give = "command -v gfortran >/dev/null || { cat >/usr/local/bin/gfortran; chmod 755 /usr/local/bin/gfortran; }"
    for host in fleet.names:
        fleet.exec(host, ["sh", "-c", give], input=GFORTRAN)
    yield fleet
    for host in fleet.names:
        fleet.exec(host, ["sh", "-c", "rm -rf /usr/local/bin/gfortran /var/tmp/fleetmark-0/tools/spec_cpu* /opt/spec"])


@pytest.fixture
def command(hosts: Fleet, tmp_path: Path) -> Iterator[Command]:
    yield Command(hosts, tmp_path)
    for host in hosts.names:
        hosts.exec(host, ["rm", "-f", "/etc/spec_standin.json"])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def suite(command: Command, media: Mapping[int, Path], release: int = 2017, **settings: Any) -> list[str]:
    """The words that run this release with these settings, from its medium unless a tree is given."""
    if "tree" not in settings:
        settings = {"iso": str(media[release]), "sha256": sha256(media[release]), **settings}
    settings = {"disk": "1MB", "copies": 2, "speed_memory": "1GB", **settings}
    file = command.root / f"suite{release}.yml"
    file.write_text(
        json.dumps({"description": "x", "repeats": 1, "workloads": {f"spec_cpu{release}": {"set": settings}}})
    )
    return ["--suite", str(file)]


def tell(fleet: Fleet, host: str, **settings: Any) -> None:
    fleet.exec(host, ["sh", "-c", "cat >/etc/spec_standin.json"], input=json.dumps(settings))


def reasons(command: Command, host: str) -> dict[str, tuple[str, str]]:
    """Case to status and reason."""
    return {o["case"]: (o["status"], o["reason"]) for o in command.outcomes() if o["host"] == host}


THREE = ["500.perlbench_r", "502.gcc_r", "505.mcf_r"]
NO_GFORTRAN = """
for c in /usr/bin/gfortran /usr/local/bin/gfortran; do [ ! -e $c ] || mv $c $c.off; done
printf '#!/bin/sh\\necho "E: Unable to locate package gfortran" >&2; exit 100\\n' >/usr/local/bin/apt-get
chmod 755 /usr/local/bin/apt-get
"""
GFORTRAN_AGAIN = """
for c in /usr/bin/gfortran /usr/local/bin/gfortran; do [ ! -e $c.off ] || mv $c.off $c; done
rm -f /usr/local/bin/apt-get
"""


def test_without_the_right_medium_no_host_is_touched(command: Command, media: Mapping[int, Path]) -> None:
    absent = command.run(*suite(command, media, tree=""))
    assert absent.returncode == 2
    assert "spec_cpu2017 needs SPEC's medium, iso=FILE with sha256=SUM, or a tree" in " ".join(absent.stderr.split())
    wrong = command.run(*suite(command, media, sha256="0" * 64))
    assert wrong.returncode == 2
    message = "".join(wrong.stderr.split())
    assert "0" * 64 in message
    assert sha256(media[2017]) in message
    assert not list(command.root.glob("*/campaign.json"))


def test_a_broken_host_costs_only_itself_and_says_why(command: Command, media: Mapping[int, Path]) -> None:
    """h1 is well; on h2 the installation breaks off; h3 has no Fortran compiler; on h4 every benchmark fails its way."""
    fleet = command.fleet
    tell(fleet, "h2", install="fail")
    fleet.exec("h3", ["sh", "-c", NO_GFORTRAN])
    tell(fleet, "h4", end={"500.perlbench_r": "CE", "502.gcc_r": "RE", "505.mcf_r": "VE"})
    words = suite(command, media, benchmarks=THREE, tune="all")
    try:
        done = command.run(*words)
    finally:
        fleet.exec("h3", ["sh", "-c", GFORTRAN_AGAIN])
    assert done.returncode == 1
    assert command.count(host="h1") == {"passed": 3}
    assert command.count() == {"passed": 3, "failed": 9}

    frame = pd.read_parquet(command.campaign / "measurements.parquet").query("host == 'h1'")
    assert set(frame["case"]) == set(THREE)
    assert {"base_ratio", "peak_ratio", "base_time", "base_copies"} <= set(frame["metric"])
    assert set(frame["standing"]) == {"estimate"}
    assert set(frame.query("metric == 'base_copies'")["value"]) == {2.0}
    folder = command.campaign / "raw" / "h1" / "spec_cpu2017" / "502.gcc_r" / "0"
    suffixes = {p.suffix for p in folder.iterdir()}
    assert {".csv", ".txt", ".rsf", ".cfg", ".log"} <= suffixes
    log = (folder / "CPU2017.001.log").read_text()
    assert "stack size (kbytes, -s) unlimited" in log
    assert "physcpubind=0 " in log or "taskset -c 0 " in log
    config = (folder / "CPU2017.001.intrate.refrate.cfg").read_text()
    assert "-fgnu89-inline" in config
    assert "OPTIMIZE = -Ofast" in config
    tree = fleet.exec(
        "h1", ["sh", "-c", "cd /var/tmp/fleetmark-0/tools/spec_cpu/*/installed/tree && find . -newer shrc"]
    )
    assert tree.stdout == "", "a run must leave nothing in the installed tree"

    (h2,) = {reason for _, reason in reasons(command, "h2").values()}
    assert "could not be deployed: Install: install.sh of the medium failed: Package integrity check failed!" in h2
    (h3,) = {reason for _, reason in reasons(command, "h3").values()}
    assert "could not be deployed: Packages for gcc, g++, gfortran: could not install gfortran" in h3
    h4 = reasons(command, "h4")
    for benchmark, text in (
        (
            "500.perlbench_r",
            "500.perlbench_r base: CE, compile error; 500.perlbench_r peak: CE, compile error; see CPU",
        ),
        ("502.gcc_r", "502.gcc_r base: RE, run-time error;"),
        ("505.mcf_r", "505.mcf_r base: VE, verification error;"),
    ):
        status, reason = h4[benchmark]
        assert status == "failed"
        assert text in reason
    broken = command.campaign / "raw" / "h4" / "spec_cpu2017"
    assert "unrecognized command" in (broken / "500.perlbench_r" / "0" / "500.perlbench_r.base.why").read_text()

    tell(fleet, "h2")
    assert command.run(*words, "--limit", "h2").returncode == 0, "an installation that broke off is done again"
    assert command.count() == {"passed": 3}


def test_what_was_finished_before_the_power_went_is_not_run_again(command: Command, media: Mapping[int, Path]) -> None:
    """h1 loses its power in the middle; on h2 one benchmark hangs until its time is up."""
    fleet, four = command.fleet, [*THREE, "541.leela_r"]
    tell(fleet, "h1", seconds=1.5)
    tell(fleet, "h2", end={"505.mcf_r": "hang"})
    words = suite(command, media, benchmarks=four, timeout="30s")
    running = command.begin(*words, "--limit", "h1,h2", "--patience", "3")
    command.until(lambda: command.count(host="h1")["passed"] >= 1)
    fleet.power_off("h1")
    try:
        assert running.wait(LONG_S) == 1, command.output()
    finally:
        fleet.power_on("h1")
    before = {o["case"]: o["started"] for o in command.outcomes() if o["host"] == "h1" and o["status"] == "passed"}
    assert command.count(host="h1")["lost"] == 4 - len(before) > 0
    status, reason = reasons(command, "h2")["505.mcf_r"]
    assert (status, "no end after 30 s" in reason) == ("failed", True), reason
    assert command.count(host="h2") == {"passed": 3, "failed": 1}
    assert (
        "Running (#1) 505.mcf_r"
        in (command.campaign / "raw" / "h2" / "spec_cpu2017" / "505.mcf_r" / "0" / "report").read_text()
    ), "a run that was ended leaves what its log says"
    left = fleet.exec("h2", ["pgrep", "-f", "mcf_r_bas[e]"], check=False)
    assert left.stdout == ""

    for host in ("h1", "h2"):
        tell(fleet, host)
    resumed = command.run("--resume", "last")
    assert command.count(host="h1") == {"passed": 4}, resumed.stdout + resumed.stderr
    after = {o["case"]: o["started"] for o in command.outcomes() if o["host"] == "h1"}
    assert before.items() <= after.items()


def test_reportable_runs_are_whole_suites_and_no_estimates(command: Command, media: Mapping[int, Path]) -> None:
    fleet = command.fleet
    tell(fleet, "h1", seconds=0.02)
    tell(fleet, "h2", seconds=0.02, end={"557.xz_r": "VE"})
    done = command.run(*suite(command, media, reportable=True, iterations=2), "--limit", "h1,h2")
    assert done.returncode == 1, done.stdout
    assert reasons(command, "h1") == {"intrate": ("passed", "")}
    frame = pd.read_parquet(command.campaign / "measurements.parquet").query("host == 'h1'")
    assert set(frame["standing"]) == {""}
    scores = frame.query("metric == 'base_score'")
    assert scores["case"].tolist() == ["intrate/SPECrate2017_int"]
    ratios = frame.query("metric == 'base_ratio'")
    assert len(ratios) == 10
    assert "intrate/500.perlbench_r" in set(ratios["case"])
    assert scores["value"].iloc[0] == pytest.approx(float(np.exp(np.log(ratios["value"]).mean())), rel=1e-6)
    status, reason = reasons(command, "h2")["intrate"]
    assert (status, "VE (verification error): 557.xz_r base" in reason) == ("invalid", True), reason


CONFIG = """# mine
%define speed -O1
label = mine
default:
   CC = gcc -std=gnu99
   CXX = g++ \\
         -std=gnu++14
   FC = gfortran
default=base:
   OPTIMIZE = %{speed}
"""


def test_an_installed_tree_ones_own_config_and_both_editions(command: Command, media: Mapping[int, Path]) -> None:
    """A benchmark of 2017 from a tree that was there, built as the user's config says; 2026 from its medium beside it."""
    fleet = command.fleet
    tar = base64.b64encode(medium.make(command.root / "cpu2017.tar").read_bytes()).decode()
    install = "mkdir -p /opt/spec && cd /opt/spec && base64 -d | tar -x && sh cpu2017/install.sh -f -d /opt/spec/tree"
    fleet.exec("h1", ["sh", "-ec", install], input=tar)
    (command.root / "mine.cfg").write_text(CONFIG)
    settings = {
        "tree": "/opt/spec/tree",
        "config": str(command.root / "mine.cfg"),
        "benchmarks": "541.leela_r",
        "size": "test",
        "iterations": 2,
    }
    new = {
        "iso": str(media[2026]),
        "sha256": sha256(media[2026]),
        "benchmarks": ["706.stockfish_r", "767.nest_r", "820.cloverleaf_s"],
        "threads": 3,
        "speed_memory": "1GB",
    }
    both = {"spec_cpu2017": {"set": {"disk": 1, **settings}}, "spec_cpu2026": {"set": {"disk": 1, **new}}}
    (command.root / "both.yml").write_text(json.dumps({"description": "x", "repeats": 2, "workloads": both}))
    done = command.run("--suite", str(command.root / "both.yml"), "--limit", "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    raw = command.campaign / "raw" / "h1"
    config = (raw / "spec_cpu2017" / "541.leela_r" / "0" / "CPU2017.001.intrate.test.cfg").read_text()
    assert config.startswith(CONFIG), "the user's own config file is used as it is"
    assert "541.leela_r=base=mine:" in config
    again = (raw / "spec_cpu2017" / "541.leela_r" / "1" / "CPU2017.001.log").read_text()
    assert "Up to date 541.leela_r base mine" in again, "what was built serves the campaign's other repeats"
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    old = frame.query("workload == 'spec_cpu2017'")
    assert set(old["case"]) == {"541.leela_r"}
    assert set(old["metric"]) == {"base_time", "base_run_time", "base_copies"}, "only the reference workload has ratios"
    new_rows = frame.query("workload == 'spec_cpu2026' and metric == 'base_ratio'")
    assert set(new_rows["case"]) == {"706.stockfish_r", "767.nest_r", "820.cloverleaf_s"}
    speed = raw / "spec_cpu2026" / "820.cloverleaf_s" / "0"
    assert "threads=3," in (speed / "CPU2026.001.log").read_text()
    assert "OMP_STACKSIZE = 120M" in (speed / "CPU2026.001.log").read_text()
    assert "-std=f2018" in (speed / "CPU2026.001.fpspeed.refspeed.cfg").read_text()


def test_too_small_a_disk_is_skipped_before_anything_is_copied(command: Command, media: Mapping[int, Path]) -> None:
    command.run(*suite(command, media, disk="900TB"), "--limit", "h4")
    (outcome,) = command.outcomes()
    assert outcome["status"] == "skipped"
    assert "needs 900000.0 GB of free disk at /var/tmp/fleetmark-0 and has" in outcome["reason"]
    assert "--work-dir" in outcome["reason"]
