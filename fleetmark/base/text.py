"""Build sentences that keep their template and values, so that a report can translate them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Message(str):
    """An English sentence; ``template`` is its fixed text with ``{name}`` for each of ``values``.

    It is an ordinary string; only ``reports.kit.language`` uses the template.
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> Message:
        text = super().__new__(cls, template.format_map(values) if values else template)
        text.template, text.values = template, values
        return text

    def __getnewargs__(self) -> tuple[str, Mapping[str, Any]]:  # type: ignore[override]  # for copy and pickle
        return self.template, self.values


def message(template: str, **values: Any) -> Message:
    """Return a translatable message: ``message("{n} hosts", n=3)``. The catalogue of each language translates the
    template.

    The template must be a literal: a test collects them from the source. Values may be messages themselves.
    """
    return Message(template, values)


def count(number: int, noun: str, plural: str = "") -> Message:
    """Return a number with its noun: ``1 host``, ``6 hosts``, ``25,500 runs``. Pass ``plural`` if it is irregular.

    The nouns must be literals too. A catalogue has both forms; they may be equal.
    """
    form = noun if number == 1 else plural or f"{noun}s"
    return Message(f"{{n}} {form}", {"n": f"{number:,}"})


def joined(parts: Iterable[str | None], between: str = ", ") -> str:
    """Join the nonempty ``parts`` with ``between``. Messages stay translatable."""
    present = [part for part in parts if part]
    if len(present) < 2:
        return present[0] if present else ""
    values = {f"part{n}": part for n, part in enumerate(present)}
    between = _SIGNS.get(between, between)
    return Message("{between}".join(f"{{{name}}}" for name in values), values | {"between": between})


def folded(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return pairs of text and number of names. Three or more consecutive names become one range, such as
    ``n[001-040]``.

    The number of a name is the last one before the first dot. The result is sorted by name.
    """
    runs: list[list[tuple[str, str, str, str]]] = []
    by_key: dict[tuple[str, str, int], list[tuple[str, str, str, str]]] = {}
    parts = [(name, *_split(name)) for name in dict.fromkeys(names)]
    padded = {(before, after) for _, before, digits, after in parts if digits.startswith("0") and len(digits) > 1}
    for part in sorted(parts, key=lambda part: (part[1], part[3], len(part[2]), part[2])):
        _, before, digits, after = part
        key = before, after, len(digits) if (before, after) in padded else 0
        last = by_key.get(key)
        if last is not None and digits and last[-1][2] and int(digits) == int(last[-1][2]) + 1:
            last.append(part)
        else:
            by_key[key] = [part]
            runs.append(by_key[key])
    shown = []
    for run in runs:
        _, before, digits, after = run[0]
        if len(run) > 2:
            shown.append((f"{before}[{digits}-{run[-1][2]}]{after}", len(run)))
        else:
            shown += [(part[0], 1) for part in run]
    return shown


def _split(name: str) -> tuple[str, str, str]:
    """Split a name at the last number of its first DNS label: the prefix, the number and the suffix."""
    label, dot, domain = name.partition(".")
    match = re.fullmatch(r"(.*?)([0-9]{1,15})([^0-9]*)", label, re.DOTALL)
    return (match[1], match[2], match[3] + dot + domain) if match else (name, "", "")


# Separators of lists, which differ between languages.
_SIGNS: Mapping[str, str] = {", ": message(", "), "; ": message("; "), ". ": message(". ")}


def changed(text: str, change: Callable[[str], str]) -> str:
    """Return a message with ``change`` applied to its values, including nested ones.

    Apply ``change`` directly to other texts.
    """
    if not isinstance(text, Message):
        return change(text)
    return Message(text.template, {k: changed(v, change) if isinstance(v, str) else v for k, v in text.values.items()})
