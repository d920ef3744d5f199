"""Generated pages are those that `scripts/docs` and the benchmarks write today."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks import coverage
from fleetmark import workloads
from tests.documentation.text import DOCS, HOUSE

GENERATOR = [sys.executable, str(HOUSE / "scripts" / "docs"), "--check"]


def test_the_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(GENERATOR, capture_output=True, text=True, cwd=HOUSE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def test_the_tables_of_coverage_are_those_of_their_results() -> None:
    page = (DOCS / "reference" / "coverage.md").read_text("utf-8")
    assert coverage.documented(page, json.loads(coverage.RESULTS.read_text("utf-8"))) == page


def test_every_result_has_its_origin() -> None:
    for file in (HOUSE / "benchmarks" / "results").glob("*.json"):
        result = json.loads(file.read_text("utf-8"))
        assert {"machine", "date", "commit", "rows"} <= set(result), file.name
        assert all(len(row) == len(result["columns"]) for row in result["rows"] if "columns" in result), file.name


def test_every_workload_has_a_page_in_the_navigation() -> None:
    navigation = (HOUSE / "mkdocs.yml").read_text("utf-8")
    assert not [n for n in workloads.names() if f"reference/workloads/{n}.md" not in navigation]
