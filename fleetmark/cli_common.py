"""What the verbs of the command line share: exit statuses, the options that several have, and how Ctrl-C ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


ROOT = Path(os.environ.get("FLEETMARK_RESULTS", "fleetmark-results"))
Root = Annotated[Path, typer.Option("--results", help="Where campaigns are kept; FLEETMARK_RESULTS sets it too.")]
AsFormat = Annotated[Format, typer.Option("--format", help="json: nothing but JSON on stdout.")]


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Ctrl-C where nothing else is waiting for it ends in a sentence and status 3."""
    try:
        yield
    except KeyboardInterrupt:
        Console(stderr=True).print(f"fleetmark: interrupted; {advice}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None
