"""Which host or link makes a group slow: how likely each is by what was run, and what to run next."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

_FARTHEST = 8.0  # ln of the odds that one run can give: noise has longer tails than a normal distribution
_NEGLIGIBLE = 0.3  # of an even share among the hosts: less is as good as ruled out
_SURE = 0.95  # how likely a run was sound, or slow, for what it says of the level to count


class Posterior:
    """How likely each of ``hosts``, and each link between two, is what makes them slow together, if one of them is.

    A host is as likely as a link before anything is known. ``level``: ln of the rate of a sound group, roughly; what
    runs say of it counts. ``drop``: ln of what a run with the fault reaches over one without; ``noise``: the standard
    deviation of a run.
    """

    def __init__(self, hosts: Sequence[str], level: float, drop: float, noise: float) -> None:
        n = len(hosts)
        self.hosts, self.drop, self.noise = list(hosts), drop, noise
        self.level = self._level = level
        self._prior = np.full((n, n), -np.inf)  # ln, of the link between row and column; of a host on the diagonal
        self._prior[np.triu_indices(n, 1)] = -np.log(max(1, n * (n - 1) / 2))
        np.fill_diagonal(self._prior, -np.log(n))
        self._here: list[np.ndarray] = []  # of each run, the places of the hosts in it
        self._rates: list[float] = []
        self._share = _normal(self._prior)

    def learn(self, group: Collection[str], rate: float) -> None:
        """``group`` ran at ``rate`` (ln; minus infinity where it failed); others than ``hosts`` in it are sound."""
        self._here.append(np.flatnonzero([host in group for host in self.hosts]))
        self._rates.append(rate)
        rates = np.array(self._rates)
        self._update(rates)
        slow = np.array([self._share[np.ix_(here, here)].sum() for here in self._here])
        sure = np.isfinite(rates) & (abs(slow - 0.5) > _SURE - 0.5)
        self.level = float(np.mean([self._level, *(rates[sure] - np.where(slow[sure] > _SURE, self.drop, 0.0))]))
        self._update(rates)

    def _update(self, rates: np.ndarray) -> None:
        odds = np.nan_to_num(self.drop * (rates - self.level - self.drop / 2) / self.noise**2, posinf=np.inf)
        weight = self._prior.copy()
        for here, each in zip(self._here, np.clip(odds, -_FARTHEST, _FARTHEST), strict=True):
            weight[np.ix_(here, here)] += each
        self._share = _normal(weight)

    def refute(self, of: Sequence[str]) -> None:
        """It is not that host, or not that link. What ran slow may have been so by another fault: it counts no more."""
        places = sorted(self.hosts.index(host) for host in of)
        self._prior[places[0], places[-1]] = -np.inf
        fast = np.array(self._rates) > self.level + self.drop / 2
        self._here = [here for here, keep in zip(self._here, fast, strict=True) if keep]
        self._rates = [rate for rate, keep in zip(self._rates, fast, strict=True) if keep]
        self._update(np.array(self._rates))

    def likeliest(self) -> tuple[tuple[str, ...], float]:
        """The likeliest host or link, and the ln of its odds against all others."""
        first, last = np.unravel_index(int(np.argmax(self._share)), self._share.shape)
        best = float(self._share[first, last])
        odds = np.log(max(best, 1e-12) / max(1 - best, 1e-12))
        return tuple(self.hosts[n] for n in sorted({int(first), int(last)})), float(odds)

    def open(self) -> frozenset[str]:
        """The hosts that it may still be, or a link of theirs."""
        each, least = self._share.sum(axis=0) + self._share.sum(axis=1), _NEGLIGIBLE / len(self.hosts)
        return frozenset(host for host, share in zip(self.hosts, each, strict=True) if share > least)

    def next(self) -> list[str]:
        """Those of the hosts to run together next: slow about as likely as not.

        Either a beginning of the hosts, which is slow from the later end of the first fault on, or the likeliest of
        these ends with a beginning of those before it, slow from its other end on. So other faults change no answer.
        """
        ends = self._share.sum(axis=0)
        slow = np.cumsum(ends)
        last = int(np.argmax(ends))
        beside = np.concatenate([[0.0], slow[:last] + np.cumsum(self._share[:last, last])]) + self._share[last, last]
        length = 1 + int(np.argmin(abs(slow[:-1] - 0.5))) if len(slow) > 1 else 0
        others = int(np.argmin(abs(beside - 0.5)))
        if not length or abs(beside[others] - 0.5) < abs(slow[length - 1] - 0.5):
            return [*self.hosts[:others], self.hosts[last]]
        return self.hosts[:length]


def _normal(weight: np.ndarray) -> np.ndarray:
    top = weight.max()
    if not np.isfinite(top):  # all of it is refuted
        return np.zeros_like(weight)
    share = np.exp(weight - top)
    return np.asarray(share / share.sum())
