"""Divide the futures that may fail among a plan and the reviews that follow it.

Each of them may fail in other futures, so their shares add up to what was promised at most. Servers that are bought
early for a rare future are not bought later, so careful early orders cost little; the last review decides how many
servers there are in the end. It therefore gets most of the futures that may fail, and the others have equal parts.
"""

from __future__ import annotations

LAST = 0.75  # share of the failing futures for the last review
MOST = 12  # reviews
LEAST = 0.0005  # share of futures that may fail at one stage: fewer are hard to simulate


def promise(quantile: float, reviews: int, reviewed: int = 0) -> float:
    """Return the share of futures that the plan must meet, or the review with the number ``reviewed``.

    ``quantile``: the share that the plan and all its ``reviews`` meet together.
    """
    if not reviews:
        return quantile
    return 1 - (1 - quantile) * (LAST if reviewed >= reviews else (1 - LAST) / reviews)
