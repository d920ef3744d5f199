"""A capacity plan as Markdown, for a pull request or a wiki, with the same parts as on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import message
from reports.kit.language import Language
from reports.kit.marks import as_line, code, table_head, table_row, written


def render(parts: Sequence[RenderableType], command: str, language: Language | None = None) -> str:
    """Convert ``parts`` of ``reports.plan.terminal`` to Markdown.

    The first line is the answer, other bold lines become headings, and indented lines become lists. ``command``: the
    command that makes the report again.
    """
    _ = language or Language()
    answer, *rest = parts
    lines = [f"**{as_line(str(answer))}**", ""]
    for part in rest:
        lines += _table(part) if isinstance(part, Table) else _text(part) if isinstance(part, Text) else []
    return written([*lines, "", f"{_(message('Make this report again'))}: {code(command)}"])


def _text(part: Text) -> Iterator[str]:
    text = part.plain
    depth = len(text) - len(text.lstrip())
    if not text.strip():
        yield ""
    elif depth:
        yield f"{' ' * (depth - 2)}- {as_line(text)}"
    elif part.style == "bold":
        yield from ("", f"## {as_line(text)}", "")
    else:
        yield from ("", as_line(text), "")


def _table(part: Table) -> Iterator[str]:
    yield ""
    yield from table_head([str(c.header) for c in part.columns], "".join(c.justify[0] for c in part.columns))
    yield from map(table_row, zip(*([str(cell) for cell in c.cells] for c in part.columns), strict=True))
    yield ""
