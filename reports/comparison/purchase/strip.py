"""Compute the figures of a comparison's decision strip: whole-server ratios by class, prices, power and rack units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetmark.base.measurement import Kind
from fleetmark.planner.comparison import WORK_MIX, Candidate, Comparison
from fleetmark.planner.cost import HOURS_PER_YEAR, ROUNDING, Offer, Terms
from fleetmark.planner.equivalence import Basis
from fleetmark.planner.frontier import Bound
from fleetmark.planner.mix import ratio_of_class
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.purchase.costs import offers
from fleetmark.reports.comparison.service import services
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.frontier.section import unit_of
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.strip import Strip, StripSide, StripView

_NOTHING = Offer(price=None)


def strip(
    comparisons: Sequence[Comparison],
    hosts: Sequence[HostInfo],
    families: Sequence[Family],
    terms: Terms,
    command: Sequence[str],
) -> Strip | None:
    """Return the decision strip; None if there is no capacity to replace.

    Without a class of capacity, the strip covers the first service that is compared at equal speed.

    ``comparisons``: the comparisons of whole servers, from each viewpoint. ``families``: the loads. ``command``: the
    command that repeats the comparison.
    """
    titles = [comparisons[0].baseline, *(c.title for c in comparisons[0].candidates)]
    all_offers, piece = offers(titles, hosts), ""
    views = [_view(comparison, all_offers.by_side) for comparison in comparisons]
    if not views[0].classes:
        first = next(iter(services(comparisons[0], families, terms.servers)), None)
        if first is None:
            return None
        all_offers, command = offers(titles, hosts, first.family.sizes), ()
        piece = unit_of(first.family) if first.family.per_device else ""
        views = [_served(comparison, first.family, all_offers.by_side) for comparison in comparisons]
    return Strip(
        views=views,
        piece=piece,
        servers=terms.servers,
        hours_per_year=HOURS_PER_YEAR,
        rounding=ROUNDING,
        years=terms.years,
        energy=terms.energy,
        unit=all_offers.unit or terms.currency,
        hours=all_offers.hours,
        command=fmt.typed(_without_mix(command)) if command else "",
    )


def _view(comparison: Comparison, by_side: Mapping[str, Offer]) -> StripView:
    benchmarks = comparison.benchmarks
    names = sorted(map(str, benchmarks.loc[benchmarks["kind"] == Kind.CAPACITY, "class"].unique()))
    sides = [set(figures) for figures in comparison.figures.values()]
    shared = set.intersection(*sides) if sides else set()
    ratios = {c.title: {name: _ratio(comparison, c, name, shared) for name in names} for c in comparison.candidates}
    present = [name for name in names if any(r[name] for r in ratios.values())]
    classes = {name: comparison.called.get(name) or class_title(name) for name in present}
    mix, is_given = _mix(comparison, list(classes))
    heads = [c.classes[name] for c in comparison.candidates for name in (*classes, WORK_MIX) if name in c.classes]
    return StripView(
        sides=[
            _side(comparison.baseline, by_side, {}, None),
            *(
                _side(c.title, by_side, {n: ratios[c.title][n] for n in classes}, _given(c, mix, is_given))
                for c in comparison.candidates
            ),
        ],
        classes=classes,
        mix=mix,
        is_given=is_given,
        is_exact=not any(e.gaps or e.basis is not Basis.MEAN for e in heads),
    )


def _served(comparison: Comparison, family: Family, by_side: Mapping[str, Offer]) -> StripView:
    """Return the view of one service: its ratios and their intervals at one speed."""
    service = next(iter(services(comparison, [family])), None)
    exact = {side: e.ratio for side, e in service.results.items() if e.bound is Bound.EXACT} if service else {}
    name = "service"
    sides = [_side(comparison.baseline, by_side, {}, None)]
    for candidate in comparison.candidates:
        ratio = exact.get(candidate.title)
        given = None if ratio is None else (ratio.value, ratio.lo, ratio.hi)
        sides.append(_side(candidate.title, by_side, {name: ratio.value if ratio else None}, given))
    title = service.line.title if service else ""
    return StripView(sides=sides, classes={name: title}, mix={name: 1.0}, is_given=True, is_exact=True)


def _ratio(comparison: Comparison, candidate: Candidate, name: str, shared: set[str]) -> float | None:
    e = candidate.classes.get(name)
    each = {} if e is None else {title: ratio.value for title, ratio in e.each.items()}
    return ratio_of_class(name, comparison.benchmarks, shared, each)


def _mix(comparison: Comparison, names: Sequence[str]) -> tuple[dict[str, float], bool]:
    """Return each class's share in the user's mix, or equal shares; and whether the user gave a mix."""
    weights = next((c.classes[WORK_MIX].weights for c in comparison.candidates if WORK_MIX in c.classes), {})
    shares = dict.fromkeys(names, 0.0)
    for title, share in weights.items():
        name = str(comparison.benchmarks.at[title, "class"])
        shares[name] = shares.get(name, 0.0) + share
    if not weights:
        plain = [name for name in names if not name.endswith("-peak")] or list(names)
        shares |= {name: 1 / len(plain) for name in plain}
    return {name: round(share, 12) for name, share in shares.items() if name in names}, bool(weights)


def _given(
    candidate: Candidate, mix: Mapping[str, float], is_given: bool
) -> tuple[float, float | None, float | None] | None:
    """Return the ratio of the initial mix with its interval, if one was computed."""
    e = candidate.classes.get(WORK_MIX) if is_given else None
    head = None if e is None else e.headline
    return None if head is None else (head.value, head.lo, head.hi)


def _side(
    title: str,
    by_side: Mapping[str, Offer],
    ratios: Mapping[str, float | None],
    given: tuple[float, float | None, float | None] | None,
) -> StripSide:
    offer = by_side.get(title, _NOTHING)
    return StripSide(
        title=fmt.clean(title),
        price=offer.price,
        watts=offer.watts,
        rack_units=offer.rack_units,
        ratios=ratios,
        given=given,
    )


def _without_mix(command: Sequence[str]) -> list[str]:
    words = list(command)
    while "--mix" in words:
        place = words.index("--mix")
        del words[place : place + 2]
    return words
