"""Define the answer to a capacity question: a plan with its analyses, or the reason why there is no plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from fleetmark.planner.capacity.analysis.alternatives import trades
from fleetmark.planner.capacity.analysis.nothing import Nothing, do_nothing
from fleetmark.planner.capacity.analysis.results import Alternative, Binding, Conflict
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.uncertainty import Futures


@dataclass(frozen=True, slots=True)
class Scenario:
    """The question with some inputs changed, and its plan; the plan is None if there is none."""

    name: str
    question: Question
    plan: Plan | None

    @property
    def figures(self) -> dict[str, float]:
        """Return the ``TRADES`` and the present value as ``cost``; empty without a plan."""
        if self.plan is None:
            return {}
        return {"cost": self.plan.objective, **trades(self.question, self.plan)}

    @property
    def bought(self) -> dict[str, int]:
        """Return, by SKU, the number of servers bought over all periods."""
        if self.plan is None:
            return {}
        return {str(s): int(n) for s, n in self.plan.stock.groupby("sku", sort=False)["buy"].sum().items()}


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    ``plan`` is None if there is a ``conflict``. ``seconds`` is the total computation time. ``stopped`` is True if a
    time limit ended a search, so that another machine may find another answer.
    """

    question: Question
    plan: Plan | None
    conflict: Conflict | None = None
    alternatives: Sequence[Alternative] = ()
    bindings: Sequence[Binding] = ()
    _: KW_ONLY
    futures: Futures | None = None
    tornado: Sequence[Effect] = ()
    seconds: float = 0.0
    scenarios: Sequence[Scenario] = ()
    stopped: bool = False

    @cached_property
    def ledger(self) -> Ledger:
        """Return the accounts of the plan."""
        assert self.plan is not None
        return Ledger(self.question, self.plan.stock, self.plan.use)

    @cached_property
    def nothing(self) -> Nothing:
        """Return the results without any purchases."""
        return do_nothing(self.question)
