"""Convert the terms of sale for planning: money in one currency, price breaks, late deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from fleetmark.demand import periods
from fleetmark.demand.amounts import Quantity
from fleetmark.demand.document import Document
from fleetmark.demand.places import Input, Path
from fleetmark.demand.series import steps
from fleetmark.planner.capacity.futures import allowance
from fleetmark.planner.capacity.sku import LIQUID, Field, Kind, Sku, declared_fields
from fleetmark.planner.review.promise import promise


class Terms:
    """Convert the terms of a document; errors are recorded in its input."""

    def __init__(self, doc: Document, source: Input) -> None:
        self.doc, self.source = doc, source

    def figures(self, sku: str, names: Sequence[str], years: float) -> dict[str, Any]:
        """Return the fields of the planner's SKU except its worth and its resources, which depend on measurements."""
        price, prices = self.price(sku, names)
        if 0 in (price, *prices) and not self.doc.skus[sku].rent.value:
            self.source.fault(
                ("skus", sku, "price"), "is 0, and there is no rent: write its price, `not sold`, or 0.01 if it is free"
            )
        slips, late = self.slips(sku)
        derived = {"price": price, "prices": prices, "breaks": self.breaks(sku), "slips": slips, "allowance": late}
        apart = {*derived, "worth", "has"}
        return derived | {f.name: self._figure(f, sku, years) for f in declared_fields(Sku) if f.name not in apart}

    def _figure(self, field: Field, sku: str, years: float) -> Any:
        written = attrgetter(field.key)(self.doc.skus[sku])
        match field.declared.kind:
            case Kind.MONEY | Kind.RATE:
                return self.money(written, ("skus", sku, *field.key.split(".")))
            case Kind.PERIODS | Kind.AGE if written is not None:
                return periods.in_periods(written, years, up=field.declared.kind is Kind.PERIODS)
            case Kind.TIME:
                return periods.in_fractions(written, years)
            case Kind.TEXT:
                return written or ""
            case Kind.COOLING:
                return written == LIQUID
        return written

    def money(self, amount: Quantity, path: Path) -> float:
        """Return the amount in the currency of the document. Record an error if there is no rate for its currency."""
        if amount.unit in ("", self.doc.currency):
            return amount.value
        if amount.unit not in self.doc.currencies:
            sentence = f"there is no rate for {amount.unit}: write what one is in {self.doc.currency}"
            self.source.fault(path, f"{sentence} (currencies: {{{amount.unit}: 0.92}})")
            return amount.value
        return amount.value * self.doc.currencies[amount.unit]

    def price(self, sku: str, names: Sequence[str]) -> tuple[float | None, tuple[float | None, ...]]:
        """Return the first price of one server, and its price by period, which is None while it is not sold."""
        path: Path = ("skus", sku, "price")
        written = steps(self.doc.skus[sku].price, names, self.source, path)
        if not isinstance(written, tuple):
            return (self.money(written, path) if written else None), ()
        prices = tuple(self.money(each, path) if each else None for each in written)
        return next((price for price in prices if price is not None), None), prices

    def breaks(self, sku: str) -> tuple[tuple[int, float], ...]:
        """Return the price breaks as (count, unit price), in ascending order."""
        path: Path = ("skus", sku, "price_breaks")
        breaks = self.doc.skus[sku].price_breaks
        return tuple(sorted((int(least), self.money(each, (*path, least))) for least, each in breaks.items()))

    def slips(self, sku: str) -> tuple[tuple[float, ...], int]:
        """Return the probability of each delay in periods, starting at 0, and the periods that the plan adds to the
        lead time.
        """
        late = {int(delay): share for delay, share in self.doc.skus[sku].slips.items() if share}
        if not late:
            return (), 0
        shares = [0.0] * (max(late) + 1)
        for delay, share in late.items():
            shares[delay] = share
        shares[0] = max(1.0 - sum(late.values()), 0.0)
        slipping = sum(any(s.slips.values()) for s in self.doc.skus.values())
        return tuple(shares), allowance(shares, promise(self.doc.quantile, self.doc.reviews), slipping)
