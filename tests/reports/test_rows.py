"""Groups of frames as arrays: their order, what is missing, categories, frames without rows."""

from __future__ import annotations

import pandas as pd
import pytest

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
    seen = [(key, rows["value"].tolist()) for key, rows in groups(frame, ["host", "metric"])]
    assert seen == [(("h2", "b"), [1.0]), (("h1", "a"), [2.0, 5.0]), (("h2", "a"), [3.0]), (("h3", "b"), [4.0])]


def test_keys_are_plain_values() -> None:
    assert [type(key[0]) for key, _ in groups(FRAME, ["headline"])] == [bool, bool]


def test_what_is_missing_is_a_group_of_its_own() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "y", "x"], "b": ["p", None, "q", None]})
    assert [len(rows) for _, rows in groups(frame, ["a", "b"])] == [1, 1, 1, 1]


def test_rows_of_a_group_by_another_column() -> None:
    (of_a,) = [rows for key, rows in groups(FRAME, ["metric"]) if key == ("a",)]
    assert {host: list(rows.each("value", "metric")) for host, rows in of_a.by("host").items()} == {
        "h1": [(2.0, "a"), (5.0, "a")],
        "h2": [(3.0, "a")],
    }
    assert list(all_of(FRAME).by("host")) == ["h2", "h1", "h3"]
    assert "value" in of_a and "unit" not in of_a and len(of_a) == 3


def test_no_rows() -> None:
    empty = FRAME.iloc[:0]
    assert list(groups(empty, ["host"])) == []
    assert list(all_of(empty).by("host")) == []
