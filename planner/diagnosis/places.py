"""Find borders between places (racks, switches, sites), and uplinks of places, that slow down pairs of hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.diagnosis.links import PARTNERS, decompose
from fleetmark.planner.diagnosis.outliers import FLOOR, LIMIT
from fleetmark.planner.diagnosis.robust import NORMAL, Floats

Whole = npt.NDArray[np.int64]
NAMES = ("site", "pod", "row", "rack", "switch", "leaf")  # labels of places
APART = ("site",)  # places that are far apart by design, so that no normal border exists between two of them
LEAST = 0.03  # minimum measured deficit, so that most losses of 4% are detected
PAIRS, HOSTS = 4, 2  # minimum number of pairs across a border, and of hosts on each side
SLOW = 0.75  # minimum share of the pairs across a border that lose more than half of its loss
_MOST = 4  # maximum number of borders and uplinks in one benchmark


@dataclass(kw_only=True, frozen=True, slots=True)
class Border:
    """A border between two places, or the uplink of one; ``places`` has their numbers.

    - ``shift``: the loss of its pairs, as a logarithm above 0; ``z``: the same in standard errors
    - ``pairs``: positions of the pairs across it; ``level``: the usual value of such pairs
    """

    places: tuple[int, ...]
    shift: float
    z: float
    pairs: Whole
    level: float


def slow_borders(a: Whole, b: Whole, values: Floats, place: Whole, *, two: bool = True) -> list[Border]:
    """Return the borders and uplinks of places that are slower than others, the largest loss first.

    ``a`` and ``b`` are host numbers, ``values`` the oriented logarithms of their rates, and ``place`` the number of
    each host's place (-1: unknown). ``two``: whether two places are enough; their border is then compared with pairs
    within each place.

    The medians of all pairs between two places are split like pairs of hosts (Tukey's median polish): a low effect of a
    place means a slow uplink, and a low residual means a slow border. A few slow hosts have little effect on these
    medians. The standard error comes from the spread between pairs and the number of hosts, since pairs of one host
    resemble each other.
    """
    rest = values.copy()
    result: list[Border] = []
    while len(result) < _MOST:
        best = min(_candidates(a, b, rest, place, two), key=lambda border: border.z, default=None)
        if best is None:
            break
        rest[best.pairs] += best.shift
        result.append(best)
    return result


def _candidates(a: Whole, b: Whole, values: Floats, place: Whole, two: bool) -> list[Border]:
    first, second = np.minimum(place[a], place[b]), np.maximum(place[a], place[b])
    known = first >= 0
    crossing = known & (first != second)
    keys, groups = np.unique(np.stack([first[crossing], second[crossing]], 1), axis=0, return_inverse=True)
    if not len(keys):
        return []
    groups = groups.ravel()
    across = np.flatnonzero(crossing)
    middles = np.array([np.median(values[across[groups == n]]) for n in range(len(keys))])
    spread = max(NORMAL * float(np.median(np.abs(values[across] - middles[groups]))), FLOOR)
    places = int(keys.max()) + 1
    effects = decompose(keys[:, 0], keys[:, 1], middles, places)
    within = np.flatnonzero(known & (first == second))
    if len(keys) == 1:
        if not two or len(within) < PAIRS:
            return []
        sides = [values[within[first[within] == side]] for side in keys[0]]
        inner = min(float(np.median(side)) for side in sides if len(side))  # one place may be slow everywhere
        return _kept([_border((int(keys[0, 0]), int(keys[0, 1])), across, inner, values, a, b, spread)])
    result = []
    for number, (one, other) in enumerate(keys.tolist()):
        usual = effects.level + effects.node[one] + effects.node[other]
        result.append(_border((one, other), across[groups == number], float(usual), values, a, b, spread))
    for one in np.flatnonzero(effects.partners >= PARTNERS).tolist():
        over = across[(first[across] == one) | (second[across] == one)]
        uplink = _border((one,), over, effects.level, values, a, b, spread)
        inside = within[first[within] == one]
        others = within[first[within] != one]
        if uplink is not None and len(inside) and len(others):
            lost = float(np.median(values[others]) - np.median(values[inside]))
            if lost > uplink.shift / 2:  # the hosts of the place are slow among themselves, too
                continue
        result.append(uplink)
    return _kept(result)


def _kept(borders: list[Border | None]) -> list[Border]:
    return [border for border in borders if border is not None]


def _border(
    places: tuple[int, ...], pairs: Whole, usual: float, values: Floats, a: Whole, b: Whole, spread: float
) -> Border | None:
    """Return the border if most of its pairs are slow, and if they involve several hosts on either side."""
    ends, others = np.unique(a[pairs]), np.unique(b[pairs])
    hosts = len(np.union1d(ends, others))
    if len(pairs) < PAIRS or hosts < 2 * HOSTS or min(len(ends), len(others)) < HOSTS:
        return None
    shift = usual - float(np.median(values[pairs]))
    if shift < -np.log1p(-LEAST) or np.mean(values[pairs] < usual - shift / 2) < SLOW:
        return None
    error = 1.2533 * spread / float(np.sqrt(min(hosts, len(pairs))))
    z = -shift / max(error, FLOOR)
    return Border(places=places, shift=shift, z=z, pairs=pairs, level=usual) if z < LIMIT else None
