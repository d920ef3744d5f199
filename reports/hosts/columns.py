"""Show hosts side by side: hosts with the same configuration share a column, and differences are marked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.facts import Cache, Dimm, Disk, Facts, Gpu, PcieLink, Torch
from fleetmark.base.text import count, joined, message
from fleetmark.base.units import human
from fleetmark.record.results import HostInfo
from fleetmark.reports.kit import format as fmt

MOST = 12  # maximum columns; further configurations are only named


@dataclass(frozen=True, slots=True)
class Cell:
    """One fact of one configuration; ``odd`` is true if most hosts of its generation differ from it."""

    text: str
    odd: bool


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    cells: tuple[Cell, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The facts of hosts side by side.

    ``columns``: (generation, hosts with equal facts). ``rows``: each has a cell per column. ``unseen``: hosts without
    facts, with the reason. ``further``: hosts of configurations beyond MOST.
    """

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]
    unseen: tuple[tuple[str, str], ...]
    further: tuple[str, ...]


def side_by_side(hosts: Sequence[HostInfo]) -> SideBySide:
    """Compare the facts of ``hosts``, which are already in their final order."""
    names = [name for name, _, _ in ROWS]
    written: list[dict[Hashable, str]] = [{} for _ in ROWS]  # facts that hosts share are formatted once
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    unseen = []
    for host in hosts:
        if host.facts is None:
            unseen.append((host.name, host.reason or message("no facts were collected")))
            continue
        alike[host.generation or "", tuple(texts_of(host.facts, written))].append(host.name)
    # Within a generation, the most common configuration comes first.
    order = list(dict.fromkeys(generation for generation, _ in alike))
    kinds = sorted(alike.items(), key=lambda kind: (order.index(kind[0][0]), -len(kind[1])))
    shown = sorted(sorted(kinds, key=lambda kind: -len(kind[1]))[:MOST], key=kinds.index)
    rows = []
    for i, name in enumerate(names):
        counts_of: dict[str, Counter[str]] = defaultdict(Counter)
        for (generation, texts), members in kinds:
            counts_of[generation][texts[i]] += len(members)
        cells = tuple(Cell(texts[i], _odd(texts[i], counts_of[generation])) for (generation, texts), _ in shown)
        everywhere = {text for counts in counts_of.values() for text in counts}
        if everywhere != {""}:
            rows.append(Row(name, cells, len(everywhere) > 1))
    return SideBySide(
        columns=tuple((generation, tuple(members)) for (generation, _), members in shown),
        rows=tuple(rows),
        unseen=tuple(unseen),
        further=tuple(name for kind in kinds if kind not in shown for name in kind[1]),
    )


def texts_of(facts: Facts, written: Sequence[dict[Hashable, str]]) -> Iterator[str]:
    """Yield the text of each of ``ROWS``. ``written``: a cache of formatted texts for each row."""
    for (_, read, say), cache in zip(ROWS, written, strict=True):
        part = read(facts)
        if part not in cache:
            cache[part] = fmt.clean(say(part) or "")
        yield cache[part]


def _odd(text: str, counts: Counter[str]) -> bool:
    return len(counts) > 1 and counts[text] * 2 <= counts.total()


def _tally(things: Iterable[str]) -> str:
    """Return the items with their counts, such as ``2 × a, b``."""
    counts = Counter(things)
    return joined(joined([f"{n} ×", thing], " ") if n > 1 else thing for thing, n in counts.items())


def _join(*parts: str | None) -> str:
    return joined(parts, " ")


def _yes(value: bool | None) -> str:
    return "" if value is None else message("on") if value else message("off")


def _cores(sockets: int | None, cores: int | None, threads: int | None) -> str:
    return joined(
        [
            None if sockets is None else count(sockets, "socket"),
            None if cores is None else count(cores, "core"),
            None if threads is None else count(threads, "thread"),
        ]
    )


def _caches(caches: Sequence[Cache]) -> str:
    kinds = {"data": "d", "instruction": "i"}
    return ", ".join(
        f"L{c.level}{kinds.get(c.type, '')} {c.instances} × {fmt.size(c.size)}"
        for c in sorted(caches, key=lambda c: (c.level, c.type))
    )


def _dimms(dimms: Sequence[Dimm]) -> str:
    full = [d for d in dimms if d.size != 0]
    modules = _tally(
        _join(
            fmt.size(d.size) if d.size else "?",
            d.type,
            f"{d.configured_mts} MT/s" if d.configured_mts else None,
            message("(rated {rate})", rate=d.rated_mts) if d.rated_mts and d.rated_mts != d.configured_mts else None,
        )
        for d in full
    )
    empty = len(dimms) - len(full)
    return joined([modules, message("{slots} empty", slots=count(empty, "slot")) if empty else None], "; ")


def _disks(disks: Sequence[Disk]) -> str:
    return _tally(
        _join(
            d.model or d.name,
            human(d.size, "B") if d.size else None,
            d.transport,
            message("rotating") if d.rotational else None,
        )
        for d in disks
    )


