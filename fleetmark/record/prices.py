"""Prices that a comparison is given on the command line, for sides whose hosts have none, or others, on record."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.select import Machine

_PRICE = re.compile(r"\s*(\d[\d,]*(?:\.\d+)?)\s*([A-Z]{3})(?:\s*(?:/|per\s)\s*([\w. ]{1,40}?))?\s*")
_LABELS = ("price", "currency", "price_date", "term")


def priced(
    chosen: Mapping[str, Sequence[Machine]], prices: Sequence[str], selectors: Mapping[str, str]
) -> dict[str, Sequence[Machine]]:
    """Each side's machines with the labels that ``prices`` (``NAME=4.20 USD/hour``) give them; a NAME is a side's title
    or its selector (``selectors``: by title). Raises FleetmarkError for what is no price, or of no side.
    """
    result: dict[str, Sequence[Machine]] = dict(chosen)
    for text in prices:
        name, _, amount = text.rpartition("=")
        match = _PRICE.fullmatch(amount)
        value = float(match[1].replace(",", "")) if match else 0.0
        if match is None or not 0 < value < math.inf:
            raise FleetmarkError(f"--price {text}: write NAME=15500 EUR, or NAME=4.20 USD/hour")
        title = next((t for t in chosen if name.strip() in (t, selectors.get(t))), None)
        if title is None:
            raise FleetmarkError(f"--price {text}: no side is called {name.strip()}; there are {', '.join(chosen)}")
        labels = {"price": f"{value:g}" if value < 1e6 else f"{value:.0f}", "currency": match[2]}
        labels |= {"term": match[3].strip()} if match[3] else {}
        result[title] = [_with(machine, labels) for machine in chosen[title]]
    return result


def _with(machine: Machine, labels: Mapping[str, str]) -> Machine:
    kept = {k: v for k, v in machine.labels.items() if k not in _LABELS}
    return replace(machine, labels={**kept, **labels})
