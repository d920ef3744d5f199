"""Present surveyed hosts as a document: hosts that answer, other hosts, skipped workloads, and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.facts import Facts
from fleetmark.base.text import count, folded, joined, message
from fleetmark.base.units import human
from fleetmark.hosts.causes import Cause, by_cause
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.keys import advice
from fleetmark.hosts.ssh.target import UnknownKey, scans
from fleetmark.reports.kit.document import Command, Document, Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, quantity

SKEW_SHOWN_S = 1.0
MOST_NAMES = 6  # maximum hosts in one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The survey of a host: its facts, or why there are none, and what a suite would skip, refuse and deploy.

    Skipped workloads map to reasons. ``mirror``: why the host cannot install packages, if it would need to and reaches
    no mirror.
    """

    host: Host
    facts: Facts | None
    reason: str | None = None
    skipped: dict[str, str]
    refused: tuple[str, ...] = ()
    deploy: tuple[str, ...] = ()
    mirror: str = ""
    unknown_key: UnknownKey | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry for programs, with all facts."""
        return {
            "host": self.host.name,
            "address": self.host.address,
            "labels": dict(self.host.labels),
            "reachable": self.facts is not None,
            "reason": self.reason,
            "skipped": self.skipped,
            "refused": list(self.refused),
            "deploy": list(self.deploy),
            "mirror": self.mirror or None,
            "facts": self.facts.model_dump(mode="json") if self.facts else None,
        }


def document(entries: Sequence[Entry], unfetchable: Mapping[str, str] | None = None) -> Document:
    """Return the facts of hosts that answer, then the others, and what would be installed, skipped or refused.

    ``unfetchable``: workload sources that this machine cannot reach, each with the reason.
    """
    silent = [e for e in entries if not e.facts]
    answering = tuple(_row(e.host, e.facts) for e in entries if e.facts)
    keys = [e.unknown_key for e in silent if e.unknown_key]
    skipped = _by_text((joined([name, reason], " "), e) for e in entries for name, reason in e.skipped.items())
    deploy = _by_text((name, e) for e in entries for name in e.deploy)
    refused = [Note(text, is_unbroken=True) for e in entries for text in e.refused]
    mirrors = _by_text((e.mirror, e) for e in entries if e.mirror)
    notes = _by_text((note, e) for e in entries if e.facts for note in e.facts.notes)
    sections = (
        Section("hosts", "", (compact(Tabular("hosts", message("Hosts"), _COLUMNS, answering, listing=True)),))
        if answering
        else Section("hosts", "", ()),
        Section("silent", _silent_title(len(silent), len(entries)), tuple(_silent(silent)) if silent else ()),
        Section("keys", message("Unknown host keys"), tuple(_keys(keys))),
        Section("deploy", message("Would install"), tuple(Note(text) for text in deploy)),
        Section(
            "mirrors",
            message("Packages that cannot be installed"),
            tuple(Note(text, tone="bad", is_unbroken=True) for text in mirrors),
        ),
        Section("sources", message("Sources that cannot be fetched"), tuple(_sources(unfetchable))),
        Section("skipped", message("Would be skipped"), tuple(Note(text, is_unbroken=True) for text in skipped)),
        Section("refused", message("Would be refused"), tuple(refused)),
        Section("notes", message("Notes"), tuple(map(Note, notes))),
    )
    return Document(title=message("Hosts"), answer="", sections=sections, data=[e.as_json() for e in entries])


def _silent_title(silent: int, number: int) -> str:
    hosts = count(number, "host")
    if silent == 1:
        return message("1 of {hosts} does not answer", hosts=hosts)
    return message("{n} of {hosts} do not answer", n=silent, hosts=hosts)


def _silent(silent: Sequence[Entry]) -> Iterator[Exhibit]:
    """Yield a table of causes, with the command that fixes the first host of each."""
    columns = (
        Column("hosts", message("hosts"), "name"),
        Column("reason", message("reason")),
        Column("advice", message("what to do"), only=("html", "pdf", "xlsx", "markdown", "csv")),
        Column("command", message("command"), "code", only=("html", "pdf", "xlsx", "markdown", "csv")),
    )
    causes = by_cause((e.host.name, _reason(e)) for e in silent)
    rows = tuple(
        (Cell(_folded(names), tone="bad"), Cell(reason), Cell(cause.advice), Cell(_mend(cause, names, silent)))
        for cause, names, reason in causes
    )
    yield Tabular("silent", message("Hosts that do not answer"), columns, rows, listing=True)
    unknown = {e.host.name for e in silent if e.unknown_key}  # these causes have a section of their own
    for cause, names, _ in causes:
        if names[0] not in unknown:
            yield Command(joined([_folded(names), cause.advice], ": "), _mend(cause, names, silent))


def _reason(e: Entry) -> str:
    return e.unknown_key.reason if e.unknown_key else e.reason or message("no reason given")


def _mend(cause: Cause, names: Sequence[str], silent: Sequence[Entry]) -> str:
    host = next(e.host for e in silent if e.host.name == names[0])
    port = ["-p", str(host.port)] if host.port else []
    return cause.command([*port, *(["-l", host.user] if host.user else []), host.address])


def _folded(names: Sequence[str]) -> str:
    """Return names, with runs of numbers as ``n[001-040]``."""
    parts = folded(names)
    left = sum(number for _, number in parts[MOST_NAMES:])
    more = message("and {n} more", n=left) if left else None
    return joined([", ".join(name for name, _ in parts[:MOST_NAMES]), more], " ")


def _sources(unfetchable: Mapping[str, str] | None) -> Iterator[Note]:
    for url, reason in (unfetchable or {}).items():
        yield Note(message("{url}: {reason}", url=url, reason=reason), tone="bad", is_unbroken=True)


def _keys(unknown: Sequence[UnknownKey]) -> Iterator[Exhibit]:
    """Yield how to add the keys of all these hosts."""
    if unknown:
        first, *others = scans(unknown) or [""]
        yield Command(advice(unknown), first) if first else Note(advice(unknown))
        yield from (Note(command, is_unbroken=True) for command in others)


def _by_text(lines: Iterable[tuple[str, Entry]]) -> list[str]:
    """Return each text once, with the names of its hosts."""
    names: dict[str, list[str]] = {}
    for text, e in lines:
        names.setdefault(text, []).append(e.host.name)
    return [joined([text, joined(["[", _names(hosts), "]"], "")], "  ") for text, hosts in names.items()]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MOST_NAMES else _folded(names)


_COLUMNS = (
    Column("host", message("host"), "name"),
    Column("generation", message("gen"), "side"),
    Column("os", "OS"),
    Column("python", "Python"),
    Column("root", "root"),
    Column("cpu", message("CPU")),
    Column("cores", message("cores"), "number"),
    Column("memory", message("memory"), "number"),
    Column("disks", message("disks")),
    Column("nics", "NICs"),
    Column("gpus", message("GPUs")),
    Column("skew", message("skew"), "number"),
)


def _row(host: Host, facts: Facts) -> tuple[Cell, ...]:
    cpu, disks, nics, gpus = facts.cpu, facts.disks, facts.nics, facts.gpus
    speeds = [n.speed for n in nics if n.speed]
    cores = f"{cpu.cores or '?'}" + (f"/{cpu.threads}" if cpu.threads and cpu.threads != cpu.cores else "")
    return (
        Cell(host.name),
        Cell(host.labels.get("gen", "")),
        Cell(re.sub(r" GNU/Linux| Linux| \(.*\)| LTS", "", facts.os or "?")),
        Cell(".".join(facts.python_version.split(".")[:2])),
        Cell("root" if facts.root else "sudo" if facts.sudo else message("no")),
        Cell(_model(cpu.model)),
        Cell(cores, cpu.cores),
        quantity(facts.memory, "B", digits=2) if facts.memory else Cell("?"),
        Cell(f"{len(disks)} {human(sum(d.size or 0 for d in disks), 'B', digits=2)}" if disks else "0"),
        Cell(f"{len(nics)}" + (f" {human(max(speeds), 'B/s', bits=True, digits=2)}" if speeds else "")),
        Cell(f"{len(gpus)} {gpus[0].name}" if gpus else "0"),
        _skew(facts.skew),
    )


def _skew(skew: float | None) -> Cell:
    if skew is None:
        return Cell("?")
    return Cell(f"{skew:+.0f} s" if abs(skew) >= SKEW_SHOWN_S else "0 s", skew, "s")


def _model(name: str | None) -> str:
    return " ".join(re.sub(r"\((R|TM|r|tm)\)|\b(CPU|Processor|\d+-Core)\b|@.*", "", name or "?").split())
