"""Run one round of the watch: query the hosts, measure a share of the idle ones, and evaluate the campaign."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count
from fleetmark.base.visible import visible
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.hosts.agent import agent_module
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.record import watched
from fleetmark.record.archive import Archive, safe_name, utc
from fleetmark.record.watched import HostState, WatchState
from fleetmark.reports.kit.openmetrics import Family, render
from fleetmark.verbs.watch import judging, metrics, probe, webhook, windows
from fleetmark.verbs.watch.probe import Counts, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchQuestion:
    """The options of a watch.

    ``options``: the options of the campaigns; their root is the record. ``most_load``: the load per CPU above which a
    host is busy. ``share``: the share of hosts to measure per round. ``least``: the smallest loss to report, by class
    of metrics. ``webhook``: the URL, which is secret.
    """

    options: Options
    windows: tuple[windows.Window, ...] = ()
    share: float = 1.0
    most_load: float = 0.1
    allows_sessions: bool = False
    rules: Path | None = None
    reference: str | None = None
    least: Mapping[str, float] | None = None
    webhook: str | None = None


def run(question: WatchQuestion, console: Console, judged: Sequence[Family] = ()) -> tuple[bool, Sequence[Family]]:
    """Run a round, and store its state and metrics.

    ``judged``: the metrics from the last round that measured. Return whether no finding is open, and
    the metrics from this round. Raise FleetmarkError if the inventory or the state of the watch cannot be
    read.
    """
    root = question.options.root
    state = watched.load(root)
    hosts = load_inventory(list(question.options.inventory), question.options.limit)
    known = {name: host.last for name, host in state.hosts.items()}
    readings = probe.ask(hosts, known, question.options.connect_timeout_s)
    lines = _take(state, readings)
    idle = _idle(question, state, hosts, readings, console)
    before = list(state.findings)
    is_open = windows.is_open(question.windows, datetime.now().astimezone().time())
    names = windows.chosen(idle, {n: h.measured for n, h in state.hosts.items()}, _share(question, hosts, idle))
    if not is_open:
        _say(console, "outside all windows: only counters were read")
    elif names:
        try:
            judged = _measure(question, state, names, console)
        except FleetmarkError as error:
            state.failures += 1
            _say(console, f"the campaign could not run: {error}")
            lines.append(f"The watch could not measure: {error}")
    if not judged and state.last:  # with a timer, each round is a new process
        with contextlib.suppress(FleetmarkError):
            last = Archive.open(root / state.last)
            judged = judging.judge(last, root, question.rules, question.reference, question.least).families
    state.rounds += 1
    lines += judging.news(before, state.findings)
    for line in lines:
        _say(console, line)
    _tell(question, state, lines, console)
    watched.save(root, state, render(metrics.families(state, judged, time.time())))
    return not state.findings, judged


def _share(question: WatchQuestion, hosts: Sequence[Host], idle: Sequence[str]) -> float:
    """Return the share of the idle hosts that corresponds to the requested share of all hosts."""
    maximum = math.ceil(question.share * len(hosts))
    return min(1.0, maximum / len(idle)) if idle else 0.0


def _take(state: WatchState, readings: dict[str, Reading]) -> list[str]:
    """Store the readings, and return a line for each new error. Forget hosts that are no longer in the inventory."""
    lines: list[str] = []
    quiet = agent_module("nic_counters").KEPT  # congestion appears in metrics, but is not a fault of a host
    state.hosts = {name: state.hosts.get(name, HostState()) for name in readings}
    state.findings = [f for f in state.findings if not any(f.hosts) or set(f.hosts) & set(readings)]
    for name, reading in readings.items():
        host = state.hosts[name]
        if reading.problem:
            continue
        is_same = host.boot == reading.boot
        if is_same:
            lines += [line for line in _grown(name, host.counters, reading.counters) if not quiet.search(line)]
            lines += _narrower(name, host.gauges, reading.gauges)
        if host.boot:  # the first reading includes events from before the watch
            lines += [
                f"{name}: {event} {device} ({number:.0f} in the kernel log)"
                for event, devices in reading.events.items()
                for device, number in devices.items()
            ]
        for event, devices in reading.events.items():
            totals = host.events.setdefault(event, {})
            for device, number in devices.items():
                totals[device] = totals.get(device, 0.0) + number
        host.counters, host.gauges, host.boot, host.last = (
            reading.counters,
            reading.gauges,
            reading.boot,
            reading.last,
        )
    return lines


def _grown(name: str, before: Counts, after: Counts) -> list[str]:
    return [
        f"{name}: {device}: {counter} +{value - before.get(device, {}).get(counter, 0.0):.0f}"
        for device, counts in after.items()
        for counter, value in counts.items()
        if device in before and value > before[device].get(counter, 0.0)
    ]


def _narrower(name: str, before: Counts, after: Counts) -> list[str]:
    widths = ((device, values.get("link_width", 0.0)) for device, values in after.items())
    return [
        f"{name}: {device}: the link fell from x{before[device]['link_width']:.0f} to x{width:.0f}"
        for device, width in widths
        if width < before.get(device, {}).get("link_width", 0.0)
    ]


def _idle(
    question: WatchQuestion, state: WatchState, hosts: Sequence[Host], readings: dict[str, Reading], console: Console
) -> list[str]:
    idle = []
    for host in hosts:
        reading = readings[host.name]
        reason = reading.busy(question.most_load, question.allows_sessions)
        state.hosts[host.name].status = "unreachable" if reading.problem else "busy" if reason else "idle"
        if reason:
            _say(console, f"{host.name}: left out: {reason}")
        else:
            idle.append(host.name)
    return idle


def _measure(question: WatchQuestion, state: WatchState, names: Sequence[str], console: Console) -> Sequence[Family]:
    """Run a campaign on these hosts and evaluate it. Return its metric families."""
    options = question.options
    limit = ",".join(names) if options.inventory else None
    _say(console, f"measuring {count(len(names), 'host')}: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}")
    archive, interrupted = campaign.run(replace(options, limit=limit), console)
    archive.close()
    if interrupted:
        raise KeyboardInterrupt
    state.campaigns += 1
    state.last = archive.id
    measured = _measured(archive, names)
    for name in measured:
        state.hosts[name].measured = utc()
    judgement = judging.judge(archive, options.root, question.rules, question.reference, question.least)
    for problem in judgement.problems:
        _say(console, problem)
    state.findings = judging.merged(state.findings, judgement, measured)
    return judgement.families


def _measured(archive: Archive, names: Sequence[str]) -> set[str]:
    """Return the hosts with raw files of a finished step."""
    folders = {folder.relative_to(archive.path).parts[1] for folder, _ in archive.steps()}
    return {name for name in names if safe_name(name) in folders}


def _tell(question: WatchQuestion, state: WatchState, lines: Sequence[str], console: Console) -> None:
    """Post the lines, after those that earlier rounds could not post."""
    if question.webhook is None:
        return
    waiting = [*state.unsent, *lines][-1000:]
    reason = webhook.post(question.webhook, waiting) if waiting else None
    state.unsent = waiting if reason else []
    if reason:
        _say(console, f"webhook: {reason}; the next round tries again")


def _say(console: Console, line: str) -> None:
    console.print(unwrapped(visible(line), ""))
