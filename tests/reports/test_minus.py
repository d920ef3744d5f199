"""Test that people read one minus sign, U+2212, and programs the ASCII one."""

from __future__ import annotations

from fleetmark.base.text import message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit import marks
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, records

TABLE = Tabular(
    "t", "t", (Column("n", "n", "name"), Column("v", "v", "number")), ((Cell("a-1"), Cell("-2.5%", -0.025)),)
)


def test_numbers_have_one_minus_sign() -> None:
    assert fmt.change(-0.024) == "\u22122.4%" and fmt.change_of_money(-1234) == "\u22121,234"
    assert Cell("-2.5", -2.5, ends="-3.0–-2.0").shown == "\u22122.5 (\u22123.0–\u22122.0)"
    assert str(fmt.with_minus(message("from {a} to {b}", a="-5", b="7"))) == "from \u22125 to 7"


def test_no_change_has_no_sign() -> None:
    assert [fmt.change(part) for part in (-0.0004, 0.0, 0.0004, -0.0006)] == ["0.0%", "0.0%", "0.0%", "\u22120.1%"]


def test_names_dates_and_options_keep_their_hyphens() -> None:
    for text in ("gen-1", "2026-11-21", "fio -1", "--jobs=-2"):
        assert Cell(text).shown == text
    assert fmt.with_minus("2026-11-21 c-1") == "2026-11-21 c-1"


def test_programs_read_the_ascii_one() -> None:
    assert records(TABLE) == [{"n": "a-1", "v": -0.025}]
    assert "| a-1 | \u22122.5% |" in "\n".join(marks.tabular(TABLE, Language()))
    assert Cell("\u22122.5%", -0.025).text_form == "0.0%"
