"""Count the words and sentences of the documentation.

A sentence ends with a full stop, question or exclamation mark before a space, or with its paragraph, list item, heading
or table cell. A piece of inline code, a number and a link's text count as written in words: `a b` is one word. Blocks of
code and comments do not count. A page's words are all that `wc -w` counts outside blocks of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).parents[2]
DOCS = HOUSE / "docs"
PAGES = [HOUSE / "README.md", HOUSE / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+).*?^(?P=indent)(?P=fence)[ ]*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bal\.)(?<=[.!?])[\"')*]*\s+")
NEW = re.compile(r"\s*(?:[-*]|\d+\.)\s")


def prose(text: str) -> str:
    """Return the text of a page without blocks of code and comments."""
    kept, before = [], ""
    for line in FENCE.sub("", COMMENT.sub("", text)).splitlines():
        if line.startswith("    ") and not before.strip():
            continue  # an indented block of code: ``before`` stays empty
        kept.append(line)
        before = line
    return "\n".join(kept)


def cells(text: str) -> Iterator[str]:
    """Yield the cells of a page's tables."""
    for line in prose(text).splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line):
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| ")))


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, list items, headings and table cells."""
    lines: list[str] = []
    for line in [*prose(text).splitlines(), ""]:
        if not line.strip() or line.startswith(("#", "|")) or NEW.match(line):
            yield " ".join(lines)
            lines = []
        if line.startswith("#"):
            yield line.lstrip("# ")
        elif line.strip() and not line.startswith("|"):
            lines.append(line.strip())
    yield from cells(text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a page, with inline code as one word."""
    result = []
    for paragraph in paragraphs(text):
        plain = LINK.sub(r"\1", re.sub(r"`[^`]*`", "`code`", paragraph))
        result += [sentence for sentence in END.split(plain) if sentence.strip()]
    return result
