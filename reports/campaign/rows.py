"""Rows of a frame group by group, as arrays of the columns that somebody looks at: a frame of each group costs more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd


class _Columns(dict[str, npt.NDArray[Any]]):
    """The columns of ``frame``, its rows in an ``order``, read when they are first asked for."""

    def __init__(self, frame: pd.DataFrame, order: npt.NDArray[np.intp]) -> None:
        self.frame, self._order = frame, order

    def __missing__(self, name: str) -> npt.NDArray[Any]:
        self[name] = self.frame[name].to_numpy()[self._order]
        return self[name]


class Rows:
    """Some rows: ``rows[name]`` is a column of theirs."""

    __slots__ = ("_columns", "_places", "_size")

    def __init__(self, columns: _Columns, places: slice | Sequence[int], size: int) -> None:
        self._columns, self._places, self._size = columns, places, size

    def __len__(self) -> int:
        return self._size

    def __contains__(self, name: str) -> bool:
        return name in self._columns.frame

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name][self._places]

    def each(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Row by row the values of these columns."""
        return zip(*(self[name].tolist() for name in names), strict=True)

    def by(self, name: str) -> dict[Any, Rows]:
        """The rows by what they have in a column, in the order in which that first occurs."""
        of: dict[Any, list[int]] = {}
        for place, value in zip(
            np.arange(len(self._columns[name]))[self._places].tolist(), self[name].tolist(), strict=True
        ):
            of.setdefault(value, []).append(place)
        return {value: Rows(self._columns, places, len(places)) for value, places in of.items()}


def all_of(frame: pd.DataFrame) -> Rows:
    """All rows of ``frame``."""
    return Rows(_Columns(frame, np.arange(len(frame))), slice(None), len(frame))


def groups(frame: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[Any, Rows]]:
    """``frame``'s rows group by group, in the order in which the groups first occur; the key is a tuple."""
    number = frame.groupby([*keys], sort=False, observed=True, dropna=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    columns = _Columns(frame, order)
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    of_groups = zip(*(frame[key].iloc[order[starts]].tolist() for key in keys), strict=True)
    bounds = [*starts.tolist(), len(frame)]
    for key, first, behind in zip(of_groups, bounds, bounds[1:], strict=False):
        yield key, Rows(columns, slice(first, behind), behind - first)
