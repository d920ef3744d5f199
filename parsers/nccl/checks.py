"""Find figures of a collective benchmark that contradict each other by more than the rounding of printed figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fleetmark.parsers.nccl.model import Figure, Point, Row, Run


def factors(name: str | None, ranks: int | None) -> list[tuple[float | None, float | None]]:
    """Return a collective's factors from size over time to algbw, and from algbw to busbw.

    The current definition comes first. Up to June 2020, the algbw of all_gather and reduce_scatter omitted each rank's
    own share.
    """
    part = (ranks - 1) / ranks if ranks else None
    factors_by_name: dict[str, list[tuple[float | None, float | None]]] = {
        "all_reduce": [(1.0, 2 * part if part is not None else None)],
        "all_gather": [(1.0, part), (part, 1.0)],
        "alltoall": [(1.0, part)],
        "alltoallv": [(None, part)],  # the table does not show how much data it moves
        "hypercube": [(part, 1.0)],
        "broadcast": [(1.0, 1.0)],
    }
    aliases = {
        "all_reduce_bias": "all_reduce",
        "reduce_scatter": "all_gather",
        "gather": "alltoall",
        "scatter": "alltoall",
        "reduce": "broadcast",
        "sendrecv": "broadcast",
        "permute": "broadcast",
    }
    return factors_by_name.get(aliases.get(name or "", name or ""), [])


def is_rate(rate: Figure, moved: float, time: Figure) -> bool:
    """Return whether ``rate`` equals ``moved`` over ``time``, within their rounding."""
    if time.value <= time.half:
        return True
    lowest, highest = moved / (time.value + time.half), moved / (time.value - time.half)
    slack = rate.half + 1e-9 * highest
    return lowest - slack <= rate.value <= highest + slack


@dataclass(kw_only=True, frozen=True, slots=True)
class _Doubt:
    """A figure that contradicts another one of its row."""

    metric: str
    row: Row
    point: Point
    source: str
    printed: float
    expected: float


def disagreements(run: Run, single: bool) -> Iterator[str]:
    """Return where busbw, algbw or the average contradicts the other figures.

    busbw must be algbw times the collective's factor, algbw must be size over time, and the average must match the
    rows.
    """
    definitions = factors(run.case, run.ranks or run.ranks_of_command)
    doubts_by_definition = [list(_doubts(run, alg, None if single else bus)) for alg, bus in definitions]
    if doubts_by_definition:
        doubts = min(doubts_by_definition, key=len)
        if doubts_by_definition.index(doubts) > 0:
            yield "algbw leaves out each rank's own share, as versions before June 2020 did: later ones show more"
        for metric in ("busbw", "algbw"):
            yield from _tell([d for d in doubts if d.metric == metric], run.gb)
    rates = [p.figures["busbw"] for _, p in run.points() if "busbw" in p.figures]
    if run.average and rates and run.ended and not run.damaged and not run.mixed:
        mean = Figure(sum(r.value for r in rates) / len(rates), sum(r.half for r in rates) / len(rates))
        if abs(run.average.value - mean.value) > run.average.half + mean.half * (1 + 1e-9) + 1e-9 * mean.value:
            if run.headless:
                yield "Avg bus bandwidth covers more rows than the text contains"
                return
            yield (
                f"Avg bus bandwidth {run.average.value / run.gb:.6g} GB/s disagrees with its own rows, "
                f"whose average is {mean.value / run.gb:.6g} GB/s"
            )


def _doubts(run: Run, alg_factor: float | None, bus_factor: float | None) -> Iterator[_Doubt]:
    for row, point in run.points():
        time, alg, bus = (point.figures.get(metric) for metric in ("time", "algbw", "busbw"))
        if bus_factor is not None and alg and bus:
            expected = alg.value * bus_factor
            if abs(bus.value - expected) > alg.half * bus_factor + bus.half + 1e-9 * expected:
                yield _Doubt(
                    metric="busbw",
                    row=row,
                    point=point,
                    source=f"algbw x {bus_factor:.4g}",
                    printed=bus.value,
                    expected=expected,
                )
        if alg_factor is not None and alg and time and time.value > time.half:
            moved = row.size * alg_factor
            if not is_rate(alg, moved, time):
                yield _Doubt(
                    metric="algbw",
                    row=row,
                    point=point,
                    source="size over time",
                    printed=alg.value,
                    expected=moved / time.value,
                )


def _tell(doubts: list[_Doubt], gb: float) -> Iterator[str]:
    if doubts:
        d = doubts[0]
        place = {"out": " out of place", "in": " in place"}.get(d.point.place, "")
        more = f"; so {len(doubts) - 1} more" if len(doubts) > 1 else ""
        yield (
            f"{d.metric} at size {d.row.size}{place} is {d.printed / gb:.6g} GB/s, but {d.source} "
            f"is {d.expected / gb:.6g} GB/s{more}"
        )
