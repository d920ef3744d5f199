"""Test the settings of the process: warnings as sentences, memory, open files and a closed stdout."""

from __future__ import annotations

import gc
import logging
import os
import resource
import subprocess
import sys
import warnings

import pytest

from fleetmark.base.errors import LeftOut
from fleetmark.base.runtime import keep_memory, print_warnings, raise_open_file_limit, silence_log


def test_warnings_of_one_class_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    usual: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: usual.append(str(message)))
    sentences: list[str] = []
    print_warnings(LeftOut, sentences.append)
    warnings.showwarning(LeftOut("h1 is left out"), LeftOut, "a.py", 1)
    warnings.showwarning("old", DeprecationWarning, "a.py", 1)
    assert (sentences, usual) == (["h1 is left out"], ["old"])


def test_garbage_is_collected_again_after_an_error() -> None:
    with pytest.raises(ValueError), keep_memory():
        assert not gc.isenabled()
        raise ValueError
    assert gc.isenabled()


def test_files_may_be_open_up_to_the_hard_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        raise_open_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_library_logs_only_what_is_critical() -> None:
    silence_log("fleetmark.test.library")
    assert logging.getLogger("fleetmark.test.library").getEffectiveLevel() == logging.CRITICAL


def test_a_closed_stdout_ends_without_an_error() -> None:
    code = "import fleetmark.base.runtime as r; print('x' * 99); r.discard_stdout(); print('y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize(("stdout", "status"), [("| true", 7), (">/dev/full", 7), (">/dev/null", 7)])
def test_the_program_ends_with_its_status_where_its_output_cannot_be_written(stdout: str, status: int) -> None:
    code = (
        "import sys, time; from fleetmark.base.runtime import flushed\n"
        f"time.sleep(0.2); sys.stdout.write('x'); code = flushed({status}); sys.stderr.write(f'{{code}} '); sys.exit(code)"
    )
    done = subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" {stdout}; exit ${{PIPESTATUS[0]}}', sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert ("stdout cannot be written" in done.stderr) == ("full" in stdout)
