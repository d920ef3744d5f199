"""Test ``fleetmark workloads new``, ``check`` and ``schema``: the skeleton works, and faults name file and line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.cli.app import app
from fleetmark.verbs import checking, skeleton
from fleetmark.workloads import schema
from fleetmark.workloads.manifest import HERE

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "manifest.schema.json"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(extensions.VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    skeleton.write("acme_bench", Path("acme"))
    return Path("acme")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_what_is_written_has_no_fault(acme: Path) -> None:
    assert checking.check(acme) == ([], "acme: 1 workload, 0 suites, 0 faults")


MANIFEST = "acme/acme_bench.yml"


@pytest.mark.parametrize(
    ("old", "new", "text", "fault"),
    [
        ("kind: capacity", "knid: capacity", "knid:", "knid: is not a valid key (did you mean kind?)"),
        ("unit: 1/s", "unit: rps", "rate:", "metrics.rate.unit: 'rps' is not a base unit"),
        ("expect: 5", "expects: 5", "expects", "cases.0.expects: is not a valid key (did you mean expect?)"),
        ("min: 1, description: The", "min: one, description: The", "rounds:", "parameters.rounds.min: "),
        ("{{ rounds }}", "{{ rounds + }}", "argv:", "is not a valid expression: unexpected 'end of print statement'"),
        ("licence: internal", "licence: [", "parameters:", "not YAML: expected ',' or ']'"),
        (
            "citation: none",
            "citation: none\ndeploy: {provides: x/y}",
            "deploy",
            "deploy needs the role roles/acme_bench/",
        ),
        ("citation: none", "citation: none\nparser: acme_bnch", "parser:", "no parser reads its output"),
    ],
)
def test_a_fault_of_a_manifest_has_its_line(acme: Path, old: str, new: str, text: str, fault: str) -> None:
    path = acme / "acme_bench.yml"
    change(path, old, new)
    faults, _ = checking.check(acme)
    line = line_of(path, text)
    assert any(one.startswith(f"{MANIFEST}:{line}: ") and fault in one for one in faults), faults


def test_every_fault_is_reported_at_once(acme: Path) -> None:
    path = acme / "acme_bench.yml"
    for old, new in (("title:", "titel:"), ("unit: 1/s", "unit: rps"), ("better: lower", "better: small")):
        change(path, old, new)
    faults, summary = checking.check(acme)
    lines = {int(fault.split(":")[1]) for fault in faults}
    assert {line_of(path, "titel:"), line_of(path, "rate:"), line_of(path, "better: small")} <= lines
    assert summary == f"acme: 1 workload, 0 suites, {len(faults)} faults"


@pytest.mark.parametrize(
    ("old", "new", "text", "fault"),
    [
        (
            "    figures =",
            "    figures = [][0] or",
            "[][0]",
            "for empty output it raised IndexError: list index out of range",
        ),
        ("import re\n", "import re\nimport nosuch\n", "nosuch", "for empty output it raised ModuleNotFoundError"),
        ("def parse(raw, command=()):", "def parse(raw, command=():", "def parse", "it raised SyntaxError"),
        (
            "    if len(figures) < 2:",
            "    if len(figures) < 2 and raw:",
            "rate =",
            "for empty output it raised KeyError",
        ),
    ],
)
def test_a_fault_of_a_parser_has_its_line(acme: Path, old: str, new: str, text: str, fault: str) -> None:
    path = acme / "parsers" / "acme_bench.py"
    change(path, old, new)
    ((reported,), _) = checking.check(acme)
    assert reported.startswith(f"acme/parsers/acme_bench.py:{line_of(path, text)}: ") and fault in reported


def test_a_parser_that_makes_figures_of_nothing_is_found(acme: Path) -> None:
    path = acme / "parsers" / "acme_bench.py"
    change(
        path, "    if len(figures) < 2:", '    figures = {"requests/s": 1.0, "p99 ms": 1.0}\n    if len(figures) < 2:'
    )
    ((reported,), _) = checking.check(acme)
    assert "it returns measurements of empty output; raise ParseError if a figure is missing" in reported


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        (
            "description: x\nworkloads:\n  acme_bench:\n    set: {roudns: 2}\n",
            3,
            "acme_bench has no parameter 'roudns'",
        ),
        ("description: x\nworkloads:\n  nosuch:\n", 3, "no workload 'nosuch'"),
        (
            "description: x\nrepeat: 2\nworkloads:\n  acme_bench:\n",
            2,
            "repeat: is not a valid key (did you mean repeats?)",
        ),
    ],
)
def test_a_fault_of_a_suite_has_its_line(acme: Path, text: str, line: int, fault: str) -> None:
    (acme / "suites").mkdir()
    (acme / "suites" / "nightly.yml").write_text(text)
    ((reported,), _) = checking.check(acme)
    assert reported.startswith(f"acme/suites/nightly.yml:{line}: ") and fault in reported


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("Acme-Bench", "the name must be lower-case letters, digits and _"),
        ("check", "the name check is a command of `fleetmark workloads`; rename it"),
        ("unpacked", "the name unpacked belongs to a Fleetmark role; rename it"),
    ],
)
def test_a_name_that_cannot_be_one_is_found_and_not_written(
    acme: Path, monkeypatch: pytest.MonkeyPatch, name: str, fault: str
) -> None:
    (acme / "acme_bench.yml").rename(acme / f"{name}.yml")
    faults, _ = checking.check(acme)
    assert any(text.startswith(f"acme/{name}.yml:1: {fault}") for text in faults)
    monkeypatch.setenv(extensions.VARIABLE, "")
    with pytest.raises(FleetmarkError, match=f"^workloads new {name}: {fault}"):
        skeleton.write(name, Path("other"))
    assert not Path("other").exists()


def test_the_command_ends_with_the_faults_and_status_2(acme: Path) -> None:
    change(acme / "acme_bench.yml", "title:", "titel:")
    done = CliRunner().invoke(app, ["workloads", "check", "acme"])
    assert done.exit_code == 2 and "acme/acme_bench.yml:4: titel: is not a valid key" in done.stdout
    assert CliRunner().invoke(app, ["workloads", "check", os.devnull]).exit_code != 0


def test_what_exists_is_not_written_over(acme: Path) -> None:
    with pytest.raises(FleetmarkError, match=r"acme/acme_bench\.yml: this file exists"):
        skeleton.write("acme_bench", acme)
    with pytest.raises(FleetmarkError, match="workloads new stream: this name is taken"):
        skeleton.write("stream", acme)


def test_a_folder_of_its_name_is_written_where_none_is_named(acme: Path) -> None:
    done = CliRunner().invoke(app, ["workloads", "new", "other_bench"])
    assert done.exit_code == 0 and "next: fleetmark workloads check other_bench" in done.stdout
    assert Path("other_bench/other_bench.yml").exists()


def test_a_folder_without_manifests_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extensions.VARIABLE, "")
    ((fault),), _ = checking.check(tmp_path)
    assert fault == f"{tmp_path}: no manifest NAME.yml; write one: fleetmark workloads new NAME {tmp_path}"


def test_the_published_schema_is_that_of_the_model() -> None:
    assert PUBLISHED.read_text() == schema.text(), (
        "write it anew: fleetmark workloads schema > docs/reference/manifest.schema.json"
    )
    assert CliRunner().invoke(app, ["workloads", "schema"]).stdout == schema.text()


@pytest.fixture(scope="module")
def validator() -> Any:
    kind = jsonschema.validators.validator_for(schema.document())
    kind.check_schema(schema.document())
    return kind(schema.document())


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("*.yml")))
def test_every_manifest_of_ours_follows_the_schema(name: str, validator: Any) -> None:
    raw = json.loads(json.dumps(read_yaml(HERE / f"{name}.yml")))
    assert [error.message for error in validator.iter_errors(raw)] == []


def test_the_schema_sees_a_key_that_does_not_belong_and_one_that_is_missing(validator: Any) -> None:
    raw = json.loads(json.dumps(read_yaml(HERE / "stream.yml")))
    assert list(validator.iter_errors({**raw, "knid": 1}))
    assert list(validator.iter_errors({key: value for key, value in raw.items() if key != "title"}))
    assert not list(validator.iter_errors({"like": "stream", "title": "x"}))
