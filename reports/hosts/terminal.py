"""Surveyed hosts for a terminal: a table of those that answer, then the others, what would be skipped, and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.facts import Facts
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count, joined, message
from fleetmark.base.units import human
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.keys import unknown_keys
from fleetmark.hosts.ssh.target import UnknownKey
from reports.kit.language import Language

SKEW_SHOWN_S = 1.0
_LEFT_OUT_FIRST = ("Python", "OS", "NICs", "disks", "skew", "GPUs", "memory")  # in this order, in a narrow terminal

_HEADS = {
    "host": message("host"),
    "gen": message("gen"),
    "cores": message("cores"),
    "memory": message("memory"),
    "disks": message("disks"),
    "skew": message("skew"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One host: its facts or why there are none; what a suite would skip (workload to reason), refuse and deploy."""

    host: Host
    facts: Facts | None
    reason: str | None
    skipped: dict[str, str]
    refused: tuple[str, ...] = ()
    deploy: tuple[str, ...] = ()
    unknown_key: UnknownKey | None = None

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


def table(entries: Sequence[Entry], width: int, language: Language | None = None) -> RenderableType:
    """The facts of hosts that answer; below, the others, and what would be skipped or refused."""
    _ = language or Language()
    parts: list[RenderableType] = [_facts_table(entries, width, _)] if any(e.facts for e in entries) else []
    silent = [e for e in entries if not e.facts]
    if silent:
        hosts = count(len(entries), "host")
        if len(silent) == 1:
            head = message("1 of {hosts} does not answer:", hosts=hosts)
        else:
            head = message("{n} of {hosts} do not answer:", n=len(silent), hosts=hosts)
        parts += _part(_(head), [f"{e.host.name}: {_(_reason(e))}" for e in silent], "bold red")
        parts += unknown_keys([e.unknown_key for e in silent if e.unknown_key])
    skipped = _by_name(((f"{name} {_(why)}", e) for e in entries for name, why in e.skipped.items()), _)
    parts += _part(_(message("Would be skipped:")), skipped)
    parts += _part(_(message("Would be refused:")), [line for e in entries for line in e.refused])
    notes = _by_name(((_(note), e) for e in entries if e.facts for note in e.facts.notes), _)
    if notes:  # sentences, and nothing to paste: they may wrap
        parts += [Text(f"\n{_(message('Notes:'))}", style="bold"), *(Padding(Text(n), (0, 0, 0, 2)) for n in notes)]
    return Group(*parts)


def _part(head: str, lines: Sequence[str], style: str = "bold") -> list[RenderableType]:
    return [Text(f"\n{head}", style=style), *(unwrapped(f"  {line}") for line in lines)] if lines else []


def _reason(e: Entry) -> str:
    return e.unknown_key.why if e.unknown_key else e.reason or message("no reason given")


def _by_name(lines: Iterable[tuple[str, Entry]], _: Language) -> list[str]:
    """Each line once, with the names of its hosts."""
    names: dict[str, list[str]] = {}
    for text, e in lines:
        names.setdefault(text, []).append(e.host.name)
    return [f"{text}  [{_(_names(hosts))}]" for text, hosts in names.items()]


def _facts_table(entries: Sequence[Entry], width: int, _: Language) -> Table:
    """A line per host. In a narrow terminal columns are left out until the rest fits."""
    lines = Table(box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    generations = any(e.host.labels.get("gen") for e in entries)
    heads = ["host", *(["gen"] if generations else []), "OS", "Python", "root", "CPU"]
    figures = ["cores", "memory", "disks", "NICs", "GPUs", "skew"]
    rows = []
    for e in entries:
        if e.facts:
            generation = [e.host.labels.get("gen", "")] if generations else []
            rows.append([e.host.name, *generation, *_cells(e.facts, _)])
    names = [*heads, *figures]
    columns = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    named = {name: _(_HEADS.get(name, name)) for name in names}
    if _width(columns, named) > width:
        columns["CPU"] = [_short_model(e.facts.cpu.model) for e in entries if e.facts]
        fitting = {name for name in names if name not in _LEFT_OUT_FIRST}
        for name in reversed(_LEFT_OUT_FIRST):
            if _width({n: v for n, v in columns.items() if n in fitting | {name}}, named) <= width:
                fitting.add(name)
        columns = {n: v for n, v in columns.items() if n in fitting}
    for name, values in columns.items():
        justify: Literal["left", "right"] = "right" if name in figures else "left"
        least = max(map(cell_len, [named[name], *values]))
        lines.add_column(named[name], justify=justify, no_wrap=True, min_width=least)
    for row in zip(*columns.values(), strict=True):
        lines.add_row(*row)
    if left_out := [named[name] for name in names if name not in columns]:
        lines.caption = _(message("{columns}: in a wider terminal, or by --format json", columns=joined(left_out)))
        lines.caption_justify = "left"
    return lines


def _width(columns: Mapping[str, Sequence[str]], heads: Mapping[str, str]) -> int:
    return sum(max(map(cell_len, [heads[name], *values])) for name, values in columns.items()) + len(columns) - 1


def _cells(f: Facts, _: Language) -> list[str]:
    cpu = f.cpu
    speeds = [n.speed for n in f.nics if n.speed]
    return [
        re.sub(r" GNU/Linux| Linux| \(.*\)| LTS", "", f.os or "?"),
        ".".join(f.python_version.split(".")[:2]),
        "root" if f.root else "sudo" if f.sudo else _(message("no")),
        _model(cpu.model),
        f"{cpu.cores or '?'}" + (f"/{cpu.threads}" if cpu.threads and cpu.threads != cpu.cores else ""),
        human(f.memory, "B", digits=2) if f.memory else "?",
        f"{len(f.disks)} {human(sum(d.size or 0 for d in f.disks), 'B', digits=2)}" if f.disks else "0",
        f"{len(f.nics)}" + (f" {human(max(speeds), 'B/s', bits=True, digits=2)}" if speeds else ""),
        f"{len(f.gpus)} {f.gpus[0].name}" if f.gpus else "0",
        "?" if f.skew is None else f"{f.skew:+.0f}s" if abs(f.skew) >= SKEW_SHOWN_S else "0s",
    ]


def _model(name: str | None) -> str:
    return " ".join(re.sub(r"\((R|TM|r|tm)\)|\b(CPU|Processor|\d+-Core)\b|@.*", "", name or "?").split())


def _short_model(name: str | None) -> str:
    """``EPYC 9654`` or ``Xeon 8380``: what identifies a model, without its maker and product line."""
    makers = r"\b(AMD|Intel|ARM|Platinum|Gold|Silver|Bronze|Genuine|with Radeon.*)\b"
    words = re.sub(makers, "", _model(name), flags=re.IGNORECASE).split()
    return " ".join(words[:3]) or "?"


def _names(names: Sequence[str], most: int = 6) -> str:
    more = message("and {n} more", n=len(names) - most) if len(names) > most else None
    return joined([joined(names[:most]), more], " ")
