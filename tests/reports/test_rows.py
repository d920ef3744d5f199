"""Groups of frames as arrays: their order, what is missing, categories, frames without rows."""

from __future__ import annotations

import pandas as pd
import pytest

from fleetmark.base.frames import among, distinct, mapped, numbered
from reports.campaign.rows import all_of, groups

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
    seen = [(key, rows["value"].tolist()) for key, rows in groups(frame, ["host", "metric"])]
    assert seen == [(("h2", "b"), [1.0]), (("h1", "a"), [2.0, 5.0]), (("h2", "a"), [3.0]), (("h3", "b"), [4.0])]
    assert distinct(frame, ["host", "metric"]) == [key for key, _ in seen]


def test_keys_are_plain_values() -> None:
    ((host, headline), *_) = distinct(FRAME, ["host", "headline"])
    assert (host, headline, type(headline)) == ("h2", True, bool)
    assert [type(key[0]) for key, _ in groups(FRAME, ["headline"])] == [bool, bool]


def test_what_is_missing_is_a_group_of_its_own() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "y", "x"], "b": ["p", None, "q", None]})
    assert numbered(frame, ["a", "b"]).tolist() == [0, 1, 2, 3]
    assert list(mapped(frame["b"], {"p": "1", "q": None})) == ["1", "", "", ""]


def test_rows_of_a_group_by_another_column() -> None:
    (of_a,) = [rows for key, rows in groups(FRAME, ["metric"]) if key == ("a",)]
    assert {host: list(rows.each("value", "metric")) for host, rows in of_a.by("host").items()} == {
        "h1": [(2.0, "a"), (5.0, "a")],
        "h2": [(3.0, "a")],
    }
    assert list(all_of(FRAME).by("host")) == ["h2", "h1", "h3"]
    assert "value" in of_a and "unit" not in of_a and len(of_a) == 3


def test_among() -> None:
    assert among(FRAME, ["host", "metric"], {("h1", "a"), ("h3", "b")}).tolist() == [False, True, False, True, True]


def test_no_rows() -> None:
    empty = FRAME.iloc[:0]
    assert (list(groups(empty, ["host"])), distinct(empty, ["host"]), numbered(empty, ["host"]).tolist()) == (
        [],
        [],
        [],
    )
    assert among(empty, ["host"], {("h1",)}).tolist() == []
    assert list(all_of(empty).by("host")) == []
    assert list(mapped(empty["host"], {"h1": "new"})) == []
