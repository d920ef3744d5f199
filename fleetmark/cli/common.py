"""What the verbs of the command line share: exit statuses, the options that several have, and how Ctrl-C ends."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.terminal import Terminal

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


ROOT = Path(os.environ.get("FLEETMARK_RESULTS", "fleetmark-results"))
Root = Annotated[Path, typer.Option("--results", help="Where campaigns are kept; FLEETMARK_RESULTS sets it too.")]
AsFormat = Annotated[Format, typer.Option("--format", help="json: nothing but JSON on stdout.")]


@contextlib.contextmanager
def at_one_go() -> Iterator[None]:
    """For what ends as soon as its document is made: memory freed is kept for the next table, not given back page by
    page, and nothing looks for cycles among millions of rows. That was a third of the time of large reports.
    """
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        libc = ctypes.CDLL(None)
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_MMAP_THRESHOLD, 2**30)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Ctrl-C where nothing else is waiting for it ends in a sentence and status 3."""
    try:
        yield
    except KeyboardInterrupt:
        Terminal(stderr=True).print(f"fleetmark: interrupted; {advice}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
