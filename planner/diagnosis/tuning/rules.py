"""List all rules: the facts that each uses, its condition and advice, how to retest, and why.

Numbers are those of the methodology. A rule sees one host at a time and says what is so there; whether that costs
anything only a measurement can say, so a rule from facts alone claims no gain.
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
    """Return the rule with this name. Raise FleetmarkError, which lists the rules that can be tried."""
    rule = next((r for r in RULES if r.name == name), None)
    if rule is None:
        names = [r.name for r in RULES]
        raise FleetmarkError(f"no rule {name!r}{suggest(name, names)}: there are {', '.join(names)}")
    return rule
