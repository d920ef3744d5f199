"""Run and measure Fleetmark as a user would, and describe where a stored result was measured."""

from __future__ import annotations

import compileall
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

P, T = ParamSpec("P"), TypeVar("T")
FLEETMARK = [sys.executable, "-c", "from fleetmark.cli import main; main()"]
RESULTS = Path(__file__).parent / "results"


def compile_modules() -> None:
    """Compile the project's modules like those of an installed program, even if PYTHONDONTWRITEBYTECODE is set."""
    compileall.compile_dir(Path(__file__).parents[1] / "fleetmark", quiet=1)


def measured(argv: list[str], fine: tuple[int, ...] = (0,)) -> tuple[float, float, float]:
    """Run a command. Return its wall seconds, CPU seconds and peak resident memory in MB.

    Raise SystemExit if its exit status is not one of ``fine``.
    """
    before = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    if os.waitstatus_to_exitcode(status) not in fine:
        raise SystemExit(f"{' '.join(argv[3:])} ended with status {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def separately(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return ``function(...)`` of a separate process, since its memory would count towards the peak of commands."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def circumstances() -> dict[str, str]:
    """Return the machine, date and commit of a result."""
    return {
        "machine": f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
    }


def _commit() -> str:
    """Return the current commit of the working tree."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip() or "unknown"
