"""Collect the rows of a capacity programme into a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fleetmark.planner.capacity.shape import Floats, Ints

Label = tuple[str | int, ...]


class Rows:
    """Collect the rows of the matrix piece by piece."""

    def __init__(self) -> None:
        self.row: list[Ints] = []
        self.col: list[Ints] = []
        self.value: list[Floats] = []
        self.low: list[Floats] = []
        self.high: list[Floats] = []
        self.units: list[Floats] = []
        self.labels: list[Label] = []

    def add(self, labels: Sequence[Label], low: npt.ArrayLike, high: npt.ArrayLike, unit: float = 1.0) -> Ints:
        """Add rows and return their numbers. ``low`` and ``high`` are in units of ``unit``."""
        n = len(labels)
        self.units.append(np.full(n, unit))
        self.low.append(np.array(np.broadcast_to(np.asarray(low, dtype=float), n)))
        self.high.append(np.array(np.broadcast_to(np.asarray(high, dtype=float), n)))
        self.labels += labels
        return np.arange(len(self.labels) - n, len(self.labels))

    def put(self, row: npt.ArrayLike, col: npt.ArrayLike, value: npt.ArrayLike) -> None:
        """Set coefficients; the three arguments are broadcast against each other."""
        r, c, v = np.broadcast_arrays(row, col, value)
        self.row.append(r.ravel())
        self.col.append(c.ravel())
        self.value.append(v.ravel().astype(float))

    def matrix(self, columns: int) -> sparse.csr_array:
        """Return the matrix of all rows added so far."""
        empty = np.zeros(0, dtype=np.int64)
        coordinates = (np.concatenate([empty, *self.row]), np.concatenate([empty, *self.col]))
        size = (len(self.labels), columns)
        return sparse.csr_array(sparse.coo_array((np.concatenate([np.zeros(0), *self.value]), coordinates), shape=size))
