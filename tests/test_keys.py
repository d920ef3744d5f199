"""Test the sentence about a wrong key of a YAML file: the key to write instead, once, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import question as demand
from fleetmark.record.diagnosis.gate import read_rules
from fleetmark.verbs import checking
from fleetmark.workloads.manifest import Manifest, read_model
from fleetmark.workloads.suite import load_suite
from tests.demands import changed

METRIC = {"unit": "B/s", "better": "higher", "kind": "capacity", "description": "-"}
MANIFEST = {
    "title": "t", "class": "disk", "description": "d", "licence": "l", "citation": "c", "kind": "capacity",
    "parameters": {"size": {"type": "int", "default": 1, "description": "-"}},
    "cases": [{"name": "c", "argv": ["true"], "expect": 1, "description": "-"}],
    "metrics": {"peak": METRIC | {"overrides": {"c": {"class": "mem-bw"}}, "peak": [{"part": "memory"}]}},
    "scores": {"s": {"metric": "peak", "mean": "geometric", "description": "-"}},
    "alike": [{"name": "cores", "value": 1}],
    "frontier": {"each": "a", "work": "w", "speed": "s", "wait": "w", "speeds": [1.0], "max_wait": 1.0},
}  # fmt: skip


def renamed(node: Any, new: str, old: str) -> Any:
    """Return a document with one key spelt in an old way, wherever it occurs."""
    if isinstance(node, dict):
        return {old if key == new else key: renamed(value, new, old) for key, value in node.items()}
    return [renamed(item, new, old) for item in node] if isinstance(node, list) else node


def test_the_manifest_with_present_keys_is_valid(tmp_path: Path) -> None:
    (tmp_path / "w.yml").write_text(yaml.safe_dump(MANIFEST))
    assert read_model(tmp_path / "w.yml", Manifest, name="w").metrics["peak"].peak[0].part == "memory"


@pytest.mark.parametrize(
    ("part", "new", "old", "place"),
    [
        ("description", "description", "about", "about"),
        ("parameters", "description", "about", "parameters.size.about"),
        ("cases", "description", "about", "cases.0.about"),
        ("metrics", "description", "about", "metrics.peak.about"),
        ("metrics", "overrides", "at", "metrics.peak.at"),
        ("metrics", "part", "of", "metrics.peak.peak.0.of"),
        ("scores", "description", "about", "scores.s.about"),
        ("alike", "name", "what", "alike.0.what"),
        ("alike", "value", "of", "alike.0.of"),
        ("frontier", "speeds", "at", "frontier.at"),
        ("frontier", "max_wait", "within", "frontier.within"),
    ],
)
def test_an_old_key_of_a_manifest_names_the_present_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, new: str, old: str, place: str
) -> None:
    monkeypatch.setenv(extensions.VARIABLE, "")  # restored afterwards: the check adds its folder
    text = MANIFEST | renamed({part: MANIFEST[part]}, new, old)
    if part == new:
        del text[part]
    file = tmp_path / "w.yml"
    file.write_text(yaml.safe_dump(text))
    with pytest.raises(FleetmarkError) as error:
        read_model(file, Manifest, name="w")
    assert str(error.value) == f"{file}: {place}: this key is now called {new}; rename it"
    faults = [fault for fault in checking.check(tmp_path)[0] if "parser" not in fault]
    assert len(faults) == 1 and faults[0].endswith(f": {place}: this key is now called {new}; rename it")


def test_an_old_key_of_a_suite_and_of_rules_names_the_present_one(tmp_path: Path) -> None:
    suite, rules = tmp_path / "suite.yml", tmp_path / "rules.yml"
    suite.write_text("about: x\nworkloads: {fio: }\n")
    with pytest.raises(FleetmarkError, match="suite.yml: about: this key is now called description; rename it$"):
        load_suite(str(suite))
    rules.write_text("rules: [{name: a, metric: b, at_least: 90%, of: peak}]\n")
    with pytest.raises(FleetmarkError, match=r"rules.yml: rules\.0\.of: this key is now called reference; rename it$"):
        read_rules(rules)


def test_old_keys_of_supply_name_the_present_ones_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "demand.yml"
    file.write_text(changed("fleet:", "supply: [{of: genoa, most: 3}]\nfleet:"))
    with pytest.raises(FleetmarkError) as error:
        demand.read(file, tmp_path)
    places = [line.partition(": ")[2] for line in str(error.value).splitlines()]
    assert places == [
        "supply[1].of: this key is now called item; rename it",
        "supply[1].most: this key is now called maximum; rename it",
    ]


def test_a_misspelt_key_gets_a_suggestion_of_its_own_part(tmp_path: Path) -> None:
    file = tmp_path / "w.yml"
    file.write_text(yaml.safe_dump(MANIFEST | renamed({"metrics": MANIFEST["metrics"]}, "part", "prt")))
    with pytest.raises(FleetmarkError) as error:
        read_model(file, Manifest, name="w")
    assert str(error.value) == (
        f"{file}: metrics.peak.peak.0.prt: is not a valid key (did you mean part?); "
        "the keys are called, cases, each, part, traffic"
    )
