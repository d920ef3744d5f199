"""The copy of a process that loads and works beside it: what it is sent, how it ends, and that it ends with its maker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleetmark.base.twin import Twin


def work(line: str) -> bool | int:
    if line == "fail":
        raise KeyError(line)
    return int(line) if line.isdigit() else line == "yes"


def test_it_answers_then_ends_with_a_status() -> None:
    with Twin(lambda: None, work) as twin:
        twin.wait_loaded()
        twin.wait_loaded()
        assert [twin.ask("yes"), twin.ask("no"), twin.ask("yes")] == [True, False, True]
        assert twin.finish("7") == 7


def test_one_that_failed_answers_no_more(capfd: object) -> None:
    with Twin(lambda: None, work) as twin:
        assert not twin.ask("fail")
        assert not twin.ask("yes")
        assert twin.finish("7") == 70


def test_it_is_gone_when_its_maker_leaves_or_is_killed(tmp_path: Path) -> None:
    with Twin(lambda: None, work) as twin:
        twin.wait_loaded()
        pid = twin._pid
    assert not Path(f"/proc/{pid}").exists()
    code = (
        "import os, time; from fleetmark.base.twin import Twin\n"
        f"t = Twin(lambda: None, bool); t.wait_loaded(); open({str(tmp_path / 'pid')!r}, 'w').write(f'{{t._pid}} ')\n"
        "time.sleep(60)"
    )
    maker = subprocess.Popen([sys.executable, "-c", code])
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith(" "):
        assert maker.poll() is None
        time.sleep(0.01)
    copy = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    deadline = time.monotonic() + 60
    while copy.exists() and copy.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_one_whose_maker_is_killed_while_it_loads_ends_quietly() -> None:
    code = (
        "import os, signal, time; from fleetmark.base.twin import Twin\n"
        "maker = os.getpid()\n"
        "def load():\n"
        "    while os.getppid() == maker: time.sleep(0.01)\n"
        "Twin(load, bool); os.kill(maker, signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")


@pytest.mark.parametrize(("stdout", "status"), [("| true", 7), (">/dev/full", 7), (">/dev/null", 7)])
def test_it_ends_where_its_output_cannot_be_written(stdout: str, status: int) -> None:
    code = (
        "import os, sys, time; from fleetmark.base.twin import Twin\n"
        "def work(line): time.sleep(0.2); sys.stdout.write(line); return 7\n"
        "t = Twin(lambda: None, work); status = t.finish('x'); sys.stderr.write(f'{status} ')"
    )
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {stdout}', sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    )
    assert done.stderr.split()[-1] == str(status), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count(f"{status} ") == 1, "the copy is no second maker"
    assert ("stdout cannot be written" in done.stderr) == ("full" in stdout)
