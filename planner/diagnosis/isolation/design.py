"""Choose the hosts to run together next: a group that is about equally likely to be slow or fast, given all runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fleetmark.planner.diagnosis.isolation.posterior import NODE, NONE, Posterior

SETS = 300  # number of draws from the posterior
ORDERS, MORE = 8, 32  # number of orders of the classes with prefixes as candidates, and if none is informative
_COARSE = 16  # number of prefixes that are evaluated first
_ENOUGH = 0.95  # sufficient information in bits; no further order is tried
_HOT = 1e-3  # minimum probability that a class contains the end of a fault, for the class to be tested
_FEW = 5  # with fewer classes, the search always halves them
_MUCH = 0.75  # the same after the first ORDERS orders
_SPLIT = 0.05  # minimum gain in bits for splitting a class


def choose(posterior: Posterior, size: int, barred: Sequence[Collection[str]]) -> tuple[list[str], float]:
    """Return a group of at most ``size`` hosts, and the information in bits that its run gives.

    ``barred`` lists sets of hosts that the group must not contain. A run is most informative, at one bit, if it is
    equally likely to be slow or fast. The candidates are prefixes of the suspects in several orders, filled up with
    other hosts, and groups across likely borders and uplinks.
    """
    design = _Design(posterior, size)
    best: tuple[list[str], float] = ([], -1.0)
    for nth in range(MORE):
        hosts = barred[nth % len(barred)]
        for candidate in (design.group(hosts, nth), design.over(hosts, nth)):
            best = max(best, candidate, key=lambda c: c[1])
        if best[1] > (_ENOUGH if nth < ORDERS else _MUCH):
            break
    return best


class _Design:
    """Evaluate groups of one ``size`` against sets drawn from a posterior."""

    def __init__(self, posterior: Posterior, size: int) -> None:
        self.posterior, self.size = posterior, size
        self.rng = np.random.default_rng(len(posterior.cells))
        quantiles = (np.arange(SETS) + self.rng.random()) / SETS
        rows = np.searchsorted(np.cumsum(posterior.share), quantiles).clip(max=len(posterior.share) - 1)
        cells = posterior.cells.astype(np.int64)
        self.lifted = posterior.lifted(size)[rows]
        self.border = posterior.border[rows]
        self.crossed = self.border >= 0
        likely, counts = np.unique(self.border[self.crossed], return_counts=True)
        self.likely = [posterior.borders[n] for n in likely[np.argsort(-counts, kind="stable")]]
        self.first, self.second = cells[rows] >> 8, cells[rows] & 255
        weights = np.repeat(posterior.share, cells.shape[1])
        self.mass = np.bincount((cells >> 8).ravel(), weights, 256) + np.bincount((cells & 255).ravel(), weights, 256)
        self.mass[[NODE, NONE]] = 0.0

    def group(self, barred: Collection[str], nth: int) -> tuple[list[str], float]:
        """Return the best group from one order of the classes, and its value."""
        classes = self.posterior.class_of
        free = np.array([host not in barred for host in self.posterior.hosts])
        sizes = np.bincount(classes[free], minlength=256)
        hot, of_each = self._ordered(np.flatnonzero((self.mass > _HOT) & (sizes > 0)), sizes, nth)
        cold = int(sizes[self.mass <= _HOT].sum())
        coarse = np.unique(np.linspace(0, len(hot), _COARSE + 1).round().astype(int))
        counts = self._filled(_beginnings(coarse, of_each), of_each, cold)
        slow, worth = self._judged(counts, hot, sizes)
        near = int(worth.argmax())
        within = np.arange(coarse[max(0, near - 1)], coarse[min(near + 1, len(coarse) - 1)] + 1)
        parted = [_parted(n, of_each) for n in _crossing(coarse, slow)]
        finer = self._filled(np.concatenate([_beginnings(within, of_each), *parted]), of_each, cold)
        _, better = self._judged(finer, hot, sizes)
        counts, worth = np.concatenate([counts, finer]), np.append(worth, better)
        top = int(worth.argmax())
        members = self._hosts(np.bincount(hot, counts[top], 256).astype(int), free)
        return members, float(worth[top]) if not self.crossed.any() else self._worth(members)

    def over(self, barred: Collection[str], nth: int) -> tuple[list[str], float]:
        """Return a group across the ``nth`` likely border or uplink that crosses few others, and its value."""
        if nth >= len(self.likely):
            return [], -1.0
        border = self.likely[nth]
        free = [host for host in self.posterior.hosts if host not in barred]
        one, other = ([host for host in free if host in side] for side in (border.one, border.other))
        members = [*one[: self.size // 2], *other][: self.size]
        members += [host for host in one if host not in members][: self.size - len(members)]
        return members, self._worth(members)

    def _ordered(self, hot: np.ndarray, sizes: np.ndarray, nth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the classes in one of three orders, and the number of hosts in each class.

        The orders are: as in likely sets (both ends of a link adjacent), by probability, or in random halves.
        """
        if nth % 3 == 1 or len(hot) < _FEW:
            parts = np.concatenate([sizes[hot] // 2, sizes[hot] - sizes[hot] // 2])
            order = self.rng.permutation(np.flatnonzero(parts))
            return np.tile(hot, 2)[order], parts[order]
        if nth % 3 == 2:
            order = hot[np.argsort(-self.mass[hot], kind="stable")]
            return order, sizes[order]
        rows = self.rng.permutation(len(self.first))
        stream = np.stack([self.first[rows], self.second[rows]], axis=2).ravel()
        values, firsts = np.unique(np.concatenate([stream[np.isin(stream, hot)], hot]), return_index=True)
        order = values[np.argsort(firsts)]
        return order, sizes[order]

    def _filled(self, wanted: np.ndarray, sizes: np.ndarray, cold: int) -> np.ndarray:
        """Return how many hosts of each class the groups have.

        Groups take the ``wanted`` hosts first, then hosts without a fault, then other hosts.
        """
        taken = np.clip(self.size - (np.cumsum(wanted, axis=1) - wanted), 0, wanted)
        left = np.clip(self.size - taken.sum(axis=1) - cold, 0, None)[:, None]
        room = sizes - taken
        after = np.cumsum(room[:, ::-1], axis=1)[:, ::-1] - room
        return np.asarray(taken + np.clip(left - after, 0, room))

    def _judged(self, counts: np.ndarray, hot: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each group's probability of being slow, and its information in bits less the cost of splitting a
        class.

        If a group contains only part of a class, it has the end of a fault in that class with proportional probability.
        """
        members = np.zeros((len(counts), 256))
        np.add.at(members.T, hot, counts.T)
        parts = members / np.maximum(1, np.bincount(self.posterior.class_of, minlength=256))
        parts[:, NODE] = 1.0
        each = 1.0 - np.prod(1.0 - parts[:, self.first] * parts[:, self.second], axis=2)
        splits = ((members > 0) & (members < sizes)).sum(axis=1)
        return each.mean(axis=1), _bits(each, self.lifted) - _SPLIT * splits

    def _worth(self, members: list[str]) -> float:
        """Return the information in bits that a group's run gives if a border or uplink may make it slow."""
        inside = np.isin(self.posterior.hosts, members)
        classes = self.posterior.class_of
        parts = np.bincount(classes[inside], minlength=256) / np.maximum(1, np.bincount(classes, minlength=256))
        parts[NODE] = 1.0
        each = 1.0 - np.prod(1.0 - parts[self.first] * parts[self.second], axis=1)
        across = np.append(self.posterior.crossed(inside), False)
        return float(_bits(np.where(self.crossed, across[self.border], each)[None, :], self.lifted)[0])

    def _hosts(self, counts: np.ndarray, free: np.ndarray) -> list[str]:
        chosen: list[int] = []
        for code in np.flatnonzero(counts):
            chosen += np.flatnonzero((self.posterior.class_of == code) & free)[: counts[code]].tolist()
        cold = np.flatnonzero((self.mass[self.posterior.class_of] <= _HOT) & free)
        chosen += cold[: self.size - len(chosen)].tolist()
        return [self.posterior.hosts[n] for n in sorted(chosen)]


def _beginnings(lengths: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(sizes)) < lengths[:, None], sizes, 0)


def _parted(length: int, sizes: np.ndarray) -> np.ndarray:
    """Return prefixes of ``length`` classes that contain different parts of the last class."""
    n = int(sizes[length - 1])
    parts = sorted({max(1, n // 4), n // 2, n - max(1, n // 4)} - {0, n})
    wanted = np.tile(_beginnings(np.array([length]), sizes), (len(parts), 1))
    wanted[:, length - 1] = parts
    return wanted


def _crossing(lengths: np.ndarray, slow: np.ndarray) -> list[int]:
    """Return the lengths around the point at which prefixes change from fast to slow."""
    over = np.flatnonzero(slow > 0.5)
    if not len(over):
        return [int(lengths[-1])] if lengths[-1] else []
    high, low = int(lengths[over[0]]), int(lengths[over[0] - 1]) if over[0] else 0
    return list(range(max(1, high - 2, low), high + 1)) if high else []


def _bits(slow: np.ndarray, lifted: np.ndarray) -> np.ndarray:
    """Return the information in bits of runs, from the sets that make them ``slow``.

    A run can be slower than earlier runs, or as fast. It can be faster if a set implies that earlier runs were slow.
    """
    slower = (slow * ~lifted).mean(axis=1)
    faster = ((1.0 - slow) * lifted).mean(axis=1)
    p = np.clip([slower, faster, 1.0 - slower - faster], 1e-9, 1.0)
    return np.asarray(-(p * np.log2(p)).sum(axis=0))
