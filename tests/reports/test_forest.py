"""Forest plots: the right place on the axis, 1 always on it, what goes further told by an arrow."""

from __future__ import annotations

import math
import re

import pytest

from fleetmark.planner.estimate import Estimate
from fleetmark.reports.comparison import forest


def ticks(axis: forest.Axis) -> dict[float, float]:
    """Figure to its place, as drawn."""
    texts = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', forest.scale(axis))
    return {float(text): float(x) for x, text in texts}


@pytest.mark.parametrize(
    "rows",
    [
        [(1.83, 1.79, 1.87), (2.4, 2.2, 2.6)],
        [(1.0, 0.999, 1.001)],
        [(1.5, None, None)],
        [(0.02, 0.01, 0.03), (50.0, 40.0, 60.0)],
        [(1e4, 1.0, math.inf)],
        [],
    ],
)
def test_an_axis_has_1_and_a_few_round_ticks(rows: list[tuple[float, float | None, float | None]]) -> None:
    axis = forest.axis_of(Estimate(*row) for row in rows)
    position_of = ticks(axis)
    assert 1.0 in position_of and 1 <= len(position_of) <= 8
    assert position_of == {r: pytest.approx(axis.position(r), abs=0.06) for r in position_of}
    positions = list(position_of.values())
    assert positions == sorted(positions) and all(0 < x < forest.WIDTH for x in positions)


def test_equal_factors_are_equal_distances() -> None:
    axis = forest.Axis(0.5, 8.0)
    assert axis.position(2) - axis.position(1) == pytest.approx(axis.position(4) - axis.position(2))
    assert axis.position(2) - axis.position(1) == pytest.approx(axis.position(1) - axis.position(0.5))


def test_noise_does_not_fill_the_axis() -> None:
    axis = forest.axis_of([Estimate(1.001, 1.0, 1.002)])
    assert axis.position(1.002) - axis.position(1.0) < forest.WIDTH / 20


def test_an_interval_that_goes_further_has_an_arrow() -> None:
    narrow, wide = Estimate(1.2, 1.1, 1.3), Estimate(1.5, 1e-6, 1e6)
    axis = forest.axis_of([narrow, wide])
    assert forest.plots(axis, [(narrow, "#0072B2", 0)]).count("l5 -4") == 0
    wild = forest.plots(axis, [(wide, "#0072B2", 0)])
    assert "l5 -4m-5 4l5 4" in wild and "l-5 -4m5 4l-5 4" in wild
    assert axis.position(1.3) - axis.position(1.1) > 10  # the others stay readable


def test_marks_differ_without_colour() -> None:
    axis = forest.Axis(0.5, 2.0)
    ratio = Estimate(1.2, 1.1, 1.3)
    plots = [forest.plots(axis, [(ratio, "#000", shape)]) for shape in range(5)]
    assert len(set(plots)) == 5
    assert forest.plots(axis, [(ratio, "#000", 0)], headline=True) not in plots
    both = forest.plots(axis, [(ratio, "#000", 0), (ratio, "#111", 1)])
    assert len(set(re.findall(r"cy=\"([\d.]+)\"|L[\d.]+ ([\d.]+)", both))) > 1  # each on its own height
    assert 'fill="none"' in forest.plots(axis, [(Estimate(1.2), "#000", 0)])
    assert "<g" not in forest.plots(axis, [(None, "#000", 0)])
