"""Present the review of a plan: deliveries, the supplier's debts, the new purchases and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fleetmark.base.text import count, joined, message
from fleetmark.planner.capacity.question import Plan
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.review.posterior import UNLIKELY
from fleetmark.planner.review.review import Finding, Review, Verdict
from fleetmark.reports.kit import document as kit
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, Exhibit, Note, Section, provenance
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular, Tone, compact, number, share
from fleetmark.reports.plan.model import kind
from fleetmark.reports.review.data import as_json
from fleetmark.reports.review.purchases import Purchase, purchases

MOST_ORDERS = 20
_LEAST = 0.001  # probability below which only a limit is shown
_DATA: tuple[Kind, ...] = ("xlsx", "json", "csv", "markdown")  # formats with room for every column
_TONES: dict[Verdict, Tone] = {Verdict.BELOW: "bad", Verdict.KEPT: "good", Verdict.CANNOT_TELL: "unsure"}


def document(review: Review, created: str, command: str) -> Document:
    """Return the document. ``created``: ISO 8601. ``command``: the command that repeats the review."""
    q = review.question
    first, last = fmt.clean(q.periods[0]), fmt.clean(q.periods[-1])
    return Document(
        title=message("Review of a capacity plan, {first} to {last}", first=first, last=last),
        answer=_answer(review),
        tone="good" if review.is_sound else "bad",
        sections=tuple(_sections(review, command)),
        created=created,
        data=as_json(review, {"created": created, "command": command}),
    )


def _sections(review: Review, command: str) -> Iterator[Section]:
    yield Section("summary", "", tuple(_summary(review)))
    yield Section("deliveries", message("Deliveries"), tuple(_deliveries(review)))
    if review.plan is not None:
        yield Section("changes", message("What changes"), tuple(_changes(review, review.plan)))
    elif review.conflict is not None:
        limits = tuple(kit.Finding("", limit.name) for limit in review.conflict.limits)
        yield Section("conflict", message("Limits in conflict"), limits)
    yield Section("worth", message("Worth"), (_worth(review),))
    yield Section("next", message("Next steps"), tuple(_next(review)))
    yield provenance(command)


# --- deliveries -----------------------------------------------------------------------------------------------------


def _answer(review: Review) -> str:
    if len(review.below) == 1:
        return _owes(review, review.below[0])
    if review.below:
        return message(
            "{lots} are below the promised worth. {more} are needed to keep the promise: {money} {currency}.",
            lots=count(len(review.below), "lot"),
            more=count(sum(f.servers for f in review.below), "more server"),
            money=fmt.money(sum(f.money for f in review.below)),
            currency=review.question.currency,
        )
    open_ = [f for f in review.findings if f.verdict is Verdict.CANNOT_TELL]
    if open_:
        lots = joined(dict.fromkeys(fmt.clean(f.delivery.lot.name) for f in open_))
        return message("{lots} may be below the promised worth: the measurement is not precise enough.", lots=lots)
    return message("Every delivered lot performs as promised.")


def _owes(review: Review, finding: Finding) -> str:
    q, lot = review.question, finding.delivery.lot
    return message(
        "Lot {lot}: one server is worth {measured} {unit} for {workload} instead of {promised}. "
        "To keep the promise takes {more} at {price} {currency}: {money} {currency}.",
        lot=fmt.clean(lot.name),
        measured=_plus_minus(finding.measured.estimate),
        unit=fmt.clean(q.workloads[finding.workload].unit),
        workload=fmt.clean(finding.workload),
        promised=fmt.figure(finding.promised),
        more=count(finding.servers, "more server"),
        price=fmt.money(lot.price),
        money=fmt.money(finding.money),
        currency=q.currency,
    )


def _plus_minus(estimate: Estimate) -> str:
    """Return a value with the half-width of its interval: ``1.71 ± 0.03``."""
    assert estimate.lo is not None and estimate.hi is not None
    value, half = fmt.figure(estimate.value), (estimate.hi - estimate.lo) / 2
    rounded = f"{half:.{len(value.partition('.')[2])}f}"
    return f"{value} ± {rounded if float(rounded) else fmt.figure(half)}"


def _probability(p: float) -> Cell:
    """Return a probability, with < or > where rounding would show it as impossible or certain."""
    if p < _LEAST:
        return Cell(f"<{fmt.share(_LEAST)}", p)
    return Cell(f">{fmt.share(1 - _LEAST)}", p) if p > 1 - _LEAST else share(p)


def _deliveries(review: Review) -> Iterator[Exhibit]:
    yield Note(
        message(
            "Promised: the worth that the plan assumed. Measured: that of the delivered servers, with its 95% interval."
        ),
        quiet=True,
    )
    currency = review.question.currency
    columns = (
        Column("lot", message("lot"), "name"),
        Column("servers", message("servers"), "number"),
        Column("workload", message("workload")),
        Column("campaign", message("campaign"), only=_DATA),
        Column("promised", message("promised"), "number"),
        Column("measured", message("measured"), "number"),
        Column("verdict", message("verdict"), "verdict"),
        Column("below", message("probability below"), "number"),
        Column("owed", message("servers owed"), "number"),
        Column("money", message("owed"), "number", unit=currency, only=_DATA),
    )
    rows = tuple(
        (
            Cell(fmt.clean(f.delivery.lot.name)),
            number(f.delivery.lot.count),
            Cell(fmt.clean(f.workload)),
            Cell(f.delivery.campaign),
            Cell(fmt.figure(f.promised), f.promised),
            _estimate(f.measured.estimate),
            Cell(_verdict(f.verdict), tone=_TONES[f.verdict]),
            _probability(f.below),
            _servers_owed(f),
            number(f.money or None),
        )
        for f in review.findings
    )
    yield compact(Tabular("deliveries", message("Deliveries"), columns, rows))
    for lot in dict.fromkeys(f.delivery.lot.name for f in review.findings):
        yield from _remarks([f for f in review.findings if f.delivery.lot.name == lot])


def _remarks(findings: Sequence[Finding]) -> Iterator[Note]:
    """Return sentences that qualify the findings about one lot."""
    delivery = findings[0].delivery
    lot = fmt.clean(delivery.lot.name)
    if delivery.like:
        other = fmt.clean(delivery.like)
        yield Note(
            message("{lot} was not measured: the campaign of {other} stands for it.", lot=lot, other=other), quiet=True
        )
    least = min(f.disagreement for f in findings)
    if least < UNLIKELY:
        yield Note(
            message(
                "{lot}: servers like those of the plan's estimate differ so much with probability {p}, so the "
                "measurement replaces it; check their parts, firmware and settings.",
                lot=lot,
                p=_probability(least).text,
            ),
            "unsure",
        )


def _servers_owed(finding: Finding) -> Cell:
    if finding.verdict is not Verdict.BELOW:
        return Cell()
    lo, hi = finding.owed.lo, finding.owed.hi
    assert lo is not None and hi is not None
    return Cell(f"{finding.servers:,}", finding.servers, lo=lo, hi=hi, ends=f"{lo:,.1f}–{hi:,.1f}")


def _estimate(estimate: Estimate) -> Cell:
    lo, hi = estimate.lo, estimate.hi
    ends = "" if lo is None or hi is None else f"{fmt.figure(lo)}–{fmt.figure(hi)}"
    return Cell(fmt.figure(estimate.value), estimate.value, lo=lo, hi=hi, ends=ends)


def _verdict(verdict: Verdict) -> str:
    texts = {
        Verdict.BELOW: message("below"),
        Verdict.KEPT: message("kept"),
        Verdict.CANNOT_TELL: message("cannot tell"),
    }
    return texts[verdict]


# --- changes --------------------------------------------------------------------------------------------------------


def _summary(review: Review) -> Iterator[Note]:
    q = review.question
    if len(review.below) > 1:
        yield from (Note(_owes(review, finding)) for finding in review.below)
    target = fmt.share(1 - q.promise)
    kept = fmt.share(review.kept_futures.shortfall.value)
    if review.plan is None or review.futures is None:
        yield Note(message("No plan for the remaining periods is possible within the limits."), "bad")
        yield Note(message("If the old plan is kept, demand is not met in {kept} of futures.", kept=kept))
        return
    buys = purchases(review)
    if any(b.change for b in buys):
        yield Note(
            message(
                "From {first} on, buy {new} instead of {old}: {money} {currency} for purchases.",
                first=fmt.clean(q.periods[0]),
                new=_counted((b.sku, b.now) for b in buys),
                old=_counted((b.sku, b.planned) for b in buys),
                money=fmt.change_of_money(sum(b.money for b in buys)),
                currency=q.currency,
            ),
            "strong",
        )
    else:
        yield Note(message("The purchases stay as planned."), "strong")
    yield Note(
        message(
            "All costs from {first} on: {new} {currency} instead of {old}, present value.",
            first=fmt.clean(q.periods[0]),
            new=fmt.money(review.plan.objective),
            old=fmt.money(review.kept.objective),
            currency=q.currency,
        )
    )
    yield Note(
        message(
            "Demand is not met in {new} of {n} simulated futures, and in {kept} if the old plan is kept; the target "
            "is at most {target}.",
            new=fmt.share(review.futures.shortfall.value),
            n=f"{review.futures.draws:,}",
            kept=kept,
            target=target,
        ),
        "unsure" if (review.futures.shortfall.lo or 0.0) > 1 - q.promise else "",
    )
    if review.late:
        yield Note(
            message(
                "Nothing that is ordered now arrives in {periods}: the servers in place do not keep the promise there.",
                periods=joined(fmt.clean(p) for p in review.late),
            ),
            "bad",
        )


def _counted(orders: Iterable[tuple[str, int]]) -> str:
    """Return servers by SKU: ``29 genoa, 395 turin``."""
    counts: dict[str, int] = {}
    for sku, servers in orders:
        counts[sku] = counts.get(sku, 0) + servers
    named = [message("{n} {sku}", n=f"{n:,}", sku=fmt.clean(sku)) for sku, n in counts.items() if n]
    return joined(named) or message("no servers")


def _changes(review: Review, plan: Plan) -> Iterator[Exhibit]:
    q = review.question
    buys = purchases(review)
    columns = (
        Column("period", message("order in"), "name"),
        Column("site", message("site")),
        Column("sku", message("SKU")),
        Column("planned", message("planned"), "number"),
        Column("now", message("now"), "number"),
        Column("change", message("change"), "number"),
        Column("arrives", message("in use from")),
        Column("money", message("change of the price"), "number", unit=q.currency),
    )
    rows = tuple(_row(review, b) for b in buys)
    if rows:
        yield Tabular("purchases", message("Purchases"), columns, rows, limits={"terminal": MOST_ORDERS})
    else:
        yield Note(message("Nothing is bought."))
    old, new = (p.costs.groupby("kind", sort=False)["present"].sum() for p in (review.kept, plan))
    kinds = [k for k in dict.fromkeys([*old.index, *new.index]) if abs(old.get(k, 0)) + abs(new.get(k, 0)) >= 0.5]
    heads = (
        Column("kind", message("kind"), "name"),
        Column("planned", message("planned"), "number", unit=q.currency),
        Column("now", message("now"), "number", unit=q.currency),
        Column("change", message("change"), "number", unit=q.currency),
    )
    money = [(Cell(kind(k)), *_money(float(old.get(k, 0)), float(new.get(k, 0)))) for k in map(str, kinds)]
    money.append((Cell(message("total")), *_money(review.kept.objective, plan.objective)))
    yield Tabular("costs", message("Costs, present value"), heads, tuple(money))


def _money(old: float, new: float) -> tuple[Cell, Cell, Cell]:
    return number(old), number(new), _change(new - old)


def _change(value: float) -> Cell:
    """Return a change with its sign; 0 has no sign."""
    return Cell(fmt.change_of_money(value) if abs(value) >= 0.5 else "0", value)


def _row(review: Review, b: Purchase) -> tuple[Cell, ...]:
    q = review.question
    arrives = q.periods[b.arrives] if b.arrives < len(q.periods) else message("after the plan")
    return (
        Cell(fmt.clean(q.periods[b.period])),
        Cell(fmt.clean(b.site)),
        Cell(fmt.clean(b.sku)),
        number(b.planned),
        number(b.now),
        _change(b.change),
        Cell(fmt.clean(arrives)),
        _change(b.money),
    )


def _worth(review: Review) -> Tabular:
    columns = (
        Column("sku", message("SKU"), "name"),
        Column("workload", message("workload"), "name"),
        Column("before", message("assumed"), "number"),
        Column("after", message("now"), "number"),
        Column("lots", message("measured on")),
        Column("source", message("source"), only=_DATA),
    )
    rows = tuple(
        (
            Cell(fmt.clean(u.sku)),
            Cell(fmt.clean(u.workload)),
            _estimate(u.before.estimate),
            _estimate(u.after.estimate),
            Cell(joined(map(fmt.clean, u.lots))),
            Cell(u.after.source),
        )
        for u in review.updates
    )
    return Tabular("worth", message("Worth of one server, with its 95% interval"), columns, rows)


def _next(review: Review) -> Iterator[Exhibit]:
    for f in review.below:
        yield Note(
            message(
                "Claim {more} or {money} {currency} from the supplier of {lot}; at 95% confidence it owes at least "
                "{least} servers.",
                more=count(f.servers, "more server"),
                money=fmt.money(f.money),
                currency=review.question.currency,
                lot=fmt.clean(f.delivery.lot.name),
                least=f"{max(f.owed.lo or 0.0, 0.0):,.1f}",
            )
        )
    unsure = dict.fromkeys(f.delivery.lot.name for f in review.findings if f.verdict is Verdict.CANNOT_TELL)
    for lot in unsure:
        yield Note(
            message("Measure more servers of {lot}: its interval includes the promised worth.", lot=fmt.clean(lot))
        )
    if review.plan is None:
        yield Note(message("Relax one of these limits in the question, then plan again."))
    elif purchases(review):
        yield Note(message("Order as in the table of purchases, and review again when the next lot is delivered."))
    else:
        yield Note(message("Nothing remains to be ordered."))
