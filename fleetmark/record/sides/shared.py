"""What machines of a side share with some of the others: a batch, a rack, a BIOS or a microcode."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fleetmark.record import imports
from fleetmark.record.select import Machine

LABELS = ("batch", "rack")  # of the inventory
FACTS = ("bios", "microcode")
MOST_FACTS = 200  # machines of a side, above which facts are not read for this


def groups(chosen: Sequence[Machine], hosts: Sequence[str]) -> pd.DataFrame | None:
    """Return a row per host with what it shares with others; None for imported machines and where nothing is shared.

    ``hosts``: what each machine counts as. A host that several campaigns measured has the latest value.
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
