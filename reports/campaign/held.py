"""The figures of single hosts as a report holds them: as one frame, or in packed parts where they are very many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.frames import distinct, stacked
from fleetmark.record.figures.packed import Packed, together

MOST = 500_000  # figures that are held as one frame


class Held:
    """Rows of hosts, ``in_parts`` of which each has all rows of its metrics. A part is unpacked when somebody looks."""

    def __init__(self, in_parts: Sequence[pd.DataFrame | Packed]) -> None:
        self._parts = list(in_parts)
        if sum(map(len, in_parts)) <= MOST:
            self._parts = [stacked([_frame(part) for part in in_parts])]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return map(_frame, self._parts)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows as one frame, which is held from then on."""
        packed = [part for part in self._parts if isinstance(part, Packed)]
        if not packed:
            return _frame(self._parts[0])
        return pd.DataFrame({name: together(packed, name) for name in packed[0].names}, copy=False)

    def where(self, condition: Callable[[pd.DataFrame], npt.NDArray[np.bool_]]) -> pd.DataFrame:
        """The rows that meet a ``condition``."""
        return stacked([rows for part in self if len(rows := part[condition(part)])] or [next(iter(self)).iloc[:0]])

    def distinct(self, *names: str) -> list[tuple[Any, ...]]:
        """The combinations of those columns, each once, in the order of the rows."""
        return list(dict.fromkeys(values for part in self._parts for values in distinct(_frame(part, names), names)))


def keeping(rows: int) -> Callable[[pd.DataFrame], pd.DataFrame | Packed]:
    """How a part of at most so many ``rows`` in all is kept until all are held: packed where they may stay in parts."""
    return Packed if rows > MOST else lambda part: part


def _frame(part: pd.DataFrame | Packed, names: Sequence[str] | None = None) -> pd.DataFrame:
    if isinstance(part, Packed):
        return part.frame(names)
    return part if names is None else part[list(names)]
