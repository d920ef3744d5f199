"""Whether a suspect is slow again: its repeat held against sound hosts that ran beside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from planner.diagnosis import tails
from planner.diagnosis.outliers import FLOOR
from planner.diagnosis.robust import Floats

SURE = 3.0  # standard errors: a first look that ruled out chance stands before it
LIKELY = 2.0  # standard errors on either side of a loss


class Verdict(StrEnum):
    """What a repeat showed."""

    CONFIRMED = "confirmed"  # as slow again
    CLEARED = "cleared"  # as fast as sound hosts
    OPEN = "open"  # neither beyond chance


@dataclass(frozen=True, slots=True)
class Settled:
    """``deficit``: the share that was missing in the repeat, between ``low`` and ``high`` (two standard errors),
    against ``n`` values of sound hosts; ``runs``: how often the suspect ran. ``campaign``: the
    repeat's, a path relative to the campaign that it confirms.
    """

    verdict: Verdict
    deficit: float
    low: float
    high: float
    n: int
    runs: int
    campaign: str = ""


def settle(level: float, sound: Floats, spread: float, deficit: float, runs: int) -> Settled:
    """``level`` and ``sound``: oriented logarithms (higher is better) of the suspect and of hosts beside it.
    ``spread``: of sound values, at least FLOOR; ``deficit``: the share that matters.

    Confirmed where the loss matters and lies SURE errors above none; cleared where all of its likely range is below
    what matters. Raises ValueError without any sound value.
    """
    if not len(sound):
        raise ValueError("no sound value to compare with")
    error = max(spread, FLOOR) * float(np.sqrt(1 + 1 / len(sound)))
    loss = float(np.median(sound)) - level
    matters = -float(np.log1p(-deficit))
    if loss >= matters and loss >= SURE * error:
        verdict = Verdict.CONFIRMED
    elif loss + LIKELY * error < matters:
        verdict = Verdict.CLEARED
    else:
        verdict = Verdict.OPEN
    low, middle, high = (_share(loss + k * error) for k in (-LIKELY, 0.0, LIKELY))
    return Settled(verdict, middle, low, high, len(sound), runs)


def settle_tail(values: Floats, sound: Floats, before: int, seed: int = 1) -> Settled | None:
    """A heavy tail: single runs (oriented logarithms) of the suspect, and of sound hosts (a row each).

    A tail that does not show is cleared only by twice the runs ``before``. None where the runs are too few.
    """
    n = min(len(values), sound.shape[1])
    if n < tails.LEAST_RUNS or not len(sound):
        return None
    centred = values - np.median(values)
    pool = np.sort((sound - np.median(sound, axis=1, keepdims=True)).ravel())
    short, p = tails.against(np.sort(centred), pool, seed)
    worst = -float(centred.min())
    if short >= tails.EFFECT and p <= tails.DISCOVERY:
        verdict = Verdict.CONFIRMED
    elif short < tails.EFFECT and len(values) >= 2 * before:
        verdict = Verdict.CLEARED
    else:
        verdict = Verdict.OPEN
    return Settled(verdict, _share(short), _share(short), _share(worst), len(sound), len(values))


def _share(loss: float) -> float:
    return float(-np.expm1(-loss))
