"""Define exit statuses, common options and error handling for all commands."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.errors import CannotKeep, FleetmarkError, LeftOut
from fleetmark.base.runtime import discard_stdout, print_warnings
from fleetmark.base.terminal import Terminal

OK, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 3


ROOT = Path(os.environ.get("FLEETMARK_RESULTS", "fleetmark-results"))
Root = Annotated[
    Path,
    typer.Option(
        "--results",
        help="Results root that contains the campaigns: a folder, or s3://BUCKET/PATH. You can also set "
        "FLEETMARK_RESULTS.",
    ),
]


def _choose(folders: list[Path] | None) -> list[Path] | None:
    if folders:
        from fleetmark.base import extensions

        extensions.choose(folders)
    return folders


WorkloadFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--workloads",
        metavar="DIR",
        callback=_choose,
        help="Also use the workloads in this folder; repeatable. You can also set FLEETMARK_WORKLOADS.",
    ),
]


class DocumentFormat(StrEnum):
    """The format of a printed document."""

    TABLE = "table"
    JSON = "json"
    MD = "md"
    CSV = "csv"


class FindingsFormat(StrEnum):
    """The format of printed findings."""

    TABLE = "table"
    JSON = "json"
    MD = "md"
    CSV = "csv"
    OPENMETRICS = "openmetrics"


AsFindings = Annotated[FindingsFormat, typer.Option("--format", help="table, json, md, csv or openmetrics.")]
AsDocument = Annotated[DocumentFormat, typer.Option("--format", help="table, json, md or csv.")]
Output = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", help="Also write FILE.html, .pdf, .xlsx, .md, .json or .csv; repeatable."),
]


def _expanded(limit: str | None) -> str | None:
    if limit is None:
        return None
    from fleetmark.base.patterns import expanded

    return expanded(limit)


Limit = Annotated[
    str | None,
    typer.Option(
        "--limit",
        "-l",
        callback=_expanded,
        help="Only these hosts: an Ansible pattern (db*,!db3), n[001-040], or @FILE with a host per line.",
    ),
]
RecordedLimit = Annotated[
    str | None,
    typer.Option("--limit", "-l", help="Only these hosts: a pattern (db*,!db3), @FILE, or labels (gen=genoa)."),
]


def message_console(form: DocumentFormat | FindingsFormat) -> Terminal:
    """Return the console for other messages: stderr if a program is to read the document on stdout."""
    return Terminal(stderr=form.value != "table")


@contextlib.contextmanager
def in_a_sentence() -> Iterator[None]:
    """End the program with one sentence and an exit status instead of a traceback.

    The status is 2 for a FleetmarkError or an inaccessible file, and 1 if the results cannot be stored.
    """
    try:
        yield
    except (FleetmarkError, PermissionError) as error:
        sentence = " ".join(str(error).split())  # one line, even if the error quotes untrusted text
        if isinstance(error, PermissionError) and error.filename:
            sentence = f"{error.filename}: permission denied; choose another path, or run as a user with access"
        Terminal(stderr=True).print(f"fleetmark: {sentence}", style="bold", soft_wrap=True)
        sys.exit(SOME_FAILED if isinstance(error, CannotKeep) else USAGE)
    except BrokenPipeError:  # `fleetmark … | head`
        discard_stdout()
        sys.exit(OK)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename:
            raise
        discard_stdout()
        Terminal(stderr=True).print(f"fleetmark: stdout cannot be written: {error.strerror}", style="bold")
        sys.exit(SOME_FAILED)


def say_what_is_left_out() -> None:
    """Print each warning about omitted data on stderr."""
    print_warnings(LeftOut, lambda sentence: typer.echo(f"fleetmark: {sentence}", err=True))


@contextlib.contextmanager
def interruptible(advice: str) -> Iterator[None]:
    """On Ctrl-C, print a sentence with ``advice`` and exit with status 3."""
    try:
        yield
    except KeyboardInterrupt:
        Terminal(stderr=True).print(f"fleetmark: interrupted; {advice}", soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def settings_from(words: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return settings such as ``fio.size=4GiB`` by workload. The manifests check the values later."""
    settings: dict[str, dict[str, str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        workload, dot, parameter = name.partition(".")
        if not (equals and dot and workload and parameter):
            raise FleetmarkError(f"--set {word}: write it as workload.parameter=value, such as --set fio.size=4GiB")
        settings.setdefault(workload, {})[parameter] = value
    return settings
