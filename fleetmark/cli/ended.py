"""Show a campaign that just ended, and return the exit status of the program."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import OK, SOME_FAILED, in_a_sentence, interruptible

if TYPE_CHECKING:
    from fleetmark.record.archive import Archive  # lazy import, because it takes a tenth of a second
    from fleetmark.verbs.documents import Documents


def show(archive: Archive, form: str, console: Console, strict: bool, documents: Documents) -> int:
    """Show a campaign that just ended, and write the requested documents. Return the exit status.

    Any error here becomes one sentence and an exit status. The measurements are already stored, and they are still sent
    to an object store.
    """
    from fleetmark.verbs import ended

    advice = f"the results are stored: fleetmark report {shlex.quote(str(archive.path))}"
    try:
        with in_a_sentence(), interruptible(advice):
            return OK if ended.show(archive, form, console, strict, documents) else SOME_FAILED
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else SOME_FAILED
    except Exception as error:  # noqa: BLE001
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        Terminal(stderr=True).print(f"fleetmark: the results cannot be shown ({problem}); {advice}", soft_wrap=True)
        return SOME_FAILED
