"""HiGHS on a programme: a bound from its relaxation, plans from rounding it, then ever larger parts of the programme.

Questions of some size have a programme that HiGHS takes minutes for, most of them spent on finding a first plan. What
the relaxation leaves unused is seldom wanted, so the programme is first taken without it (kernel search: Angelelli,
Mansini, Speranza, Computers & Operations Research 37, 2010): rounded period by period, later ones making up for what
earlier ones were rounded by; then solved with only purchases, orders and the use of spares whole. Active servers are
rounded up, which breaks nothing. Each plan is held against the bound of everything, and the whole programme is solved
only where that does not suffice.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from planner.capacity.model import Floats, Model

Marks = npt.NDArray[np.bool_]
SMALL = 600  # integers up to which the whole programme is tried at once
KERNEL_GAP = 0.3  # share of the gap allowed that the restricted programme may use up
KERNEL_TIME = 0.5  # share of the time that it may use up
PERIOD_TIME = 10.0  # seconds for making the orders of one period whole where rounding will not do
RESERVES = (3.0, 0.0)  # servers for which rounding leaves room in later periods
ROOM = ("power", "rack units", "ports", "budget")  # limits by period
IN_USE = (
    0.5,
    2.0,
    4.0,
    0.0,
)  # active servers above which the rounded plan keeps spares for them: the cheapest is taken
WHOLE = 1e-6  # HiGHS's tolerance of integers
LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """Values of the variables, integers whole, or None where no plan was found in time; in units of the programme's
    cost, no plan costs less than ``bound``.
    """

    values: Floats | None
    bound: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What HiGHS said. ``infeasible`` is proven; ``values`` None otherwise means that time ran out."""

    values: Floats | None
    cost: float
    bound: float
    infeasible: bool


def highs(
    model: Model,
    *,
    whole: Marks | None = None,
    lower: Floats | None = None,
    upper: Floats | None = None,
    cost: Floats | None = None,
    seconds: float = 60.0,
    gap: float = 0.0,
) -> Answer:
    """One run on the programme, with what is given put in the place of its own parts.

    Raises FleetmarkError where HiGHS ends otherwise than with an answer, the word that there is none, or its time.
    """
    whole = model.whole if whole is None else whole
    ends = Bounds(model.lower if lower is None else lower, model.upper if upper is None else upper)
    rows = LinearConstraint(model.rows, model.low, model.high)
    options: Any = {"time_limit": max(seconds, LEAST_SECONDS), "mip_rel_gap": gap}
    c = model.cost if cost is None else cost
    with _silent():
        got = milp(c, integrality=whole.astype(int), bounds=ends, constraints=rows, options=options)
    if got.status not in {0, 1, 2}:
        raise FleetmarkError(message("the solver gave up on the capacity question: {why}", why=got.message))
    bound = getattr(got, "mip_dual_bound", None)
    if got.x is None:
        return Answer(None, np.inf, -np.inf if bound is None else float(bound), got.status == 2)
    value = float(got.fun)
    if not whole.any():
        return Answer(got.x, value, value if got.status == 0 else -np.inf, False)
    return Answer(got.x, value, -np.inf if bound is None else min(float(bound), value), False)


@contextmanager
def _silent() -> Iterator[None]:
    """Keeps off standard output a line that HiGHS 1.12 prints where it mends a plan, past its own switch for output."""
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C has printed waits in a buffer of its own
        os.dup2(kept, 1)
        os.close(kept)


def search(model: Model, gap: float, seconds: float) -> Found | None:
    """The cheapest plan to within ``gap``, or the best that ``seconds`` allow; None where there is provably none."""
    if not len(model.cost):  # nothing is in place and nothing would arrive in time
        return None if (model.low > 0).any() else Found(model.lower, 0.0)
    end = time.monotonic() + seconds
    relaxed = highs(model, whole=np.zeros_like(model.whole), seconds=seconds)
    if relaxed.infeasible:
        return None
    best, bound = None, relaxed.bound
    large = model.whole.sum() > SMALL

    def better(values: Floats | None) -> bool:
        """Takes a plan in; whether the best is good enough."""
        nonlocal best
        if values is not None and (best is None or model.cost @ values < model.cost @ best):
            best = values
        return best is not None and bool(model.cost @ best - bound <= gap * abs(model.cost @ best))

    if large and relaxed.values is not None:
        kernel = _kernel(model, relaxed.values)
        if better(_rounded(model, relaxed.values, kernel, gap, end)):
            return Found(best, bound)
        part = KERNEL_TIME * (end - time.monotonic())
        if better(_restricted(model, kernel, gap * KERNEL_GAP, part)):
            return Found(best, bound)
    left = end - time.monotonic()
    full = highs(model, gap=gap, seconds=left if large else left * KERNEL_TIME)
    if full.infeasible:
        return None
    bound = max(bound, full.bound)
    enough = better(None if full.values is None else _settled(model, full.values))
    if not (large or enough) and relaxed.values is not None:
        kernel = _kernel(model, relaxed.values)
        if not better(_rounded(model, relaxed.values, kernel, gap, end)):
            better(_restricted(model, kernel, gap * KERNEL_GAP, end - time.monotonic()))
    return Found(best, bound)


def _kernel(model: Model, relaxed: Floats) -> Floats:
    """Upper ends of the variables with nothing bought and used but what the relaxation buys and uses."""
    shape = model.shape
    upper = model.upper.copy()
    for block in "xa":
        unused = ~(shape.part(relaxed, block) > WHOLE).any(axis=1)
        upper[shape.at(block, np.flatnonzero(unused))] = 0.0
    return upper


