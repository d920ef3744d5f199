"""Evaluate values in manifests that depend on the host: sandboxed Jinja expressions that can use a host's facts.

A string that is a single ``{{ expression }}`` gives that expression's value with its type. A string with expressions
inside gives text, and any other value stays unchanged. An unknown name is an error, never an empty string.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, meta
from jinja2.sandbox import SandboxedEnvironment

from fleetmark.base.errors import FleetmarkError

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30


@cache
def environment() -> SandboxedEnvironment:
    """Return the sandboxed environment that evaluates all expressions."""
    env = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    env.globals.update(
        KiB=KiB,
        MiB=MiB,
        GiB=GiB,
        ceil=math.ceil,
        floor=math.floor,
        short=short,
        digest=digest,
        fingerprint=fingerprint,
        product=product,
    )
    return env


def short(size: int) -> str:
    """Return a size in benchmark notation: 4096 is ``4k``, 1048576 is ``1m``."""
    for unit, letter in ((GiB, "g"), (MiB, "m"), (KiB, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def product(*parts: list[Any]) -> list[list[Any]]:
    """Return every combination of one item from each of ``parts``; the last one varies fastest."""
    return [list(items) for items in itertools.product(*parts)]


def fingerprint(source: str) -> str:
    """Return the SHA-256 of a local file, so that an edited file is built again; a URL is identified by its text."""
    path = Path(source)
    if not source or not path.is_file():
        return source
    info = path.stat()
    return _sha256(path, info.st_size, info.st_mtime_ns)


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(*parts: Any) -> str:
    """Return eight hexadecimal digits that identify a combination of ``parts``."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


@cache
def _expression(text: str) -> Any:
    return environment().compile_expression(text, undefined_to_none=False)


@cache
def _template(text: str) -> Any:
    return environment().from_string(text)


def names_in(value: Any) -> set[str]:
    """Return the names used by the expressions in ``value``, such as parameters and ``facts``."""
    return meta.find_undeclared_variables(environment().parse(value)) if isinstance(value, str) else set()


def syntax_problem(value: str) -> str:
    """Return the syntax error of the expressions in ``value``, or an empty string if there is none."""
    inner = value.strip()
    try:
        if inner.startswith("{{") and inner.endswith("}}") and inner.count("{{") == 1:
            _expression(inner[2:-2].strip())
        elif "{{" in value or "{%" in value:
            _template(value)
    except TemplateError as error:
        return str(error)
    return ""


def evaluate(value: Any, context: Mapping[str, Any], place: str) -> Any:
    """Return ``value`` with its expressions evaluated, including those in lists and mappings.

    Raise FleetmarkError naming ``where`` if an expression is malformed or names something unknown.
    """
    if isinstance(value, list):
        return [evaluate(v, context, place) for v in value]
    if isinstance(value, dict):
        return {k: evaluate(v, context, place) for k, v in value.items()}
    if not isinstance(value, str) or "{{" not in value:
        return value
    inner = value.strip()
    try:
        if inner.startswith("{{") and inner.endswith("}}") and inner.count("{{") == 1:
            result = _expression(inner[2:-2].strip())(**context)
            if isinstance(result, StrictUndefined):
                result._fail_with_undefined_error()
            return None if isinstance(result, Undefined) else result  # `x if no` gives an undefined value
        return _template(value).render(**context)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise FleetmarkError(f"{place}: {value!r} cannot be evaluated: {error}") from error
