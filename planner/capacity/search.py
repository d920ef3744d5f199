"""Solve a programme with HiGHS: a bound from its relaxation, plans by rounding, then larger parts of the programme.

HiGHS takes minutes to solve a large question, mostly to find a first plan. A plan seldom needs a variable that the
relaxation does not use, so the search first omits such variables (kernel search: Angelelli, Mansini, Speranza,
Computers & Operations Research 37, 2010).

The search rounds period by period; later periods compensate the rounding of earlier ones. Then it solves with integers
only for purchases, orders and the use of spares. Active servers are rounded up, which violates no limit. Each plan is
compared with the bound of the full programme. The full programme is solved only if the gap is still too wide.

Searches end after a number of nodes, so that the same question has the same plan on every machine. Time is a second
limit, for larger questions; the result states whether it ended a search.
"""

from __future__ import annotations

import ctypes
import os
import sys
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
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.model import Model
from fleetmark.planner.capacity.shape import Floats, Shape

Marks = npt.NDArray[np.bool_]
SMALL = 600  # maximum number of integers for solving the full programme first
KERNEL_GAP = 0.3  # share of the allowed gap for the restricted programme
KERNEL_TIME = 0.5  # share of the time for the restricted programme
PERIOD_TIME = 0.2  # share of the time for making the orders of one period integers if rounding fails
RESERVES = (3.0, 0.0)  # numbers of servers that rounding reserves for later periods; each is tried in turn
ROOM = ("power", "rack units", "ports", "racks", "liquid racks", "domain power", "supply", "budget")  # limits by period
IN_USE = (
    0.5,
    2.0,
    4.0,
    0.0,
)  # numbers of active servers above which the rounded plan keeps spares; the cheapest result is used
_OF_TIME, _OF_NODES = "Time limit", "Solution limit"  # parts of HiGHS's messages
INTEGRALITY = 1e-6  # HiGHS's integer tolerance
LEAST_SECONDS = 1.0
NODES, LEAST_NODES = 2_500_000, 100  # limit of nodes times variables in one search, and the minimum limit of nodes


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search.

    ``values`` are the variables with exact integers, or None if the search ended without a plan. No plan costs less
    than ``bound``, in units of the programme's cost.
    """

    values: Floats | None
    bound: float


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The result of one HiGHS run.

    If ``values`` is None and the programme is not proven ``infeasible``, a limit ended the search.
    """

    values: Floats | None
    cost: float
    bound: float
    infeasible: bool


