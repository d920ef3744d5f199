"""Settings of the whole process: every function here changes one, and says why."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


def use_system_allocator() -> None:
    """Let Arrow allocate by malloc; a pool that the user set in ``ARROW_DEFAULT_MEMORY_POOL`` stays.

    Arrow's own pool returns memory page by page, which takes a quarter of the time of a large report. Arrow reads the
    variable when it is imported, so this comes first.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def calculate_in_one_thread() -> None:
    """Let numpy's OpenBLAS have one thread; ``OPENBLAS_NUM_THREADS`` of the user's stays.

    Its threads wait for work by spinning, a tenth of what loading numpy and pandas costs, and no matrix here is large.
    OpenBLAS reads the variable when it is loaded. Steps do not inherit it: their environment is made anew.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextlib.contextmanager
def keep_memory() -> Iterator[None]:
    """Keep freed memory in the process, and collect no cycles, while a document is made.

    The process ends right after it. To return memory and to look for cycles among millions of rows took a third of the
    time of large reports. The limits of malloc stay changed; other C libraries than glibc have none.
    """
    with contextlib.suppress(AttributeError, OSError):  # only glibc has mallopt
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_MMAP_THRESHOLD, 2**30)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def raise_open_file_limit() -> None:
    """Raise the limit of open files to the hard one: a host takes three descriptors, a bastion more.

    The usual soft limit of 1024 is too low for a fleet of several hundred hosts.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def print_warnings(shown: type[Warning], show: Callable[[str], None]) -> None:
    """Pass warnings of the class ``shown`` to ``show`` as sentences; Python adds a file and a line of code to them."""
    usual = warnings.showwarning

    def showwarning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, shown):
            show(str(message))
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = showwarning


def silence_log(name: str) -> None:
    """Show only critical messages of the logger ``name``, for a library whose errors Fleetmark reports itself."""
    logging.getLogger(name).setLevel(logging.CRITICAL)


def skip_last_collection() -> None:
    """Let Python end without a search for cycles among all objects.

    The search takes 0.25 s after a report of one host, whose 1.4 s are mostly the loading of libraries.
    """
    gc.freeze()


def flushed(status: int) -> int:
    """Write all that was printed. Return the exit status: ``status``, or 1 for 0 if stdout cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()  # `… | head`
    except OSError as error:
        discard_stdout()
        sys.stderr.write(f"fleetmark: stdout cannot be written: {error.strerror}\n")
        status = status or 1
    return status


def discard_stdout() -> None:
    """Send the rest of stdout to /dev/null: its reader is gone, and Python's flush at exit would fail on the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