_Link = tuple[str, float | None, int | None, str | None]  # driver or name, speed, MTU, state


def _nics(links: Iterable[_Link]) -> str:
    return _tally(
        _join(
            name,
            human(speed, "B/s", bits=True) if speed else None,
            f"MTU {mtu}" if mtu else None,
            state if state != "up" else None,
        )
        for name, speed, mtu, state in links
    )


def _gpus(gpus: Sequence[Gpu]) -> str:
    return _tally(
        _join(
            g.name,
            fmt.size(g.memory) if g.memory else None,
            f"PCIe {g.pcie_gen} x{g.pcie_width}" if g.pcie_gen and g.pcie_width else None,
            f"{g.power_limit:g} W" if g.power_limit else None,
        )
        for g in gpus
    )


def _torch(torch: Torch) -> str:
    """Return the version of torch, what it was built for, and the devices that it sees."""
    if torch.version is None:
        return ""
    devices = _tally(torch.names) or _join(torch.device, torch.isa)
    limit = f"ONEDNN_MAX_CPU_ISA={torch.onednn_isa}" if torch.onednn_isa else None
    return f"{torch.version} ({joined([torch.runtime, devices, limit])})"


def _slow_links(links: Sequence[PcieLink]) -> str:
    return joined(
        message(
            "{name} ({address}): {speed} of {best} GT/s, x{width} of x{widest}",
            name=p.name,
            address=p.address,
            speed=p.speed,
            best=p.max_speed,
            width=p.width,
            widest=p.max_width,
        )
        for p in links
        if _below(p.speed, p.max_speed) or _below(p.width, p.max_width)
    )


def _below(is_: float | None, could_be: float | None) -> bool:
    return is_ is not None and could_be is not None and is_ < could_be


def _clock(skew: float | None) -> str:
    if skew is None:
        return ""
    if abs(skew) <= 1:
        return message("within 1 s of the controller's")
    seconds = f"{abs(skew):.0f}"
    if skew > 0:
        return message("{seconds} s ahead of the controller's", seconds=seconds)
    return message("{seconds} s behind the controller's", seconds=seconds)


def _memory(size: int | None) -> str:
    # Equal hosts differ by a few pages that the kernel reserves.
    return f"{size / 2**30:,.0f} GiB" if size else ""


def _itself(text: str | None) -> str | None:
    return text


# A row's name, the part of the facts that it shows, and how to format this part.
ROWS: tuple[tuple[str, Callable[[Facts], Hashable], Callable[[Any], str | None]], ...] = (
    (message("Server"), lambda f: (f.vendor, f.product), lambda values: _join(*values)),
    (message("Virtualisation"), lambda f: f.virtualisation, _itself),
    (message("CPU"), lambda f: f.cpu.model, _itself),
    (message("Cores"), lambda f: (f.cpu.sockets, f.cpu.cores, f.cpu.threads), lambda values: _cores(*values)),
    (message("Maximum clock"), lambda f: f.cpu.max_hz, lambda hz: human(hz, "Hz") if hz else None),
    (message("Caches"), lambda f: f.cpu.caches, _caches),
    (message("NUMA"), lambda f: len(f.numa), lambda nodes: count(nodes, "node") if nodes else None),
    (message("Memory"), lambda f: f.memory, _memory),
    (message("DIMMs"), lambda f: f.dimms, _dimms),
    (message("Disks"), lambda f: f.disks, _disks),
    (message("Network"), lambda f: tuple((n.driver or n.name, n.speed, n.mtu, n.state) for n in f.nics), _nics),
    (message("GPUs"), lambda f: f.gpus, _gpus),
    (message("PyTorch"), lambda f: tuple(f.torch.values()), lambda values: _tally(filter(None, map(_torch, values)))),
    (message("PCIe below its best"), lambda f: f.pcie, _slow_links),
    (message("BIOS"), lambda f: f.bios, _itself),
    (message("Microcode"), lambda f: f.cpu.microcode, _itself),
    (message("System"), lambda f: f.os, _itself),
    (message("Kernel"), lambda f: f.kernel, _itself),
    (message("Governor"), lambda f: f.governor, _itself),
    (message("Boost"), lambda f: f.boost, _yes),
    (message("SMT"), lambda f: f.smt, _yes),
    (message("Transparent huge pages"), lambda f: f.thp, _itself),
    (message("Clock source"), lambda f: f.clocksource, _itself),
    (message("Clock"), lambda f: f.skew, _clock),
    (message("Mitigations"), lambda f: tuple(sorted(f.mitigations.items())), lambda m: "; ".join(map(": ".join, m))),
    (message("Working folder on"), lambda f: f.work_fs, _itself),
    (message("Tools absent"), lambda f: tuple(sorted(n for n, path in f.tools.items() if path is None)), ", ".join),
    (message("Could not be read"), lambda f: f.notes, "; ".join),
)
