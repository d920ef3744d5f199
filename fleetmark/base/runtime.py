"""Change settings of the whole process. Each function changes one setting and documents the reason."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import resource
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of mallopt(3)


def use_system_allocator() -> None:
    """Make Arrow allocate with malloc, unless the user set ``ARROW_DEFAULT_MEMORY_POOL``.

    Arrow's own pool returns memory page by page, which takes a quarter of the time of a large report. Call this
    function before importing Arrow, which reads the variable on import.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def calculate_in_one_thread() -> None:
    """Limit numpy's OpenBLAS to one thread, unless the user set ``OPENBLAS_NUM_THREADS``.

    OpenBLAS's threads spin while they wait, which adds a tenth to the time of loading numpy and pandas. Fleetmark has
    no large matrices. OpenBLAS reads the variable when it is loaded. Steps of a run do not inherit the variable,
    because they get a new environment.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextlib.contextmanager
def keep_memory() -> Iterator[None]:
    """Keep freed memory in the process, and disable the cycle collector, while a document is created.

    The process ends right after it. Returning memory and searching millions of rows for cycles takes a third of the
    time of a large report. The limits of malloc stay changed. C libraries other than glibc have no such limits.
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
    """Raise the soft limit of open files to the hard limit.

    Each host needs three descriptors, or more through a bastion. The usual soft limit of 1024 is too low for several
    hundred hosts.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def print_warnings(shown: type[Warning], show: Callable[[str], None]) -> None:
    """Pass warnings of the class ``shown`` to ``show`` as sentences, without the code location that Python adds."""
    usual = warnings.showwarning

    def showwarning(message: Warning | str, category: type[Warning], *position: Any, **options: Any) -> None:
        if issubclass(category, shown):
            show(str(message))
        else:
            usual(message, category, *position, **options)

    warnings.showwarning = showwarning


def silence_log(name: str) -> None:
    """Show only critical messages of the logger ``name``, for a library whose errors Fleetmark reports itself."""
    logging.getLogger(name).setLevel(logging.CRITICAL)


def skip_last_collection() -> None:
    """Make Python exit without a final garbage collection of all objects.

    The collection would add 0.25 s to the 1.4 s that a report of one host takes.
    """
    gc.freeze()


def flushed(status: int) -> int:
    """Flush stdout and return the exit status: ``status``, or 1 instead of 0 if stdout cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()  # the reader of the pipe has exited, as in `… | head`
    except OSError as error:
        discard_stdout()
        sys.stderr.write(f"fleetmark: stdout cannot be written: {error.strerror}\n")
        status = status or 1
    return status


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, because its reader is gone and Python's flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def program() -> str:
    """Return the command that starts this program: its name, or its path if the name is not on the PATH."""
    path = sys.argv[0]
    if Path(path).name != "fleetmark" or shutil.which("fleetmark"):
        return "fleetmark"
    return shlex.quote(path)


def pasted(command: str) -> str:
    """Return ``command``, a command line of this program, so that it works when pasted into this shell."""
    name, space, words = command.partition(" ")
    return f"{program()}{space}{words}" if name == "fleetmark" else command
