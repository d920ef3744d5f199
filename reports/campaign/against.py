"""What a first run means: each headline beside a pinned reference, and beside the peak of the machine itself.

Pure: of a campaign's view, and of its comparison with a reference where the user has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.units import scale_for, with_unit
from fleetmark.base.words import word
from fleetmark.record.sides.titles import title_of
from planner import peak
from planner.comparison import Comparison
from planner.guardrail import Held
from planner.peak import Peak
from reports.campaign.view import View, headlines
from reports.comparison.model import rows as ratios
from reports.kit import format as fmt
from workloads import declared
from workloads.manifest import Peak as Declared

MOST_HOSTS = 2  # of a campaign whose first figures are explained; a pair has a network


@dataclass(frozen=True, slots=True)
class Beside:
    """One headline: ``ratio`` to the reference (above 1: better) of a figure of that ``kind``, whether a guardrail was
    ``held`` beside it, and ``share`` of the machine's peak; each may be absent.
    """

    case: str
    point: str
    host: str
    ratio: float | None
    share: float | None
    peak: str
    kind: str = ""
    held: str = ""


@dataclass(frozen=True, slots=True)
class Against:
    """``rows``: headlines that have something to be held against. ``reference``: its name and version; empty without.
    ``notes``: what the peaks follow from, and what is not known, a sentence each.
    """

    rows: tuple[Beside, ...]
    reference: str
    notes: tuple[Message, ...]


NOTHING = Against((), "", ())


def against(view: View, comparison: Comparison | None = None) -> Against:
    """Each headline of ``view`` beside the baseline of ``comparison`` and the machine's peak.

    ``comparison``: of the campaign's only host with a pinned reference.
    """
    if not 0 < len(view.hosts) <= MOST_HOSTS:
        return NOTHING
    facts = {h.name: h.facts for h in view.hosts if h.facts is not None}
    of_title = {r.benchmark: r for r in ratios(comparison) if r.benchmark} if comparison is not None else {}
    listed: list[Beside] = []
    notes: dict[Message, None] = {}
    for (workload, case, *_), rows, _shown in view.by_metric(headlines(view.stats)):
        for r in rows.to_dict("records"):
            other = of_title.get(title_of(r)) or of_title.get(title_of(r, sized=False))
            ratio, kind = (other.ratio, other.kind) if other else (None, "")
            guarded = other.verdict if other and other.verdict in {Held.KEPT, Held.BROKEN} else ""
            held = declared.peak(workload, case, r["metric"])
            top = _peak(held, r, facts) if held else None
            share = r["value"] * held.traffic / top.rate if held and top else None
            if held and top and share is not None:
                notes[_basis(top, held)] = None
            elif held and (why := _why_none(held, facts.get(r["host"]))):
                notes[why] = None
            if ratio is not None or guarded or share is not None:
                point = fmt.point(r["metric"], r["subject"], r["labels"], r["standing"])
                host = fmt.clean(r["host"]) if len(view.hosts) > 1 else ""
                name = f"{fmt.clean(workload)} {fmt.clean(case)}"
                rate = _rate(top, r) if top else ""
                listed.append(Beside(name, point, host, ratio, share, rate, kind, guarded))
    return Against(tuple(listed), comparison.baseline if of_title and comparison else "", tuple(notes))


def _peak(held: Declared, row: Mapping[Any, Any], facts: Mapping[str, Facts]) -> Peak | None:
    """The peak of the host of a figure; of a pair's, of the link between them. None over loopback."""
    if held.of == "memory":
        return peak.memory(facts[row["host"]]) if row["host"] in facts else None
    if held.of != "link":
        return peak.device(facts[row["host"]], held.of) if row["host"] in facts else None
    ends = [facts.get(name) for name in str(row["subject"]).split(">")]
    known = [f for f in ends if f is not None]
    return peak.link(*known) if len(ends) == len(known) == 2 else None


def _why_none(held: Declared, facts: Facts | None) -> Message | None:
    return peak.why_no_memory(facts) if held.of == "memory" and facts is not None else None


def _basis(top: Peak, held: Declared) -> Message:
    if held.traffic == 1:
        return message("the peak: {basis}", basis=top.basis)
    return message(
        "the peak: {basis}; {traffic} bytes are moved for each that is counted",
        basis=top.basis,
        traffic=f"{held.traffic:.3g}",
    )


def _rate(top: Peak, row: Mapping[Any, Any]) -> str:
    scale = scale_for(top.rate, row["unit"], bits=bool(row["bits"]), percent=bool(row["percent"]))
    return with_unit(f"{top.rate * scale.factor:.4g}", scale.unit)


def sentences(of: Against) -> list[str]:
    """``of`` in words: a sentence for each headline, then what they rest on."""
    lines: list[str] = [_sentence(row, of.reference) for row in of.rows]
    if any(row.ratio is not None for row in of.rows):
        lines.append(message("{reference} is a pinned reference; above 1 is better than it", reference=of.reference))
    return lines + list(of.notes)


def _sentence(row: Beside, reference: str) -> str:
    beside: list[str] = []
    if row.held:
        beside.append(message("{held} beside {reference}", held=word(row.held), reference=reference))
    elif row.ratio is not None:
        beside.append(_times(row.ratio, row.kind, reference))
    if row.share is not None:
        share = f"{row.share * 100:.0f}"
        beside.append(message("{share}% of the peak of {peak}", share=share, peak=row.peak))
    name = f"{row.case} {row.point}" + (f" ({row.host})" if row.host else "")
    return joined([name, joined(beside)], ": ")


def _times(ratio: float, kind: str, reference: str) -> Message:
    """Only capacity is counted in servers."""
    value = f"{ratio:.3g}"
    if kind == Kind.CAPACITY:
        return message("worth {ratio} {reference} servers", ratio=value, reference=reference)
    return message("{ratio} times as fast as {reference}", ratio=value, reference=reference)
