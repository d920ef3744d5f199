"""Whether a command line that is shown somewhere can be typed: its verb, options, suites and parameters exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer

from fleetmark import workloads
from fleetmark.cli.app import app

PROGRAM: Any = typer.main.get_command(app)  # building it takes longer than a check
EXAMPLE = "acme_bench"  # the workload that a reader writes (docs/tutorials/own-benchmark.md)


def refused(line: str) -> str:
    """Return why the command line would be refused, or an empty string."""
    command: Any = PROGRAM
    words = shlex.split(re.split(r" #| \||;|&&| >", line)[0], comments=True)[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command = getattr(command, "commands", {}).get(getattr(command, "default", ""), command)  # ``plan solve FILE``
    options = {name: p for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")}
    for index, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.startswith("-") and name not in options and name not in ("-h", "--help"):
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


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that has no commands below it."""
    below = getattr(command, "commands", None)
    for name in below or ():
        yield from verbs(below[name], (*path, name))
    if below is None:
        yield path


VERBS = list(verbs(PROGRAM))
