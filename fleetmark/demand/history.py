"""Read past use from a CSV file with a row per period, check it, and forecast demand from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import Message, message
from fleetmark.demand import periods
from fleetmark.demand.csv import Folder
from fleetmark.demand.keys.workload import History
from fleetmark.demand.places import Input, Path, Where
from fleetmark.planner.capacity.demand.forecast import HIGH, LEAST, forecast

PERIOD = "period"
_A_YEAR = {"month": 12, "quarter": 4, "half": 2, "year": 1}


@dataclass(frozen=True, slots=True)
class Expected:
    """The demand by planned period: its median, the standard deviation of its logarithm, and its quality
    in words.

    ``residuals`` has, by number of the past period, the difference between the logarithm of its use and the forecast.
    """

    point: list[float]
    sigma: list[float]
    words: Message
    residuals: Mapping[int, float]


def expected(written: History, workload: str, names: Sequence[str], source: Input, path: Path) -> Expected | None:
    """Return the forecast of a workload for the planned periods.

    If its history does not allow a forecast, record errors and return None.
    """
    file = source.folder / written.file
    reader = Folder(file.parent)
    column = written.column or workload
    try:
        heads, rows = reader.rows(file.name, (PERIOD, "a column per workload"), [PERIOD])
    except FleetmarkError as error:
        source.fault(path, str(error).partition("; the sheets are")[0])
        return None
    faults = reader.input.faults
    if PERIOD in heads and column not in heads:
        others = [h for h in heads if h != PERIOD]
        sentence = f"{file.name} has no column {column!r}{suggest(column, others)}; there are {', '.join(others)}"
        source.fault(path, sentence)
        return None
    series = [(row.line, row.cells.get(PERIOD, ""), row.cells.get(column, "")) for row in rows]
    values = [_use(file.name, line, column, text, faults) for line, _, text in series]
    last = _in_order(file.name, [(line, name) for line, name, _ in series], names, faults)
    source.faults.extend(faults)
    if faults:
        return None
    if last is None or len(values) < LEAST:
        source.fault(path, f"{file.name} has {len(values)} periods of {column}: a forecast needs {LEAST} or more")
        return None
    source.files = {**source.files, **reader.files}
    season = _A_YEAR[last.length] if written.season is None else written.season
    ahead = _number(names[0]) - last.number - 1
    result = forecast([v for v in values if v], ahead + len(names), season)
    words = message(
        "forecast by ETS({model}) from {n} periods of {file}; in a backtest of {origins} forecasts the mean error was "
        "{error}, and {covered} of uses lay at or below p{high}",
        model=result.model,
        n=len(values),
        file=file.name,
        origins=result.origins,
        error=f"{result.error:.1%}",
        covered=f"{result.covered:.0%}",
        high=f"{100 * HIGH:g}",
    )
    if result.widened > 1:
        words = message(
            "{forecast}; its spread is widened by {factor} to fit", forecast=words, factor=f"{result.widened:.2f}"
        )
    first = last.number - len(values) + 1
    residuals = dict(enumerate(result.residuals.tolist(), first))
    return Expected(result.median[ahead:].tolist(), result.sigma[ahead:].tolist(), words, residuals)


def _use(file: str, line: int, column: str, text: str, faults: list[tuple[Where, str]]) -> float:
    """Return a figure of past use. Record an error if it is missing, 0 or not a number."""
    place = Where(file, line, column)
    try:
        value = float(text) if text else None
    except ValueError:
        faults.append((place, f"{text[:60]!r} is not a number"))
        return 0.0
    if value is None:
        faults.append((place, "is empty: write the usage, or start the history after it"))
    elif not math.isfinite(value) or value <= 0:
        faults.append((place, f"is {text[:60]}: a growth forecast needs values above 0; start the history after it"))
    else:
        return value
    return 0.0


def _in_order(
    file: str, rows: Sequence[tuple[int, str]], names: Sequence[str], faults: list[tuple[Where, str]]
) -> periods.Place | None:
    """Return the last period of the history.

    Record errors for gaps, and for periods that do not match those of the plan.
    """
    first, before = periods.place(names[0]), None
    for line, name in rows:
        here, place = periods.place(name), Where(file, line, PERIOD)
        if first is None:
            faults.append(
                (place, f"the plan begins in {names[0]!r}, which is not a period of the calendar: name it as one")
            )
        elif here is None or here.length != first.length:
            faults.append((place, f"{name[:60]!r} is not a {first.length}, as the periods of the plan are"))
        elif before is not None and here.number != before.number + 1:
            after = periods.Place(before.length, before.number + 1).name
            faults.append((place, f"{after} is missing: {name} follows {before.name}; a forecast needs every period"))
        elif here.number >= first.number:
            faults.append((place, f"{name} is planned for: the history ends before {names[0]}"))
        else:
            before = here
            continue
        return None
    return before


def _number(name: str) -> int:
    place = periods.place(name)
    assert place is not None
    return place.number
