"""Tidy tables: units, directions, repeats, labels, and what is refused."""

from __future__ import annotations

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Standing
from fleetmark.parsers.published import Table, table


def read(*lines: str) -> Table:
    return table.read("\n".join(lines).encode())


def refused(*lines: str) -> str:
    with pytest.raises(FleetmarkError) as error:
        read(*lines)
    assert "\n" not in str(error.value)
    return str(error.value)


HEAD = "machine,benchmark,value,unit"


@pytest.mark.parametrize(
    ("value", "unit", "base", "expected", "label"),
    [
        ("2", "GB/s", "B/s", 2e9, ""),
        ("2", "MiB/s", "B/s", 2 * 2**20, ""),
        ("8", "Gbit/s", "B/s", 1e9, ""),
        ("8", "Mbps", "B/s", 1e6, ""),
        ("3", "ms", "s", 3e-3, ""),
        ("3", "µs", "s", 3e-6, ""),
        ("2", "min", "s", 120, ""),
        ("1.5", "h", "s", 5400, ""),
        ("2", "TFLOP/s", "FLOP/s", 2e12, ""),
        ("2", "GFLOPS", "FLOP/s", 2e9, ""),
        ("2", "kWh", "J", 7.2e6, ""),
        ("2", "GHz", "Hz", 2e9, ""),
        ("40", "IOPS", "1/s", 40, "io"),
        ("40", "kIOPS", "1/s", 40e3, "io"),
        ("40", "Tokens/s", "1/s", 40, "tokens"),
        ("40", "tok/s", "1/s", 40, "tokens"),
        ("40", "Mop/s", "1/s", 40e6, "ops"),
        ("40", "requests per second", "1/s", 40, "requests"),
        ("40", "1/s", "1/s", 40, ""),
    ],
)
def test_units(value: str, unit: str, base: str, expected: float, label: str) -> None:
    (row,) = read(HEAD, f"h1,x,{value},{unit}").rows
    m = row.measurement
    assert (m.unit, m.labels.get("of", "")) == (base, label)
    assert m.value == pytest.approx(expected)
    assert m.better is (Better.LOWER if base in ("s", "J") else Better.HIGHER)


@pytest.mark.parametrize("unit", ["bananas/s", "mB/s", "msamples/s", "Mb", "TPS", "KiW", "Kis", "ks/"])
def test_an_unknown_unit_names_the_row(unit: str) -> None:
    assert refused(HEAD, "h1,x,1,GB/s", f"h2,x,1,{unit}").startswith(f"line 3 (h2, x): unknown unit {unit!r}")


def test_everything_that_may_be_said() -> None:
    result = read(
        "Machine,Benchmark,Value,Unit,Metric,Better,Class,Repeat,Workload,Standing,gen,site",
        "h1,nginx,10,score,rps,higher,web,0,web,,old,ams",
        "h1,nginx,11,score,rps,higher,web,1,web,,old,",
        "h2,nginx,20,score,rps,higher,web,0,web,estimate,new,fra",
    )
    assert result.machines == {"h1": {"gen": "old", "site": "ams"}, "h2": {"gen": "new", "site": "fra"}}
    first = result.rows[0]
    m = first.measurement
    assert (m.workload, m.case, m.metric, m.unit, m.better) == ("web", "nginx", "rps", "1", Better.HIGHER)
    assert (first.class_, first.headline, first.place) == ("web", True, "line 2")
    assert [r.repeat for r in result.rows] == [0, 1, 0]
    assert [r.standing for r in result.rows] == [None, None, Standing.ESTIMATE]


def test_defaults() -> None:
    result = read(HEAD, "h1,x,5,ms", "h1,x,5,ms", "h1,y,5,samples/s")
    assert [(r.measurement.workload, r.measurement.metric, r.class_, r.repeat) for r in result.rows] == [
        ("table", "time", "other", 0),
        ("table", "time", "other", 1),  # without the column repeat, every row is one
        ("table", "rate", "other", 0),
    ]


def test_values_that_are_none_are_counted() -> None:
    result = read(HEAD, "h1,x,5,ms", "h2,x,0,ms", "h3,x,-1,ms", "h4,x,n/a,ms", "h5,x,,ms", "h6,x,0.0,ms")
    assert result.left_out == {"zero": 2, "negative": 1, "not a number": 1, "no value": 1}
    assert list(result.machines) == ["h1"] and result.read == 6


def test_a_repeat_that_stands_twice() -> None:
    head = f"{HEAD},repeat"
    assert read(head, "h1,x,5,ms,1", "h1,x,5,ms,1", "h1,x,6,ms,2").left_out == {"the same row again": 1}
    assert "line 3 (h1, x): repeat 1 has another value in line 2" in refused(head, "h1,x,5,ms,1", "h1,x,6,ms,1")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["machine,benchmark,value", "h,x,1"], "lacks the column unit; it needs machine, benchmark, value, unit"),
        (["host,bench,value,units", "h,x,1,s"], "'units' may be unit"),
        ([HEAD, "h1,x,1,"], "line 2 (h1, x): no unit"),
        ([HEAD, "h1,x,1,s", ",x,1,s"], "line 3: no machine"),
        ([HEAD, "h1,,1,s"], "line 2: no benchmark"),
        ([HEAD, "h1,x,1,score"], "add the column better"),
        ([f"{HEAD},better", "h1,x,1,score,up"], "better is 'up'; write higher or lower"),
        ([f"{HEAD},better", "h1,x,1,s,higher", "h2,x,1,s,lower"], "lower is better, but higher in line 2"),
        ([f"{HEAD},standing", "h1,x,1,s,guess"], "standing is 'guess'; write estimate or unverified"),
        ([f"{HEAD},site", "h1,x,1,s,ams", "h1,y,1,s,fra"], "site is 'fra', and 'ams' in line 2"),
        ([HEAD, "h1,x,0,s", "h1,x,nan,s"], "none of its 2 rows has a figure to import: zero (1); not a number (1)"),
    ],
)
def test_what_is_refused(lines: list[str], words: str) -> None:
    assert words in refused(*lines)
