"""No identifier in the project's Python is an all-purpose word: names say what they hold."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
VAGUE = frozenset({"found", "made", "told", "said", "there", "whole"})


def files() -> list[Path]:
    """The Python files that git tracks; skips where this is no git checkout."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "*.py"], cwd=HOUSE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs a git checkout: {error}")
    return [path for name in listing.stdout.split("\0") if name and (path := HOUSE / name).exists()]


def defined(text: str) -> Iterator[tuple[int, str]]:
    """The line and name of every identifier that ``text`` binds: functions, classes, arguments, variables, attributes,
    import aliases."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((node.lineno, alias.asname) for alias in names if alias.asname)


def test_every_name_says_what_it_holds() -> None:
    paths = files()
    assert len(paths) > 400
    vague = [
        f"{path.relative_to(HOUSE)}:{line} {name}"
        for path in paths
        for line, name in defined(path.read_text("utf-8"))
        if name in VAGUE
    ]
    assert vague == []


@pytest.mark.parametrize(
    "text",
    [
        "made = 1",
        "made: int = 1",
        "def made(): ...",
        "async def made(): ...",
        "class A:\n    made: int",
        "def f(made): ...",
        "def f(*, made=1): ...",
        "def f(**made): ...",
        "lambda made: 1",
        "[1 for made in ()]",
        "with open('a') as made: ...",
        "if (made := 1): ...",
        "a.made = 1",
        "for a, (made, b) in (): ...",
        "try: ...\nexcept OSError as made: ...",
        "import a as made",
        "match 1:\n    case made: ...",
    ],
)
def test_a_name_is_seen_wherever_it_is_bound(text: str) -> None:
    assert "made" in {name for _, name in defined(text)}


def test_uses_of_others_names_are_no_fault() -> None:
    assert [*defined("from hypothesis import given\nx = a.made(told=1)\nprint(there)")] == [(2, "x")]
