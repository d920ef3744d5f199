"""How many examples a test of hypothesis draws."""

from __future__ import annotations

from hypothesis import settings


def examples(maximum: int) -> settings:
    """``most`` where others are drawn each time (``make explore``), a third where they are the same each time."""
    is_derandomized = settings().derandomize
    return settings(max_examples=maximum // 3 if is_derandomized else maximum, deadline=None)
