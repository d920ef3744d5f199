"""The published JSON Schemas: those of the models, met by real files and documents, and not by broken ones."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow.parquet as pq
import pytest
import yaml

from fleetmark.api import schemas
from fleetmark.demand import document as demand
from fleetmark.demand.question import EXAMPLE
from fleetmark.record.diagnosis.gate import SHIPPED, Rules
from fleetmark.workloads.suite import SUITES
from tests import demands
from tests.comparisons import fleet, labels
from tests.fleets import sick
from tests.records import record
from tests.reports import rendered
from tests.reports.kinds import KINDS

FOLDER = Path(__file__).parents[1] / "docs" / "reference" / "schemas"
NAMES = (
    "campaign",
    "facts",
    "measurements",
    "suite",
    "gate",
    "plan-question",
    "report",
    "compare",
    "diagnose",
    "plan",
    "plan-review",
)


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text()))


def faults(name: str, document: Any) -> list[str]:
    """Return what breaks the published schema ``name``."""
    return [f"{error.json_path}: {error.message[:300]}" for error in validator(name).iter_errors(document)]


def test_the_published_schemas_are_those_of_the_models() -> None:
    published = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
    assert published == schemas.texts(), "write them anew: scripts/schemas"
    assert set(published) == {f"{name}.schema.json" for name in NAMES}
    for name in NAMES:
        jsonschema.Draft202012Validator.check_schema(validator(name).schema)
        assert validator(name).schema["$id"] == f"urn:fleetmark:{name}:1" and validator(name).schema["title"]


# --- files ----------------------------------------------------------------------------------------------------------


def suites() -> Iterator[tuple[str, Any]]:
    yield from ((file.name, yaml.safe_load(file.read_text())) for file in sorted(SUITES.glob("*.yml")))


def questions() -> Iterator[tuple[str, Any]]:
    def read(text: str) -> Any:
        document = yaml.safe_load(text)
        return document | {"date": str(document["date"])}  # YAML has dates, JSON has not

    yield "example", read(EXAMPLE.read_text())
    yield "small", read(demands.SMALL)
    for old, new in (
        ("demand: [100, 110, 120, 130]", "demand: {start: 100, growth: {p50: 30%, p90: 45%}}"),
        ("demand: [100, 110, 120, 130]", "demand: {p50: [100, 110, 120, 130], sigma: 0.2}"),
        ("demand: [100, 110, 120, 130]", "demand: {2027-Q1: 100, 2027-Q2: 110, 2027-Q3: 120, 2027-Q4: 130}"),
        ("demand: [100, 110, 120, 130]", "demand: {history: web.csv}"),
        ("utilisation: 65%", "slo: {p99: 50ms, service_time: 8ms, slots: 8}"),
        ("worth: {web: 1.83}", "worth: {web: {compare: {candidate: gen=genoa, class: cpu-int}}}"),
        ("price: 12000", "price: 12000 USD\n    price_breaks: {100: 11000, 500: 10500}"),
        ("periods: {start: 2027-Q1, count: 4}", "periods: [2027-Q1, 2027-Q2, 2027-Q3, 2027-Q4]"),
        ("fra: {}", "fra:"),
    ):
        yield new, read(demands.changed(old, new))


@pytest.mark.parametrize(("name", "files"), [("suite", suites), ("plan-question", questions)])
def test_files_that_users_write_meet_their_schema(name: str, files: Callable[[], Iterator[tuple[str, Any]]]) -> None:
    faults_by_file = {label: faults(name, document) for label, document in files()}
    assert len(faults_by_file) > 8 and {label: fault for label, fault in faults_by_file.items() if fault} == {}


def test_the_questions_here_are_valid_for_the_planner_too() -> None:
    for label, document in questions():
        assert demand.Document.model_validate(document), label


def test_acceptance_rules_meet_their_schema() -> None:
    for file in SHIPPED.glob("*.yml"):
        document = yaml.safe_load(file.read_text())
        assert Rules.model_validate(document) and faults("gate", document) == []


def test_the_files_of_a_record_meet_their_schema(tmp_path: Path) -> None:
    measured = fleet()
    archive = record(tmp_path, "c1", labels(measured), measured)
    rows = pq.read_table(archive.path / "measurements.parquet").to_pylist()
    assert len(rows) == 180 and [fault for row in rows for fault in faults("measurements", row)] == []
    files = sorted((archive.path / "facts").glob("*.json"))
    assert len(files) == 12 and [fault for file in files for fault in faults("facts", json.loads(file.read_text()))] == []  # fmt: skip


@pytest.mark.job
def test_what_a_campaign_writes_meets_the_schemas(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fleetmark", "run", "--suite", "selftest", "--format", "json"]
    env = {**os.environ, "FLEETMARK_RESULTS": str(tmp_path / "results")}
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert faults("report", report) == []
    folder = Path(report["path"])
    campaign = json.loads((folder / "campaign.json").read_text())
    assert faults("campaign", campaign) == []
    assert broken("campaign", campaign, "workloads") and faults("campaign", campaign | {"hosts": ["h1"]})
    (facts,) = (folder / "facts").glob("*.json")
    assert faults("facts", json.loads(facts.read_text())) == []
    assert [f for row in pq.read_table(folder / "measurements.parquet").to_pylist() for f in faults("measurements", row)] == []  # fmt: skip


# --- documents ------------------------------------------------------------------------------------------------------

DOCUMENTS = {
    "campaign": "report",
    "campaign of a host": "report",
    "comparison": "compare",
    "comparison of three sides": "compare",
    "comparison of published runs": "compare",
    "comparison at equal service": "compare",
    "diagnosis": "diagnose",
    "plan": "plan",
    "plan refused": "plan",
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_documents_meet_their_schema_and_broken_ones_do_not(kind: str, tmp_path: Path) -> None:
    name = DOCUMENTS[kind]
    document = rendered.in_json(KINDS[kind](tmp_path))
    assert faults(name, document) == []
    keys = [key for key in document if key not in ("frontiers", "operators", "remarks", "roofs")]
    assert len(keys) >= 6 and all(broken(name, document, key) for key in keys)
    assert faults(name, document | {"surprise": 1})


def test_a_report_with_roofs_and_a_diagnosis_of_every_kind_meet_their_schema(tmp_path: Path) -> None:
    from tests.commands import run

    sick(tmp_path)
    report = json.loads(run(tmp_path, "report", "last", "--format", "json"))
    assert report["roofs"] and faults("report", report) == []


def broken(name: str, document: Any, key: str) -> list[str]:
    """Return what the schema says of ``document`` without ``key``."""
    without = copy.copy(document)
    del without[key]
    return faults(name, without)


BROKEN: list[tuple[str, Callable[[], Any]]] = [
    ("suite", lambda: {"workloads": {"fio": None}}),
    ("suite", lambda: {"description": "x", "workloads": {"fio": {"repeat": 3}}}),
    ("suite", lambda: {"description": "x", "workloads": {"fio": {"repeats": 0}}}),
    ("gate", lambda: {"rules": [{"metric": "a/b/c", "at_least": 1}]}),
    ("gate", lambda: {"rules": [{"name": "x", "metric": "a/b/c", "at_leest": 1}]}),
    ("measurements", lambda: {"host": "h1"}),
    ("facts", lambda: {"facts": {"hostname": "h1"}, "raw": {}}),
    ("plan-question", lambda: {**dict(questions())["small"], "currency": 3}),
    ("plan-question", lambda: {**dict(questions())["small"], "fleet": [{"sku": "genoa", "site": "ams"}]}),
    ("plan-question", lambda: {**dict(questions())["small"], "skus": {"a": {"prize": 1}}}),
]


@pytest.mark.parametrize(("name", "document"), BROKEN)
def test_broken_files_do_not_meet_their_schema(name: str, document: Callable[[], Any]) -> None:
    assert faults(name, document())
