"""Test hosts that do not answer: one line and one command for each cause, and lists of hosts for ``--limit``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.patterns import expanded, limited
from fleetmark.base.text import folded
from fleetmark.hosts.causes import by_cause, cause_of
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.preflight import check_hosts

FLEETMARK = Path(sys.executable).with_name("fleetmark")
LOGIN = ("-p", "2222", "-l", "ops", "10.0.0.4")
REASONS = {
    "its host key (ssh-ed25519 SHA256:x) is not known; log in once with ssh": "ssh -p 2222 -l ops 10.0.0.4",
    "its host key CHANGED to SHA256:x: another machine answers": "ssh-keygen -R '[10.0.0.4]:2222'",
    "log-in as ops is refused; tried /root/.ssh/id_rsa": "ssh-copy-id -p 2222 ops@10.0.0.4",
    "sudo needs a password; set ansible_become_password": "ssh -t -p 2222 -l ops 10.0.0.4 'sudo visudo -f /etc/sudoers.d/fleetmark'",
    "sh: 1: python3: not found; install python3 or set ansible_python_interpreter": "ssh -t -p 2222 -l ops 10.0.0.4 'sudo apt-get install -y python3 || sudo dnf install -y python3'",
    "10.0.0.4 port 2222 did not answer within 10 s; is it up, and is this its address?": "ping -c 3 10.0.0.4",
    "10.0.0.4 port 2222 cannot be reached: No route to host": "ip route get 10.0.0.4",
    "10.0.0.4 port 2222 refuses connections; does sshd run there?": "nc -vz 10.0.0.4 2222",
    "its name db4 does not resolve (Name or service not known)": "getent hosts 10.0.0.4",
    "the log-in as ops was interrupted: EOF": "ssh -v -p 2222 -l ops 10.0.0.4 true",
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_each_cause_has_a_command_of_its_own(reason: str) -> None:
    assert cause_of(reason).command(LOGIN) == REASONS[reason]
    assert sum(command == REASONS[reason] for command in REASONS.values()) == 1


def test_real_reasons_are_recognised() -> None:
    hosts = [
        Host("closed", "127.0.0.1", "127.0.0.1", port=1),
        Host("unknown", "no-such-host.invalid", "no-such-host.invalid"),
    ]
    reasons = {c.host.name: c.reason or "" for c in check_hosts(hosts, [])}
    assert cause_of(reasons["closed"]).title == "the connection is refused"
    assert cause_of(reasons["unknown"]).title == "the name does not resolve"


def test_hosts_are_grouped_by_cause_and_unknown_reasons_stay_apart() -> None:
    late = [(f"n{n}", f"10.0.0.{n} port 22 did not answer within 10 s") for n in range(40)]
    groups = by_cause([("a", "odd"), *late, ("b", "odder")])
    assert [(len(hosts), reason) for _, hosts, reason in groups] == [
        (40, "no answer in time"),
        (1, "odd"),
        (1, "odder"),
    ]


def test_names_are_abbreviated() -> None:
    def text(*names: str) -> str:
        return ",".join(name for name, _ in folded(names))

    assert text(*(f"n{n:03}" for n in range(1, 41))) == "n[001-040]"
    assert text("n9", "n10", "n11", "n1", "db") == "db,n1,n[9-11]"
    assert text("gpu1.rack1.net", "gpu2.rack1.net", "gpu3.rack1.net", "gpu4.rack2.net") == (
        "gpu[1-3].rack1.net,gpu4.rack2.net"
    )


NAMES = st.from_regex(r"[a-c]{0,2}[0-9]{0,4}[a-c]?(\.r[0-9])?", fullmatch=True).filter(bool)


@given(st.sets(NAMES, min_size=1, max_size=40))
def test_abbreviated_names_can_be_typed_as_a_limit(names: set[str]) -> None:
    parts = folded(names)
    assert sum(number for _, number in parts) == len(names)
    assert sorted(expanded(",".join(name for name, _ in parts)).split(",")) == sorted(names)


def test_a_limit_is_a_list_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts.ini").write_text("[web]\nn[01:40]\n[db]\nd1\n")
    Path("failed").write_text("# of the last run\nn03\n\nn07  # again\n")
    assert [h.name for h in load_inventory(["hosts.ini"], expanded("@failed"))] == ["n03", "n07"]
    assert [h.name for h in load_inventory(["hosts.ini"], expanded("@failed,d1,!n07"))] == ["n03", "d1"]
    assert len(load_inventory(["hosts.ini"], expanded("n[01-20],web:&n0*"))) == 9
    assert len(load_inventory(["hosts.ini"], expanded("web:!n[0-2]*"))) == 11
    many = ",".join(f"host-with-a-long-name-{n:05}" for n in range(6000))
    assert [h.name for h in load_inventory(["hosts.ini"], f"{many},n09")] == ["n09"]


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("@absent", "--limit @absent: cannot read the list of hosts: No such file"),
        ("@empty", "--limit @empty: the list is empty"),
        ("@binary", "it is not text"),
        ("n[9-1]", "[9-1] is not a range of hosts; write n[001-040]"),
        ("n[0-99999999]", "is not a range of hosts"),
    ],
)
def test_a_bad_limit_is_one_sentence(limit: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").write_text("# nothing\n")
    Path("binary").write_bytes(b"\xff\xfe")
    with pytest.raises(FleetmarkError) as error:
        expanded(limit)
    assert problem in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [
        ("all", "db1 db2 web1"),
        ("db*", "db1 db2"),
        ("db*,!db2", "db1"),
        ("!web1", "db1 db2"),
        ("all:&~.*1$", "db1 web1"),
        ("db[1-2]", "db1 db2"),
    ],
)
def test_a_limit_chooses_recorded_hosts(limit: str, chosen: str) -> None:
    assert limited(["db1", "db2", "web1"], limit) == chosen.split()


def test_a_limit_that_matches_no_recorded_host_names_them() -> None:
    with pytest.raises(FleetmarkError, match="--limit x matches no host; there are db1, db2"):
        limited(["db1", "db2"], "x")


@pytest.mark.job
def test_forty_dead_hosts_are_a_line_and_can_be_run_again(tmp_path: Path) -> None:
    inventory = "here ansible_connection=local\nn[001:040] ansible_host=127.0.0.1 ansible_port=1\n"
    (tmp_path / "hosts.ini").write_text(inventory)

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "COLUMNS": "140", "FLEETMARK_RESULTS": "r"}
        return subprocess.run([FLEETMARK, *words], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)

    done = typed("run", "-i", "hosts.ini", "-s", "selftest", "--repeats", "1")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line for line in lines if "n002" in line or "n039" in line] == []
    assert any(line.startswith("lost: 40 runs of selftest on n[001-040]") for line in lines)
    assert any("n[001-040]: unreachable: 127.0.0.1 port 1 refuses connections" in line for line in lines)
    assert "  nc -vz 127.0.0.1 1" in lines and "1 of 41 hosts answered" in done.stdout
    assert "40 hosts: no answer" in lines
    (campaign,) = (tmp_path / "r").glob("*-selftest-*")
    assert (campaign / "failed.hosts").read_text().split() == [f"n{n:03}" for n in range(1, 41)]
    assert any(line.endswith(f"fleetmark run --resume {campaign}") for line in lines)
    (again,) = [line for line in lines if "--limit @" in line]
    survey = typed("hosts", "-i", "hosts.ini", "--limit", shlex.split(again)[-1])
    assert "40 of 40 hosts do not answer" in survey.stdout and "Debian" not in survey.stdout


def test_failed_steps_name_the_option_that_runs_them_again(tmp_path: Path) -> None:
    from fleetmark.base.measurement import Status
    from fleetmark.reports.campaign.problems import go_on
    from tests.reports import sample

    failed = sample.tiny({"h1": [1.0]}, ended=[("h2", Status.FAILED, "exit status 3")])
    assert go_on(failed) == (
        "Run the failed, lost and invalid runs again",
        "fleetmark run --resume results/c1 --retry-failed",
    )
    assert go_on(sample.tiny({"h1": [1.0]})) is None
