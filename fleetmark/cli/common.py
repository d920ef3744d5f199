"""Shared by the verbs of the command line: exit statuses, common options, and the end by Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.base.runtime import discard_stdout
from fleetmark.base.terminal import Terminal

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


ROOT = Path(os.environ.get("FLEETMARK_RESULTS", "fleetmark-results"))
Root = Annotated[
    Path,
    typer.Option(
        "--results", help="Where campaigns are kept: a folder, or s3://BUCKET/PATH. FLEETMARK_RESULTS sets it too."
    ),
]
AsFormat = Annotated[Format, typer.Option("--format", help="json: nothing but JSON on stdout.")]


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """End the program in one sentence and status 2 on a FleetmarkError, and where a file or folder may not be touched;
    in status 1 where it is the results that cannot be kept.
    """
    try:
        yield
    except (FleetmarkError, PermissionError) as error:
        sentence = str(error)
        if isinstance(error, PermissionError) and error.filename:
            sentence = f"{error.filename}: permission denied; choose another place, or become a user who may"
        Terminal(stderr=True).print(f"fleetmark: {sentence}", style="bold", soft_wrap=True)
        sys.exit(SOME_FAILED if isinstance(error, CannotKeep) else USAGE)
    except BrokenPipeError:  # `fleetmark … | head`
        discard_stdout()
        sys.exit(OK)


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into a sentence and exit status 3, where nothing else handles it."""
    try:
        yield
    except KeyboardInterrupt:
        Terminal(stderr=True).print(f"fleetmark: interrupted; {advice}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


@contextlib.contextmanager
def results(
    root: Path,
    need: Literal["shelves", "list", "figures"] = "figures",
    *,
    campaign: str | None = None,
    writes: bool = False,
) -> Iterator[Path]:
    """``root``; of one in a store a copy of what a verb needs: of all campaigns, or of ``campaign`` with its raw files.

    What a verb that ``writes`` leaves in the copy is stored at its end. Raises FleetmarkError where the store refuses.
    """
    if campaign is not None and ":/" not in str(root) and Path(campaign).is_dir():
        from fleetmark.record import store

        url: str | None = store.name_of(Path(campaign).absolute().parent)  # a campaign in a copy, named by its path
        url = url if url and "://" in url else None
    elif ":/" in str(root):
        from fleetmark.record import store

        url = store.url_of(root)
    else:
        url = None
    if url is None:
        yield root
        return
    copy, console, names = store.copy_of(url), Terminal(stderr=True), list[str]()
    with console.status(f"fetching from {url}"):
        if writes:
            copy.check_writable()
        if campaign is None:
            copy.pull(store.Need[need.upper()])
        else:
            names, left = copy.pull_campaign(Path(campaign).name)
            for sentence in left:
                typer.echo(f"fleetmark: {sentence}", err=True)
    if not writes:
        yield copy.root
        return
    end: typer.Exit | None = None
    with store.held(copy.objects, names):
        copy.expect(names)
        try:
            yield copy.root
        except typer.Exit as exit_:
            end = exit_
        try:
            with console.status(f"storing in {url}"):
                copy.push(names)
        except FleetmarkError as error:
            raise CannotKeep(
                f"not stored: {error}; everything is kept in {copy.root}, and the next command that writes to {url} "
                "stores it"
            ) from error
    if end is not None:
        raise end
