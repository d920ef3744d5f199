"""Find the commands of the documentation's pages.

A page shows commands in blocks of `bash` and `console`, and within sentences as `fleetmark VERB ...`. A verb alone in a
sentence is a name, not a command. A comment marks what cannot run on the stage, on the line above a block or at the end
of a sentence's line: `<!-- run by tests/fleet/test_sick.py -->` names the test that runs such a command for real, and
`<!-- not run: needs a Kubernetes cluster -->` states why nothing runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.documentation.text import DOCS, HOUSE

PAGES = [
    HOUSE / "README.md",
    *(page for kind in ("tutorials", "how-to", "explanation") for page in sorted((DOCS / kind).glob("*.md"))),
]
MARK = re.compile(r"<!-- (run by |not run: )(.+?) -->")
INLINE = re.compile(r"`(fleetmark [^`]+ [^`]+)`")
FENCE = re.compile(r"```(\w*)")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a page shows it; ``elsewhere`` or ``reason`` is set if it does not run on the stage."""

    page: Path
    line: str
    elsewhere: str = ""
    reason: str = ""

    @property
    def is_staged(self) -> bool:
        return not self.elsewhere and not self.reason


def commands(page: Path) -> list[Command]:
    """Return the commands of a page in their order, each once."""
    first: dict[str, Command] = {}
    for command in _all(page):
        first.setdefault(command.line, command)
    return list(first.values())


def _all(page: Path) -> Iterator[Command]:
    fence, mark, block = "", {}, ""
    for line in page.read_text("utf-8").splitlines():
        opened = FENCE.match(line)
        if opened:
            fence, block = ("", "") if fence else (opened[1] or "text", "")
            mark = mark if fence else {}
        elif fence in ("bash", "console"):
            if fence == "bash" or line.startswith("$ ") or block:
                block += line.removeprefix("$ ").removesuffix("\\")
            if block.strip() and not line.endswith(("\\", "|")):
                yield Command(page, re.split(r"\s+# ", block)[0].strip(), **mark)
                block = ""
        elif not fence:
            note = MARK.search(line)
            mark = {"elsewhere" if note[1] == "run by " else "reason": note[2]} if note else {}
            yield from (Command(page, shown, **mark) for shown in INLINE.findall(line))
