"""Find facts and labels shared by hosts that are slower together, and facts that only slow hosts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.diagnosis.outliers import DISCOVERY, FLOOR
from fleetmark.planner.diagnosis.robust import NORMAL, Floats

LEAST, LEAST_OTHERS = 2, 3  # minimum number of hosts with the values of a trait, and of other hosts
CUT = 4.0  # spreads of a benchmark's hosts at which values are cut off, so that a single host cannot make a group
INSIDE, OUTSIDE = 0.75, 0.4  # minimum share of members, and maximum share of others, below the middle of both medians
MOST = 4  # maximum number of groups in one benchmark
_SMALLEST_SHARE = 0.5  # maximum number of values of a trait as a share of its hosts


@dataclass(frozen=True, slots=True)
class Trait:
    """A fact or label: its ``name``, its ``values``, and the number of each host's value (-1: unknown)."""

    name: str
    values: tuple[str, ...]
    codes: npt.NDArray[np.int64]


@dataclass(kw_only=True, frozen=True, slots=True)
class Group:
    """Hosts that share a trait and are slower than the other hosts of their kind in the benchmark ``row``.

    - ``traits``: the name and value of every trait that selects exactly these hosts
    - ``members``: positions of the hosts; ``others``: positions of the hosts that they are compared with
    - ``shift``: the distance between the medians, as a logarithm above 0; ``low`` and ``high`` are its 95% interval
    - ``p``: the p value, corrected for all comparisons; ``tried``: the number of comparisons
    """

    row: int
    traits: tuple[tuple[str, str], ...]
    members: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    shift: float
    low: float
    high: float
    p: float
    tried: int


def traits(values_by_trait: Mapping[str, Sequence[str]]) -> list[Trait]:
    """Return the traits that can explain a group: at least two values, and fewer values than half of the hosts."""
    result = []
    for name, values in values_by_trait.items():
        texts = np.array(values, dtype=object)
        known = texts != ""
        kinds, codes = np.unique(texts[known].astype(str), return_inverse=True)
        if 2 <= len(kinds) <= max(2.0, _SMALLEST_SHARE * known.sum()):
            all_codes = np.full(len(texts), -1)
            all_codes[known] = codes
            result.append(Trait(name, tuple(map(str, kinds)), all_codes))
    return result


def slower_groups(values: Floats, candidates: Sequence[Trait], deficit: Floats) -> list[Group]:
    """Return groups of hosts that are slower by ``deficit`` (a share per row) and share the values of a trait.

    ``values`` has benchmarks x hosts (oriented logarithms, NaN if missing).

    For each benchmark and trait, the values of the trait are ordered by their means, and each cut of that order is
    tested by Student's t. Values are cut off at CUT spreads, so that a single host cannot make a group. Since the order
    follows the data, p is multiplied by the number of sets of that many values (Bonferroni), and by the numbers of
    traits and benchmarks. The group with the smallest p counts. Its shift is then removed, and the search is repeated
    for further groups.
    """
    if not candidates or values.size == 0:
        return []
    rest = values.copy()
    result: list[Group] = []
    rows = np.arange(len(values))
    for _ in range(MOST):
        chosen = _best(rest[rows], candidates, len(values))
        more = []
        for position in np.flatnonzero(chosen.p <= DISCOVERY):
            row = int(rows[position])
            group = _group(row, rest[row], candidates, chosen, int(position), float(deficit[row]))
            if group is not None:
                rest[row, group.members] += group.shift
                more.append(group)
        if not more:
            break
        result += more
        rows = np.array([group.row for group in more])
    return result


@dataclass(frozen=True, slots=True)
class _Best:
    """The best cut of each row: its corrected ``p``, its ``trait``, the ``order`` of values, and the ``cut``."""

    p: Floats
    trait: npt.NDArray[np.int64]
    order: list[npt.NDArray[np.int64] | None]
    cut: npt.NDArray[np.int64]


