"""Manifests and suites: the shipped ones are valid, and a user's mistake gives one sentence."""

from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers, workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.workloads.manifest import Manifest, Parameter, read_model
from fleetmark.workloads.template import evaluate


@pytest.mark.parametrize("name", workloads.names())
def test_a_workload_is_one_stem_everywhere(name: str) -> None:
    manifest = workloads.load(name)
    assert manifest.tool in parsers.tools()
    assert any(m.headline for m in manifest.metrics.values())
    if manifest.deploy:
        assert (PLAYBOOKS / "roles" / name / "tasks" / "deploy.yml").exists()
    pages = PLAYBOOKS.parent / "docs" / "reference" / "workloads"
    assert (pages / f"{name}.md").exists()
    assert f"[{name}]({name}.md)" in (pages / "index.md").read_text("utf-8")


@pytest.mark.parametrize("name", workloads.suite_names())
def test_our_suites_load(name: str) -> None:
    assert workloads.load_suite(name).workloads


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ({"type": "int"}, "3", 3),
        ({"type": "int", "many": True}, "1,2, 4", [1, 2, 4]),
        ({"type": "int", "many": True}, 8, [8]),
        ({"type": "bytes"}, "4k", 4096),
        ({"type": "seconds"}, "2m", 120.0),
        ({"type": "bool"}, "yes", True),
        ({"type": "float"}, "0.5", 0.5),
        ({"type": "str", "choices": ["a", "b"]}, "b", "b"),
    ],
)
def test_values_take_their_parameters_type(kind: dict[str, Any], value: Any, expected: Any) -> None:
    assert Parameter(description="", default=0, **kind).coerce(value, "here") == expected


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ({"type": "int"}, "three", "is not a whole number"),
        ({"type": "int"}, "1,2", "is not a whole number"),
        ({"type": "int"}, 1.5, "is not a whole number"),
        ({"type": "int", "min": 2}, "1", "is below the minimum of 2"),
        ({"type": "int", "many": True}, "", "at least one value"),
        ({"type": "bool"}, "maybe", "is not yes or no"),
        ({"type": "bytes"}, "lots", "is not a size"),
        ({"type": "str", "choices": ["a", "b"]}, "c", "is not one of a, b"),
        ({"type": "int"}, [1, 2], "not a list"),
    ],
)
def test_bad_values_are_refused_by_name(kind: dict[str, Any], value: Any, words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        Parameter(description="", default=0, **kind).coerce(value, "--set: w.p")


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(FleetmarkError, match=r"no workload 'foi' \(did you mean fio\?\)"):
        workloads.load("foi")
    with pytest.raises(FleetmarkError, match=r"no parameter 'iodepht'"):
        workloads.load("fio").check_settings({"iodepht": 3}, "--set")
    with pytest.raises(FleetmarkError, match=r"no suite 'quik' \(did you mean quick\?\)"):
        workloads.load_suite("quik")
    with pytest.raises(FleetmarkError, match=r"no suite 'strem' \(did you mean stream\?\)"):
        workloads.load_suite("strem")


def test_a_workload_is_a_suite_of_itself() -> None:
    assert workloads.load_suite("hpcc").chosen() == {"hpcc": workloads.Choice()}
    assert workloads.load_suite("selftest").repeats == 1, "the suite of that name comes first"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("description: x\nworkloads:\n  fio: {set: {runtime: never}}\n", "fio.runtime: 'never' is not a time"),
        ("description: x\nworkloads:\n  fio: {sett: {}}\n", "fio.sett"),
        ("description: x\nworkloads:\n  foi:\n", "did you mean fio"),
        ("description: x\nworkloads: {}\n", "the list is empty"),
        ("description: x\nrepeats: 0\nworkloads: {fio: }\n", "repeats"),
        ("description: [x\n", "not YAML"),
        ("- a\n- b\n", "expected keys and values"),
        ("", "expected keys and values"),
    ],
)
def test_a_malformed_suite_names_its_file_and_place(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text)
    with pytest.raises(FleetmarkError, match=words) as caught:
        workloads.load_suite(str(file))
    assert "mine.yml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_suite_file_is_said_to_be_absent(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="No such file"):
        workloads.load_suite(str(tmp_path / "none.yml"))


def test_a_manifest_with_an_unknown_unit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.yml"
    file.write_text(
        "title: t\nclass: disk\ndescription: a\nlicence: l\ncitation: c\n"
        "cases: [{name: c, argv: [true], expect: 1}]\nmetrics: {m: {unit: MB/s, better: higher, description: a}}\n"
    )
    with pytest.raises(FleetmarkError, match=r"metrics\.m\.unit.*not a base unit"):
        read_model(file, Manifest, name="w")


def test_expressions_keep_their_type_and_unknown_names_are_errors() -> None:
    assert evaluate("{{ [a, 3] | max }}", {"a": 5}, "here") == 5
    assert evaluate("n{{ a }}", {"a": 5}, "here") == "n5"
    assert evaluate(["{{ a }}", "b"], {"a": None}, "here") == [None, "b"]
    with pytest.raises(FleetmarkError, match="here: .*nonsense"):
        evaluate("{{ nonsense }}", {}, "here")
    with pytest.raises(FleetmarkError, match="here"):
        evaluate("{{ a.__class__.__mro__ }}", {"a": 1}, "here")
