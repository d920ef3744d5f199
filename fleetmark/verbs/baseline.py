"""``fleetmark baseline``: save the results of hosts, and list the saved baselines."""

from __future__ import annotations

from pathlib import Path

import yaml
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.diagnosis.cohorts import kind_of
from fleetmark.planner.diagnosis.specification import FACTS, RATE, Scalar, learned
from fleetmark.record import figures, references
from fleetmark.record.campaigns import find
from fleetmark.record.commands import command
from fleetmark.record.diagnosis import baselines, read
from fleetmark.record.references import Reference
from fleetmark.record.values.host import numbered
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.lists import saved as lists
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def save(root: Path, name: str, campaign: str, everything: bool, reference: str | None = None) -> str:
    """Save a campaign as the next version of the baseline ``name``, and return a line to print.

    With ``reference``, save the machines of this pinned reference instead. Raise FleetmarkError if their campaigns are
    missing.
    """
    if reference is not None:
        pinned = references.load(root, reference)
        source = pinned.side.title
        measured, hosts = _of_reference(root, pinned, everything)
    else:
        archive = find(root, campaign)
        source = archive.id
        measured, hosts = read(archive, everything=everything)
    saved = baselines.save(root, name, source, measured, hosts)
    sizes = f"{len(saved.hosts)} hosts, {len(saved.benchmarks)} benchmarks of {source}"
    against = fmt.typed(command(root, "diagnose", "--against", saved.name))
    return f"saved {saved.name}@{saved.version}: {sizes}; `{against}` compares with it"


def save_specification(root: Path, campaign: str, file: Path) -> str:
    """Write what the best hosts of a campaign have as a rule file, and return a line to print.

    Raise FleetmarkError if its hosts are of several kinds or report nothing, or if the file exists.
    """
    archive = find(root, campaign)
    facts = archive.facts()
    kinds = sorted({kind_of(f)[0] for f in facts.values()})
    if len(kinds) > 1:
        raise FleetmarkError(f"{archive.id}: its hosts are of {len(kinds)} kinds ({'; '.join(kinds)}); use one of each")
    machine = learned(list(facts.values()))
    if not machine:
        raise FleetmarkError(f"{archive.id}: its hosts report nothing that a specification could be learned from")
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
    """Return a fact's value as a rule file writes it."""
    if isinstance(value, str):
        return value
    if FACTS[name][0] == RATE:
        return f"{value * 8 / 1e9:g} Gbit/s"
    number = int(value) if value == int(value) else value
    return f"{number} B" if FACTS[name][0] == "B" else number


def _of_reference(root: Path, pinned: Reference, everything: bool) -> tuple[figures.Figures, list[str]]:
    """Return the figures of a reference's machines and their hosts, read from their campaigns.

    A change is judged by the spread of repeats, which the reference itself does not store.
    """
    title = pinned.side.title
    last = {host: campaign for campaign, host in sorted(pinned.records)}
    if not last:
        raise FleetmarkError(f"{title} was pinned by an earlier version, which stored no machines: pin it again")
    files = {}
    for campaign in dict.fromkeys(last.values()):
        if not (root / campaign).is_dir():
            raise FleetmarkError(f"{title} is from {campaign}, which is no campaign under {root}; restore it there")
        files[campaign] = find(root, campaign).inside("measurements.parquet")
    selection = figures.EVERYTHING if everything else figures.HEADLINES
    hosts = numbered((campaign, host) for host, campaign in last.items())
    return figures.read(files, hosts, which=selection, spread=True), list(last)


def show(root: Path, form: str, console: Console, files: Documents) -> None:
    """Print every version of every baseline in the format ``form``, and write the requested ``files``."""
    documents.show(lists.baselines(baselines.baselines(root)), form, console, files)
