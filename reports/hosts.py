"""Hosts side by side: those that are configured alike share a column, and what differs is marked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fleetmark.facts import Facts
from fleetmark.results import HostInfo
from fleetmark.said import count, joined, said
from fleetmark.units import human
from reports import format as fmt

MOST = 12  # columns; further configurations are named, not shown


@dataclass(frozen=True, slots=True)
class Cell:
    """One fact of one configuration; ``odd`` where most hosts of its generation say something else."""

    text: str
    odd: bool


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    cells: tuple[Cell, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class SideBySide:
    """``columns`` are (generation, hosts alike); ``rows`` have a cell for each. ``unseen`` are hosts without facts,
    with the reason; ``further`` are hosts of configurations beyond MOST.
    """

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]
    unseen: tuple[tuple[str, str], ...]
    further: tuple[str, ...]


def side_by_side(hosts: Sequence[HostInfo]) -> SideBySide:
    """Compare the facts of ``hosts``, which come in the order in which they shall stand."""
    names = [name for name, _ in _ROWS]
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    unseen = []
    for host in hosts:
        if host.facts is None:
            unseen.append((host.name, host.reason or said("no facts were collected")))
            continue
        texts = tuple(fmt.clean(read(host.facts) or "") for _, read in _ROWS)
        alike[host.generation or "", texts].append(host.name)
    # Within a generation the most common configuration comes first.
    order = list(dict.fromkeys(generation for generation, _ in alike))
    kinds = sorted(alike.items(), key=lambda kind: (order.index(kind[0][0]), -len(kind[1])))
    shown = sorted(sorted(kinds, key=lambda kind: -len(kind[1]))[:MOST], key=kinds.index)
    rows = []
    for i, name in enumerate(names):
        said_by: dict[str, Counter[str]] = defaultdict(Counter)
        for (generation, own), members in kinds:
            said_by[generation][own[i]] += len(members)
        cells = tuple(Cell(own[i], _odd(own[i], said_by[generation])) for (generation, own), _ in shown)
        everywhere = {text for counts in said_by.values() for text in counts}
        if everywhere != {""}:
            rows.append(Row(name, cells, len(everywhere) > 1))
    return SideBySide(
        columns=tuple((generation, tuple(members)) for (generation, _), members in shown),
        rows=tuple(rows),
        unseen=tuple(unseen),
        further=tuple(name for kind in kinds if kind not in shown for name in kind[1]),
    )


def _odd(text: str, counts: Counter[str]) -> bool:
    return len(counts) > 1 and counts[text] * 2 <= counts.total()


def _tally(things: Iterable[str]) -> str:
    """``2 × a, b``."""
    counts = Counter(things)
    return joined(joined([f"{n} ×", thing], " ") if n > 1 else thing for thing, n in counts.items())


def _join(*parts: str | None) -> str:
    return joined(parts, " ")


def _yes(value: bool | None) -> str:
    return "" if value is None else said("on") if value else said("off")


def _cores(f: Facts) -> str:
    cpu = f.cpu
    return joined(
        [
            None if cpu.sockets is None else count(cpu.sockets, "socket"),
            None if cpu.cores is None else count(cpu.cores, "core"),
            None if cpu.threads is None else count(cpu.threads, "thread"),
        ]
    )


def _caches(f: Facts) -> str:
    kinds = {"data": "d", "instruction": "i"}
    return ", ".join(
        f"L{c.level}{kinds.get(c.type, '')} {c.instances} × {fmt.size(c.size)}"
        for c in sorted(f.cpu.caches, key=lambda c: (c.level, c.type))
    )


def _dimms(f: Facts) -> str:
    full = [d for d in f.dimms if d.size != 0]
    there = _tally(
        _join(
            fmt.size(d.size) if d.size else "?",
            d.type,
            f"{d.configured_mts} MT/s" if d.configured_mts else None,
            said("(rated {rate})", rate=d.rated_mts) if d.rated_mts and d.rated_mts != d.configured_mts else None,
        )
        for d in full
    )
    empty = len(f.dimms) - len(full)
    return joined([there, said("{slots} empty", slots=count(empty, "slot")) if empty else None], "; ")


def _disks(f: Facts) -> str:
    return _tally(
        _join(
            d.model or d.name,
            human(d.size, "B") if d.size else None,
            d.transport,
            said("rotating") if d.rotational else None,
        )
        for d in f.disks
    )


def _nics(f: Facts) -> str:
    return _tally(
        _join(
            n.driver or n.name,
            human(n.speed, "B/s", bits=True) if n.speed else None,
            f"MTU {n.mtu}" if n.mtu else None,
            n.state if n.state != "up" else None,
        )
        for n in f.nics
    )


def _gpus(f: Facts) -> str:
    return _tally(
        _join(
            g.name,
            fmt.size(g.memory) if g.memory else None,
            f"PCIe {g.pcie_gen} x{g.pcie_width}" if g.pcie_gen and g.pcie_width else None,
            f"{g.power_limit:g} W" if g.power_limit else None,
        )
        for g in f.gpus
    )


def _slow_links(f: Facts) -> str:
    return joined(
        said(
            "{name} ({address}): {speed} of {best} GT/s, x{width} of x{widest}",
            name=p.name,
            address=p.address,
            speed=p.speed,
            best=p.max_speed,
            width=p.width,
            widest=p.max_width,
        )
        for p in f.pcie
        if _below(p.speed, p.max_speed) or _below(p.width, p.max_width)
    )


def _below(is_: float | None, could_be: float | None) -> bool:
    return is_ is not None and could_be is not None and is_ < could_be


def _clock(f: Facts) -> str:
    if f.skew is None:
        return ""
    if abs(f.skew) <= 1:
        return said("within 1 s of the controller's")
    seconds = f"{abs(f.skew):.0f}"
    if f.skew > 0:
        return said("{seconds} s ahead of the controller's", seconds=seconds)
    return said("{seconds} s behind the controller's", seconds=seconds)


def _memory(f: Facts) -> str:
    # Hosts alike differ by some pages in what the kernel keeps for itself.
    return f"{f.memory / 2**30:,.0f} GiB" if f.memory else ""


def _numa(f: Facts) -> str:
    return count(len(f.numa), "node") if f.numa else ""


def _tools(f: Facts) -> str:
    return ", ".join(sorted(name for name, path in f.tools.items() if path is None))


_ROWS: tuple[tuple[str, Callable[[Facts], str | None]], ...] = (
    (said("Server"), lambda f: _join(f.vendor, f.product)),
    (said("Virtualisation"), lambda f: f.virtualisation),
    (said("CPU"), lambda f: f.cpu.model),
    (said("Cores"), _cores),
    (said("Maximum clock"), lambda f: human(f.cpu.max_hz, "Hz") if f.cpu.max_hz else None),
    (said("Caches"), _caches),
    (said("NUMA"), _numa),
    (said("Memory"), _memory),
    (said("DIMMs"), _dimms),
    (said("Disks"), _disks),
    (said("Network"), _nics),
    (said("GPUs"), _gpus),
    (said("PCIe below its best"), _slow_links),
    (said("BIOS"), lambda f: f.bios),
    (said("Microcode"), lambda f: f.cpu.microcode),
    (said("System"), lambda f: f.os),
    (said("Kernel"), lambda f: f.kernel),
    (said("Governor"), lambda f: f.governor),
    (said("Boost"), lambda f: _yes(f.boost)),
    (said("SMT"), lambda f: _yes(f.smt)),
    (said("Transparent huge pages"), lambda f: f.thp),
    (said("Clock source"), lambda f: f.clocksource),
    (said("Clock"), _clock),
    (said("Mitigations"), lambda f: "; ".join(f"{k}: {v}" for k, v in sorted(f.mitigations.items()))),
    (said("Working folder on"), lambda f: f.work_fs),
    (said("Tools absent"), _tools),
    (said("Could not be read"), lambda f: "; ".join(f.notes)),
)
