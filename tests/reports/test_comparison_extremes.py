"""The first screen of comparisons that are hard to show: long names, many candidates, many hosts, vast ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from fleetmark.planner.comparison import Comparison, Side, compare_sides
from fleetmark.planner.peers import outliers
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.document import document
from fleetmark.reports.comparison.front import Around, front
from fleetmark.reports.comparison.model import rows
from tests.reports import rendered

LONG = "a-name-of-eighty-characters-" + "x" * 52


def side(title: str, speeds: Sequence[float], benchmarks: int, class_: str = "cpu-int", seed: int = 1) -> Side:
    """Hosts by benchmarks: each host as fast as ``speeds`` says, benchmarks a little apart."""
    rng = np.random.default_rng(seed)
    titles = [f"spec_cpu2017 {500 + n}.job{n}_r base_ratio" for n in range(benchmarks)]
    noise = rng.normal(0, 0.002, (len(speeds), benchmarks))
    logs = np.log(np.asarray(speeds))[:, None] + noise + 0.001 * np.arange(benchmarks)[None, :]
    columns = {"workload": "spec_cpu2017", "metric": "base_ratio", "unit": "1", "better": "higher", "class": class_}
    columns |= {"kind": "capacity", "standing": "", "smallest": math.nan, "largest": math.nan, "limit": math.nan}
    frame = pd.DataFrame([columns | {"case": t.split()[1], "quantity": ""} for t in titles], index=titles)
    return Side(title, pd.DataFrame(logs, [f"{title}-{n}" for n in range(len(speeds))], titles), frame)


def compared(baseline: Side, *candidates: Side) -> tuple[Comparison, Around]:
    sides = [baseline, *candidates]
    hosts = [HostInfo(name=str(h), generation=s.title) for s in sides for h in s.means.index]
    return compare_sides(baseline, list(candidates)), Around(
        hosts=hosts, outliers=[o for s in sides for o in outliers(s)]
    )


def printed(comparison: Comparison, around: Around, width: int) -> list[str]:
    seen = Compared(
        comparison=comparison, around=around, frontiers=(), turned={}, sides={}, selectors={}, shown=None, parts=()
    )
    return rendered.shown(document(seen, rendered.ENGLISH), width).splitlines()


CASES = {
    "names of 80 characters": (side(LONG, [1, 1.01, 0.99], 3), side(LONG[::-1], [2, 2.01, 1.99], 3)),
    "12 candidates": (
        side("old", [1, 1.01, 0.99], 3),
        *(side(f"new{n}", [1 + n / 4, 1.01 + n / 4], 3, seed=n) for n in range(12)),
    ),
    "one benchmark": (side("old", [1, 1.01, 0.99], 1), side("new", [2, 2.01, 1.99], 1)),
    "400 benchmarks": (side("old", [1, 1.01, 0.99], 400), side("new", [2, 2.01, 1.99], 400)),
    "one host": (side("old", [1], 2), side("new", [2], 2)),
    "2,000 hosts": (side("old", [1 + n % 7 / 1000 for n in range(1000)], 4), side("new", [2.0] * 999 + [1.5], 4)),
    "a ratio of 1e6": (side("old", [1, 1.01, 0.99], 2), side("new", [1e6, 1.01e6, 0.99e6], 2)),
}


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("name", CASES)
def test_the_terminal_cuts_no_number_and_no_name(name: str, width: int) -> None:
    comparison, around = compared(*CASES[name])
    lines = printed(comparison, around, width)
    wrapped = [line for line in lines if not line.startswith("  fleetmark ")]  # commands to paste are one line
    assert max(map(cell_len, wrapped)) <= width
    first = front(comparison, rows(comparison), around)
    text = "\n".join(lines)
    assert "…" not in text.partition("Benchmarks\n")[0]
    for line in first.lines:
        for cell in line.cells:
            assert cell.amount in text and (not cell.needed or cell.needed in text), cell
    solid = "".join(text.split())
    for title in (comparison.baseline, *first.candidates):
        assert title in solid
    position = next(n for n, line in enumerate(lines) if "Before you rely on this" in line)
    assert position <= {"12 candidates": 120, "names of 80 characters": 41}.get(name, 32)  # the conversion comes first


def test_a_slow_host_of_two_thousand_is_named() -> None:
    comparison, around = compared(*CASES["2,000 hosts"])
    first = front(comparison, rows(comparison), around)
    assert "new-999 is 25% slower" in first.before[0].text
    assert first.before[0].details == "peers"


def test_twelve_candidates_are_one_sentence() -> None:
    comparison, around = compared(*CASES["12 candidates"])
    first = front(comparison, rows(comparison), around)
    assert "; next best" in first.answer and " more" in first.answer and len(first.answer) < 300
    assert "new0" not in " ".join(first.worse) and all(len(line.cells) == 12 for line in first.lines)


def test_a_vast_ratio_has_no_row_of_digits() -> None:
    comparison, around = compared(*CASES["a ratio of 1e6"])
    (line,) = front(comparison, rows(comparison), around).lines
    assert line.cells[0].ratio == "1,000,0" + line.cells[0].ratio[-2:] or line.cells[0].ratio[:3] in ("999", "1,0")
    assert line.cells[0].servers == "1"


def test_whole_servers_are_rounded_up() -> None:
    comparison, around = compared(side("old", [1, 1, 1], 1), side("new", [2.3, 2.3, 2.3], 1))
    (line,) = front(comparison, rows(comparison), around).lines
    assert line.cells[0].servers == str(math.ceil(100 / float(line.cells[0].ratio)))


def test_what_is_worse_is_always_said() -> None:
    comparison, around = compared(side("old", [1, 1.001, 0.999], 2), side("new", [0.8, 0.801, 0.799], 2))
    first = front(comparison, rows(comparison), around)
    assert len(first.worse) == 1 and first.worse[0].startswith("integer: new 20% less work, 0.80 (")
    assert any("Gets worse:" in line for line in printed(comparison, around, 80))
