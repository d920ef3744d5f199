"""Sizes and times as users type them, and figures as users read them."""

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.units import human, is_whole, parse_bytes, parse_quantity, parse_seconds, significant


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("4k", 4096), ("4KiB", 4096), ("4kB", 4000), ("1.5 GiB", 3 << 29), ("2MB", 2_000_000), (512, 512)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "four", "4x", "-4k", "4 k b"])
def test_bad_sizes_say_so(text: str) -> None:
    with pytest.raises(FleetmarkError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1.5m", 90), ("500ms", 0.5), ("2h", 7200), (3, 3)])
def test_times(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["soon", "3 weeks", "-1s"])
def test_bad_times_say_so(text: str) -> None:
    with pytest.raises(FleetmarkError, match="is not a time"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("value", "unit", "bits", "shown"),
    [
        (2.5e9, "B/s", False, "2.50 GB/s"),
        (1.25e9, "B/s", True, "10.0 Gbit/s"),
        (85e-6, "s", False, "85.0 µs"),
        (1.2e-9, "s", False, "1.20 ns"),
        (0.0, "s", False, "0 s"),
        (123456.0, "1/s", False, "123,456 /s"),
        (3 * 2**30, "B", False, "3.00 GiB"),
        (0.0123, "1", False, "0.0123"),
        (42.0, "degC", False, "42.0 °C"),
    ],
)
def test_figures_read_well(value: float, unit: str, bits: bool, shown: str) -> None:
    assert human(value, unit, bits=bits) == shown


def test_a_share_reads_in_percent_where_its_manifest_says_so() -> None:
    assert human(0.00245, "1", percent=True) == "0.245%" and human(0.00245, "1") == "0.00245"
    assert human(0.0, "1", percent=True) == "0%"


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (12.345, "12.3"), (-0.00123, "-0.00123"), (1e9, "1e+09")]
)
def test_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_a_value_just_below_one_is_written() -> None:
    assert significant(0.9999999999999999) == "1.000" and significant(0.0123) == "0.0123"


@pytest.mark.parametrize(
    ("value", "counted", "text"),
    [
        (432.1, "tokens/s", "432 tokens/s"),
        (35_970, "IOPS", "35,970 IOPS"),
        (2.5e7, "IOPS", "25.0 M IOPS"),
        (9, "", "9.00 /s"),
    ],
)
def test_a_rate_has_the_unit_that_people_say(value: float, counted: str, text: str) -> None:
    assert human(value, "1/s", counted=counted) == text
    number, unit = parse_quantity(text.replace(",", ""))
    assert unit == "1/s" and number == pytest.approx(value, rel=2e-3)


def test_bits_and_bytes_are_no_rates_of_things() -> None:
    with pytest.raises(FleetmarkError, match="not an amount"):
        parse_quantity("5 bits/s")


def test_a_size_beyond_all_numbers_is_refused_in_a_sentence() -> None:
    for size in ("9" * 400, "9" * 400 + "kB", float("inf")):
        with pytest.raises(FleetmarkError, match="is not a size"):
            parse_bytes(size)


@pytest.mark.parametrize(("text", "is_it"), [("0123", True), ("١٢", False), ("²", False), ("-1", False), ("", False)])
def test_only_the_digits_of_ascii_are_a_number(text: str, is_it: bool) -> None:
    assert is_whole(text) == is_it
