"""Demand from past use: a forecast that keeps what its quantiles promise, its error in words, and faults with their line."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.demand.periods import sequence
from fleetmark.planner.capacity.demand.forecast import forecast
from tests.demands import changed

QUARTERS, _ = sequence("2021-Q1", 24)


def use(seed: int, count: int, noise: float = 0.03) -> np.ndarray:
    """Use that grows by 24% a year, with a season of a tenth and a level that wanders."""
    random = np.random.default_rng(seed)
    t = np.arange(count)
    wander = np.cumsum(random.normal(0, noise, count))
    return 100 * np.exp(0.054 * t + 0.1 * np.sin(math.pi * t / 2) + wander)


def written(folder: Path, rows: list[str], text: str = "{history: use.csv}") -> Path:
    (folder / "use.csv").write_text("\n".join(["period,web,batch", *rows]) + "\n")
    file = folder / "demand.yml"
    file.write_text(changed("[100, 110, 120, 130]", text))
    return file


def rows(values: np.ndarray) -> list[str]:
    return [f"{name},{value:.3f},5" for name, value in zip(QUARTERS, values, strict=True)]


def test_a_forecast_covers_what_comes_as_often_as_it_says() -> None:
    """Over series that it does not know the rest of, nine tenths lie at or below p90, and half at or below p50."""
    high, middle, count = 0, 0, 0
    for seed in range(10):
        values = use(seed, 28)
        result = forecast(values[:24].tolist(), 4, 4)
        high += int((values[24:] <= result.median * np.exp(1.2816 * result.sigma)).sum())
        middle += int((values[24:] <= result.median).sum())
        count += 4
        assert result.origins == 8
        assert result.widened >= 1
    assert 0.75 <= high / count <= 1.0
    assert 0.25 <= middle / count <= 0.75


def test_a_series_without_noise_goes_on(tmp_path: Path) -> None:
    values = 100 * 1.05 ** np.arange(24)
    q = demand.read(written(tmp_path, rows(values)), tmp_path)
    assert q.workloads["web"].point == pytest.approx((100 * 1.05 ** np.arange(24, 28)).tolist(), rel=1e-3)
    assert max(q.workloads["web"].sigma) < 0.01
    assert (
        "from 24 periods of use.csv; in a backtest of 8 forecasts the mean error was 0.0%"
        in q.source["forecast of web"]
    )
    assert len(q.source["use.csv"]) == 64


def test_sheets_name_a_history_too(tmp_path: Path) -> None:
    file = written(tmp_path, rows(use(3, 24)), "{history: {file: history-use.csv, column: web, season: 4}}")
    (tmp_path / "use.csv").rename(tmp_path / "history-use.csv")
    q = demand.read(file, tmp_path)
    folder = tmp_path / "sheets"
    folder.mkdir()
    for name, text in demand_csv.sheets(read_yaml(file), q.periods).items():
        (folder / name).write_text(text)
    (folder / "history-use.csv").write_text((tmp_path / "history-use.csv").read_text())
    assert replace(demand.read(folder, tmp_path), source={}) == replace(q, source={})


def test_a_history_that_ends_early_is_forecast_further(tmp_path: Path) -> None:
    values = 100 * 1.05 ** np.arange(24)
    q = demand.read(written(tmp_path, rows(values)[:20]), tmp_path)
    assert q.workloads["web"].point[0] == pytest.approx(100 * 1.05**24, rel=1e-3)


FAULTS = [
    (lambda r: r[:4] + r[5:], "use.csv line 6, column period: 2022-Q1 is missing: 2022-Q2 follows 2021-Q4"),
    (lambda r: [*r[:9], "2023-Q2,0,5", *r[10:]], "use.csv line 11, column web: is 0: a growth forecast needs values"),
    (lambda r: [*r[:9], "2023-Q2,,5", *r[10:]], "use.csv line 11, column web: is empty"),
    (lambda r: [*r[:9], "2023-Q2,many,5", *r[10:]], "use.csv line 11, column web: 'many' is not a number"),
    (lambda r: [*r[:9], "2023-06,7,5", *r[10:]], "'2023-06' is not a quarter, as the periods of the plan are"),
    (lambda r: [*r, "2027-Q1,7,5"], "line 26, column period: 2027-Q1 is planned for: the history ends before 2027-Q1"),
    (lambda r: r[-6:], "demand.yml line 10: workloads.web.demand.history: use.csv has 6 periods of web: a forecast needs 8"),
    (lambda _: [], "demand.yml line 10: workloads.web.demand.history: use.csv has 0 periods of web: a forecast needs 8"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), FAULTS)
def test_bad_histories_name_their_line(tmp_path: Path, change: object, sentence: str) -> None:
    assert callable(change)
    with pytest.raises(FleetmarkError) as caught:
        demand.read(written(tmp_path, change(rows(use(1, 24)))), tmp_path)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{history: gone.csv}", "demand.yml line 10: workloads.web.demand.history: "),
        (r'{history: "a\0b.csv"}', r"workloads.web.demand.history: 'a\x00b.csv' cannot be a file name"),
        ("{history: {file: use.csv, column: wep}}", "use.csv has no column 'wep' (did you mean web?); there are web, batch"),
        ("{history: use.csv, p50: 3}", "give one of: a figure for every period"),
    ],
)  # fmt: skip
def test_a_history_that_is_not_there(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError) as caught:
        demand.read(written(tmp_path, rows(use(1, 24)), text), tmp_path)
    assert sentence in str(caught.value)
