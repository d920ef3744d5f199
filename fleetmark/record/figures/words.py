"""What is said to an engine that makes figures of values, whichever it is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas as pd


class Answer(Protocol):
    """What a statement gives."""

    def df(self) -> pd.DataFrame:
        """As a frame."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that takes the SQL of DuckDB. ``execute`` a statement, whose answer has ``df()``; ``register`` a frame
    under a name; ``scan`` Parquet files: what stands after FROM, and what its column ``filename`` says of each;
    ``hashed``: columns and a salt as an expression of the type ``hash_type``.
    """

    execute: Callable[[str], Answer]
    register: Callable[[str, Any], object]
    scan: Callable[[Sequence[Path]], tuple[str, Sequence[str]]]
    hashed: Callable[[Sequence[str], int], str]
    hash_type: str
