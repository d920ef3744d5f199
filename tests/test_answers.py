"""Answers of whole comparisons, worked out by hand: mixed fleets, strata, prices, what was not measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import refused, run
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench, record

Values = Mapping[str, tuple[str, float]]  # host to its side and figure


def fleet(
    root: Path,
    hosts: Values,
    benches: Sequence[Bench] = (TRIAD,),
    labels: Mapping[str, str] | None = None,
    name: str = "c1",
) -> None:
    """One campaign; a host's repeats lie 0.1% either side of its figure."""
    measured = {
        (host, bench): [value * f if bench.better == "higher" else f / value for f in (0.999, 1.0, 1.001)]
        for host, (_, value) in hosts.items()
        for bench in benches
    }
    record(root, name, {h: {"gen": gen, **(labels or {})} for h, (gen, _) in hosts.items()}, measured)


def asked(root: Path, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        run(root, "compare", "-b", "gen=old", "-c", "gen=new", *words, "--format", "json")
    )
    return answer


def test_totals_of_a_mixed_fleet_are_sums(tmp_path: Path) -> None:
    """Ten hosts of 100 and ten of 400 do 5,000: 12.5 of 400, so 100 become 62.5. Their geometric mean would say 50."""
    small = {f"s{n}": ("old", 100.0) for n in range(10)}
    large = {f"l{n}": ("old", 400.0) for n in range(10)}
    fleet(tmp_path, small | large | {f"n{n}": ("new", 400.0) for n in range(10)})
    doc = asked(tmp_path)
    assert doc["answer"]["sentence"].startswith("One new replaces 1.60 (")
    (line,) = doc["answer"]["classes"]
    assert line["candidates"]["new"]["servers"] == "63" and line["remark"] == "by totals"
    (row,) = [r for r in doc["rows"] if not r["benchmark"]]
    assert row["basis"] == "totals" and row["geometric"] == pytest.approx(2.0)
    assert "by totals, since hosts of a side differ; the geometric mean is 2.00" in row["headline"]
