"""Frames whose text may be categories: put below one another, with text as itself, and their groups."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import union_categoricals


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """``frames`` of the same columns below one another; columns that are categories in all of them stay categories."""
    filled = [f for f in frames if not f.empty] or list(frames[:1])
    if len(filled) == 1:
        return filled[0].reset_index(drop=True)
    columns = {}
    for name in filled[0].columns:  # one by one: a frame of all others would be a further copy
        parts = [f[name] for f in filled]
        coded = all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts)
        columns[name] = union_categoricals(parts) if coded else pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns, copy=False)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with text as itself where it may be categories."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, object))


def numbered(frame: pd.DataFrame, names: Sequence[str]) -> npt.NDArray[np.intp]:
    """The group of each row by the columns ``names``; groups are counted as they first occur."""
    number = np.zeros(len(frame), np.intp)
    for name in names:
        column = frame[name].array
        codes = column.codes if isinstance(column, pd.Categorical) else pd.factorize(column)[0]
        if (codes != codes[:1]).any():
            number = pd.factorize(number * (int(codes.max()) + 2) + codes)[0]  # the code of what is missing is -1
    return number


def distinct(frame: pd.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The combinations of the columns ``names``, each once, in the order in which ``numbered`` counts them."""
    first = np.unique(numbered(frame, names), return_index=True)[1]
    return list(zip(*(frame[name].iloc[first].tolist() for name in names), strict=True))


def among(frame: pd.DataFrame, columns: Sequence[str], known: Container[tuple[Any, ...]]) -> npt.NDArray[np.bool_]:
    """Whether the ``columns`` of a row of ``frame`` are among the ``known``."""
    return np.array([key in known for key in distinct(frame, columns)], bool)[numbered(frame, columns)]


def mapped(column: pd.Series, to: Mapping[str, str | None]) -> pd.Categorical[Any]:
    """Where each value of ``column`` leads; text that is not there is empty."""
    codes, values = pd.factorize(column.array)
    return pd.Categorical([*(to.get(value) or "" for value in values.tolist()), ""]).take(codes)  # -1: missing
