"""Query the load and the error counters of hosts with one short command on each, without root."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.visible import visible
from fleetmark.hosts.agent import agent_source
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host

AT_ONCE = 32  # maximum concurrent hosts
TIMEOUT_S = 30.0
MOST_DEVICES, MOST_NAMES = 2000, 200
MOST_TEXT = 200  # maximum characters of a name
Counts = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One host's answer. ``problem``: why it did not answer. ``load``: the one-minute load average per CPU."""

    problem: str = ""
    load: float = 0.0
    sessions: int = 0
    boot: str = ""
    last: int = -1
    counters: Counts = field(default_factory=dict)
    gauges: Counts = field(default_factory=dict)
    events: Counts = field(default_factory=dict)

    def busy(self, most_load: float, allows_sessions: bool) -> str:
        """Return why the host must not be measured now; empty if it is idle."""
        if self.problem:
            return self.problem
        if self.load > most_load:
            return f"load of {self.load:.2f} per CPU"
        if self.sessions and not allows_sessions:
            return f"{self.sessions} logged in"
        return ""


def program(after: int) -> bytes:
    """Return the program that prints a reading. It counts only kernel messages with a number above ``after``."""
    texts = {name: agent_source(f"{name}.py").decode() for name in ("nic_counters", "usage", "collector")}
    return (
        f"import json,sys,types\nfor name,text in {texts!r}.items():\n"
        " m=sys.modules[name]=types.ModuleType(name)\n exec(compile(text,name+'.py','exec'),m.__dict__)\n"
        f"print('FLEETMARK'+json.dumps(m.collect(after={after:d})))\n"
    ).encode()


def ask(hosts: Sequence[Host], known: dict[str, int], timeout_s: float | None) -> dict[str, Reading]:
    """Return a reading of each host by name.

    ``known``: the number of the last kernel message that each host reported.
    """

    def one(host: Host) -> Reading:
        return _reading(host, known.get(host.name, -1), timeout_s)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip([h.name for h in hosts], pool.map(one, hosts), strict=True))


def _reading(host: Host, after: int, timeout_s: float | None) -> Reading:
    if host.unusable:
        return Reading(problem=host.unusable)
    try:
        reach = connect(host, timeout_s)
        try:
            python = host.python if host.python and host.python.startswith("/") else "python3"
            ran = reach.run([python, "-"], program(after), TIMEOUT_S)
        finally:
            reach.close()
    except (FleetmarkError, OSError, TimeoutError) as error:
        return Reading(problem=str(error))
    return parsed(ran.out) if ran.rc == 0 else Reading(problem=f"python3 failed with status {ran.rc}")


def parsed(out: bytes) -> Reading:
    """Return the reading in a host's output. Names and values are checked, because a host may print anything."""
    line = next((line for line in reversed(out.splitlines()) if line.startswith(b"FLEETMARK{")), b"")
    try:
        answer = json.loads(line.removeprefix(b"FLEETMARK"))
        load, cpus = float(answer["load"]), int(answer["cpus"])
        if not (0 <= load < 1e6 and 0 < cpus < 1e6):
            raise ValueError
        return Reading(
            load=load / cpus,
            sessions=int(answer["sessions"]),
            boot=str(answer["boot"])[:MOST_TEXT],
            last=int(answer["last"]),
            counters=_counts(answer["counters"]),
            gauges=_counts(answer["gauges"]),
            events=_counts(answer["events"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return Reading(problem="sent an invalid answer")


def _counts(answer: Any) -> Counts:
    def cut(items: Iterable[tuple[str, Any]], limit: int) -> list[tuple[str, Any]]:
        return [(" ".join(visible(name[:MOST_TEXT]).split()), value) for name, value in list(items)[:limit]]

    return {
        device: {n: float(v) for n, v in cut(values.items(), MOST_NAMES) if 0 <= float(v) < 2**53}
        for device, values in cut(answer.items(), MOST_DEVICES)
    }
