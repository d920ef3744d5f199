"""Test the coverage simulation on a few cases, and check that the documentation has its tables."""

from __future__ import annotations

import json

import pytest

from benchmarks import coverage


def test_the_documentation_has_the_tables_of_the_file() -> None:
    page, results = coverage.DOCS.read_text(), json.loads(coverage.RESULTS.read_text())
    assert coverage.documented(page, results) == page
    assert "| 3 v 20 |" in page


def test_the_file_has_the_whole_grid() -> None:
    results = json.loads(coverage.RESULTS.read_text())
    assert results.keys() == {"machine", "date", "commit", "trials", "seed", "seconds", "rows"}
    cases = coverage.cases(results["trials"], results["seed"])
    assert [(r["section"], {k: r[k] for k in c.settings}) for r, c in zip(results["rows"], cases, strict=True)] == [
        (c.section, dict(c.settings)) for c in cases
    ]


@pytest.mark.parametrize("section", coverage.SECTIONS)
def test_a_case_of_each_section_gives_its_figures_again(section: str) -> None:
    results = json.loads(coverage.RESULTS.read_text())
    case, row = next(
        (c, r)
        for c, r in zip(coverage.cases(results["trials"], results["seed"]), results["rows"], strict=True)
        if c.section == section
    )
    few = coverage.simulate(coverage.Case(section, case.settings, 10, case.seed))
    figure = "false" if "false" in row else "coverage"
    assert abs(few[figure] - row[figure]) <= 0.25


def test_figures_out_of_bounds_are_named() -> None:
    row = {"section": "fleet", "baseline": 3, "candidate": 20, "coverage": 0.985, "half": 0.05}
    assert list(coverage.faults(row)) == ["coverage 98.5%"]
    assert list(coverage.faults(row | {"baseline": 2})) == []
    assert list(coverage.faults({"section": "tables", "false": 0.06})) == ["false verdicts 6.0%"]
    assert list(coverage.faults({"section": "batches", "coverage": 0.94})) == []
