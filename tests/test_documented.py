"""The commands that the docs show exist: every verb, option, suite and workload's parameter that is named there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import workloads
from fleetmark.cli.app import app

HOUSE = Path(__file__).parents[1]
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
# Not those that are shown with what they are refused for.
COMMAND = re.compile(r"(?:^ {4}(?:\$ )?|`)(fleetmark \S[^`\n]*)(?:`|$)(?!\n {4}fleetmark: )", re.MULTILINE)

EXAMPLE = "acme_bench"  # the workload that a reader writes (docs/own-benchmarks.md)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name if page.parent.name != "workloads" else page.stem)
def test_what_a_page_tells_to_type_exists(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    wrong = [f"{line}: {reason}" for line in COMMAND.findall(text) if (reason := refused(line))]
    assert not wrong, "\n".join(wrong)


def refused(line: str) -> str:
    """Why the command line would be refused; empty where nothing of it is unknown."""
    command: Any = typer.main.get_command(app)
    words = shlex.split(re.split(r" #| \||;|&&|>", line)[0], comments=True)[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command = getattr(command, "commands", {}).get("solve", command)  # ``plan FILE`` is ``plan solve FILE``
    options = {name: p for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")}
    for index, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.startswith("-") and name not in options and name != "--help":
            return f"{command.name} has no option {name}"
        value = value or (words[index + 1] if index + 1 < len(words) else "")
        if name in ("-s", "--suite") and not value.endswith((".yml", ".yaml")) and value.islower():
            known = {*workloads.suite_names(), *workloads.names(), EXAMPLE}
            if not set(value.split(",")) <= known:
                return f"no suite {value}"
        match = re.fullmatch(r"([a-z]\w+)\.(\w+)=.*", value) if name == "--set" else None
        if match and match[2] not in workloads.load(match[1]).parameters:
            return f"{match[1]} has no parameter {match[2]}"
    return ""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("fleetmark run -w stream", "run has no option -w"),
        ("fleetmark hosts -s nosuch", "no suite nosuch"),
        ("fleetmark run --set fio.siez=1", "fio has no parameter siez"),
        ("fleetmark plan init --bad", "init has no option --bad"),
        ("fleetmark plan demand.yml --xlsx plan.xlsx", ""),
    ],
)
def test_what_does_not_exist_is_seen(line: str, reason: str) -> None:
    assert refused(line) == reason
