"""Sets of hosts and links that explain every slow run at once: those that a narrow search, run by run, has lost."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

_AGAINST = 20.0  # ln of the odds that sound runs may speak against a set
_UNEXPLAINED = 8.0  # the same of slow runs that a set leaves to noise
_STEPS = 400_000  # sets at once x hosts and links that each may take


def covering(
    inside: np.ndarray,
    odds: np.ndarray,
    codes: np.ndarray,
    pairs: np.ndarray,
    known: Collection[int],
    faults: int,
    empty: int,
) -> np.ndarray:
    """The sets of up to ``faults`` codes, with all those ``known``, that explain the slow runs.

    ``inside``: for each class and run, whether the run has it. ``odds``: ln of the odds of each run that it was slow.
    ``codes``: of the hosts and links that may have a fault; ``pairs``: the two classes of each (a node has one twice).
    A set is built along the runs: of a slow run that nothing in it explains yet, it takes each code in turn that does.
    """
    reached = inside[pairs[:, 0]] & inside[pairs[:, 1]]
    against = np.minimum(odds, 0.0)
    likely = (reached @ against > -_AGAINST) | np.isin(codes, list(known))
    codes, reached = codes[likely], reached[likely]
    cells = np.full((1, faults), empty, dtype=np.uint16)
    first = np.isin(codes, list(known))
    if not len(codes) or first.sum() > faults:
        return cells[:0]
    cells[0, : first.sum()] = codes[first]
    slow = reached[first].any(axis=0)[None, :]
    complete = []
    for depth in range(int(first.sum()), faults + 1):
        left = np.where(slow, 0.0, np.maximum(odds, 0.0))
        done = left.sum(axis=1) < _UNEXPLAINED
        complete.append(cells[done])
        cells, slow, left = cells[~done], slow[~done], left[~done]
        if depth == faults or not len(cells):
            break
        if len(cells) > (limit := _STEPS // len(codes)):
            best = np.argpartition(slow @ odds, -limit)[-limit:]
            cells, slow, left = cells[best], slow[best], left[best]
        free = (~slow * against).astype(np.float32)
        more = free @ reached.T.astype(np.float32) + (slow @ against)[:, None]
        rows, chosen = np.nonzero(reached.T[left.argmax(axis=1)] & (more > -_AGAINST))
        cells, slow = cells[rows], slow[rows] | reached[chosen]
        cells[:, depth] = codes[chosen]
        cells, firsts = _once(cells)
        slow = slow[firsts]
    return _once(np.concatenate(complete))[0]


def _once(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each set once, its codes in order; and where it stood."""
    cells = np.ascontiguousarray(np.sort(cells, axis=1))
    _, firsts = np.unique(cells.view(np.uint64).ravel(), return_index=True)
    return cells[firsts], firsts
