"""Build the section of graded operators: a table of classes and the worst operators."""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import Message, message
from fleetmark.reports.campaign.grades import GRADES, Graded, GradedClass, Grades, scale
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, figure


def section(grades: Grades) -> Section:
    """Return the section; it is empty if nothing was graded."""
    notes = (Note(text, quiet=True) for text in _notes(grades))
    exhibits: tuple[Exhibit, ...] = (*notes, _classes(grades), _worst(grades)) if grades.operators else ()
    return Section("grades", message("Operators"), exhibits)


def _notes(grades: Grades) -> Iterator[Message]:
    yield message(
        "Share: the shortest time that the device's roofs allow, divided by the median time, at most 100%; for a "
        "class, the geometric mean. The roofs (matrix products and memory copies) were measured in the same run."
    )
    yield scale()
    if any(g.is_launch_bound for g in grades.operators):
        yield message(
            "Launching: the host takes longer to start the operator than the device takes to run it, so the host "
            "limits the share. For an operator that was timed as a device graph, the share is that of the device."
        )
    if grades.reference:
        yield message(
            "Score: the rate divided by the rate of the pinned reference {reference}; above 1 is faster.",
            reference=fmt.clean(grades.reference),
        )


def _classes(grades: Grades) -> Tabular:
    columns = (
        Column("workload", message("workload"), "name"),
        Column("side", message("generation"), "side"),
        Column("class", message("class"), "name"),
        Column("grade", message("grade")),
        Column("share", message("share of the roof"), "number"),
        Column("score", message("score"), "number"),
        Column("cases", message("cases"), "number"),
        *(Column(letter, letter, "number") for _, letter in GRADES),
    )
    return compact(Tabular("classes", message("Grades of classes"), columns, tuple(map(_class, grades.classes))))


def _class(c: GradedClass) -> tuple[Cell, ...]:
    counts = (Cell(f"{c.counts[letter]:,}", c.counts[letter]) for _, letter in GRADES)
    names = (Cell(c.workload), Cell(c.side), Cell(c.group), Cell(c.grade))
    return (*names, _share(c.share), figure(c.score), Cell(f"{c.n:,}", c.n), *counts)


def _worst(grades: Grades) -> Tabular:
    columns = (
        Column("workload", message("workload"), "name"),
        Column("side", message("generation"), "side"),
        Column("class", message("class"), "name"),
        Column("operator", message("operator"), "name"),
        Column("grade", message("grade")),
        Column("share", message("share of the roof"), "number"),
        Column("score", message("score"), "number"),
        Column("bound", message("bound by")),
        Column("launch", message("host over device time"), "number"),
    )
    n = len(grades.worst)
    lowest = message("The worst {n}, by score", n=n) if grades.reference else message("The worst {n}, by share", n=n)
    return compact(Tabular("worst", lowest, columns, tuple(map(_operator, grades.worst))))


def _operator(g: Graded) -> tuple[Cell, ...]:
    names = (Cell(g.workload), Cell(g.side), Cell(g.group), Cell(g.operator), Cell(g.grade))
    return (*names, _share(g.share), figure(g.score), Cell(_bound(g)), figure(g.launch))


def _bound(g: Graded) -> Message:
    if g.is_graph:
        return message("memory, as a graph") if g.balance < 1 else message("computing, as a graph")
    if g.is_launch_bound:
        return message("launching")
    return message("memory") if g.balance < 1 else message("computing")


def _share(share: float) -> Cell:
    digits = 1 if share >= 0.0095 else 2
    return Cell(fmt.share(share, digits), share)
