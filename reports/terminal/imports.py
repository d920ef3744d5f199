"""Imported tables for a terminal: what was read, what was left out, and how to select it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from fleetmark.record.imports import Import

_MOST_NOTES = 12


def lines(imports: Sequence[Import]) -> Iterator[RenderableType]:
    """A few lines per import; one for a file that was imported before."""
    for one in imports:
        if one.new:
            yield from _new(one)
        else:
            yield Text(
                f"{one.about['source']} is there already, imported {one.about['created']} as {one.campaign}; "
                f"delete {one.path} to import it again"
            )


def _new(one: Import) -> Iterator[RenderableType]:
    about = one.about
    figures, rows, machines = about["figures"], about["rows"], len(about["machines"])
    yield Text(
        f"{one.campaign}: {_count(figures, 'figure')} of {_count(machines, 'machine')} from {_count(rows, 'row')}"
    )
    for why, n in about["left_out"].items():
        yield Text(f"  left out: {n}: {why}")
    notes = about["notes"]
    yield from (Text(f"  note: {note}") for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield Text(f"  and {len(notes) - _MOST_NOTES} notes more, in {one.path / 'import.json'}")
    labels = ", ".join(f"{name} ({n})" for name, n in one.labels().items())
    yield Text(f"  select by host{', ' if labels else ''}{labels}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
