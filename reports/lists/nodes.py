"""Present the nodes of a partition, as Slurm describes them, as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from fleetmark.base.text import message
from fleetmark.hosts.slurm.cluster import Node
from fleetmark.reports.kit.document import Document, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number, quantity


def document(nodes: Sequence[Node]) -> Document:
    """Return a row per node: its state, its resources, and the labels derived from its Slurm features."""
    columns = (
        Column("node", message("node"), "name"),
        Column("state", message("state")),
        Column("cpus", message("CPUs"), "number"),
        Column("memory", message("memory"), "number"),
        Column("gres", "GRES"),
        Column("labels", message("labels")),
    )
    title = message("Nodes")
    table = Tabular("nodes", title, columns, tuple(map(_row, nodes)), listing=True)
    return listing(
        title, table, message("Slurm lists no node"), [asdict(node) | {"labels": node.labels} for node in nodes]
    )


def _row(node: Node) -> tuple[Cell, ...]:
    labels = ", ".join(f"{name}={value}" for name, value in node.labels.items())
    return (
        Cell(node.name),
        Cell(node.state),
        number(node.cpus),
        quantity(node.memory_b, "B"),
        Cell(node.gres),
        Cell(labels),
    )
