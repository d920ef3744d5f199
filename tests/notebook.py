"""Run the blocks of a tutorial in order: ``python -m tests.notebook`` writes their output into the page."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from tests.reports.compared import archives

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def refreshed(page: str, folder: Path) -> str:
    """Return ``page`` with the output of every block, in a new ``folder`` with a record of three generations."""
    archives(folder / "fleetmark-results")
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        output = printed(block[1], names)
        return f"```python\n{block[1]}```\n" + (f"\n```text\n{output}```\n" if output else "")

    with contextlib.chdir(folder), pd.option_context("display.width", 120, "display.max_columns", 20):
        return BLOCK.sub(run, page)


def printed(block: str, names: dict[str, Any]) -> str:
    """Run a block as a notebook does: the value of a last expression is printed, unless it is None or a path."""
    tree = ast.parse(block)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, PAGE.name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), PAGE.name, "eval"), names)
            if not (value is None or isinstance(value, os.PathLike)):
                out.write(f"{value}\n")
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + ("\n" if out.getvalue() else "")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(refreshed(PAGE.read_text(), Path(place)))
