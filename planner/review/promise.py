"""Divide the futures that may fail between a plan and the reviews that follow it.

Each stage may fail in different futures, so the shares add up to at most the promised share of failures. Servers bought
early for a rare future are not bought again later, so cautious early orders cost little. The last review determines the
final number of servers. It therefore gets most of the futures that may fail, and the other stages get equal parts of
the rest.
"""

from __future__ import annotations

LAST = 0.75  # share of the failing futures for the last review
MOST = 12  # maximum number of reviews
LEAST = 0.0005  # minimum share of futures that may fail at one stage; smaller shares are hard to simulate


def promise(quantile: float, reviews: int, reviewed: int = 0) -> float:
    """Return the share of futures that the plan, or review number ``reviewed``, must meet.

    ``quantile`` is the share that the plan and all its ``reviews`` must meet together.
    """
    if not reviews:
        return quantile
    return 1 - (1 - quantile) * (LAST if reviewed >= reviews else (1 - LAST) / reviews)