def highs(
    model: Model,
    *,
    integer: Marks | None = None,
    lower: Floats | None = None,
    upper: Floats | None = None,
    cost: Floats | None = None,
    clock: Clock | None = None,
    share: float = 1.0,
    gap: float = 0.0,
) -> SearchAnswer:
    """Run HiGHS once on the programme; arguments that are not None replace parts of it.

    The run may take a ``share`` of the remaining time of ``clock``. Raise FleetmarkError if HiGHS ends for any reason
    other than a solution, infeasibility or a limit.
    """
    integer = model.integer if integer is None else integer
    ends = Bounds(model.lower if lower is None else lower, model.upper if upper is None else upper)
    rows = LinearConstraint(model.rows, model.low, model.high)
    nodes = max(NODES // max(len(model.cost), 1), LEAST_NODES)
    options: Any = {"mip_rel_gap": gap, "node_limit": nodes}
    if clock is not None:
        options["time_limit"] = max(share * clock.left, LEAST_SECONDS)
    c = model.cost if cost is None else cost
    with _silent():
        result = milp(c, integrality=integer.astype(int), bounds=ends, constraints=rows, options=options)
    if result.status not in {0, 1, 2} and _OF_NODES not in result.message:
        raise FleetmarkError(message("the solver failed on the capacity question: {why}", why=result.message))
    if clock is not None and result.status == 1 and _OF_TIME in result.message:
        clock.stopped = True
    bound = getattr(result, "mip_dual_bound", None)
    if result.x is None:
        return SearchAnswer(None, np.inf, -np.inf if bound is None else float(bound), result.status == 2)
    value = float(result.fun)
    if not integer.any():
        return SearchAnswer(result.x, value, value if result.status == 0 else -np.inf, False)
    return SearchAnswer(result.x, value, -np.inf if bound is None else min(float(bound), value), False)


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress a line that HiGHS 1.12 prints when it repairs a plan, even with its output switched off."""
    try:
        stdout = os.dup(1)
    except OSError:  # there is no stdout
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C has its own output buffer
        os.dup2(stdout, 1)
        os.close(stdout)


def search(model: Model, gap: float, clock: Clock) -> Result | None:
    """Return the cheapest plan within ``gap``, or the best within the limits; None if there is provably none."""
    if not len(model.cost):  # no server is in place or arrives in time
        return None if (model.low > 0).any() else Result(model.lower, 0.0)
    relaxed = highs(model, integer=np.zeros_like(model.integer), clock=clock)
    if relaxed.infeasible:
        return None
    best, bound = None, relaxed.bound
    large = model.integer.sum() > SMALL

    def better(values: Floats | None) -> bool:
        """Record a plan and return whether the best one is good enough."""
        nonlocal best
        if values is not None and (best is None or model.cost @ values < model.cost @ best):
            best = values
        return best is not None and bool(model.cost @ best - bound <= gap * abs(model.cost @ best))

    if large and relaxed.values is not None:
        kernel = _kernel(model, relaxed.values)
        if better(_rounded(model, relaxed.values, kernel, gap, clock)):
            return Result(best, bound)
        if better(_restricted(model, kernel, gap * KERNEL_GAP, clock, KERNEL_TIME)):
            return Result(best, bound)
    full = highs(model, gap=gap, clock=clock, share=1.0 if large else KERNEL_TIME)
    if full.infeasible:
        return None
    bound = max(bound, full.bound)
    enough = better(None if full.values is None else _settled(model, full.values))
    if not (large or enough) and relaxed.values is not None:
        kernel = _kernel(model, relaxed.values)
        if not better(_rounded(model, relaxed.values, kernel, gap, clock)):
            better(_restricted(model, kernel, gap * KERNEL_GAP, clock, 1.0))
    return Result(best, bound)


def _kernel(model: Model, relaxed: Floats) -> Floats:
    """Return upper bounds of the variables; they are 0 for everything that the relaxation does not buy or use."""
    shape = model.shape
    upper = model.upper.copy()
    servers, _ = shape.servers(relaxed)
    used: Marks = np.asarray((servers > INTEGRALITY).any(axis=1))
    for block, some in (
        ("x", (shape.part(relaxed, "x") > INTEGRALITY).any(axis=1)),
        ("a", used),
        ("r", used[shape.lasting]),
    ):
        upper[shape.columns(block, np.flatnonzero(~some))] = 0.0
    return upper


def _restricted(model: Model, kernel: Floats, gap: float, clock: Clock, share: float) -> Floats | None:
    """Return the best plan within the kernel, or None if there is none."""
    integer = model.integer.copy()
    for block in "dn":
        integer[model.shape.columns(block)] = False
    answer = highs(model, integer=integer, upper=kernel, gap=gap, clock=clock, share=share)
    return None if answer.values is None else _rest(model, answer.values, clock)


def _rounded(model: Model, relaxed: Floats, kernel: Floats, gap: float, clock: Clock) -> Floats | None:
    """Return a plan by rounding the relaxation, or None if that fails.

    A reserve in later periods compensates the rounding of earlier ones. If there is no room for a reserve, rounding is
    tried without one.
    """
    enough = float(model.cost @ relaxed) * (1 + gap * KERNEL_GAP)
    values, lower, upper = min(
        _settings(model, relaxed, kernel, enough, clock),
        key=lambda setting: np.inf if setting[0] is None else float(model.cost @ setting[0]),
    )
    for reserve in RESERVES:
        plan = None if values is None else _by_period(model, values, lower.copy(), upper.copy(), reserve, clock)
        if plan is not None:
            return _rest(model, plan, clock)
    return None


def _settings(
    model: Model, relaxed: Floats, kernel: Floats, enough: float, clock: Clock
) -> list[tuple[Floats | None, Floats, Floats]]:
    """Return relaxations with spares and orders fixed after ``relaxed``, and their bounds.

    The list ends with the first one that costs at most ``enough``.
    """
    shape = model.shape
    active, orders = shape.part(relaxed, "n"), shape.part(relaxed, "x")
    least = np.array([shape.skus[p].minimum_order for p in shape.ordered])
    z, y = shape.columns("z"), shape.columns("y")
    settings: list[tuple[Floats | None, Floats, Floats]] = []
    for above in IN_USE if shape.spared else IN_USE[-1:]:
        lower, upper = model.lower.copy(), kernel.copy()
        lower[z] = upper[z] = active[shape.spared] > above + INTEGRALITY
        lower[y] = upper[y] = orders[shape.ordered] > least[:, None] * min(above, 0.5) + INTEGRALITY
        lower[shape.columns("b")] = upper[shape.columns("b")] = _reached(shape, orders)
        answer = highs(model, integer=np.zeros_like(model.integer), lower=lower, upper=upper, clock=clock)
        settings.append((answer.values, lower, upper))
        if answer.cost <= enough:
            break
    return settings


def _reached(shape: Shape, orders: Floats) -> Floats:
    """Return the price breaks that these orders reach: for each SKU and period, the last one at or below the order."""
    reached = np.zeros((len(shape.broken), shape.periods))
    for b, (s, j) in enumerate(shape.broken):
        breaks = shape.question.skus[s].breaks
        ordered = orders[[p for p, pair in enumerate(shape.pairs) if pair[0] == s]].sum(axis=0) + 0.5
        top = breaks[j + 1][0] if j + 1 < len(breaks) else np.inf
        reached[b] = (breaks[j][0] <= ordered) & (ordered < top)
    return reached


def _in_lots(shape: Shape, orders: Floats) -> Floats:
    """Return the orders (pair,) rounded to the nearest number of whole lots."""
    lots = np.array([sku.lot for sku in shape.skus])
    return np.asarray(np.round(orders / lots) * lots)


def _by_period(
    model: Model, values: Floats, lower: Floats, upper: Floats, reserve: float, clock: Clock
) -> Floats | None:
    """Round orders to integers period by period; later orders are still fractions and compensate.

    The function changes ``lower`` and ``upper``. ``reserve`` is the number of servers for which later periods leave
    room and money.
    """
    shape, none = model.shape, np.zeros_like(model.integer)
    periods = np.array([int(label[-1]) if label[0] in ROOM else -1 for label in model.labels])
    if reserve:
        tight = replace(model, high=model.high - reserve * (periods > 0))
        answer = highs(tight, integer=none, lower=lower, upper=upper, clock=clock)
        if answer.values is None:
            return None
        values = answer.values
    for t in range(shape.periods):
        x = shape.columns("x")[:, t]
        if (np.abs(values[x] - _in_lots(shape, values[x])) > INTEGRALITY).any():
            now = replace(model, high=model.high - reserve * (periods > t))
            low, high = lower.copy(), upper.copy()
            low[x] = high[x] = _in_lots(shape, values[x])
            answer = highs(now, integer=none, lower=low, upper=high, clock=clock)
            if answer.values is None:  # solve for the best rounding, up or down
                some = none.copy()
                some[x] = True
                some[shape.columns("m")[:, t]] = True
                answer = highs(now, integer=some, lower=lower, upper=upper, gap=1e-4, clock=clock, share=PERIOD_TIME)
            if answer.values is None or clock.over():
                return None
            values = answer.values
        lower[x] = upper[x] = _in_lots(shape, values[x])
    if not shape.named_pools:
        return values
    integer = none.copy()
    integer[shape.columns("e")] = True
    return highs(model, integer=integer, lower=lower, upper=upper, gap=1e-4, clock=clock).values


def _rest(model: Model, values: Floats, clock: Clock) -> Floats | None:
    """Return a full plan from purchases, orders, spares and servers of pools; these determine the retirements."""
    shape = model.shape
    lower, upper = model.lower.copy(), model.upper.copy()
    for columns in (shape.columns(block) for block in "xyzemb"):
        lower[columns] = upper[columns] = np.round(values[columns])
    fixed = lower.copy(), upper.copy()
    active = shape.columns("n")
    fixed[0][active] = fixed[1][active] = np.ceil(values[active] - INTEGRALITY)
    answer = highs(model, lower=fixed[0], upper=fixed[1], gap=1e-4, clock=clock)
    if answer.values is None:  # rounding exceeded a limit of a site
        answer = highs(model, lower=lower, upper=upper, gap=1e-3, clock=clock)
    return None if answer.values is None else _settled(model, answer.values)


def _settled(model: Model, values: Floats) -> Floats:
    """Return the same plan with exact integer counts, and with the best use of these servers."""
    values = values.copy()
    values[model.integer] = np.round(values[model.integer])
    lower, upper = model.lower.copy(), model.upper.copy()
    lower[model.integer] = upper[model.integer] = values[model.integer]
    used = highs(model, integer=np.zeros_like(model.integer), lower=lower, upper=upper)
    if used.values is None:
        # Exact integers miss a demand by at most HiGHS's tolerance, which does not justify another server.
        return np.clip(values, model.lower, model.upper)
    exact = np.clip(used.values, lower, upper)
    exact[model.integer] = values[model.integer]
    exact[model.shape.columns("i")] = np.round(exact[model.shape.columns("i")])
    return exact
