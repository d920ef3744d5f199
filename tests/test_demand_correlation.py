"""Correlations, shocks and hosts of worths as written: in YAML, sheets and workbooks, from histories, and their faults."""

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
from fleetmark.demand import workbook
from fleetmark.demand.periods import sequence
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Question, Shock
from tests.demands import changed
from tests.reports import plan_sample

TWO = changed(
    "    utilisation: 65%\nskus:",
    "    utilisation: 65%\n  db:\n    unit: icelake servers\n    demand: {p50: 50, p90: 60}\n    utilisation: 65%\nskus:",
).replace("worth: {web: 1}", "worth: {web: 1, db: 1}")
TWO = changed(
    "worth: {web: 1.83}",
    "worth: {web: {value: 1.83, error: 2%, hosts: lab}, db: {value: 1.9, error: 2%, hosts: lab}}",
    TWO,
)
QUARTERS, _ = sequence("2021-Q1", 24)


def read(folder: Path, top: str, text: str = TWO) -> Question:
    file = folder / "demand.yml"
    file.write_text(top + "\n" + text)
    return demand.read(file, folder)


def refused(folder: Path, top: str, text: str = TWO) -> str:
    with pytest.raises(FleetmarkError) as error:
        read(folder, top, text)
    return str(error.value)


@pytest.mark.parametrize(
    ("written", "correlation"),
    [
        ("correlation: 0.6", {"all": 0.6}),
        ("correlation: 60%", {"all": 0.6}),
        ("correlation: {web + db: -0.2}", {"web + db": -0.2}),
        ("correlation: 'all: 0.3, web + db: 0.5'", {"all": 0.3, "web + db": 0.5}),
        ("pue: 1.3", {}),
    ],
)
def test_correlations_as_they_are_written(tmp_path: Path, written: str, correlation: dict[str, float]) -> None:
    text = changed("pue: 1.3\n", "", TWO) if written.startswith("pue") else TWO
    assert read(tmp_path, written, text).correlation == correlation


def test_a_shock_and_hosts(tmp_path: Path) -> None:
    q = read(tmp_path, "shock: {chance: 10%, demand: 1.3}")
    assert q.shock == Shock(0.1, 1.3)
    assert {e.hosts for e in q.skus["genoa"].worth.values()} == {"lab"}
    assert {e.hosts for e in q.skus["icelake"].worth.values()} == {""}


@pytest.mark.parametrize("top", ["correlation: 0.6\nshock: {chance: 10%, demand: 1.3}", "correlation: {web + db: 0.5}"])
def test_sheets_and_workbooks_ask_the_same_question(tmp_path: Path, top: str) -> None:
    q = read(tmp_path, top)
    (tmp_path / "sheets").mkdir()
    for name, text in demand_csv.sheets(read_yaml(tmp_path / "demand.yml"), q.periods).items():
        (tmp_path / "sheets" / name).write_text(text)
    assert replace(demand.read(tmp_path / "sheets", tmp_path), source={}) == replace(q, source={})
    file = tmp_path / "plan.xlsx"
    q = replace(
        plan_sample.question(),
        correlation={"all": 0.1 + 0.2, "web + batch": -0.5},
        shock=Shock(0.1, 1.3),
    )
    new = q.skus["new"]
    hosts = {w: replace(e, hosts="lab") for w, e in new.worth.items()}
    q = replace(q, skus={**q.skus, "new": replace(new, worth=hosts)})
    file.write_bytes(plan_sample.workbook(Answer(q, plan_sample.plan(q)), created=""))
    assert replace(workbook.read(file), source=q.source) == q


@pytest.mark.parametrize(
    ("top", "sentence"),
    [
        ("correlation: {web + dbb: 0.5}", "demand.yml line 1: correlation.web + dbb: no workload 'dbb'"),
        ("correlation: 1.5", "1.5 is above 1"),
        ("correlation: much", "'much' is not a correlation: write 0.6, or history"),
        ("correlation: {all: history}", "web has no history: write a number instead of history"),
        ("shock: {chance: 10%}", "shock: demand is missing"),
        ("shock: {chance: 10%, demand: 0}", "0 is not above 0"),
        ("shock: often", "demand.yml line 1: shock"),
    ],
)
def test_faults_have_their_place(tmp_path: Path, top: str, sentence: str) -> None:
    assert sentence in refused(tmp_path, top)


def test_no_correlation_matrix(tmp_path: Path) -> None:
    mail = "  mail:\n    unit: icelake servers\n    demand: 5\n    utilisation: 65%\nskus:"
    text = changed("worth: {web: 1, db: 1}", "worth: {web: 1, db: 1, mail: 1}", changed("skus:", mail, TWO))
    faults = refused(tmp_path, "correlation: {web + db: 0.9, db + mail: 0.9, web + mail: -0.9}", text)
    assert (
        "demand.yml line 1: correlation: no demands can have these correlations together" in faults and "-0.8" in faults
    )


def test_two_numbers_for_the_same_workloads(tmp_path: Path) -> None:
    faults = refused(tmp_path, "correlation: {web + db: 0.5, db + web: 0.2}", TWO)
    assert "correlation.db + web: web + db has other numbers for the same workloads; remove one of them" in faults


def history(folder: Path, together: float, count: int = 24) -> str:
    """Write the use of two services whose yearly growth of 20% wanders together, and return the question about them."""
    random = np.random.default_rng(7)
    one, other = random.standard_normal((2, count))
    other = together * one + math.sqrt(1 - together**2) * other
    web, db = (100 * np.exp(0.045 * np.arange(count) + np.cumsum(0.05 * noise)) for noise in (one, other))
    lines = [f"{name},{a:.6f},{b:.6f}" for name, a, b in zip(QUARTERS, web, db, strict=False)]
    (folder / "use.csv").write_text("\n".join(["period,web,db", *lines]) + "\n")
    text = changed("[100, 110, 120, 130]", "{history: use.csv}", TWO)
    return changed("{p50: 50, p90: 60}", "{history: use.csv}", text)


@pytest.mark.parametrize("together", [0.9, 0.0])
def test_the_correlation_of_histories(tmp_path: Path, together: float) -> None:
    correlations = read(tmp_path, "correlation: history", history(tmp_path, together)).correlation
    assert list(correlations) == ["web + db"]
    assert correlations["web + db"] == pytest.approx(together, abs=0.4 if together == 0 else 0.12)


def test_a_given_correlation_overrides_that_of_histories(tmp_path: Path) -> None:
    correlations = read(tmp_path, "correlation: {db + web: 0.1, all: history}", history(tmp_path, 0.9)).correlation
    assert list(correlations) == ["web + db", "db + web"] and correlations["db + web"] == 0.1
