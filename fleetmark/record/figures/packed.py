"""A frame as it is held while nobody looks at it: a column that is the same in every row is held once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fleetmark.base.frames import stacked


class Packed:
    """The rows of a frame. Most columns of figures of one workload are alike in every row: its case, its unit, the
    repeats, all ends of intervals of single runs."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._rows = len(frame)
        self._columns = {str(name): once(frame[name]) for name in frame}

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return list(self._columns)

    def __len__(self) -> int:
        return self._rows

    def frame(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """The frame again, or those of its columns; its index counts from 0."""
        chosen = self._columns if names is None else names
        return pd.DataFrame({name: again(self._columns[name], self._rows) for name in chosen}, copy=False)

    def pop(self, name: str) -> pd.Series:
        """A column, which is no longer held."""
        return again(self._columns.pop(name), self._rows)


def once(column: pd.Series) -> pd.Series:
    """The first row of ``column`` where all are the same; else all of it."""
    column = column.reset_index(drop=True)
    same = column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
    if len(column) < 2 or not (bool((same == same.iloc[0]).all()) or bool(same.isna().all())):
        return column
    return column.iloc[:1].copy()


def again(column: pd.Series, rows: int, part: slice = slice(None)) -> pd.Series:
    """What ``once`` was given, or a ``part`` of it that has so many ``rows``."""
    if len(column) == 1:
        return column.take(np.zeros(rows, dtype=np.intp)).reset_index(drop=True)
    return column.iloc[part].reset_index(drop=True)


def together(parts: Sequence[Packed], name: str) -> pd.Series:
    """The column ``name`` of ``parts`` of the same columns, below one another."""
    return stacked([part.frame([name]) for part in parts])[name]
