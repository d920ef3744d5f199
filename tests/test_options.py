"""Test that options mean the same in every verb: one name for one thing, and files by their extension."""

from __future__ import annotations

import json
import socket
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app
from tests.commands import run
from tests.fleets import campaign, usual
from tests.typed import PROGRAM, VERBS


def command(path: tuple[str, ...]) -> Any:
    verb = PROGRAM
    for word in path:
        verb = verb.commands[word]
    return verb


def options(path: tuple[str, ...]) -> dict[str, Any]:
    return {name: p for p in command(path).params for name in p.opts if name.startswith("-")}


DOCUMENTS = [path for path in VERBS if "--format" in options(path) and path != ("rebuild",)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=" ".join)
def test_a_verb_that_prints_a_document_writes_it_to_files(path: tuple[str, ...]) -> None:
    assert {"--output", "-o"} <= set(options(path))


def test_an_option_has_one_short_form_and_one_kind_of_value() -> None:
    short, kinds = defaultdict(set), defaultdict(set)
    for path in VERBS:
        for name, parameter in options(path).items():
            if len(name) == 2:
                short[name, max(parameter.opts, key=len)].add(path)
            kinds[name].add(parameter.is_flag)
    by_letter = defaultdict(set)
    for letter, long in short:
        by_letter[letter].add(long)
    # -b is the baseline of a comparison and --become of a run; -m the metric of a history and the machine predicted.
    assert {k: v for k, v in by_letter.items() if len(v) > 1 and k not in ("-b", "-m")} == {}
    assert [name for name, values in kinds.items() if len(values) > 1 and name != "-b"] == []


def test_hosts_are_chosen_by_limit_alone() -> None:
    names = {name for path in VERBS for name in options(path)}
    assert not names & {"--host", "--hosts", "--select"}
    assert sorted(" ".join(path) for path in VERBS if "--machine" in options(path)) == [
        "predict benchmarks",
        "predict serve",
        "profile",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tuning", "last"), "tuning is called `fleetmark tune --campaign CAMPAIGN` now"),
        (("baseline", "save", "b"), "baseline is called `fleetmark reference` now"),
        (("diagnose", "--against", "b"), "diagnose --against is called --reference now"),
        (("gate", "r.yml", "--hosts=h"), "gate --hosts is called --limit now"),
        (("history", "--host", "h"), "history --host is called --limit now"),
        (("import", "table", "f", "--machine", "m"), "import --machine is called --name now"),
        (("profile", "--select", "gen=a"), "profile --select is called --limit now"),
        (("run", "--plan", "p.md"), "run --plan is called -o now"),
        (("parse", "last"), "to parse a campaign again: fleetmark rebuild last"),
    ],
)
def test_an_old_name_says_the_new_one(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert sentence in str(error.value)


@pytest.mark.parametrize("ending", ["html", "xlsx", "md", "json", "csv"])
def test_the_extension_of_a_file_chooses_the_format(ending: str, tmp_path: Path) -> None:
    campaign(tmp_path / "r", usual(("a", "b")))
    file = tmp_path / f"report.{ending}"
    run(tmp_path / "r", "report", "last", "-o", str(file))
    head = file.read_bytes()[:200]
    expected = {"html": b"<!doctype", "xlsx": b"pk", "md": b"#", "json": b"{", "csv": b"section"}[ending]
    assert expected in head.lower() or (ending == "csv" and b"," in head)
    assert not (tmp_path / "r" / "20260101T000000-x" / "summary.html").exists()


@pytest.mark.job
def test_a_run_writes_its_documents_beside_its_page(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run(tmp_path / "r", "run", "-s", "selftest", "--repeats", "1", "-o", str(file))
    assert socket.gethostname() in file.read_text() and json.loads(file.read_text())
    assert len(list((tmp_path / "r").glob("*/summary.html"))) == 1
