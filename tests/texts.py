"""The fixed texts of documents, as the sources and templates have them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import jinja2

HOUSE = Path(__file__).parents[1]
SOURCES = [p for room in ("fleetmark", "planner", "reports") for p in sorted((HOUSE / room).rglob("*.py"))]
TEMPLATES = sorted((HOUSE / "reports" / "kit" / "templates").glob("*.j2"))


def forms(noun: str, plural: str) -> tuple[str, str]:
    return f"{{n}} {noun}", f"{{n}} {plural or f'{noun}s'}"


def in_source(path: Path) -> Iterator[str]:
    """The literal arguments of ``message``, ``count`` and ``_`` (a Language); any other argument is an error."""
    tree = ast.parse(path.read_text("utf-8"))
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "fleetmark.base.text"
        for alias in node.names
    }
    if path == HOUSE / "fleetmark" / "base" / "text.py":
        ours |= {"message"}  # which is its own
    modules = {"fmt"} | {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "fleetmark.base"
        for alias in node.names
        if alias.name == "text"
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ""
        if isinstance(node.func, ast.Name) and (node.func.id in ours or node.func.id == "_"):
            name = node.func.id
        elif (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in modules
        ):
            name = node.func.attr
        literals = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if name == "message":
            assert literals, f"{path}:{node.lineno}: message() takes a literal"
            yield literals[0]
        elif name == "_":
            yield from literals[:1]
        elif name == "count":
            assert literals, f"{path}:{node.lineno}: count() takes its nouns as literals"
            yield from forms(literals[0], literals[1] if len(literals) > 1 else "")


def in_template(path: Path) -> Iterator[str]:
    """The literal arguments of ``_`` and of the filter ``count``."""
    tree = jinja2.Environment(extensions=["jinja2.ext.do"]).parse(path.read_text("utf-8"))
    for call in tree.find_all(jinja2.nodes.Call):
        if isinstance(call.node, jinja2.nodes.Name) and call.node.name == "_":
            (text,) = call.args
            if isinstance(text, jinja2.nodes.Const):
                yield str(text.value)
    for used in tree.find_all(jinja2.nodes.Filter):
        if used.name == "count":
            nouns = [a.value for a in used.args if isinstance(a, jinja2.nodes.Const)]
            assert nouns, f"{path}:{used.lineno}: count takes its nouns as literals"
            yield from forms(nouns[0], nouns[1] if len(nouns) > 1 else "")


def texts() -> set[str]:
    literals = {text for path in SOURCES for text in in_source(path)}
    return (literals | {text for path in TEMPLATES for text in in_template(path)}) - {""}
