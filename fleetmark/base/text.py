"""Sentences that remember how they were made, so that a report can say them in another language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Message(str):
    """An English sentence; ``template`` is its fixed text with ``{name}`` for each of ``values``.

    It is a string in every way; only ``reports.kit.language`` looks at how it was made.
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> Message:
        text = super().__new__(cls, template.format_map(values) if values else template)
        text.template, text.values = template, values
        return text

    def __getnewargs__(self) -> tuple[str, Mapping[str, Any]]:  # type: ignore[override]  # copies are made by it
        return self.template, self.values


def message(template: str, **values: Any) -> Message:
    """``message("{n} hosts", n=3)``: fixed text, which the catalogue of each language has, and what varies in it.

    The template must be a literal: a test collects them from the source. Values may be sentences themselves.
    """
    return Message(template, values)


def count(number: int, noun: str, plural: str = "") -> Message:
    """``1 host``, ``6 hosts``, ``25,500 runs``; ``plural`` where it is not the noun with an s.

    The nouns must be literals too. A language has both forms, and may say them alike.
    """
    form = noun if number == 1 else plural or f"{noun}s"
    return Message(f"{{n}} {form}", {"n": f"{number:,}"})


def joined(parts: Iterable[str | None], between: str = ", ") -> str:
    """The ``parts`` that there are, with ``between`` between them; those that are sentences stay so."""
    present = [part for part in parts if part]
    if len(present) < 2:
        return present[0] if present else ""
    values = {f"part{n}": part for n, part in enumerate(present)}
    return Message("{between}".join(f"{{{name}}}" for name in values), values | {"between": between})


def changed(text: str, change: Callable[[str], str]) -> str:
    """``text`` with what varies in it changed, however deep; a text that is no sentence is changed as a whole."""
    if not isinstance(text, Message):
        return change(text)
    return Message(text.template, {k: changed(v, change) if isinstance(v, str) else v for k, v in text.values.items()})
