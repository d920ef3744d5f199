"""Sentences that remember how they were made, so that a report can say them in another language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Said(str):
    """An English sentence; ``template`` is its fixed text with ``{name}`` for each of ``values``.

    It is a string in every way; only ``reports.language`` looks at how it was made.
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, values: Mapping[str, Any]) -> Said:
        made = super().__new__(cls, template.format_map(values) if values else template)
        made.template, made.values = template, values
        return made


def said(template: str, **values: Any) -> Said:
    """``said("{n} hosts", n=3)``: fixed text, which the catalogue of each language has, and what varies in it.

    The template must be a literal: a test collects them from the source. Values may be sentences themselves.
    """
    return Said(template, values)
