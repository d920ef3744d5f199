"""Build the sections of a test plan, with the same text in every format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Facts
from fleetmark.base.text import count, joined, message
from fleetmark.base.units import human
from fleetmark.campaign.prepare.dryrun import RECORD, DryRun, Install, PlannedCase, PlannedHost
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import FILES, Command, Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact
from fleetmark.workloads import load

MOST_NAMES = 6  # maximum number of host names in a cell


@dataclass(frozen=True, slots=True)
class Group:
    """Group hosts of one type that run the same cases. ``name``: the group number, or empty for a single group."""

    name: str
    hosts: tuple[PlannedHost, ...]

    @property
    def first(self) -> PlannedHost:
        return self.hosts[0]

    @property
    def seconds(self) -> float:
        return max(host.seconds for host in self.hosts)


def groups(dry: DryRun) -> list[Group]:
    """Return the reachable hosts grouped by type and by the cases that they run, in inventory order."""
    alike: dict[object, list[PlannedHost]] = defaultdict(list)
    for host in dry.hosts:
        if host.facts:
            runs = tuple((c.workload, c.case, c.repeats) for c in host.cases)
            alike[host.kind, runs, tuple(sorted((host.skipped or {}).items()))].append(host)
    return [Group(f"{n}" if len(alike) > 1 else "", tuple(hosts)) for n, hosts in enumerate(alike.values(), 1)]


def title(dry: DryRun) -> str:
    return message("Test plan: suite {suite} on {hosts}", suite=dry.suite.name, hosts=count(len(dry.hosts), "host"))


def sections(dry: DryRun) -> tuple[Section, ...]:
    """Return all sections of the plan in order. A terminal shows workloads, but not their cases."""
    listed = groups(dry)
    machines = (_machines(listed),) if listed else ()
    workloads = (_workloads(g, len(listed)) for g in listed)
    matrix: tuple[Exhibit, ...] = (
        (*map(Note, _precision(dry)), *(_matrix(g, len(listed)) for g in listed)) if listed else ()
    )
    start = Command(message("Start command"), fmt.typed(dry.command))
    return (
        Section("purpose", message("Purpose"), (*map(Note, _purpose(dry)), start)),
        Section("machines", message("Machines"), (*map(Note, _silent(dry)), *machines)),
        Section("workloads", message("Workloads"), (*map(Note, _order(dry)), *workloads)),
        Section("stop", message("Repeats and stop rules"), tuple(map(Note, _stop_rules(dry)))),
        *_missing(dry),
        Section("resources", message("Resources"), (*map(Note, _uses(listed)), *_resources(listed))),
        Section("matrix", message("Matrix"), matrix, FILES),
    )


def _purpose(dry: DryRun) -> Iterator[str]:
    yield dry.suite.description
    if dry.until:
        lasts = message(
            "It takes {least} to {most}.", least=fmt.duration(dry.seconds_least), most=fmt.duration(dry.seconds)
        )
    else:
        lasts = message("It takes about {time}.", time=fmt.duration(dry.seconds))
    yield lasts
    if len(dry.hosts) > 1:
        yield message(
            "Hosts run in parallel; one after another, they would take {time}.",
            time=fmt.duration(sum(host.seconds for host in dry.hosts)),
        )
    if _installs(dry.hosts):
        yield message("The first run also takes time to install tools.")


def _silent(dry: DryRun) -> Iterator[str]:
    for host in dry.hosts:
        if not host.facts:
            yield message("{host} does not answer: {reason}", host=fmt.clean(host.host.name), reason=host.reason or "")


def _machines(listed: Sequence[Group]) -> Tabular:
    columns = (
        Column("group", message("group"), "name"),
        Column("hosts", message("hosts")),
        Column("number", message("number"), "number"),
        Column("processors", message("processors")),
        Column("memory", message("memory"), "number"),
        Column("gpus", message("GPUs")),
        Column("system", message("system")),
        Column("time", message("time"), "number"),
    )
    rows = tuple(
        (
            Cell(group.name),
            Cell(_names(group.hosts)),
            Cell(str(len(group.hosts)), len(group.hosts)),
            *_machine(group.first.facts),
            Cell(fmt.duration(group.seconds), group.seconds, "s"),
        )
        for group in listed
    )
    return compact(Tabular("machines", message("Machines by type"), columns, rows))


def _machine(facts: Facts | None) -> tuple[Cell, Cell, Cell, Cell]:
    assert facts
    cpu = facts.cpu
    cores = message("{cores} cores", cores=cpu.cores) if cpu.cores else None
    names = defaultdict[str, int](int)
    for gpu in facts.gpus:
        names[gpu.name] += 1
    memory = Cell(fmt.size(facts.memory), facts.memory, "B") if facts.memory else Cell()
    accelerators = ", ".join(f"{number} × {fmt.clean(name)}" for name, number in names.items())
    return (
        Cell(joined([fmt.clean(cpu.model or ""), cores])),
        memory,
        Cell(accelerators),
        Cell(fmt.clean(facts.os or "")),
    )


def _order(dry: DryRun) -> Iterator[str]:
    yield message("Each host runs the workloads one at a time, in this order.")
    if any(host.network_s for host in dry.hosts):
        yield message("Runs on two hosts start when both hosts are ready.")
    if not any(host.cases for host in dry.hosts):
        yield message("There is nothing to run.")


def _workloads(group: Group, number: int) -> Tabular:
    columns = (
        Column("workload", message("workload"), "name"),
        Column("measures", message("description")),
        Column("cases", message("cases"), "number"),
        Column("repeats", message("repeats"), "number"),
        Column("time", message("time"), "number"),
        Column("source", message("time estimated from")),
    )
    cases_by_workload: dict[str, list[PlannedCase]] = defaultdict(list)
    for case in group.first.cases:
        cases_by_workload[case.workload].append(case)
    rows = []
    for workload, cases in cases_by_workload.items():
        seconds = sum(case.seconds * case.runs for case in cases)
        repeats = sorted({case.repeats for case in cases})
        rows.append(
            (
                Cell(workload),
                Cell(load(workload).title),
                Cell(str(len(cases)), len(cases)),
                Cell("–".join(map(str, dict.fromkeys((repeats[0], repeats[-1])))), repeats[-1]),
                Cell(fmt.duration(seconds), seconds, "s"),
                Cell(_sources(cases)),
            )
        )
    return Tabular("workloads", _of_group(group, number), columns, tuple(rows))


def _of_group(group: Group, number: int) -> str:
    names = _names(group.hosts)
    return message("Group {name}: {hosts}", name=group.name, hosts=names) if number > 1 else names


def _sources(cases: Sequence[PlannedCase]) -> str:
    recorded = sum(case.source == RECORD for case in cases)
    if recorded == len(cases):
        return message("earlier runs")
    return message("the manifest") if not recorded else message("partly earlier runs")


def _stop_rules(dry: DryRun) -> Iterator[str]:
    yield message(
        "Each repeat runs every case of a workload once, in a new random order (randomised complete block design; "
        "seed {seed}).",
        seed=dry.seed,
    )
    if dry.until:
        yield message(
            "A case stops when the 95% interval of its median is within {width}, after {least} to {most} repeats.",
            width=fmt.percent(dry.until.ci),
            least=dry.until.minimum,
            most=dry.until.maximum,
        )
        yield message("If the interval is still wider after the last repeat, the case counts as unstable.")
    yield message("A run that exceeds its time limit fails, and the next run starts.")
    yield message("If a host becomes unreachable, the others continue; resume the campaign to run its missing cases.")


def _missing(dry: DryRun) -> Iterator[Section]:
    skipped: dict[tuple[str, str], list[PlannedHost]] = defaultdict(list)
    unmet: dict[tuple[str, str], list[PlannedHost]] = defaultdict(list)
    for host in dry.hosts:
        for entry, reason in (host.skipped or {}).items():
            skipped[entry, reason].append(host)
        for refused in host.refused:
            skipped[f"{refused.workload} {refused.case}", refused.reason].append(host)
        for entry, condition in (host.unmet or {}).items():
            unmet[entry, condition].append(host)
    head = (Column("workload", message("workload"), "name"), Column("hosts", message("hosts")))
    if skipped:
        rows = tuple((Cell(entry), Cell(_names(hosts)), Cell(reason)) for (entry, reason), hosts in skipped.items())
        columns = (*head, Column("needs", message("requirement")))
        table = Tabular("skipped", message("Skipped workloads"), columns, rows)
        yield Section("skipped", message("Skipped"), (table,))
    if unmet:
        rows = tuple((Cell(entry), Cell(_names(hosts)), Cell(condition)) for (entry, condition), hosts in unmet.items())
        columns = (*head, Column("where", message("condition")))
        table = Tabular("unmet", message("Workloads for other hosts"), columns, rows)
        yield Section("unmet", message("Workloads that do not apply"), (table,))


def _uses(listed: Sequence[Group]) -> Iterator[str]:
    if listed:
        yield message("Disk: maximum space that test files use at any time. Network: maximum data sent over the link.")


def _resources(listed: Sequence[Group]) -> Iterator[Tabular]:
    columns = (
        Column("group", message("group"), "name"),
        Column("place", message("work directory")),
        Column("disk", message("disk"), "number"),
        Column("busy", message("network time"), "number"),
        Column("network", message("network"), "number"),
    )
    rows = []
    for group in listed:
        widest = max(group.hosts, key=lambda host: host.network_s)
        disk = max(host.disk for host in group.hosts)
        network = widest.network if widest.network_s else None
        rows.append(
            (
                Cell(group.name),
                Cell(fmt.clean(group.first.facts.work_dir if group.first.facts else "")),
                Cell(fmt.size(disk) if disk else "", disk, "B"),
                Cell(fmt.duration(widest.network_s) if widest.network_s else "", widest.network_s, "s"),
                Cell(human(network, "B") if network else "", network, "B"),
            )
        )
    if listed:
        yield compact(Tabular("resources", message("Disk and network of each host"), columns, tuple(rows)))
    hosts = [host for group in listed for host in group.hosts]
    if installs := _installs(hosts):
        titles = (
            message("workload"),
            message("hosts"),
            message("distribution packages, if missing"),
            message("path under tools"),
        )
        keys = ("workload", "hosts", "packages", "path")
        heads = tuple(Column(k, t, "name" if k == "workload" else "text") for k, t in zip(keys, titles, strict=True))
        lines = tuple(
            (
                Cell(install.workload),
                Cell(_names(hosts)),
                Cell(", ".join(install.packages)),
                Cell(install.provides if "/" in install.provides else ""),
            )
            for install, hosts in installs.items()
        )
        yield compact(Tabular("installs", message("Software to install"), heads, lines))


def _installs(hosts: Sequence[PlannedHost]) -> dict[Install, list[PlannedHost]]:
    hosts_by_install: dict[Install, list[PlannedHost]] = defaultdict(list)
    for host in hosts:
        for install in host.installs:
            hosts_by_install[install].append(host)
    return hosts_by_install


def _precision(dry: DryRun) -> Iterator[str]:
    if dry.until:
        return
    yield message("±: expected half-width of the 95% interval for a host's mean.")
    if any(case.spread_source not in ("", RECORD) for host in dry.hosts for case in host.cases):
        yield message("* based on the workload's typical spread; others are based on earlier runs on similar hosts.")


def _matrix(group: Group, number: int) -> Tabular:
    columns = (
        Column("workload", message("workload"), "name"),
        Column("case", message("case"), "name"),
        Column("repeats", message("repeats"), "number"),
        Column("runs", message("runs"), "number"),
        Column("seconds", message("time per run"), "number"),
        Column("half_width", message("±"), "number"),
    )
    rows = []
    for case in group.first.cases:
        star = "*" if case.spread_source not in ("", RECORD) else ""
        width = "" if case.half_width is None else f"{fmt.percent(case.half_width)}{star}"
        rows.append(
            (
                Cell(case.workload),
                Cell(case.case),
                Cell(str(case.repeats), case.repeats),
                Cell(str(case.runs), case.runs),
                Cell(fmt.duration(case.seconds), case.seconds, "s"),
                Cell(width, case.half_width),
            )
        )
    return Tabular("matrix", _of_group(group, number), columns, tuple(rows))


def _names(hosts: Sequence[PlannedHost]) -> str:
    names = [fmt.clean(host.host.name) for host in hosts]
    more = [message("and {n} more", n=len(names) - MOST_NAMES)] if len(names) > MOST_NAMES else []
    return joined([*names[:MOST_NAMES], *more])
