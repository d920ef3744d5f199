"""Test help texts: verbs are in groups, nothing is cut off, and every example can be typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetmark.cli.app import app
from fleetmark.cli.help import examples
from tests.typed import VERBS, refused

HEADINGS = ["Measure", "Compare", "Diagnose", "Record", "Plan"]


def shown(*words: str) -> str:
    """Return what the program prints for these arguments, which must succeed."""
    done = CliRunner().invoke(app, words, prog_name="fleetmark", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_verbs_are_listed_under_headings_in_whole_sentences() -> None:
    text = shown("--help")
    assert re.findall(r"^([A-Z]\w+):$", text, re.MULTILINE) == ["Options", *HEADINGS]
    listed = re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE)
    assert sorted(listed) == sorted({path[0] for path in VERBS})
    assert "..." not in text.partition("Measure:")[2]
    assert shown("-h") == text


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_each_verb_has_examples_that_can_be_typed_and_names_its_values(path: tuple[str, ...]) -> None:
    text = shown(*path, "-h")
    lines = re.findall(r"^  (fleetmark .*)$", text, re.MULTILINE)
    assert len(lines) >= 2 and [f"{line}: {refused(line)}" for line in lines if refused(line)] == []
    assert not re.search(r"^  -.*<(str|int|float|path|list)\b", text, re.MULTILINE)
    assert shown(*path, "--help") == text


def test_without_arguments_the_first_day_is_shown() -> None:
    lines = re.findall(r"^  (fleetmark .*?)  ", shown(), re.MULTILINE)
    assert len(lines) == 3 and [refused(line) for line in lines] == ["", "", ""]


def test_examples_end_where_the_next_command_begins() -> None:
    assert examples("fleetmark run --set 'a;b';\n  fleetmark hosts") == ["fleetmark run --set 'a;b'", "fleetmark hosts"]


COMPLETION = {
    "bash": {"COMP_WORDS": "fleetmark di", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "fleetmark di"},
    "fish": {"_TYPER_COMPLETE_ARGS": "fleetmark di", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", COMPLETION)
def test_shells_complete_a_verb(shell: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("fleetmark")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "_FLEETMARK_COMPLETE": f"complete_{shell}", **COMPLETION[shell]},
    )
    assert "diagnose" in done.stdout and "compare" not in done.stdout


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "fleetmark", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("fleetmark 0.")
