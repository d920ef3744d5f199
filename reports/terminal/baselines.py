"""The saved baselines as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.record.diagnosis.baselines import Baseline


def table(baselines: Sequence[Baseline]) -> RenderableType:
    """A line per version of every baseline; a sentence where there are none."""
    if not baselines:
        return Text("no baselines; `fleetmark baseline save NAME --from CAMPAIGN` saves one")
    rows = [r.as_json() for r in baselines]
    lines = Table(box=None, header_style="bold", pad_edge=False)
    for name in rows[0]:
        lines.add_column(name)
    for row in rows:
        lines.add_row(*(Text(str(v)) for v in row.values()))
    return lines
