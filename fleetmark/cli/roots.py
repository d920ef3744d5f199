"""Locate the results root of a command: a folder, or a local copy of a root in an object store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.base.terminal import Terminal
from fleetmark.record.drafts import remove_unfinished

if TYPE_CHECKING:
    from fleetmark.record.store import StoreCopy

_SCHEME = ":/"  # in the path that results from s3://BUCKET


@contextlib.contextmanager
def results(
    root: Path,
    need: Literal["shelves", "list", "figures"] = "figures",
    *,
    campaign: str | None = None,
    writes: bool = False,
) -> Iterator[Path]:
    """Yield ``root``, or a local copy if it is in a store.

    The copy contains the data that a command needs (``need``) of all campaigns, or one ``campaign`` with its raw files.
    If the command ``writes``, its changes to the copy are stored at the end. In a folder, incomplete campaigns left by
    a killed controller are removed. Raise FleetmarkError if the store fails.
    """
    url = _url(root, campaign)
    if url is None:
        remove_unfinished(root, root)
        yield root
        return
    from fleetmark.record import store

    copy = store.copy_of(url)
    with Terminal(stderr=True).status(f"fetching from {url}"):
        if writes:
            copy.check_writable()
        names = _fetch(copy, need, campaign)
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
        _store(copy, names, url)
    if end is not None:
        raise end


def _url(root: Path, campaign: str | None) -> str | None:
    """Return the store that holds the results, or None for a folder.

    For most folders, the code for stores is not loaded.
    """
    if _SCHEME in str(root):
        from fleetmark.record import store

        return store.url_of(root)
    if campaign is not None and Path(campaign).is_dir():  # a path, which may belong to the copy of a store
        from fleetmark.record import store

        name = store.name_of(Path(campaign).absolute().parent)
        return name if "://" in name else None
    return None


def _fetch(copy: StoreCopy, need: str, campaign: str | None) -> list[str]:
    """Fetch the data that a command needs.

    Return the names of the campaigns in the store that ``campaign`` selects.
    """
    from fleetmark.record.store import Need

    if campaign is None:
        copy.pull(Need[need.upper()])
        return []
    names, left = copy.pull_campaign(Path(campaign).name)
    for sentence in left:
        typer.echo(f"fleetmark: {sentence}", err=True)
    return names


def _store(copy: StoreCopy, names: Sequence[str], url: str) -> None:
    try:
        with Terminal(stderr=True).status(f"storing in {url}"):
            copy.push(names)
    except FleetmarkError as error:
        kept = f"the results are kept in {copy.root}, and the next command that writes to {url} uploads them"
        raise CannotKeep(f"not stored: {error}; {kept}") from error
