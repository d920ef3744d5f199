"""MLC's manifest and what it puts on hosts: refusals, skipped hosts, commands, tarballs of all layouts, the runner's manners."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, NumaNode
from fleetmark.campaign.schedule import settings_of
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.parsers.mlc import parse
from fleetmark.record.steps import HostSchedule
from fleetmark.workloads import load, load_suite
from tests.schedules import GiB, schedule, suite
from tests.standins.mlc import tarball

FILES = PLAYBOOKS / "roles" / "mlc" / "files"
INTEL = Cpu(vendor="GenuineIntel", arch="x86_64", cores=16, threads=32)
HERE = {"path": "/opt/mlc/Linux/mlc"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tarball.make(tmp_path / "mlc_v3.11b.tgz")


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def planned(tmp_path: Path, settings: Mapping[str, Any] = HERE, **facts: Any) -> HostSchedule:
    of_hosts = schedule(suite(tmp_path, "  mlc:\n"), {"mlc": settings}, repeats=1, **{"cpu": INTEL, **facts})
    return of_hosts.hosts["h1"]


def refused(tmp_path: Path, **settings: Any) -> str:
    with pytest.raises(FleetmarkError) as caught:
        settings_of(load_suite(suite(tmp_path, "  mlc:\n")), {"mlc": settings})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_tarball_whose_checksum_is_missing_or_different_is_refused_with_both_sums(
    tmp_path: Path, archive: Path
) -> None:
    digest = sha256(archive)
    missing = refused(tmp_path, tarball=str(archive))
    assert "mlc needs mlc.sha256" in missing
    assert digest in missing
    other = refused(tmp_path, tarball=str(archive), sha256="0" * 64)
    assert digest in other
    assert "not " + "0" * 64 in other
    assert "mlc.sha256" in refused(tmp_path, tarball="https://example.org/mlc_v3.11b.tgz")
    assert "is not a file on this machine" in refused(tmp_path, tarball=str(tmp_path / "absent.tgz"), sha256=digest)
    settings_of(load_suite(suite(tmp_path, "  mlc:\n")), {"mlc": {"tarball": str(archive), "sha256": digest.upper()}})


def test_settings_that_mean_nothing_are_refused(tmp_path: Path, archive: Path) -> None:
    settings = {"tarball": str(archive), "sha256": sha256(archive)}
    assert "not both" in refused(tmp_path, **settings, **HERE)
    assert "absolute path" in refused(tmp_path, path="mlc")
    assert "-b256m, not -b 256m" in refused(tmp_path, **HERE, extra="-b 256m")
    assert "mlc.modes" in refused(tmp_path, **HERE, extra="-X --max_bandwidth")
    assert "is not one of latency_matrix" in refused(tmp_path, **HERE, modes="latency")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"cpu": Cpu(vendor="AuthenticAMD", arch="x86_64")}, "prefetchers of AuthenticAMD: measure latency with lmbench"),
        ({"cpu": Cpu(vendor="HygonGenuine", arch="x86_64")}, "bandwidth with stream"),
        ({"cpu": Cpu(vendor="ARM", arch="aarch64")}, "an Intel CPU, which aarch64 is not: measure latency with lmbench"),
        ({"memory": 3 * GiB, "memory_available": GiB}, "8.2 GiB of free memory for MLC's buffers; set their size with -b"),
    ],
)  # fmt: skip
def test_hosts_that_mlc_is_not_for_are_skipped_with_what_to_use_instead(
    tmp_path: Path, facts: Mapping[str, Any], words: str
) -> None:
    host = planned(tmp_path, **facts)
    assert (host.steps, host.deploy) == ([], [])
    assert host.skipped["mlc"].startswith("needs ")
    assert words in host.skipped["mlc"]


def test_without_mlc_the_host_is_skipped_and_the_next_step_is_said(tmp_path: Path) -> None:
    assert "needs mlc.tarball (Intel's mlc_v3.x.tgz" in planned(tmp_path, {}).skipped["mlc"]


def test_small_buffers_run_where_memory_is_short(tmp_path: Path) -> None:
    assert planned(tmp_path, {**HERE, "extra": "-b50m"}, memory_available=GiB).steps


def test_each_mode_is_a_case_and_its_command_is_what_the_parser_understands(tmp_path: Path) -> None:
    every = ",".join(load("mlc").parameters["modes"].choices)
    numa = tuple(NumaNode(id=n) for n in range(4))
    steps = planned(tmp_path, {**HERE, "modes": every, "extra": "-X -b256m", "timeout": "20m"}, numa=numa).steps
    assert {s.case for s in steps} == set(every.split(","))
    for step in steps:
        assert step.argv[0] == "/usr/bin/python3"
        assert step.argv[2].endswith("/mlc")
        assert step.argv[3:] == (f"--{step.case}", "-X -b256m")
        assert step.timeout_s == 1200
        assert 0 < step.expect_s < step.timeout_s
    usual = planned(tmp_path).steps
    assert {s.case for s in usual} == set(load("mlc").parameters["modes"].default)
    assert all(len(s.argv) == 4 for s in usual)


def test_another_tarball_is_another_deployment(tmp_path: Path, archive: Path) -> None:
    settings = {"tarball": str(archive), "sha256": sha256(archive)}
    first = planned(tmp_path, settings).deploy[0].provides
    assert first == planned(tmp_path, {**settings, "sha256": settings["sha256"].upper()}).deploy[0].provides
    tarball.make(archive, ["mlc"])
    assert first != planned(tmp_path, {**settings, "sha256": sha256(archive)}).deploy[0].provides
    assert first != planned(tmp_path).deploy[0].provides


def test_every_metric_of_the_parser_stands_in_the_manifest(tmp_path: Path) -> None:
    """As root, without control of the prefetchers, and with them left on, in every mode."""
    manifest = load("mlc")
    for control in ("sequential", "random", "prefetched"):
        for mode in manifest.parameters["modes"].choices:
            text = tarball.outputs()["sequential" if control == "prefetched" else control][mode]
            extra = " -e" if control == "prefetched" else ""
            head = f"Intel(R) Memory Latency Checker - v3.11b\nCommand line parameters: --{mode}{extra} \n"
            head += "*** Unable to modify prefetchers\n*** So, enabling random access\n" if control == "random" else ""
            for m in parse((head + text).encode()).measurements:
                metric = manifest.metrics[m.metric]
                assert (metric.unit, metric.better) == (m.unit, m.better)
                usual = "mem-latency" if m.unit == "s" else "core-bw" if m.metric == "bandwidth" else "mem-bw"
                assert (metric.class_ or manifest.class_) == usual
    latencies = [n for n, m in manifest.metrics.items() if m.unit == "s"]
    plain = [n for n in latencies if not n.endswith(("_random", "_prefetched"))]
    assert set(latencies) == {n + s for n in plain for s in ("", "_random", "_prefetched")}
    headlines = {n for n, m in manifest.metrics.items() if m.headline}
    assert headlines == {"local_latency", "local_latency_random", "peak_read_bandwidth"}


# --- what unpack.sh makes of a tarball, without a host


def unpack(dest: Path, archive: Path | None, path: str = "") -> subprocess.CompletedProcess[str]:
    dest.mkdir(exist_ok=True)
    if archive:
        (dest / "tarball").write_bytes(archive.read_bytes())
    words = ["sh", str(FILES / "unpack.sh"), str(dest), archive.name if archive else "", path]
    return subprocess.run(words, input="run\n", capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "members",
    [
        tarball.USUAL,
        ["./Windows/mlc", "./Linux/mlc", "./Linux/mlc_avx512"],
        ["mlc_v3.7/", "mlc_v3.7/Linux/mlc_avx512", "mlc_v3.7/Linux/mlc", "mlc_v3.7/Windows/mlc.exe"],
        ["mlc/", "mlc/mlc"],
        ["Linux/mlc_internal", "Windows/mlc_internal.exe"],
        ["linux/mlc_avx512"],
    ],
)
def test_the_program_is_found_in_every_layout(tmp_path: Path, members: list[str]) -> None:
    dest, archive = tmp_path / "tools", tarball.make(tmp_path / "mlc.tgz", members)
    done = unpack(dest, archive)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in dest.iterdir()) == ["mlc", "run.py"]
    assert (dest / "mlc").read_bytes() == tarball.standin()
    assert os.access(dest / "mlc", os.X_OK)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (["Linux/redist.txt", "Windows/mlc.exe", "mlc/readme"], "mlc.tgz holds no program mlc for Linux"),
        (None, "mlc.tgz is not a tar archive"),
        (["Linux/mlc"], "MLC of mlc.tgz does not start on this host: GLIBC_2.99 not found"),
    ],
)
def test_what_is_no_mlc_leaves_nothing_that_looks_deployed(
    tmp_path: Path, members: list[str] | None, words: str
) -> None:
    archive, dest = tmp_path / "mlc.tgz", tmp_path / "tools"
    if members is None:
        archive.write_bytes(b"<html>You are not logged in</html>")
    else:
        tarball.make(archive, members, program=b"#!/bin/sh\necho GLIBC_2.99 not found >&2\nexit 1\n")
    done = unpack(dest, archive)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]
    assert [p.name for p in dest.iterdir()] == ["run.py"]


def test_a_program_of_the_hosts_own_is_used_where_it_lies(tmp_path: Path) -> None:
    program, dest = tmp_path / "mlc", tmp_path / "tools"
    absent = unpack(dest, None, str(program))
    assert absent.returncode == 1
    assert f"mlc.path: {program} is not a program" in absent.stderr
    program.write_bytes(tarball.standin())
    assert "is not a program" in unpack(dest, None, str(program)).stderr
    program.chmod(0o755)
    assert unpack(dest, None, str(program)).returncode == 0
    assert (dest / "mlc").resolve() == program


# --- run.py, which a SIGTERM reaches together with MLC


def run(tmp_path: Path, script: str) -> subprocess.Popen[str]:
    """run.py with an MLC that is this script, and a modprobe that fails."""
    for name, text in {"mlc": script, "modprobe": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    return subprocess.Popen(
        [sys.executable, str(FILES / "run.py"), str(tmp_path / "mlc"), "--idle_latency", "-b1m -X"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )


def test_mlc_gets_its_options_and_its_status_is_kept(tmp_path: Path) -> None:
    ran = run(tmp_path, 'echo "$# $*"; exit 22')
    assert ran.communicate(timeout=120) == ("3 --idle_latency -b1m -X\n", "")
    assert ran.returncode == 22
    crashed = run(tmp_path, "kill -SEGV $$")
    assert "MLC was killed by signal 11" in crashed.communicate(timeout=120)[1]
    assert crashed.returncode == 139


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FILES / "run.py"), str(tmp_path / "gone"), "--idle_latency"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (127, f"{tmp_path}/gone cannot be started: No such file or directory\n")


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("trap 'echo tidy; exit 0' INT; echo begun; while :; do sleep 0.05; done", "tidy\n"),
        ("trap '' INT; echo begun; while :; do sleep 0.05; done", ""),
    ],
)
def test_mlc_is_ended_by_sigint_and_within_the_agents_patience(tmp_path: Path, script: str, printed: str) -> None:
    ran = run(tmp_path, script)
    assert ran.stdout
    assert ran.stdout.readline() == "begun\n"
    os.killpg(ran.pid, signal.SIGTERM)
    assert ran.wait(60) == 143
    assert ran.stdout.read() == printed
    ran.communicate()


def test_run_py_runs_on_python_3_6() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(FILES / "run.py")]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
