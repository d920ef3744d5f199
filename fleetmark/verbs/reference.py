"""``fleetmark reference``: machines pinned by name, and the list of those there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import count
from fleetmark.record import references
from fleetmark.record.compare import kinds_on_record
from fleetmark.record.machines import machines
from fleetmark.record.select import choose
from fleetmark.record.sides import side


def pin(root: Path, name: str, selector: str) -> str:
    """Save a reference; what to say of it."""
    every = machines(root)
    chosen = choose(every, selector)
    made = references.save(root, name, side(root, selector, chosen), chosen, kinds_on_record(root, every, ()))
    holds = f"{count(len(made.side.benchmarks), 'benchmark')} of {count(made.hosts, 'host')}"
    return f"{made.name}@{made.version}: {holds} ({selector})"


def listed(root: Path) -> list[dict[str, Any]]:
    """Every reference, as JSON would have it."""
    return [
        {
            "name": r.name,
            "version": r.version,
            "created": r.created,
            "from": r.selector,
            "hosts": r.hosts,
            "benchmarks": len(r.side.benchmarks),
        }
        for r in references.references(root)
    ]


def table(found: Sequence[dict[str, Any]]) -> RenderableType:
    """The references for a terminal."""
    if not found:
        return Text("no references; `fleetmark reference save NAME --from gen=…` pins one")
    made = Table(box=None, header_style="bold", pad_edge=False)
    for name in found[0]:
        made.add_column(name)
    for row in found:
        made.add_row(*(Text(str(v)) for v in row.values()))
    return made
