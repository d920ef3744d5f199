"""Compare each headline with the theoretical peak of its machine, and with a pinned reference.

All functions are pure. They use a campaign's view, and its comparison with a reference if there is one.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, message
from fleetmark.base.units import scale_for, with_unit
from fleetmark.base.words import word
from fleetmark.planner import peak
from fleetmark.planner.peak import Peak
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.ratios import ratio_of
from fleetmark.reports.campaign.view import View
from fleetmark.reports.kit import tabular
from fleetmark.reports.kit.tabular import Cell
from fleetmark.workloads import declared
from fleetmark.workloads.manifest import Peak as Declared

if TYPE_CHECKING:
    from fleetmark.planner.comparison import Comparison
    from fleetmark.reports.comparison.model import RatioRow

MOST_NOTES = 6
_TO = "to "  # before the generation of the host at the other end of a pair


@dataclass(frozen=True, slots=True)
class Beside:
    """The context of a generation's headline. Each cell may be empty.

    ``share``: the share of the machine's peak, such as ``86%``. ``times``: the ratio to a reference, such as ``1.94``,
    or whether a guardrail is kept compared with the reference.
    """

    share: Cell = field(default_factory=Cell)
    times: Cell = field(default_factory=Cell)


@dataclass(frozen=True, slots=True)
class Against:
    """The context of all headlines.

    ``rows``: maps metric and generation to the context; headlines without a context are missing. ``reference``: the
    name and version of the reference, or empty. ``notes``: sentences about how peaks are derived and which peaks are
    unknown.
    """

    rows: Mapping[tuple[Metric, str], Beside] = field(default_factory=dict)
    reference: str = ""
    notes: tuple[Message, ...] = ()

    def context_of(self, metric: Metric, generation: str) -> Beside:
        """Return the context of a headline."""
        return self.rows.get((metric, generation), NONE)

    @property
    def has_shares(self) -> bool:
        """Return whether any headline has a peak."""
        return any(row.share.text for row in self.rows.values())

    @property
    def means(self) -> tuple[Message, ...]:
        """Return sentences that explain the columns."""
        if not self.reference:
            return self.notes
        named = message("{reference} is a pinned reference; above 1 is better than it", reference=self.reference)
        return (named, *self.notes)


NONE = Beside()


def against(view: View, comparison: Comparison | None = None) -> Against:
    """Compare each headline of ``view`` with the machine's peak and the baseline of ``comparison``.

    ``comparison``: the comparison of the campaign's only host with a pinned reference.
    """
    one, several = len(view.hosts) == 1, len(view.generations) > 1
    ratio_to = ratio_of(comparison)
    machines = machines_of(view)
    listed: dict[tuple[Metric, str], Beside] = {}
    notes: dict[Message, None] = {}
    columns = [*METRIC, "bits", "percent", "value", *([] if one else ["generation"])]
    for metric, rows, _ in view.headlines:
        held = declared.peak(metric.workload, metric.case, metric.metric)
        if held is None and comparison is None:
            continue
        for r in rows[columns].to_dict("records"):
            side = view.generations[0] if one else str(r["generation"])
            top = _peak(held, r["case"], r["subject"], side, machines) if held else None
            share = tabular.share(r["value"] * held.traffic / top.rate, 0) if held and top else Cell()
            if held and (note := _note(held, top, r, machines[side], view.title_of(side) if several else "")):
                notes[note] = None
            times = _times(ratio_to(r))
            if share.text or times.text:
                listed[metric, side] = Beside(share, times)
    has_times = any(row.times.text for row in listed.values())
    return Against(listed, comparison.baseline if has_times and comparison else "", tuple(notes)[:MOST_NOTES])


def machines_of(view: View) -> dict[str, Machines]:
    """Return the machines of each generation."""
    return {
        g: Machines([h.facts for h in view.hosts if h.facts and (h.generation or "") == g]) for g in view.generations
    }


class Machines:
    """The machines of a generation, represented by their median peak."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self._facts = facts
        self._peaks: dict[tuple[str, str], Peak | None] = {}

    def component(self, part: str, precision: str = "") -> Peak | None:
        """Return the peak of a component (memory, cores or accelerators), or None if it is not known.

        ``precision``: the precision of the cores' peak. Accelerators count only if all machines have some, because
        machines without accelerators measure their processors.
        """
        if (part, precision) not in self._peaks:
            peaks = [peak.component_peak(facts, part, precision) for facts in self._facts]
            self._peaks[part, precision] = None if part.startswith("device") and None in peaks else _middle(peaks)
        return self._peaks[part, precision]

    @cached_property
    def link(self) -> Peak | None:
        return _middle([peak.link(facts) for facts in self._facts])

    @property
    def why_no_memory(self) -> Message | None:
        """Return why the memory peak is not known and how to get it, or None if it is known."""
        return next((reason for facts in self._facts[:1] if (reason := peak.why_no_memory(facts))), None)


def _middle(peaks: Sequence[Peak | None]) -> Peak | None:
    known = {p.rate: p for p in peaks if p is not None}
    return known[statistics.median_low([p.rate for p in peaks if p is not None])] if known else None


def _peak(held: Declared, case: str, subject: str, side: str, machines: Mapping[str, Machines]) -> Peak | None:
    """Return the peak of a generation's machines, or of the slower link for pairs of hosts; None for loopback."""
    if held.part != "link":
        return machines[side].component(held.part, held.peak_name(case))
    if not subject.startswith(_TO):
        return None
    other = subject.removeprefix(_TO)
    ends = [machines[g].link for g in (side, other if other in machines else "") if g in machines]
    known = [end for end in ends if end is not None]
    return min(known, key=lambda end: end.rate) if len(known) == 2 else None


def _note(held: Declared, top: Peak | None, row: Mapping[Any, Any], machines: Machines, side: str) -> Message | None:
    """Return how the peak is derived, or how to get an unknown peak.

    ``side``: the generation, if there are several.
    """
    if held.part == "link":
        if top is None:
            return None
        return message("Peak: the slower host's link") if side else message("peak: {basis}", basis=top.basis)
    note = _of_machine(held, top, row) if top else machines.why_no_memory if held.part == "memory" else None
    return message("{name}: {note}", name=side, note=note) if side and note else note


def _of_machine(held: Declared, top: Peak, row: Mapping[Any, Any]) -> Message:
    scale = scale_for(top.rate, row["unit"], bits=bool(row["bits"]), percent=bool(row["percent"]))
    rate = with_unit(f"{top.rate * scale.factor:.4g}", scale.unit)
    if held.traffic == 1:
        return message("peak {rate}: {basis}", rate=rate, basis=top.basis)
    return message(
        "peak {rate}: {basis}; the share includes write allocation (×{traffic}), the figure does not",
        rate=rate,
        basis=top.basis,
        traffic=f"{held.traffic:.3g}",
    )


def _times(row: RatioRow | None) -> Cell:
    """Return the ratio to the reference (above 1 is better) or the state of a guardrail; empty if unknown."""
    if row is None:
        return Cell()
    from fleetmark.planner.guardrail import Held  # imported here because it loads the statistics of comparisons

    if row.verdict in {Held.KEPT, Held.BROKEN}:
        return Cell(word(row.verdict))
    return tabular.times(row.ratio)
