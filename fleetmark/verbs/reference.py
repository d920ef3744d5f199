"""Implement ``fleetmark reference``: save machines as a named reference, and list the references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import Message, count
from fleetmark.planner.diagnosis.cohorts import kind_of
from fleetmark.planner.diagnosis.specification import FACTS, RATE, Scalar, learned
from fleetmark.record import figures, imports, references
from fleetmark.record.campaigns import find
from fleetmark.record.commands import command
from fleetmark.record.compare import kinds_of
from fleetmark.record.diagnosis import baselines
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine, choose, distinct_names
from fleetmark.record.sides import side
from fleetmark.record.sides.mixtures import mixtures
from fleetmark.record.values.host import numbered
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.lists import saved as lists
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def pin(
    root: Path, name: str, source: str, only: Sequence[str] = (), *, everything: bool = False
) -> tuple[list[str], list[Message]]:
    """Save a reference. Return lines that describe it and its use, and warnings if its machines differ.

    ``source``: a selector such as ``gen=icelake``, or a campaign: its id, the beginning of one, a path, or last.
    ``only``: patterns over workload/case/metric; without patterns, the reference has the headline metrics.
    ``everything``: save the runs of all metrics, for ``diagnose --everything``.
    """
    selector = source if "=" in source else f"campaign={find(root, source).id}"
    chosen = choose(machines(root), selector)
    publisher = imports.publisher(chosen)  # as in a comparison of these machines
    pinned = side(root, selector, chosen, only=only, host_label=publisher or "host")
    measured = _measured(root, chosen, everything)
    kinds = kinds_of(chosen, root)
    reference = references.save(root, name, pinned, chosen, kinds, publisher or "host", measured)
    counted = count(reference.hosts, "publisher") if publisher and len(chosen) > 1 else count(reference.hosts, "host")
    holds = f"{count(len(reference.side.benchmarks), 'benchmark')} of {counted} ({selector})"
    caveat = "" if reference.hosts > 1 else "; one figure without an error, because the spread of its kind is unknown"
    lines = [f"saved {reference.name}@{reference.version}: {holds}{caveat}"]
    if reference.is_measured:
        lines.append(f"compare a campaign with it: {fmt.typed(command(root, 'diagnose', '--reference', name))}")
    mixed = mixtures(selector, chosen, pinned, distinct_names(chosen))
    return lines, list(mixed)


def _measured(root: Path, chosen: Sequence[Machine], everything: bool) -> dict[str, Any] | None:
    """Return the runs of the hosts in their latest campaigns; None if all machines are from imported tables."""
    run = [m for m in chosen if (root / m.campaign / "campaign.json").exists()]
    last = {m.host: m.campaign for m in sorted(run, key=lambda m: m.campaign)}
    files = {c: find(root, c).inside("measurements.parquet") for c in dict.fromkeys(last.values())}
    files = {campaign: file for campaign, file in files.items() if file.exists()}
    hosts = [(campaign, host) for host, campaign in last.items() if campaign in files]
    if not hosts:
        return None
    selection = figures.EVERYTHING if everything else figures.HEADLINES
    table = figures.read(files, numbered(hosts), condition=selection, spread=True)
    return baselines.as_text(table, [host for _, host in hosts])


def save_specification(root: Path, campaign: str, file: Path) -> str:
    """Write the facts of a campaign's best hosts as a rule file, and return a line to print.

    Raise FleetmarkError if the hosts are of several kinds or have no usable facts, or if the file exists.
    """
    archive = find(root, campaign)
    facts = archive.facts()
    kinds = sorted({kind_of(f)[0] for f in facts.values()})
    if len(kinds) > 1:
        raise FleetmarkError(f"{archive.id}: its hosts are of {len(kinds)} kinds ({'; '.join(kinds)}); use one of each")
    machine = learned(list(facts.values()))
    if not machine:
        raise FleetmarkError(f"{archive.id}: its hosts report no facts for a specification")
    text = yaml.safe_dump(
        {
            "description": f"What the best of {len(facts)} hosts of {archive.id} have ({kinds[0]}). Check it by hand.",
            "machine": {name: _amount(name, value) for name, value in machine.items()},
        },
        sort_keys=False,
        allow_unicode=True,
    )
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise FleetmarkError(f"{file}: {error.strerror}; give another file") from error
    return f"wrote {file}: {len(machine)} facts; `fleetmark gate {file}` checks hosts against it"


def _amount(name: str, value: Scalar) -> str | int | float:
    """Return a fact's value in the notation of rule files."""
    if isinstance(value, str):
        return value
    if FACTS[name][0] == RATE:
        return f"{value * 8 / 1e9:g} Gbit/s"
    number = int(value) if value == int(value) else value
    return f"{number} B" if FACTS[name][0] == "B" else number


def show(root: Path, form: str, console: Console, files: Documents) -> None:
    """Print all stored references in the format ``form``, and write the requested ``files``."""
    every: list[references.Reference | baselines.Baseline] = [*references.references(root), *baselines.baselines(root)]
    documents.show(lists.references(sorted(every, key=lambda r: (r.name, r.version))), form, console, files)
