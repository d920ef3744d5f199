"""``fleetmark hosts``: one table of who answers, what they are, and what a suite would skip there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.facts import Facts
from fleetmark.base.units import human
from fleetmark.campaign.resolve import is_present
from fleetmark.campaign.schedule import Settings, make_plan, probes, settings_of
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.preflight import check_hosts
from workloads import load_suite

SKEW_SHOWN_S = 1.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One host: its facts or why there are none; what a suite would skip (workload to reason), refuse and deploy."""

    host: Host
    facts: Facts | None
    reason: str | None
    skipped: dict[str, str]
    refused: tuple[str, ...] = ()
    deploy: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "host": self.host.name,
            "address": self.host.address,
            "labels": dict(self.host.labels),
            "reachable": self.facts is not None,
            "reason": self.reason,
            "skipped": self.skipped,
            "refused": list(self.refused),
            "deploy": list(self.deploy),
            "facts": self.facts.model_dump(mode="json") if self.facts else None,
        }


def survey(
    inventory: Sequence[str],
    limit: str | None,
    suite_name: str,
    settings: Settings,
    become: bool,
    work_dir: str,
    timeout_s: float,
    console: Console,
) -> list[Entry]:
    """Ask every host; plan the suite on those that answered, running nothing."""
    suite = load_suite(suite_name)
    settings_of(suite, settings)  # bad settings are refused before any host is asked
    found = load_inventory(list(inventory), limit)
    found = [replace(h, become=True) for h in found] if become else found
    with console.status(f"asking {len(found)} host{'s' * (len(found) != 1)} what they are"):
        checked = check_hosts(found, probes(), work_dir=work_dir, timeout_s=timeout_s)
    for c in checked:
        if c.reach:
            c.reach.close()
    able = [(c.host, c.facts) for c in checked if c.facts]
    plan = make_plan(able, suite, settings, campaign="survey", seed=0, repeats=None)
    return [
        Entry(
            c.host,
            c.facts,
            c.reason,
            dict(plan.hosts[c.host.name].skipped) if c.facts else {},
            tuple(f"{no.workload} {no.case} {no.reason}" for no in plan.hosts[c.host.name].refused) if c.facts else (),
            tuple(d.workload for d in plan.hosts[c.host.name].deploy if not is_present(d.provides, c.facts))
            if c.facts
            else (),
        )
        for c in checked
    ]


def table(entries: Sequence[Entry], width: int) -> RenderableType:
    """Hosts that answered with what they are; below, those that did not, and what would be skipped where."""
    made = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    generations = any(e.host.labels.get("gen") for e in entries)
    heads = ["host", *(["gen"] if generations else []), "OS", "Python", "root", "CPU"]
    figures = ["cores", "memory", "disks", "NICs", "GPUs", "skew"]
    rows = []
    for e in entries:
        if e.facts:
            generation = [e.host.labels.get("gen", "")] if generations else []
            rows.append([e.host.name, *generation, *_cells(e.facts)])
    names = [*heads, *figures]
    widest = [max([len(name), *(len(row[n]) for row in rows)]) for n, name in enumerate(names)]
    cpu = names.index("CPU")  # what gives way on a narrow terminal
    widest[cpu] = max(3, min(widest[cpu], width - sum(widest) + widest[cpu] - len(names) + 1))
    for name, wide in zip(names, widest, strict=True):
        justify: Literal["left", "right"] = "right" if name in figures else "left"
        made.add_column(name, justify=justify, overflow="ellipsis", no_wrap=True, width=wide)
    for row in rows:
        made.add_row(*map(Text, row))
    silent = [(e.host.name, e.reason or "no reason given") for e in entries if not e.facts]
    skipped: dict[str, list[str]] = {}
    for e in entries:
        for workload, why in e.skipped.items():
            skipped.setdefault(f"{workload} {why}", []).append(e.host.name)
    parts: list[RenderableType] = [made] if len(silent) < len(entries) else []
    if silent:
        parts.append(Text(f"\n{len(silent)} of {len(entries)} hosts do not answer:", style="bold red"))
        parts += [Text(f"  {name}: {why}") for name, why in silent]
    if skipped:
        parts.append(Text("\nwould be skipped:", style="bold"))
        parts += [Text(f"  {what}  [{_names(names)}]") for what, names in skipped.items()]
    refused = [line for e in entries for line in e.refused]
    if refused:
        parts.append(Text("\nwould be refused:", style="bold"))
        parts += [Text(f"  {line}") for line in refused]
    notes: dict[str, list[str]] = {}
    for e in entries:
        for note in e.facts.notes if e.facts else ():
            notes.setdefault(note, []).append(e.host.name)
    if notes:
        parts.append(Text("\nnotes:", style="bold"))
        parts += [Text(f"  {note}  [{_names(names)}]") for note, names in notes.items()]
    return Group(*parts)


def _cells(f: Facts) -> list[str]:
    cpu = f.cpu
    speeds = [n.speed for n in f.nics if n.speed]
    return [
        re.sub(r" GNU/Linux| Linux| \(.*\)| LTS", "", f.os or "?"),
        ".".join(f.python_version.split(".")[:2]),
        "root" if f.root else "sudo" if f.sudo else "no",
        " ".join(re.sub(r"\((R|TM|r|tm)\)|\b(CPU|Processor|\d+-Core)\b|@.*", "", cpu.model or "?").split()),
        f"{cpu.cores or '?'}" + (f"/{cpu.threads}" if cpu.threads and cpu.threads != cpu.cores else ""),
        human(f.memory, "B", digits=2) if f.memory else "?",
        f"{len(f.disks)} {human(sum(d.size or 0 for d in f.disks), 'B', digits=2)}" if f.disks else "0",
        f"{len(f.nics)}" + (f" {human(max(speeds), 'B/s', bits=True, digits=2)}" if speeds else ""),
        f"{len(f.gpus)} {f.gpus[0].name}" if f.gpus else "0",
        "?" if f.skew is None else f"{f.skew:+.0f}s" if abs(f.skew) >= SKEW_SHOWN_S else "0s",
    ]


def _names(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
