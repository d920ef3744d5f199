"""Present the recorded hosts, or one of them, as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, joined, message
from fleetmark.record.diagnosis.history import History
from fleetmark.reports.diagnosis import history as over_time
from fleetmark.reports.hosts.columns import ROWS, texts_of
from fleetmark.reports.kit.document import Document, Note, Section, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, number, quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHost:
    """A host with its campaign ids (oldest first), its labels, and its facts if the last campaign has them."""

    name: str
    campaigns: tuple[str, ...]
    labels: Mapping[str, str]
    facts: Facts | None


def document(hosts: Sequence[RecordedHost], detail: Message, nothing: Message) -> Document:
    """Return a row per host. ``detail``: which hosts the list covers; ``nothing``: why the list is empty."""
    columns = (
        Column("host", message("host"), "name"),
        Column("last", message("last campaign"), "name"),
        Column("campaigns", message("campaigns"), "number"),
        Column("labels", message("labels")),
        Column("cpu", message("CPU")),
        Column("cores", message("cores"), "number"),
        Column("memory", message("memory"), "number"),
        Column("gpus", message("GPUs")),
    )
    table = compact(Tabular("hosts", message("Hosts"), columns, tuple(map(_row, hosts)), listing=True))
    data = [{"host": h.name, "campaigns": list(h.campaigns), "labels": dict(h.labels)} for h in hosts]
    return replace(listing(message("Hosts"), table, nothing, data), details=(detail,))


def _row(host: RecordedHost) -> tuple[Cell, ...]:
    facts = host.facts
    gpus = sorted({gpu.name for gpu in facts.gpus if gpu.name}) if facts else []
    return (
        Cell(host.name),
        Cell(host.campaigns[-1]),
        number(len(host.campaigns)),
        _labels(host),
        Cell((facts and facts.cpu.model) or ""),
        number(facts.cpu.cores) if facts and facts.cpu.cores else Cell(),
        quantity(facts.memory, "B", digits=2) if facts and facts.memory else Cell(),
        Cell(f"{len(facts.gpus)} × {', '.join(gpus)}" if facts and facts.gpus else ""),
    )


def _labels(host: RecordedHost) -> Cell:
    return Cell(", ".join(f"{name}={value}" for name, value in host.labels.items()))


def one(host: RecordedHost, history: History | None, reason: str, created: str, command: str) -> Document:
    """Return the history of a host, its configuration and its campaigns.

    ``history``: None, with the ``reason``, if its campaigns have no figures in common.
    """
    columns = (Column("fact", message("fact"), "name"), Column("value", message("value")))
    texts = texts_of(host.facts, [{} for _ in ROWS]) if host.facts else ()
    rows = [(Cell(name), Cell(text)) for (name, _, _), text in zip(ROWS, texts, strict=False) if text]
    rows += [(Cell(message("labels")), _labels(host))] if host.labels else []
    facts = Tabular("configuration", message("Configuration"), columns, tuple(rows))
    campaigns = Tabular(
        "campaigns",
        message("Campaigns"),
        (Column("campaign", message("campaign"), "name"),),
        tuple((Cell(name),) for name in reversed(host.campaigns)),
    )
    sections = (
        Section("configuration", message("Configuration"), (facts,) if rows else (Note(message("No facts recorded")),)),
        Section("campaigns", message("Campaigns"), (campaigns,)),
    )
    if history is None:
        past = (Section("series", message("History"), (Note(reason),)),)
        return Document(title=host.name, answer=host.name, sections=(*past, *sections), created=created)
    shown = over_time.document(history, created, command)
    first, *plots = shown.sections
    answer = joined([host.name, shown.answer], ": ")
    return replace(shown, title=host.name, answer=answer, sections=(first, *sections, *plots))
