"""Find groups of machines within a side: those with the same batch, rack, BIOS or microcode."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fleetmark.record import imports
from fleetmark.record.select import Machine

LABELS = ("batch", "rack")  # inventory labels
FACTS = ("bios", "microcode")
MOST_FACTS = 200  # facts are not read for sides with more machines


def groups(chosen: Sequence[Machine], hosts: Sequence[str]) -> pd.DataFrame | None:
    """Return a row per host with its group labels; None for imported machines, and if no hosts form a group.

    ``hosts``: the host name that each machine counts as. If several campaigns measured a host, its latest value counts.
    """
    if any(imports.is_imported(machine) for machine in chosen):
        return None
    rows: dict[str, dict[str, str]] = {}
    for machine, host in zip(chosen, hosts, strict=True):
        rows.setdefault(host, {}).update(_values(machine, len(chosen) <= MOST_FACTS))
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*LABELS, *FACTS])
    several = [name for name in frame.columns if 1 < frame[name].nunique() < len(frame)]
    return frame[several] if several else None


def _values(machine: Machine, by_facts: bool) -> dict[str, str]:
    values = {name: machine.labels[name] for name in LABELS if name in machine.labels}
    facts = machine.facts() if by_facts else None
    if facts is not None:
        known = {"bios": facts.bios, "microcode": facts.cpu.microcode}
        values |= {name: value for name, value in known.items() if value}
    return values
