"""Write the man pages and the completions of the installed Fleetmark: ``python scripts/manual.py MAN COMPLETION``."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer._completion_shared import get_completion_script

from fleetmark import __version__
from fleetmark.cli.app import app


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with its words, the program itself first."""
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from commands(below, (*path, name))


def page(path: tuple[str, ...], command: Any, date: str) -> str:
    """Return the man page of a command: its help, section by section."""
    context = command.make_context(path[-1], [], resilient_parsing=True)
    context.info_name = " ".join(path)
    paragraphs = re.split(r"\n\s*\n", (command.help or "").strip())
    first = " ".join(paragraphs[0].split())
    lines = [
        f'.TH "{"-".join(path).upper()}" 1 "{date}" "fleetmark {__version__}" "Fleetmark"',
        ".SH NAME",
        f"{text('-'.join(path))} \\- {text(first.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {text(' '.join(path))}",
        text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for paragraph in paragraphs:
        body = " ".join(paragraph.split())
        if body.startswith("Examples:"):
            lines += [".SH EXAMPLES", ".nf"]
            lines += [text(example.strip()) for example in body.removeprefix("Examples:").split(";") if example.strip()]
            lines.append(".fi")
        else:
            lines += [text(body) if lines[-1].startswith(".SH") else f".PP\n{text(body)}"]
    records = [
        r for p in command.get_params(context) if not getattr(p, "hidden", False) and (r := p.get_help_record(context))
    ]
    if records:
        lines.append(".SH OPTIONS")
        for names, description in records:
            lines += [".TP", f".B {text(names)}", text(" ".join(description.split())) or "\\&"]
    if below := getattr(command, "commands", {}):
        lines.append(".SH COMMANDS")
        for name, one in sorted(below.items()):
            lines += [
                ".TP",
                f".BR {text('-'.join((*path, name)))} (1)",
                text(" ".join(one.get_short_help_str(200).split())),
            ]
    return "\n".join(line for line in lines if line) + "\n"


def text(words: str) -> str:
    """Return ``words`` for troff, which has signs of its own and reads lines that begin with a dot or a quote."""
    plain = words.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return re.sub(r"^([.'])", r"\\&\1", plain)


def main() -> None:
    """Write a page for every command, and a completion for each shell."""
    manual, completion = map(Path, sys.argv[1:3])
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or time.time()))
    for path, command in commands(typer.main.get_command(app), ("fleetmark",)):
        (manual / f"{'-'.join(path)}.1").write_text(page(path, command, date), "utf-8")
    for shell, name in (("bash", "fleetmark.bash"), ("zsh", "_fleetmark"), ("fish", "fleetmark.fish")):
        script = get_completion_script(prog_name="fleetmark", complete_var="_FLEETMARK_COMPLETE", shell=shell)
        (completion / name).write_text(script.rstrip() + "\n")


if __name__ == "__main__":
    main()
