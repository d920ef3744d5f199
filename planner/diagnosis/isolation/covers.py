"""Find sets of hosts and links that explain all slow runs together, which the narrow run-by-run search may miss."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

_AGAINST = 20.0  # maximum ln of the odds of healthy runs that contradict a set
_UNEXPLAINED = 8.0  # maximum ln of the odds of slow runs that a set attributes to noise
_STEPS = 400_000  # maximum number of sets times the hosts and links that each may add, in one step


def covering(
    inside: np.ndarray,
    odds: np.ndarray,
    codes: np.ndarray,
    pairs: np.ndarray,
    known: Collection[int],
    faults: int,
    empty: int,
) -> np.ndarray:
    """Return the sets of up to ``faults`` codes, including all ``known`` ones, that explain the slow runs.

    - ``inside``: for each class and run, whether the run includes the class
    - ``odds``: for each run, ln of the odds that it was slow
    - ``codes``: the hosts and links that may have a fault
    - ``pairs``: the two classes of each code; a node has the same class twice

    Sets grow run by run. If a set does not yet explain a slow run, the set is extended by each code that explains it.
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
    """Return each distinct set once, with its codes in order, and its original position."""
    cells = np.ascontiguousarray(np.sort(cells, axis=1))
    _, firsts = np.unique(cells.view(np.uint64).ravel(), return_index=True)
    return cells[firsts], firsts
