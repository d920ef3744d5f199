"""Decide whether a suspect is slow again by comparing its repeat with healthy hosts that ran at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from fleetmark.planner.diagnosis import tails
from fleetmark.planner.diagnosis.outliers import FLOOR
from fleetmark.planner.diagnosis.robust import Floats, missing_share

SURE = 3.0  # minimum loss in standard errors, since the first measurement already ruled out chance
LIKELY = 2.0  # half-width of the likely range of a loss, in standard errors


class Verdict(StrEnum):
    """The result of a repeat."""

    CONFIRMED = "confirmed"  # still slow
    CLEARED = "cleared"  # as fast as healthy hosts
    OPEN = "open"  # not certain either way


@dataclass(kw_only=True, frozen=True, slots=True)
class Settled:
    """The result of a repeat.

    - ``deficit``: the missing share in the repeat, with its range ``low`` to ``high`` (two standard errors)
    - ``n``: the number of values from healthy hosts
    - ``runs``: the number of runs of the suspect
    - ``campaign``: the path of the repeat, relative to the campaign that it confirms
    """

    verdict: Verdict
    deficit: float
    low: float
    high: float
    n: int
    runs: int
    campaign: str = ""


def settle(level: float, sound: Floats, spread: float, deficit: float, runs: int) -> Settled:
    """Return whether a suspect is confirmed, cleared or still open after new runs.

    ``level`` and ``sound``: oriented logarithms (higher is better) of the suspect and of healthy hosts. ``spread``: the
    standard deviation of healthy values, at least FLOOR. ``deficit``: the smallest loss that matters, as a share.
    ``runs``: the number of runs.

    A suspect is confirmed if its loss matters and is at least SURE standard errors. It is cleared if the likely range
    of its loss is below ``deficit``. Raise ValueError if there is no healthy value.
    """
    if not len(sound):
        raise ValueError("no healthy value to compare with")
    error = max(spread, FLOOR) * float(np.sqrt(1 + 1 / len(sound)))
    loss = float(np.median(sound)) - level
    matters = -float(np.log1p(-deficit))
    if loss >= matters and loss >= SURE * error:
        verdict = Verdict.CONFIRMED
    elif loss + LIKELY * error < matters:
        verdict = Verdict.CLEARED
    else:
        verdict = Verdict.OPEN
    low, middle, high = (missing_share(loss + k * error) for k in (-LIKELY, 0.0, LIKELY))
    return Settled(verdict=verdict, deficit=middle, low=low, high=high, n=len(sound), runs=runs)


def settle_tail(values: Floats, sound: Floats, before: int, seed: int = 1) -> Settled | None:
    """Return whether a heavy tail is confirmed, cleared or still open; None if there are too few runs.

    ``values`` and ``sound``: single runs (oriented logarithms) of the suspect and of healthy hosts (one row per host).
    A tail that does not recur is cleared only by at least twice the number of earlier runs (``before``).
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
    low, high = missing_share(short), missing_share(worst)
    return Settled(verdict=verdict, deficit=low, low=low, high=high, n=len(sound), runs=len(values))
