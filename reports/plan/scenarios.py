"""Compare scenarios with the plan: each figure, and the differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, message
from fleetmark.planner.capacity.answer import Answer, Scenario
from fleetmark.reports.kit import format as fmt


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the plan and of every scenario; None for a scenario without a plan."""

    name: Message | str
    unit: Message | str
    plan: float
    scenarios: Sequence[float | None]

    @property
    def differences(self) -> list[float | None]:
        """Return the differences of the scenarios from the plan."""
        return [None if value is None else value - self.plan for value in self.scenarios]


def rows(answer: Answer) -> list[Row]:
    """Return the table of differences; it is empty without scenarios."""
    if not answer.scenarios or answer.plan is None:
        return []
    q = answer.question
    base = Scenario("", q, answer.plan)
    figures: Sequence[tuple[str, Message, Message | str, float]] = (
        ("cost", message("present value"), q.currency, 1.0),
        ("purchases", message("purchases"), q.currency, 1.0),
        ("running", message("running costs"), q.currency, 1.0),
        ("servers", message("servers in place at the end"), message("servers"), 1.0),
        ("peak_w", message("power at peak"), "kW", 1e-3),
        ("rack_units", message("rack units"), "U", 1.0),
        ("carbon_kg", message("carbon"), "t CO2e", 1e-3),
    )
    table = [
        Row(name, unit, base.figures[key] * factor, [_times(s.figures.get(key), factor) for s in answer.scenarios])
        for key, name, unit, factor in figures
    ]
    named = dict.fromkeys([*base.bought, *(sku for s in answer.scenarios for sku in s.bought)])
    for sku in named:
        counts = [None if s.plan is None else float(s.bought.get(sku, 0)) for s in answer.scenarios]
        if base.bought.get(sku) or any(counts):
            bought = message("{sku} to buy", sku=fmt.clean(sku))
            table.append(Row(bought, message("servers"), float(base.bought.get(sku, 0)), counts))
    return table


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def shown(value: float | None) -> Message | str:
    """Return a difference with its sign, or words if there is no plan."""
    if value is None:
        return message("no plan")
    return "0" if round(value) == 0 else fmt.change_of_money(value)
