"""The nodes of a partition as Slurm describes them, as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fleetmark.base.units import human
from fleetmark.hosts.slurm.cluster import Node
from reports.terminal.catalogue import table as plain


def table(nodes: Sequence[Node]) -> Table:
    """A line per node: its state, what it has, and the labels that its features become."""
    lines = plain("node", "state", "CPUs", "memory", "GRES", "labels")
    for node in nodes:
        labels = ", ".join(f"{name}={value}" for name, value in node.labels.items())
        cells = (node.name, node.state, str(node.cpus), human(node.memory_b, "B"), node.gres, labels)
        lines.add_row(*map(Text, cells))
    return lines
