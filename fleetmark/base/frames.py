"""Frames whose text may be categories: put below one another, and with text as itself."""

from __future__ import annotations

from collections.abc import Sequence

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
