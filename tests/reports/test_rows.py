"""Groups of frames as arrays: their order, what is missing, categories, frames without rows."""

from __future__ import annotations

import pandas as pd
import pytest

from fleetmark.base.frames import among, distinct, mapped, numbered

FRAME = pd.DataFrame(
    {
        "host": ["h2", "h1", "h2", "h3", "h1"],
        "metric": ["b", "a", "a", "b", "a"],
        "headline": [True, False, True, True, False],
        "value": [1.0, 2.0, 3.0, 4.0, 5.0],
    },
    index=[7, 7, 3, 0, 9],
)


def packed(frame: pd.DataFrame) -> pd.DataFrame:
    """With text as categories, of which one does not occur."""
    text = {name: pd.Categorical(frame[name], ["h9", "h3", "h2", "h1", "b", "a"]) for name in ("host", "metric")}
    return frame.assign(**text)


@pytest.mark.parametrize("frame", [FRAME, packed(FRAME)])
def test_groups_come_in_the_order_of_their_first_rows(frame: pd.DataFrame) -> None:
    assert numbered(frame, ["metric"]).tolist() == [0, 1, 1, 0, 1]
    assert numbered(frame, ["host", "metric"]).tolist() == [0, 1, 2, 3, 1]
    assert distinct(frame, ["host", "metric"]) == [("h2", "b"), ("h1", "a"), ("h2", "a"), ("h3", "b")]


def test_keys_are_plain_values() -> None:
    ((host, headline), *_) = distinct(FRAME, ["host", "headline"])
    assert (host, headline, type(headline)) == ("h2", True, bool)


def test_what_is_missing_is_a_group_of_its_own() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "y", "x"], "b": ["p", None, "q", None]})
    assert numbered(frame, ["a", "b"]).tolist() == [0, 1, 2, 3]
    assert list(mapped(frame["b"], {"p": "1", "q": None})) == ["1", "", "", ""]


def test_among() -> None:
    assert among(FRAME, ["host", "metric"], {("h1", "a"), ("h3", "b")}).tolist() == [False, True, False, True, True]


def test_no_rows() -> None:
    empty = FRAME.iloc[:0]
    assert distinct(empty, ["host"]) == [] and numbered(empty, ["host"]).tolist() == []
    assert among(empty, ["host"], {("h1",)}).tolist() == []
    assert list(mapped(empty["host"], {"h1": "new"})) == []
