"""List all rules with the facts that each uses, its condition and advice, its retest and its reason.

The numbers come from the methodology. A rule evaluates one host and describes its state. Only a measurement shows
whether that state costs performance, so a rule that uses facts alone claims no gain.
"""

from __future__ import annotations

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.planner.diagnosis.tuning import accelerators, devices, memory, network, processor
from fleetmark.planner.diagnosis.tuning.rule import Rule

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (*memory.RULES, *processor.RULES, *devices.RULES, *accelerators.RULES, *network.RULES), key=lambda r: r.number
    )
)


def rule_named(name: str) -> Rule:
    """Return the rule with this name. Raise FleetmarkError with a list of the rules that can be tried."""
    rule = next((r for r in RULES if r.name == name), None)
    if rule is None:
        names = [r.name for r in RULES]
        raise FleetmarkError(f"no rule {name!r}{suggest(name, names)}: there are {', '.join(names)}")
    return rule
