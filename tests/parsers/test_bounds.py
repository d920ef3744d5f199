"""Figures that no machine can have make their output invalid, and are kept."""

from __future__ import annotations

import io

import pytest

from fleetmark import parsers
from fleetmark.base.measurement import BASE_UNITS, Better, Measurement, Parsed
from fleetmark.parsers.kit.bounds import BOUNDS, bounded
from tests.parsers.reading import FIXTURES, value


def one(value: float, unit: str, invalid: str | None = None) -> Parsed:
    return bounded(Parsed("t", (Measurement("t", "c", "m", value, unit, better=Better.HIGHER),), invalid=invalid))


def test_every_base_unit_has_bounds() -> None:
    assert BOUNDS.keys() == BASE_UNITS
    assert all(low < high for low, high in BOUNDS.values())


@pytest.mark.parametrize(
    ("value", "unit", "sentence"),
    [
        (1e50, "B/s", "m of c is 1e+50 B/s, which is impossible: the limits are 0 and 1e+18 B/s"),
        (-1.0, "B/s", "m of c is -1 B/s, which is impossible: the limits are 0 and 1e+18 B/s"),
        (0.0, "s", "m of c is 0 s, which is impossible: the limits are 1e-12 and 1e+09 s"),
        (1e22, "FLOP/s", "m of c is 1e+22 FLOP/s, which is impossible: the limits are 0 and 1e+21 FLOP/s"),
        (400.0, "degC", "m of c is 400 degC, which is impossible: the limits are -100 and 300 degC"),
        (-0.1, "1", "m of c is -0.1, which is impossible: the limits are 0 and 1e+20"),
        (1e16, "1/s", "m of c is 1e+16 1/s, which is impossible: the limits are 0 and 1e+15 1/s"),
    ],
)
def test_what_cannot_be_is_invalid_and_kept(value: float, unit: str, sentence: str) -> None:
    parsed = one(value, unit)
    assert parsed.invalid == sentence
    assert [m.value for m in parsed.measurements] == [value]


def test_what_can_be_passes() -> None:
    for unit, (low, high) in BOUNDS.items():
        assert one(low, unit).invalid is None
        assert one(high, unit).invalid is None


def test_a_reason_already_there_comes_first() -> None:
    assert (one(1e50, "W", "it failed").invalid or "").startswith("it failed; m of c is 1e+50 W")


def test_both_doors_of_the_parsers_look() -> None:
    raw = (FIXTURES / "iperf3" / "3.12_reverse.json").read_bytes()
    assert parsers.parse("iperf3", raw).invalid is None
    raw = raw.replace(b"12107853833.301168", b"8e50")
    parsed = parsers.parse("iperf3", raw)
    assert value(parsed, "bitrate") == 1e50
    assert parsed.invalid == "bitrate of tcp-reverse is 1e+50 B/s, which is impossible: the limits are 0 and 1e+18 B/s"
    assert parsers.parse_file("iperf3", io.BytesIO(raw)) == parsed


def test_several_are_counted() -> None:
    absurd = tuple(Measurement("t", "c", f"m{n}", 1e50, "B/s", better=Better.HIGHER) for n in range(3))
    assert (bounded(Parsed("t", absurd)).invalid or "").endswith("1e+18 B/s, and 2 more like it")