def _restricted(model: Model, kernel: Floats, gap: float, seconds: float) -> Floats | None:
    """The best plan within the kernel, if one is found."""
    whole = model.whole.copy()
    for block in "dn":
        whole[model.shape.at(block)] = False
    end = time.monotonic() + seconds
    got = highs(model, whole=whole, upper=kernel, gap=gap, seconds=seconds)
    return None if got.values is None else _rest(model, got.values, end)


def _rounded(model: Model, relaxed: Floats, kernel: Floats, gap: float, end: float) -> Floats | None:
    """A plan from the relaxation by rounding, or None where that leads nowhere. A reserve in later periods makes up
    for what rounding earlier ones costs; where there is no room for one, it is tried without.
    """
    enough = float(model.cost @ relaxed) * (1 + gap * KERNEL_GAP)
    values, lower, upper = min(
        _settings(model, relaxed, kernel, enough, end),
        key=lambda made: np.inf if made[0] is None else float(model.cost @ made[0]),
    )
    for reserve in RESERVES:
        plan = None if values is None else _by_period(model, values, lower.copy(), upper.copy(), reserve, end)
        if plan is not None:
            return _rest(model, plan, end)
    return None


def _settings(
    model: Model, relaxed: Floats, kernel: Floats, enough: float, end: float
) -> list[tuple[Floats | None, Floats, Floats]]:
    """Relaxations with spares and orders settled by what ``relaxed`` does, and their ends; one of them where it costs
    no more than ``enough``.
    """
    shape = model.shape
    active, orders = shape.part(relaxed, "n"), shape.part(relaxed, "x")
    least = np.array([shape.skus[p].minimum_order for p in shape.ordered])
    z, y = shape.at("z"), shape.at("y")
    made: list[tuple[Floats | None, Floats, Floats]] = []
    for above in IN_USE if shape.spared else IN_USE[-1:]:
        lower, upper = model.lower.copy(), kernel.copy()
        lower[z] = upper[z] = active[shape.spared] > above + WHOLE
        lower[y] = upper[y] = orders[shape.ordered] > least[:, None] * min(above, 0.5) + WHOLE
        got = highs(model, whole=np.zeros_like(model.whole), lower=lower, upper=upper, seconds=end - time.monotonic())
        made.append((got.values, lower, upper))
        if got.cost <= enough:
            break
    return made


def _by_period(model: Model, values: Floats, lower: Floats, upper: Floats, reserve: float, end: float) -> Floats | None:
    """Orders made whole period by period; later ones, still fractions, make up for it. ``lower`` and ``upper`` are
    changed. ``reserve``: servers for which later periods are left without room and money.
    """
    shape, none = model.shape, np.zeros_like(model.whole)
    when = np.array([int(label[-1]) if label[0] in ROOM else -1 for label in model.labels])
    if reserve:
        tight = replace(model, high=model.high - reserve * (when > 0))
        got = highs(tight, whole=none, lower=lower, upper=upper, seconds=end - time.monotonic())
        if got.values is None:
            return None
        values = got.values
    for t in range(shape.periods):
        x = shape.at("x")[:, t]
        if (np.abs(values[x] - np.round(values[x])) > WHOLE).any():
            now = replace(model, high=model.high - reserve * (when > t))
            low, high = lower.copy(), upper.copy()
            low[x] = high[x] = np.round(values[x])
            got = highs(now, whole=none, lower=low, upper=high, seconds=end - time.monotonic())
            if got.values is None:  # then the best of rounding up or down
                some = none.copy()
                some[x] = True
                seconds = min(end - time.monotonic(), PERIOD_TIME)
                got = highs(now, whole=some, lower=lower, upper=upper, gap=1e-4, seconds=seconds)
            if got.values is None or time.monotonic() > end:
                return None
            values = got.values
        lower[x] = upper[x] = np.round(values[x])
    if not shape.dedicated.any():
        return values
    whole = none.copy()
    whole[shape.at("a", np.flatnonzero(shape.dedicated))] = True
    return highs(model, whole=whole, lower=lower, upper=upper, gap=1e-4, seconds=end - time.monotonic()).values


def _rest(model: Model, values: Floats, end: float) -> Floats | None:
    """A whole plan of given purchases, orders, spares and dedicated servers: retirements follow from them."""
    shape = model.shape
    lower, upper = model.lower.copy(), model.upper.copy()
    for columns in (*(shape.at(block) for block in "xyz"), shape.at("a", np.flatnonzero(shape.dedicated))):
        lower[columns] = upper[columns] = np.round(values[columns])
    fixed = lower.copy(), upper.copy()
    active = shape.at("n")
    fixed[0][active] = fixed[1][active] = np.ceil(values[active] - WHOLE)
    done = highs(model, lower=fixed[0], upper=fixed[1], gap=1e-4, seconds=end - time.monotonic())
    if done.values is None:  # rounding broke a limit of a site
        done = highs(model, lower=lower, upper=upper, gap=1e-3, seconds=end - time.monotonic())
    return None if done.values is None else _settled(model, done.values)


def _settled(model: Model, values: Floats) -> Floats:
    """The same counts, exactly whole, with the best use of them."""
    values = values.copy()
    values[model.whole] = np.round(values[model.whole])
    lower, upper = model.lower.copy(), model.upper.copy()
    lower[model.whole] = upper[model.whole] = values[model.whole]
    used = highs(model, whole=np.zeros_like(model.whole), lower=lower, upper=upper)
    if used.values is None:
        # A demand that whole servers miss by HiGHS's tolerance, which is not worth another server.
        return np.clip(values, model.lower, model.upper)
    exact = np.clip(used.values, lower, upper)
    exact[model.whole] = values[model.whole]
    exact[model.shape.at("i")] = np.round(exact[model.shape.at("i")])
    return exact