def _best(values: Floats, candidates: Sequence[Trait], tests: int) -> _Best:
    from scipy import special

    n = len(values)
    best = _Best(np.full(n, np.inf), np.full(n, -1), [None] * n, np.zeros(n, dtype=np.int64))
    known = ~np.isnan(values)
    ordered = np.sort(values, axis=1)
    middle = _median(ordered, known.sum(axis=1))
    spread = np.fmax(NORMAL * _median(np.sort(np.abs(values - middle[:, None]), axis=1), known.sum(axis=1)), FLOOR)
    cut_off = np.clip(np.where(known, values - middle[:, None], 0.0), -CUT * spread[:, None], CUT * spread[:, None])
    for number, trait in enumerate(candidates):
        named = trait.codes >= 0
        here = known & named
        one_hot = np.zeros((values.shape[1], len(trait.values)))
        one_hot[np.flatnonzero(named), trait.codes[named]] = 1.0
        sizes, sums = here @ one_hot, (cut_off * here) @ one_hot
        squares = np.sum(cut_off**2 * here, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(sizes > 0, sums / sizes, np.inf)
            order = np.argsort(means, axis=1)
            below = np.cumsum(np.take_along_axis(sizes, order, 1), axis=1)
            summed = np.cumsum(np.take_along_axis(sums, order, 1), axis=1)
            total, sum_of_all = below[:, -1:], summed[:, -1:]
            above = total - below
            low, high = summed / below, (sum_of_all - summed) / above
            within = squares[:, None] - below * low**2 - above * high**2
            deviation = np.fmax(np.sqrt(np.fmax(within, 0.0) / (total - 2)), FLOOR)
            t = (low - high) / (deviation * np.sqrt(1 / below + 1 / above))
            sets = np.arange(1, t.shape[1] + 1)
            present = np.sum(sizes > 0, axis=1)[:, None]
            ways = special.gammaln(present + 1) - special.gammaln(sets + 1) - special.gammaln(present - sets + 1)
            log_p = np.log(special.stdtr(total - 2, t)) + ways
        usable = (below >= LEAST) & (above >= LEAST_OTHERS) & (sets < present) & (total > LEAST + 2) & ~np.isnan(log_p)
        log_p = np.where(usable, log_p, np.inf)
        cut = np.argmin(log_p, axis=1)
        with np.errstate(over="ignore"):
            p = np.exp(log_p[np.arange(n), cut] + np.log(len(candidates) * tests))
        for row in np.flatnonzero(p < best.p):
            best.p[row], best.trait[row], best.cut[row] = p[row], number, cut[row]
            best.order[row] = order[row]
    return best


def _group(
    row: int, values: Floats, candidates: Sequence[Trait], best: _Best, position: int, deficit: float
) -> Group | None:
    """Return the group of a row's best cut, or None if its effect is too small or it is not a separate group."""
    from scipy import special

    order = best.order[position]
    if order is None:
        return None
    trait = candidates[int(best.trait[position])]
    chosen = order[: int(best.cut[position]) + 1]
    measured = ~np.isnan(values)
    members = np.flatnonzero(measured & np.isin(trait.codes, chosen))
    others = np.flatnonzero(measured & (trait.codes >= 0) & ~np.isin(trait.codes, chosen))
    slow, fast = values[members], values[others]
    shift = float(np.median(fast) - np.median(slow))
    limit = (np.median(fast) + np.median(slow)) / 2
    if shift < -np.log1p(-deficit) or np.mean(slow < limit) < INSIDE or np.mean(fast < limit) > OUTSIDE:
        return None
    spreads = [max(NORMAL * float(np.median(np.abs(side - np.median(side)))), FLOOR) for side in (slow, fast)]
    # The standard error of the difference of the two medians.
    error = 1.2533 * float(np.sqrt(spreads[0] ** 2 / len(slow) + spreads[1] ** 2 / len(fast)))
    reach = float(special.stdtrit(min(len(slow), len(fast)) - 1, 0.975)) * error
    alike = [trait, *(other for other in candidates if other is not trait)]
    named = tuple(
        (other.name, " or ".join(other.values[c] for c in np.unique(other.codes[members])))
        for other in alike
        if _selects(other, members, others)
    )
    tried = sum(len(candidate.values) for candidate in candidates)
    return Group(
        row=row,
        traits=named,
        members=members,
        others=others,
        shift=shift,
        low=shift - reach,
        high=shift + reach,
        p=float(best.p[position]),
        tried=tried,
    )


def _selects(trait: Trait, members: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> bool:
    """Return whether the trait is known on all these hosts, and both sides have no value in common."""
    inside, outside = set(trait.codes[members].tolist()), set(trait.codes[others].tolist())
    return -1 not in inside | outside and not inside & outside


def shared(candidates: Sequence[Trait], slow: Sequence[int], sound: Sequence[int]) -> tuple[tuple[str, str, str], ...]:
    """Return the traits with one value on all ``slow`` hosts that no ``sound`` host has.

    Each result has the trait's name, the value of the slow hosts, and the values of the healthy hosts. ``slow`` and
    ``sound`` are positions.
    """
    result = []
    for trait in candidates:
        values, others = {int(trait.codes[h]) for h in slow}, {int(trait.codes[h]) for h in sound}
        if len(values) == 1 and -1 not in values and not values & others and others - {-1}:
            names = sorted(trait.values[c] for c in others if c >= 0)
            result.append(
                (trait.name, trait.values[values.pop()], " or ".join(names[:3]) + (" …" if names[3:] else ""))
            )
    return tuple(result)


def _median(ordered: Floats, n: npt.NDArray[np.int64]) -> Floats:
    """Return the median of each row of ``n`` sorted values; NaN for empty rows."""
    rows = np.arange(len(ordered))
    low, high = ordered[rows, np.maximum((n - 1) // 2, 0)], ordered[rows, np.minimum(n // 2, ordered.shape[1] - 1)]
    return np.asarray((low + high) / 2)
