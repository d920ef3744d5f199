"""Complete campaigns over real SSH: a fleet measures, fails, is interrupted and resumed; every command is a user's."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet import tools
from tests.fleet.command import FLEETMARK, LONG_S, Command, as_ops

pytestmark = pytest.mark.fleet

SUITE = """description: small and real
repeats: 2
workloads:
  stream: {set: {array_elements: 1000000, ntimes: 3, threads: 1}}
  fio: {set: {runtime: 1, ramp: 0, size: 16MiB, rand_iodepth: 4, seq: write, latency_target: 0}}
  lmbench: {cases: ["lat_syscall-null", "lat_syscall-read"], set: {path: PATH, samples: 1}}
  iperf3: {repeats: 1, set: {duration: 1, omit: 0, streams: 2, udp_rate: 100M}}
"""


@pytest.fixture(scope="session")
def lmbench() -> str:
    return tools.fetch_lmbench()


@pytest.fixture
def suite(tmp_path: Path, lmbench: str) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "suite.yml"
        text = text if text.startswith("description") else f"description: x\nrepeats: 1\nworkloads:\n{text}"
        file.write_text(text.replace("PATH", lmbench))
        return str(file)

    return write


def test_four_hosts_measure_everything(command: Command, suite: Callable[[str], str]) -> None:
    done = command.run("--suite", suite(SUITE), "--seed", "5", "--set", "stream.ntimes=4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(command.count()) == {"passed"}
    single = 4 * (2 * 1 + 2 * 3 + 2 * 2)  # hosts x (stream + fio + lmbench), two repeats
    pairs = 4 * 3 * 2  # ordered pairs, tcp-2 and udp
    assert command.count().total() == single + pairs

    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["host"]) == {"h1", "h2", "h3", "h4"}
    triad = frame.query("workload == 'stream' and metric == 'triad'")
    assert len(triad) == 8
    assert (triad["value"] > 1e8).all()
    assert set(triad["unit"]) == {"B/s"}
    met = set(frame.query("workload == 'iperf3' and metric == 'bitrate'")["subject"])
    assert met == {f"h{a}>h{b}" for a in range(1, 5) for b in range(1, 5) if a != b}
    assert (frame.query("metric == 'read_iops'")["value"] > 0).all()
    for raw in set(frame["raw"]):
        assert (command.campaign / raw).exists()

    page = (command.campaign / "summary.html").read_text()
    assert all(host in page for host in command.fleet.names)
    assert "http" not in "".join(line for line in page.splitlines() if "src=" in line or "<link" in line)
    campaign = json.loads((command.campaign / "campaign.json").read_text())
    assert campaign["seed"] == 5
    assert campaign["command"][-2:] == ["--set", "stream.ntimes=4"]

    for host in command.fleet.names:  # nothing is left but the tools it built
        left = command.fleet.exec(
            host, ["sh", "-c", "find /var/tmp/fleetmark-0 -type f -not -path '*/tools/*' -not -name lock"]
        )
        assert left.stdout.strip() == ""
        busy = command.fleet.exec(host, ["sh", "-c", "pgrep -x 'iperf3|fio|stream'"], check=False)
        assert busy.stdout == ""


def test_measurements_are_rebuilt_from_raw(command: Command, suite: Callable[[str], str]) -> None:
    command.passes(
        "--suite",
        suite(
            "  fio: {set: {runtime: 1, ramp: 0, size: 16MiB, seq: read, rand: randread, rand_iodepth: 1, latency_target: 0}}\n"
        ),
    )
    before = pd.read_parquet(command.campaign / "measurements.parquet")
    (command.campaign / "measurements.parquet").unlink()
    done = subprocess.run(
        [FLEETMARK, "rebuild", str(command.campaign)], capture_output=True, text=True, env=command.env
    )
    assert done.returncode == 0, done.stderr
    after = pd.read_parquet(command.campaign / "measurements.parquet")
    keys = ["host", "case", "metric", "repeat"]
    pd.testing.assert_frame_equal(
        before.sort_values(keys).reset_index(drop=True), after.sort_values(keys).reset_index(drop=True)
    )


def test_a_host_that_dies_in_mid_run_costs_only_what_it_had_not_finished(
    command: Command, suite: Callable[[str], str]
) -> None:
    text = "  selftest: {set: {commands: 8, seconds: 0.5}}\n  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ''}}\n"
    running = command.begin("--suite", suite(text), "--limit", "h1,h2,h3", "--patience", "5")
    command.until(lambda: command.count(host="h3", workload="selftest")["passed"] >= 2)
    command.fleet.power_off("h3")
    try:
        assert running.wait(LONG_S) == 1
    finally:
        command.fleet.power_on("h3")
    dead = command.count(host="h3")
    assert dead["passed"] >= 2
    assert dead["lost"] >= 1
    assert dead["passed"] + dead["lost"] == 8 + 2
    for host in ("h1", "h2"):
        assert command.count(host=host, workload="selftest") == {"passed": 8}
    pairs = {o["subject"]: o["status"] for o in command.outcomes() if o["workload"] == "iperf3"}
    assert len(pairs) == 6
    assert all((s == "lost") == ("h3" in pair) for pair, s in pairs.items()), pairs
    lost = next(o for o in command.outcomes() if o["subject"] == "h1>h3")
    assert "h3 is not there" in lost["reason"]
    assert "h3" in command.output()
    assert "--resume" in command.output()

    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 3 * 8 + 6}


def test_killing_the_controller_loses_nothing(command: Command, suite: Callable[[str], str]) -> None:
    running = command.begin("--suite", suite("  selftest: {set: {commands: 10, seconds: 0.4}}\n"))
    command.until(lambda: command.count()["passed"] >= 6)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    before = {(o["host"], o["case"]): o["started"] for o in command.outcomes()}
    judged = command.campaign / "judged.jsonl"
    assert len(judged.read_bytes().splitlines()) >= 6
    done_there = "ls -d /var/tmp/fleetmark-0/jobs/*/*/steps/*[0-9] | wc -l"
    for host in command.fleet.names:  # the hosts go on meanwhile
        command.until(lambda host=host: int(command.fleet.exec(host, ["sh", "-c", done_there]).stdout) >= 7)
    began = time.time()
    done = command.run("--resume", command.campaign.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 40}
    after = {(o["host"], o["case"]): o["started"] for o in command.outcomes()}
    assert before.items() <= after.items()
    fresh = [v for v in after.values() if pd.Timestamp(v).timestamp() > began]
    assert len(fresh) < 20, "the hosts should have gone on while nobody listened"
    assert not judged.exists(), "nothing is owed any more"
    file = command.campaign / "measurements.parquet"
    measured = file.read_bytes()
    done = subprocess.run(
        [FLEETMARK, "rebuild", str(command.campaign)], capture_output=True, text=True, env=command.env
    )
    assert done.returncode == 0 and "0 outcomes changed" in done.stdout, done.stdout + done.stderr
    assert measured == file.read_bytes(), "what two controllers judged is what parsing all of it again gives"


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(command: Command, suite: Callable[[str], str]) -> None:
    running = command.begin("--suite", suite("  selftest: {set: {commands: 12, seconds: 0.7}}\n"))
    command.until(lambda: command.count()["passed"] >= 4)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(LONG_S) == 3, command.output()
    assert f"--resume{command.campaign}" in "".join(command.output().split()), command.output()
    for host in command.fleet.names:
        assert command.fleet.exec(host, ["pgrep", "-x", "fleetmark-job"], check=False).stdout == ""
    finished = command.count()["passed"]
    assert finished >= 4
    done = command.run("--resume", "last")
    assert done.returncode == 0
    assert command.count() == {"passed": 48}


def test_a_campaign_interrupted_among_its_pairs_is_resumed(command: Command, suite: Callable[[str], str]) -> None:
    """Stale releases and listeners from before the interruption must not let a client begin before its server."""
    text = "  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ''}}\n  selftest: {set: {seconds: 0.1}}\n"
    running = command.begin("--suite", suite(text), "--limit", "h1,h2,h4")
    command.until(lambda: command.count(workload="iperf3")["passed"] >= 2)
    command.fleet.power_off("h4")
    os.kill(running.pid, signal.SIGTERM)  # as a service manager ends it
    try:
        assert running.wait(LONG_S) == 3, command.output()
    finally:
        command.fleet.power_on("h4")
    done = command.run("--resume", "last", "--patience", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 6 + 18}


def test_a_resume_that_misses_a_host_says_so_and_can_be_repeated(command: Command, suite: Callable[[str], str]) -> None:
    running = command.begin("--suite", suite("  selftest: {set: {commands: 6, seconds: 0.5}}\n"))
    command.until(lambda: command.count(host="h2")["passed"] >= 1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    command.fleet.power_off("h2")
    try:
        done = command.run("--resume", "last")
    finally:
        command.fleet.power_on("h2")
    assert done.returncode == 1
    assert command.count(host="h2")["lost"] >= 1
    assert command.run("--resume", "last").returncode == 0
    assert command.count() == {"passed": 24}


def test_a_cut_link_heals_and_nothing_is_lost(command: Command, suite: Callable[[str], str]) -> None:
    running = command.begin("--suite", suite("  selftest: {set: {commands: 10, seconds: 1}}\n"), "--patience", "60")
    command.until(lambda: command.count(host="h2")["passed"] >= 2)
    command.fleet.cut("h2")
    try:
        command.until(lambda: "h2: does not answer" in command.output())
    finally:
        command.fleet.heal("h2")
    assert running.wait(LONG_S) == 0, command.output()
    assert command.count() == {"passed": 40}


FAKES = {
    "exits": ("#!/bin/sh\necho 'fio: the disk caught fire' >&2\nexit 9\n", "exit status 9: fio: the disk caught fire"),
    "garbage": ("#!/bin/sh\nhead -c 3000 /dev/urandom > fio.json\n", "fio"),
    "silent": ("#!/bin/sh\nexit 0\n", "the run left none"),
    "hangs": ("#!/bin/sh\nsleep 1000 & sleep 1000\n", "no end after"),
}


def test_broken_tools_fail_by_name_and_the_other_hosts_finish(command: Command, tmp_path: Path) -> None:
    """fio is replaced on each host by a program that breaks in its own way; h4 keeps the real one."""
    text = "description: x\nrepeats: 1\nworkloads:\n  fio: {set: {runtime: 1, ramp: 0, size: 1MiB, rand: randread, rand_iodepth: 1, latency_target: 0}, cases: ['rand*']}\n"
    (tmp_path / "s.yml").write_text(text)
    hosts = dict(zip(("h1", "h2", "h3"), ("exits", "garbage", "silent"), strict=True))
    try:
        for host, kind in hosts.items():
            command.fleet.exec(
                host, ["sh", "-c", "cat > /usr/local/bin/fio; chmod +x /usr/local/bin/fio"], input=FAKES[kind][0]
            )
        done = command.run("--suite", str(tmp_path / "s.yml"))
        assert done.returncode == 1
        for host, kind in hosts.items():
            (outcome,) = [o for o in command.outcomes() if o["host"] == host]
            assert outcome["status"] == "failed"
            assert FAKES[kind][1] in outcome["reason"], outcome
            assert len(outcome["reason"].splitlines()) == 1
        assert command.count(host="h4") == {"passed": 1}
        raw = command.campaign / "raw" / "h2" / "fio" / "randread-4k-qd1" / "0" / "fio.json"
        assert raw.stat().st_size == 3000, "what was brought back is kept, garbage or not"
    finally:
        for host in hosts:
            command.fleet.exec(host, ["rm", "-f", "/usr/local/bin/fio"])
    done = command.run("--resume", "last", "--retry-failed")  # with the real fio
    assert done.returncode == 0 and "3 failed or invalid steps will run again" in done.stdout, done.stdout
    assert command.count() == {"passed": 4}
    (old,) = command.campaign.glob("superseded/*/h2/fio/*/0/fio.json")
    assert old.stat().st_size == 3000


def test_a_hanging_tool_is_ended_at_its_timeout(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yml").write_text(
        "description: x\nrepeats: 1\nworkloads:\n  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ''}}\n"
    )
    fake = '#!/bin/sh\ncase $1 in -s) exec /usr/bin/iperf3 "$@";; *) sleep 1000 & sleep 1000;; esac\n'
    command.fleet.exec("h1", ["sh", "-c", "cat > /usr/local/bin/iperf3; chmod +x /usr/local/bin/iperf3"], input=fake)
    try:
        done = command.run("--suite", str(tmp_path / "s.yml"), "--limit", "h1,h2")
        assert done.returncode == 1
        statuses = {o["subject"]: (o["status"], o["reason"]) for o in command.outcomes()}
        assert statuses["h1>h2"] == ("failed", statuses["h1>h2"][1])
        assert "no end after 32 s" in statuses["h1>h2"][1]
        assert statuses["h2>h1"][0] == "passed"
        for host in ("h1", "h2"):
            assert (
                command.fleet.exec(host, ["pgrep", "-x", "sleep|iperf3"], check=False).stdout.count("\n") <= 1
            )  # its init sleeps
    finally:
        command.fleet.exec("h1", ["rm", "-f", "/usr/local/bin/iperf3"])
    assert command.run("--resume", "last", "--retry-failed").returncode == 0
    assert command.count() == {"passed": 2}


def test_hosts_that_cannot_be_used_are_named_and_the_others_finish(
    command: Command, suite: Callable[[str], str], tmp_path: Path
) -> None:
    """One address where nobody is, one wrong user, one without Python; h4 is well."""
    common = f"-F {command.fleet.ssh_config}"
    inventory = tmp_path / "hosts.ini"
    inventory.write_text(
        f"h1 ansible_host={command.fleet.address('h1')[:-1]}99 ansible_ssh_common_args='{common} -o StrictHostKeyChecking=no'\n"
        f"h2 ansible_user=nobody-here ansible_ssh_common_args='{common}'\n"
        f"h3 ansible_ssh_common_args='{common}'\nh4 ansible_ssh_common_args='{common}'\n"
    )
    hide = "for p in /usr/bin/python3* /usr/local/bin/python3* /usr/libexec/platform-python; do [ -e $p ] && mv $p $p.hidden; done; true"
    show = "for p in /usr/bin/*.hidden /usr/local/bin/*.hidden; do [ -e $p ] && mv $p ${p%.hidden}; done; true"
    command.fleet.exec("h3", ["sh", "-c", hide])
    try:
        done = subprocess.run(
            [FLEETMARK, "run", "-i", str(inventory), "--suite", suite("  selftest:\n")],
            capture_output=True, text=True, timeout=LONG_S, env=command.env,
        )  # fmt: skip
    finally:
        command.fleet.exec("h3", ["sh", "-c", show])
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 1
    reason_by_host = {o["host"]: o["reason"] for o in command.outcomes() if o["status"] != "passed"}
    assert set(reason_by_host) == {"h1", "h2", "h3"}
    assert all(reason.startswith("unreachable: ") for reason in reason_by_host.values())
    assert "nobody-here" in reason_by_host["h2"]
    assert "Python" in reason_by_host["h3"]
    assert command.count(host="h4") == {"passed": 6}


def test_a_tool_that_no_package_offers_fails_by_name(command: Command, suite: Callable[[str], str]) -> None:
    """h2 has no fio, and a package manager that knows none."""
    fakes = """
    mv /usr/bin/fio /usr/bin/fio.hidden
    printf '#!/bin/sh\\necho "E: Unable to locate package fio" >&2; exit 100\\n' > /usr/local/bin/apt-get
    printf '#!/bin/sh\\nexit 1\\n' > /usr/local/bin/dpkg-query
    chmod +x /usr/local/bin/apt-get /usr/local/bin/dpkg-query
    """
    text = "  fio: {set: {runtime: 1, ramp: 0, size: 1MiB}, cases: ['randread*qd1']}\n  selftest:\n"
    command.fleet.exec("h2", ["sh", "-ec", fakes])
    try:
        done = command.run("--suite", suite(text), "--limit", "h2,h4")
    finally:
        restore = "mv /usr/bin/fio.hidden /usr/bin/fio; rm /usr/local/bin/apt-get /usr/local/bin/dpkg-query"
        command.fleet.exec("h2", ["sh", "-c", restore])
    assert done.returncode == 1
    (failed,) = [o for o in command.outcomes() if o["host"] == "h2" and o["workload"] == "fio"]
    assert failed["status"] == "failed"
    assert "could not be deployed" in failed["reason"]
    assert "Unable to locate package fio" in failed["reason"]
    assert command.count(host="h2", workload="selftest") == {"passed": 6}
    assert command.count(host="h4") == {"passed": 7}
    assert command.run("--resume", "last", "--retry-failed").returncode == 0
    assert command.count() == {"passed": 14}


def test_an_ordinary_user_measures_what_needs_no_root_and_is_told_the_rest(
    ordinary: Path, command: Command, suite: Callable[[str], str]
) -> None:
    text = (
        "  stream: {set: {array_elements: 1000000, ntimes: 2, threads: 1}}\n"
        "  lmbench: {cases: [lat_syscall-null], set: {path: PATH, samples: 1}}\n  fio: {set: {runtime: 1, ramp: 0, size: 1MiB}, cases: ['randread*qd1']}\n"
    )
    hidden = "mv /usr/bin/fio /usr/bin/fio.hidden"
    command.fleet.exec("h1", ["sh", "-c", hidden])
    try:
        done = as_ops(ordinary, command, "--suite", suite(text))
    finally:
        command.fleet.exec("h1", ["mv", "/usr/bin/fio.hidden", "/usr/bin/fio"])
    assert done.returncode == 0, done.stdout
    assert command.count(workload="stream") == {"passed": 2}
    assert command.count(workload="lmbench") == {"passed": 2}
    (skipped,) = [o for o in command.outcomes() if o["status"] == "skipped"]
    assert skipped["host"] == "h1"
    assert skipped["reason"] == "needs fio: sudo apt-get install fio, or let Fleetmark do it as root (--become)"
    assert "skipped" in done.stdout
    assert command.count(host="h4", workload="fio") == {"passed": 1}


def test_become_works_where_sudo_does_and_says_so_where_it_does_not(
    ordinary: Path, command: Command, suite: Callable[[str], str]
) -> None:
    if command.fleet.exec("h1", ["sh", "-c", "command -v sudo"], check=False).returncode:
        pytest.skip("sudo is not installed here")
    done = as_ops(ordinary, command, "--suite", suite("  selftest:\n"), "--become")
    assert done.returncode == 1
    assert command.count(host="h4") == {"passed": 6}
    (refused,) = [o for o in command.outcomes() if o["host"] == "h1"]
    assert (refused["status"], "sudo" in refused["reason"]) == ("lost", True)
    facts = json.loads((command.campaign / "facts" / "h4.json").read_text())["facts"]
    assert (facts["root"], facts["work_dir"]) == (True, "/var/tmp/fleetmark-0")


def test_two_campaigns_share_a_results_root_but_no_host(command: Command, suite: Callable[[str], str]) -> None:
    endless = suite("  selftest: {set: {commands: 2, seconds: 600}}\n")
    first = command.begin("--suite", endless, "--limit", "h1,h2")
    command.until(lambda: command.output().count("1 run") + command.output().count("2 runs") == 2)
    holder = command.campaign.name
    done = command.run("--suite", "selftest", "--limit", "h2,h3")
    assert done.returncode == 1
    assert f"busy: campaign {holder} of " in done.stdout, done.stdout
    assert command.campaign.name != holder
    assert command.count(host="h3") == {"passed": 6}
    assert command.count(host="h2") == {"lost": 6}
    os.killpg(first.pid, signal.SIGINT)
    assert first.wait(LONG_S) == 3, command.output()
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout
    assert command.count() == {"passed": 12}


def test_hosts_take_turns(command: Command, suite: Callable[[str], str]) -> None:
    slow = suite("  selftest: {set: {commands: 2, seconds: 0.5}}\n")
    done = command.run("--suite", slow, "--at-once", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 8}
    times = {h: sorted(o["started"] for o in command.outcomes() if o["host"] == h) for h in command.fleet.names}
    order = sorted(times.values())
    assert all(a[-1] < b[0] for a, b in itertools.pairwise(order)), times
    refused = command.run("--suite", suite("  iperf3:\n"), "--at-once", "1")
    assert refused.returncode == 2
    assert "has tests on several hosts" in refused.stderr


def test_a_host_whose_facts_come_slowly_holds_up_no_other_and_joins(
    command: Command, suite: Callable[[str], str], tmp_path: Path
) -> None:
    slow = '#!/bin/sh\n[ -e /tmp/asked ] || { touch /tmp/asked; sleep 40; }\nexec /usr/bin/env python3 "$@"\n'
    command.fleet.exec("h4", ["sh", "-c", "rm -f /tmp/asked; cat >/tmp/slow; chmod +x /tmp/slow"], input=slow)
    inventory = tmp_path / "hosts.ini"
    common = f"ansible_ssh_common_args='-F {command.fleet.ssh_config}'"
    lines = [f"{h} {common}" for h in command.fleet.names]
    inventory.write_text("\n".join(lines) + " ansible_python_interpreter=/tmp/slow\n")
    text = '  selftest:\n  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ""}}\n'
    done = subprocess.run(
        [FLEETMARK, "run", "-i", str(inventory), "--suite", suite(text)],
        capture_output=True, text=True, timeout=LONG_S, env=command.env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^h4: sent no facts within \d+ s; the other hosts start now, and late hosts join", done.stdout, re.MULTILINE
    )
    order = [(e["e"], e.get("host")) for e in command.events() if e.get("status", "passed") == "passed"]
    joined = order.index(("joined", None))
    assert {host for kind, host in order[:joined] if kind == "outcome"} == {"h1", "h2", "h3"}
    assert {host for kind, host in order[joined:] if kind == "outcome"} == {"h1", "h2", "h3", "h4"}
    ended = [(o["host"], o["status"]) for o in command.outcomes() if o["workload"] == "selftest" and o["case"] != "*"]
    assert Counter(ended) == {(host, "passed"): 6 for host in command.fleet.names}
    pairs = {o["subject"] for o in command.outcomes() if o["workload"] == "iperf3" and o["status"] == "passed"}
    assert pairs == {f"{a}>{b}" for a, b in itertools.permutations(command.fleet.names, 2)}


SQUATTER = """
import os, socket, time
os.setuid(65534)
name = socket.socket(socket.AF_UNIX)
name.bind(chr(0) + "fleetmark-host-job")
name.listen()
while True:
    peer = name.accept()[0]
    try:
        peer.send(b'{"campaign": "PWNED", "owner": "PWNED", "dir": "/", "since": "PWNED"}\\n')
    except OSError:
        pass
"""


def test_another_user_of_a_host_blocks_no_campaign_there(command: Command) -> None:
    start = ["sh", "-c", "cat >/tmp/squat; setsid python3 /tmp/squat >/dev/null 2>&1 & echo $!"]
    pid = command.fleet.exec("h2", start, input=SQUATTER).stdout.strip()
    try:
        held = ["sh", "-c", "until grep -q fleetmark-host-job /proc/net/unix; do sleep 0.1; done"]
        command.fleet.exec("h2", held)
        done = command.passes("--suite", "selftest", "--limit", "h1,h2")
    finally:
        command.fleet.exec("h2", ["kill", pid])
    (warning,) = (e for e in command.events() if e["e"] == "warning")
    assert warning["host"] == "h2" and " of uid 65534 holds the lock" in warning["what"]
    assert command.count() == {"passed": 12}
    assert "PWNED" not in done.stdout + (command.campaign / "journal.jsonl").read_text()
