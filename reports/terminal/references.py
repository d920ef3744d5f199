"""The pinned references as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.record.references import Reference


def table(references: Sequence[Reference]) -> RenderableType:
    """A line per version of every reference; a sentence where there are none."""
    if not references:
        return Text("no references; `fleetmark reference save NAME --from gen=…` pins one")
    rows = [r.as_json() for r in references]
    lines = Table(box=None, header_style="bold", pad_edge=False)
    for name in rows[0]:
        lines.add_column(name)
    for row in rows:
        lines.add_row(*(Text(str(v)) for v in row.values()))
    return lines
