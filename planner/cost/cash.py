"""Split a plan's spending into capital and operating expenses, and depreciate its purchases on a straight line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.capacity.ledger import Ledger

Floats = npt.NDArray[np.float64]
CAPITAL, AT_END = "purchase", "residual"  # kinds of cost that are not operating expenses


@dataclass(frozen=True, slots=True)
class Cash:
    """Money by year, undiscounted, in the currency of the question.

    - ``capex``: purchases, in the year of the order; ``opex``: all other costs
    - ``at_end``: the residual value of the servers at the end, as a negative cost
    - ``depreciation``: of purchases, starting at their arrival; ``book``: the amount paid and not yet depreciated at
      the end of the year
    """

    capex: Floats
    opex: Floats
    at_end: Floats
    depreciation: Floats
    book: Floats

    @property
    def total(self) -> Floats:
        """Return the sum of all money of the year."""
        return self.capex + self.opex + self.at_end


def depreciated(ledger: Ledger) -> Floats:
    """Return (pair, period): the depreciation of the plan's purchases; 0 if the question has no ``depreciation``."""
    q, paid = ledger.question, ledger.paid * ledger.buy
    parts, length = np.zeros_like(paid), q.depreciation
    for p, (s, _) in enumerate(ledger.pairs):
        for ordered in np.flatnonzero(paid[p]).tolist():
            arrives = ordered + q.skus[s].delay
            parts[p, arrives : arrives + length] += paid[p, ordered] / length if length else 0.0
    return parts


def by_year(ledger: Ledger, years: Sequence[int]) -> Cash:
    """Return the money of each year. ``years`` has the number of each period's year, counted from 0."""
    kinds: Mapping[str, Floats] = ledger.kinds
    number = np.array(years)

    def summed(values: Floats) -> Floats:
        sums = np.zeros(int(number.max()) + 1)
        np.add.at(sums, number, values)
        return sums

    capex, parts = summed(kinds[CAPITAL]), summed(depreciated(ledger).sum(axis=0))
    running = [money for kind, money in kinds.items() if kind not in (CAPITAL, AT_END)]
    book = np.cumsum(capex - parts)
    return Cash(capex, summed(np.sum(running, axis=0)), summed(kinds[AT_END]), parts, book)
