"""The answer to a capacity question: a plan with its analyses, or why there is none. Every document renders it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from planner.capacity.ledger import Ledger
from planner.capacity.nothing import Nothing, do_nothing
from planner.capacity.question import Alternative, Binding, Conflict, Plan, Question
from planner.capacity.tornado import Effect
from planner.capacity.uncertainty import Futures


@dataclass(frozen=True)
class Answer:
    """``plan`` is None if there is a ``conflict``. ``seconds``: that all of it took."""

    question: Question
    plan: Plan | None
    conflict: Conflict | None = None
    alternatives: Sequence[Alternative] = ()
    bindings: Sequence[Binding] = ()
    futures: Futures | None = None
    tornado: Sequence[Effect] = ()
    seconds: float = 0.0

    @cached_property
    def ledger(self) -> Ledger:
        """The account of the plan."""
        assert self.plan is not None
        return Ledger(self.question, self.plan.stock, self.plan.use)

    @cached_property
    def nothing(self) -> Nothing:
        """What happens if nothing is bought."""
        return do_nothing(self.question)
