"""Compute the probability that each set of hosts and links explains the slow groups, given all runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import comb, log

import numpy as np

from fleetmark.planner.diagnosis.isolation.covers import covering
from fleetmark.planner.diagnosis.isolation.topology import Crossing, Suspects

FAULTS = 4  # maximum number of faults in one set
NODE, NONE = 254, 255  # code in place of a link's other end, if the fault is a node; code for no fault
_EMPTY = 0xFFFF
_CLASSES = 253
_CLEAR = 5.0  # maximum deviations between a healthy run and a slow one, since noise has long tails
_PROVEN = 30.0  # the same for runs of two hosts that settled whether there is a fault
_BEYOND = 1.25  # share of a fault's loss that counts; a slower run gives no more evidence
_NUMBER = (0.04, 0.43, 0.25, 0.16, 0.12)  # prior probability of 0, 1, ... faults; users search if they expect one
_LINKS = 2.0  # prior odds of a link against a node: naming a link takes twice as many runs
_FEW = 0.05  # quantile of the sets, weighted by their probability
_BORDER = 0.1  # prior probability that the fault is a border; the same for an uplink
_ROWS = 6_000  # maximum number of sets
_AGAIN = 5  # number of runs after which dropped sets are searched for again
_LEAST = 1e-8  # minimum probability relative to the most likely set; less likely sets are dropped


class Posterior:
    """The odds of all sets of up to FAULTS hosts and links, or one border or uplink, that make groups slow.

    Hosts that were in the same runs form one class; a run with only some of them splits it. A set therefore consists of
    classes, and represents all sets of hosts from these classes. The result is exact (Bayes), and its size does not
    grow with the number of hosts.

    Only the most likely sets are kept. After more runs, sets that explain all of them are searched for again, since the
    true set may have been dropped.

    The rate of a healthy group of a given size is unknown, so runs of one size are compared with each other.

    ``suspects`` are the only hosts that may have a fault. ``drop`` is ln of the loss of a run with a fault; ``noise``
    is the standard deviation of a run.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        suspects: Collection[str],
        drop: float,
        noise: float,
        crossings: Sequence[Crossing] = (),
    ) -> None:
        self.hosts, self.drop, self.noise = list(hosts), drop, noise
        self.place = {host: n for n, host in enumerate(self.hosts)}
        named = set(suspects)
        self._suspect = np.array([host in named for host in self.hosts])
        self.class_of = np.where(self._suspect, 0, 1)  # the class of each host
        n = int((self.class_of == 0).sum())
        self.sizes = [n, len(self.hosts) - n]
        mixes = [(nodes, links) for nodes in range(FAULTS + 1) for links in range(FAULTS + 1 - nodes)]
        self.borders = [c for c in crossings if not (c.one.isdisjoint(named) or c.other.isdisjoint(named))]
        self._one, self._other = (
            np.array([[host in side for host in self.hosts] for side in sides], dtype=bool).reshape(-1, len(self.hosts))
            for sides in ([c.one for c in self.borders], [c.other for c in self.borders])
        )
        kinds = np.array([len(c.places) for c in self.borders], dtype=np.int64)
        self._border_prior = log(_BORDER) - np.log(np.bincount(kinds, minlength=3)[kinds])
        self.cells = np.full((len(mixes) + len(self.borders), FAULTS), _EMPTY, dtype=np.uint16)
        for row, (nodes, links) in enumerate(mixes):
            self.cells[row, : nodes + links] = [0] * links + [NODE] * nodes
        self.border = np.concatenate([np.full(len(mixes), -1), np.arange(len(self.borders))]).astype(np.int64)
        self._mix = np.full(
            (FAULTS + 1, FAULTS + 1), -np.inf
        )  # ln of the prior probability of each set with these numbers of nodes and links
        for nodes, links in mixes:
            ways = comb(n, nodes) * comb(n * (n - 1) // 2, links)
            mix = links * log(_LINKS) - log(sum(_LINKS**n for n in range(nodes + links + 1)))
            self._mix[nodes, links] = log(_NUMBER[nodes + links]) + mix - log(ways) if ways else -np.inf
        self._slow = np.zeros((len(self.cells), 0), dtype=bool)  # the runs that each set makes slow
        self._runs: list[tuple[int, float]] = []  # size and rate of each run
        self._inside = np.zeros((len(self.hosts), 0), dtype=bool)  # the hosts of each run
        self._settled: dict[int, bool] = {}  # for codes of hosts and links: whether they have a fault
        self._known_borders: list[Crossing] = []
        self._cut_at: int | None = None  # number of runs when likely sets were last dropped
        self._shown = np.zeros(len(self.cells))
        self.share = np.zeros(len(self.cells))
        self._count()
        self._weigh()

    def learn(self, group: Collection[str], rate: float) -> None:
        """Update the odds: ``group`` ran at ``rate`` (ln; minus infinity if it failed)."""
        inside = np.array([host in group for host in self.hosts])
        self._split(inside)
        if self._torn(inside):  # no classes are left, so the run adds no information
            return
        self._slow = np.column_stack([self._slow, self.slow(inside)])
        self._inside = np.column_stack([self._inside, inside])
        self._runs.append((len(group), rate))
        self._weigh()
        if self._cut_at is not None and len(self._runs) >= self._cut_at + _AGAIN:
            self._regrow()

    def slow(self, inside: np.ndarray) -> np.ndarray:
        """Return the sets that make a run with the hosts ``inside`` (one flag per host) slow; these must be whole
        classes.
        """
        flags = np.zeros(256, dtype=bool)
        flags[self.class_of[inside]] = flags[NODE] = True
        result = np.asarray((flags[:, None] & flags[None, :]).ravel()[self.cells].any(axis=1))
        if self.borders:
            result |= np.append(self.crossed(inside), False)[self.border]
        return result

    def crossed(self, inside: np.ndarray) -> np.ndarray:
        """Return the borders and uplinks that a run with the hosts ``inside`` crosses."""
        return np.asarray(self._one[:, inside].any(axis=1) & self._other[:, inside].any(axis=1))

    def settle(self, members: Suspects, fault: bool) -> None:
        """Record that a host, link or border has a fault, or has none."""
        if isinstance(members, Crossing):
            number = self.borders.index(members) if members in self.borders else len(self.borders)
            self._shown = self._shown + np.where((self.border == number) == fault, 0.0, -_PROVEN)
            self._weigh()
            return
        self._split(np.array([host == members[0] for host in self.hosts]))
        self._split(np.array([host == members[-1] for host in self.hosts]))
        if (code := self._code(members)) == _EMPTY:  # no set contains it
            return
        self._settled[code] = fault
        self._shown = self._shown + self._contrary(self.cells, code)
        self._weigh()
        if self._cut_at is not None:
            self._regrow()

    def know_border(self, border: Crossing) -> None:
        """Record that a border is known to be slow. The search then excludes the border and links across it."""
        self.settle(border, fault=False)
        for side in (border.one, border.other):
            self._split(np.array([host in side for host in self.hosts]))
        self._known_borders.append(border)
        ends = [self.cells >> 8, self.cells & 255]
        self._shown = self._shown - _PROVEN * self._across(*ends).any(axis=1)
        self._weigh()

    def _across(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return whether links between these classes cross a known border."""
        result = np.zeros(first.shape, dtype=bool)
        for border in self._known_borders:
            one, other = np.zeros((2, 256), dtype=bool)
            one[self.class_of] = [host in border.one for host in self.hosts]
            other[self.class_of] = [host in border.other for host in self.hosts]
            result |= (one[first] & other[second]) | (one[second] & other[first])
        return result

    def _contrary(self, cells: np.ndarray, code: int) -> np.ndarray:
        """Return ln of the probability of sets, given the verdict of two-host runs on a fault."""
        has = (cells == code).any(axis=1)
        return np.where(has == self._settled[code], 0.0, -_PROVEN)

    def _regrow(self) -> None:
        """Add the sets that explain all runs; they were dropped when the runs so far made them unlikely."""
        classes = np.unique(self.class_of[self._suspect])
        first, second = (classes[side] for side in np.triu_indices(len(classes)))
        two = (first != second) | (np.array(self.sizes)[first] > 1)
        pairs = np.concatenate([np.stack([classes, classes], 1), np.stack([first, second], 1)[two]])
        codes = pairs[:, 0] << 8 | np.where(np.arange(len(pairs)) < len(classes), NODE, pairs[:, 1])
        refuted = [code for code, fault in self._settled.items() if not fault]
        may = ~np.isin(codes, refuted) & ~self._across(pairs[:, 0], pairs[:, 1])
        inside = np.zeros((256, len(self._runs)), dtype=bool)
        inside[self.class_of] = self._inside
        known = [code for code, fault in self._settled.items() if fault]
        more = covering(inside, self._odds(), codes[may], pairs[may], known, FAULTS, _EMPTY)
        self._cut_at = len(self._runs)
        self._add(more, inside)

    def _add(self, cells: np.ndarray, inside: np.ndarray) -> None:
        """Add new sets; ``inside`` gives, for each class and run, whether the run contains the class."""
        here = self.cells[self.border < 0].copy().view(np.uint64).ravel()
        cells = cells[~np.isin(cells.copy().view(np.uint64).ravel(), here)]
        slow = np.zeros((len(cells), len(self._runs)), dtype=bool)
        inside[NODE] = True
        for column in range(FAULTS):
            slow |= inside[cells[:, column] >> 8] & inside[cells[:, column] & 255]
        shown = np.zeros(len(cells))
        for code in self._settled:
            shown += self._contrary(cells, code)
        self.cells, self._slow = np.concatenate([self.cells, cells]), np.concatenate([self._slow, slow])
        self.border = np.append(self.border, np.full(len(cells), -1))
        self._shown = np.append(self._shown, shown)
        self._count()
        self._weigh()

    def _odds(self) -> np.ndarray:
        """Return for each run ln of the odds that it was slow."""
        result = np.zeros(len(self._runs))
        noise = max(self.noise, self.drop / _CLEAR)
        sizes = np.array([size for size, _ in self._runs])
        for size in self.sizes_run():
            of_size = sizes == size
            rates = _cut(np.array([rate for run_size, rate in self._runs if run_size == size]), self.drop)
            if rates.min() < -self.drop / 2:  # otherwise all runs are slow, or none
                result[of_size] = -self.drop * (rates + self.drop / 2) / noise**2
        return result

    def more(self, faults: Iterable[Sequence[str]]) -> float:
        """Return the probability that there are more faults than the given ``faults``."""
        known = [_EMPTY, *(self._code(members) for members in faults)]
        return float(self.share[~np.isin(self.cells, known).all(axis=1) | (self.border >= 0)].sum())

    def likeliest(self, known: Collection[Suspects]) -> tuple[Suspects, float]:
        """Return the most likely host, link, border or uplink besides the ``known`` ones, and the logarithm of its
        odds.

        Hosts that were in the same runs cannot be distinguished, so they are not considered. The result is () if there
        is no such fault.
        """
        each = np.bincount(self.cells.ravel(), np.repeat(self.share, FAULTS), 1 << 16)
        each[[_EMPTY, *(self._code(members) for members in known if not isinstance(members, Crossing))]] = 0.0
        single = np.zeros(256, dtype=bool)
        single[: len(self.sizes)] = np.array(self.sizes) == 1
        single[NODE] = True
        each *= (single[:, None] & single[None, :]).ravel()
        code = int(each.argmax())
        best = float(each[code])
        ends = [c for c in (code >> 8, code & 255) if c < NODE]
        likeliest: Suspects = tuple(self.hosts[int(np.flatnonzero(self.class_of == c)[0])] for c in ends)
        if self.borders:
            across = np.bincount(self.border[self.border >= 0], self.share[self.border >= 0], len(self.borders))
            across[[self.borders.index(b) for b in known if isinstance(b, Crossing) and b in self.borders]] = 0.0
            if across.max() > best:
                best, likeliest = float(across.max()), self.borders[int(across.argmax())]
        return (likeliest, log(max(best, 1e-12) / max(1 - best, 1e-12))) if best > 0 else ((), -np.inf)

    def _code(self, members: Sequence[str]) -> int:
        """Return the code of a host, or of a link, if its hosts are alone in their classes, or else an unused code."""
        classes = sorted(int(self.class_of[self.place[h]]) for h in members if h in self.place)
        if len(classes) != len(members) or any(self.sizes[c] > 1 for c in classes):
            return _EMPTY
        return classes[0] << 8 | (classes[1] if len(classes) > 1 else NODE)

    def _split(self, inside: np.ndarray) -> None:
        """Split each class that a set contains into the hosts ``inside`` and the others."""
        live = np.zeros(256, dtype=bool)
        live[self.cells >> 8] = live[self.cells & 255] = True
        within = np.bincount(self.class_of[inside], minlength=len(self.sizes))
        changed = False
        for old in np.flatnonzero((within > 0) & (within < np.array(self.sizes)) & live[: len(self.sizes)]):
            new = len(self.sizes)
            if new >= _CLASSES:
                break
            self.class_of[inside & (self.class_of == old)] = new
            self.sizes.append(int(within[old]))
            self.sizes[old] -= int(within[old])
            self._branch(int(old), new)
            changed = True
        if changed:
            self._count()

    def _torn(self, inside: np.ndarray) -> bool:
        """Return whether a class that a set contains is only partly ``inside``."""
        within = np.bincount(self.class_of[inside], minlength=len(self.sizes))
        part = np.flatnonzero((within > 0) & (within < np.array(self.sizes)))
        return bool(np.isin(part, np.concatenate([self.cells >> 8, self.cells & 255])).any())

    def _branch(self, old: int, new: int) -> None:
        """Replace each end in a class by an end in either part of the class."""
        cells, rows = self.cells, np.arange(len(self.cells))
        for column in range(FAULTS):
            code = cells[:, column].astype(np.int64)
            first, second = code >> 8, code & 255
            one = np.flatnonzero((first == old) ^ (second == old))
            both = np.flatnonzero((first == old) & (second == old))
            other = np.where(first[one] == old, second[one], first[one])
            copies = np.concatenate([one, both, both])
            branched = cells[copies]
            branched[:, column] = np.concatenate(
                [
                    np.where(other == NODE, new << 8 | NODE, other << 8 | new),
                    np.full(len(both), old << 8 | new),
                    np.full(len(both), new << 8 | new),
                ]
            )
            cells, rows = np.concatenate([cells, branched]), np.concatenate([rows, rows[copies]])
        cells = np.sort(cells, axis=1)
        inside = self.border[rows] < 0
        _, firsts = np.unique(cells[inside].view(np.uint64).ravel(), return_index=True)
        firsts = np.concatenate([np.flatnonzero(inside)[firsts], np.flatnonzero(~inside)])
        self._take(rows[firsts])
        self.cells = cells[firsts]

    def _take(self, rows: np.ndarray) -> None:
        self.cells, self.border = self.cells[rows], self.border[rows]
        self._slow, self._shown = self._slow[rows], self._shown[rows]

    def _count(self) -> None:
        """Count the sets of hosts and links that each set of classes represents, and compute their priors."""
        sizes = np.zeros(256)
        sizes[: len(self.sizes)] = self.sizes
        ways = np.outer(sizes, sizes)
        np.fill_diagonal(ways, sizes * (sizes - 1) / 2)
        ways[:, NODE] = sizes
        ways[NONE, NONE] = np.inf  # any number of absent faults is allowed
        number = ways.ravel()[self.cells]
        again = np.zeros(len(self.cells))
        total = np.ones(len(self.cells))
        for column in range(FAULTS):
            if column:
                again = np.where(self.cells[:, column] == self.cells[:, column - 1], again + 1, 0)
            choices = np.maximum(number[:, column] - again, 0) / (again + 1)
            total *= np.where(self.cells[:, column] == _EMPTY, 1.0, choices)
        nodes = ((self.cells & 255) == NODE).sum(axis=1)
        faults = (self.cells != _EMPTY).sum(axis=1)
        with np.errstate(divide="ignore"):
            self._prior = np.log(total) + self._mix[nodes, faults - nodes]
        self._prior[self.border >= 0] = self._border_prior[self.border[self.border >= 0]]

    def _likelihood(self) -> np.ndarray:
        """Return ln of the likelihood of the runs for each set; the rate of a healthy group of each size is a free
        parameter.
        """
        total = np.zeros(len(self.cells))
        noise = max(self.noise, self.drop / _CLEAR)
        for size in {size for size, _ in self._runs}:
            runs = [n for n, (run_size, _) in enumerate(self._runs) if run_size == size]
            rates = _cut(np.array([self._runs[n][1] for n in runs]), self.drop)
            slow = self._slow[:, runs].astype(float)
            lost = self.drop * slow.sum(axis=1)
            squares = (rates**2).sum() + 2 * self.drop * (slow @ rates) + self.drop * lost
            total -= (squares - (rates.sum() + lost) ** 2 / len(runs)) / (2 * noise**2)
        return total

    def sizes_run(self) -> set[int]:
        """Return the sizes of the groups that ran so far."""
        return {size for size, _ in self._runs}

    def lifted(self, size: int) -> np.ndarray:
        """Return the sets under which healthy groups of this size are faster than under the other sets.

        Under these sets, the groups that seemed sound were slow.
        """
        runs = [n for n, (run_size, _) in enumerate(self._runs) if run_size == size]
        if not runs:
            return np.zeros(len(self.cells), dtype=bool)
        level = self._slow[:, runs].mean(axis=1)
        order = np.argsort(level)
        low = level[order[int(np.searchsorted(np.cumsum(self.share[order]), _FEW))]]
        return np.asarray(level > low + 0.5)

    def _weigh(self) -> None:
        weight = self._prior + self._shown + self._likelihood()
        share = _normal(weight)
        keep = np.flatnonzero(share > _LEAST * share.max())
        if len(keep) > _ROWS:
            keep = keep[np.argpartition(share[keep], -_ROWS)[-_ROWS:]]
            if self._cut_at is None:
                self._cut_at = len(self._runs)
        if len(keep) < len(share):
            self._take(keep)
            self._prior, share = self._prior[keep], _normal(weight[keep])
        self.share = share


def _cut(rates: np.ndarray, drop: float) -> np.ndarray:
    """Return rates relative to the fastest runs, with a lower limit: a failed run counts as a slow one."""
    if not np.isfinite(rates).any():
        return np.zeros(len(rates))
    second = np.sort(rates)[-2:].min()  # a single run may be fast because of noise
    top = np.median(rates[rates > second - drop / 2]) if np.isfinite(second) else rates.max()
    return np.asarray(np.maximum(rates - top, -_BEYOND * drop))


def _normal(weight: np.ndarray) -> np.ndarray:
    top = weight.max(initial=-np.inf)
    if not np.isfinite(top):  # no set is possible any more
        return np.zeros_like(weight)
    share = np.exp(weight - top)
    return np.asarray(share / share.sum())
