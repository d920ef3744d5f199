"""Shared by the verbs of the command line: exit statuses, common options, and the end by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.terminal import Terminal

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


ROOT = Path(os.environ.get("FLEETMARK_RESULTS", "fleetmark-results"))
Root = Annotated[Path, typer.Option("--results", help="Where campaigns are kept; FLEETMARK_RESULTS sets it too.")]
AsFormat = Annotated[Format, typer.Option("--format", help="json: nothing but JSON on stdout.")]


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into a sentence and exit status 3, where nothing else handles it."""
    try:
        yield
    except KeyboardInterrupt:
        Terminal(stderr=True).print(f"fleetmark: interrupted; {advice}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
