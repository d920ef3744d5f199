"""Build the table of the hosts' condition during measurements: clock, heat, power and load, one unit per column."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fleetmark.base.text import Message, count, joined, message
from fleetmark.reports.campaign.conditions import Condition
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number

# A field of Condition, its heading, and its base unit.
_QUANTITIES: tuple[tuple[str, Message, str], ...] = (
    ("clock_hz", message("mean clock, median run"), "Hz"),
    ("lowest_clock_hz", message("lowest clock"), "Hz"),
    ("hottest_c", message("hottest CPU sensor"), "degC"),
    ("power_w", message("mean power, median run"), "W"),
    ("steal", message("stolen share of the machine, worst sample"), "1"),
    ("foreign_cores", message("cores used by other processes, worst run"), "1"),
    ("gpu_clock_hz", message("accelerators: mean clock, median run"), "Hz"),
    ("gpu_lowest_clock_hz", message("accelerators: lowest clock"), "Hz"),
    ("gpu_hottest_c", message("hottest accelerator"), "degC"),
    ("gpu_power_w", message("accelerators: mean power, median run"), "W"),
    ("gpu_slowed", message("accelerators: share of samples slowed down by power or heat, median run"), "1"),
)


def table(view: View, conditions: Sequence[Condition], side: Message) -> Tabular | None:
    """Return the table, or None if no run has any data. ``side``: the heading of generations."""
    known = [q for q in _QUANTITIES if any(getattr(c, q[0]) is not None for c in conditions)]
    if not known:
        return None
    columns = [
        Column("workload", message("workload"), "name"),
        *([Column("generation", side, "side")] if len(view.generations) > 1 else []),
        Column("runs", message("runs"), "number"),
    ]
    figures = []
    for name, title, unit in known:
        values = [getattr(c, name) for c in conditions]
        shown = fmt.fit(((v, math.nan, math.nan) for v in values if v is not None), unit)
        columns.append(Column(name, title, "number", unit=shown.unit))
        figures.append([Cell() if v is None else Cell(shown.number(v), v, unit) for v in values])
    rows = [
        (
            Cell(fmt.clean(c.workload)),
            *([Cell(view.title_of(c.generation))] if len(view.generations) > 1 else []),
            number(c.runs),
            *cells,
        )
        for c, *cells in zip(conditions, *figures, strict=True)
    ]
    return Tabular("conditions", message("Host conditions during runs"), tuple(columns), rows, notes=(_read(view),))


def _read(view: View) -> str:
    """Return how many runs were read, and which files could not be read."""
    telemetry = view.results.telemetry
    read = message(
        "Passed runs only. Telemetry read for {n} of {of} headline runs, spread evenly over the hosts.",
        n=f"{telemetry.read:,}",
        of=f"{telemetry.available:,}",
    )
    if not telemetry.damaged:
        return read
    files = ", ".join(map(fmt.clean, telemetry.damaged[:3]))
    damaged = message("{files} could not be read:", files=count(len(telemetry.damaged), "file"))
    return joined([read, damaged, files], " ")
