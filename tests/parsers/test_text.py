"""Test the shared readers of all parsers: text from any bytes, JSON between other lines, plain numbers."""

from __future__ import annotations

import pytest

from fleetmark.parsers.kit.text import decode, dig, every, find_json, number, numbered, objects


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_decode_reads_every_encoding_tools_are_saved_in(encoding: str) -> None:
    assert decode("Triad: 12.5\r\nok\n".encode(encoding)) == "Triad: 12.5\nok\n"


def test_decode_never_raises_and_drops_what_is_not_text() -> None:
    assert decode(b"a\xffb\x00c\x1b[1;31mred\x1b[0m") == "a�bcred"


def test_numbered_counts_as_editors_do() -> None:
    assert numbered("a\nb\rc\n\x0cd") == [(1, "a"), (2, "b"), (2, "c"), (3, "\x0cd")]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (1, 1.0),
        (2.5, 2.5),
        (" 1e3 ", 1000.0),
        ("-.5", -0.5),
        ("341.", 341.0),
        (True, None),
        (None, None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        (10**400, None),
        ("1_000", None),
        ("0x10", None),
        ("12 MB", None),
        ("", None),
        ([1], None),
    ],
)
def test_number(printed: object, expected: float | None) -> None:
    assert number(printed) == expected


def test_json_between_other_text() -> None:
    scan = find_json('note: {not json}\n{"a": 1,\n "b": [{"c": 2}]}\nbetween {"d": 3} after\n')
    assert [(d.value, d.line, d.end) for d in scan.documents] == [({"a": 1, "b": [{"c": 2}]}, 2, 3), ({"d": 3}, 4, 4)]
    assert numbered(scan.around) == [(1, "note: {not json}"), (2, ""), (3, ""), (4, "between  after"), (5, "")]
    assert scan.broken == ()


def test_broken_json_hides_no_whole_one() -> None:
    scan = find_json('{"a": {"inner": 1},\n "cut": \n{"b": 2}\n')
    assert [d.value for d in scan.documents] == [{"b": 2}]
    assert [(b.line, b.error_line) for b in scan.broken] == [(1, 4)]
    assert find_json('{"a": [1, 2').broken[0].line == 1


def test_json_that_c_printed() -> None:
    (document,) = find_json('{"a": -nan, "b": nan, "c": [inf, -inf], "d": "nan"}').documents
    assert document.value == {"a": None, "b": None, "c": [None, None], "d": "nan"}


def test_a_key_that_repeats() -> None:
    (document,) = find_json('{"sum": 1, "other": 2, "sum": 3}').documents
    assert every(document.value, "sum") == [1, 3]
    assert document.value["sum"] == 3
    assert every(document.value, "other") == [2]
    assert every(document.value, "none") == every([], "sum") == []


def test_dig_and_objects_take_anything() -> None:
    value = {"a": [{"b": 1}, 2]}
    assert dig(value, "a", 0, "b") == 1
    assert dig(value, "a", -1) == 2
    assert dig(value, "a", 5) is dig(value, "x", "y") is dig(value, 0) is dig(None, "a") is None
    assert objects([{"a": 1}, 2, None]) == [{"a": 1}]
    assert objects({"a": 1}) == objects(None) == []
