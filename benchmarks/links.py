"""Measure how long SSH takes between this machine and hosts, for the delays that tests/swarm simulates.

``python -m benchmarks.links [--hosts 8] [--rounds 5]`` (root): namespace hosts with a real sshd, over the controller's own
connections. Seconds from the wish to connect until a process runs there, all hosts at once; seconds that a line takes
there and back; both over links as they are and over links that lose packets; seconds until the loss of a host is seen,
whose sshd was killed and whose power was cut.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host, load_inventory
from fleetmark.hosts.reach import Channel, LinkLost, Reach
from tests.fleet.hosts import Fleet

MESSAGES = 100  # there and back, of each connection
LOSS = 2  # per cent of the packets that a host receives
AT = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'':34}" + "".join(f"{f'p{100 * q:g}':>9}" for q in AT) + "     load")
    with Fleet(options.hosts) as fleet:
        hosts = load_inventory([str(fleet.inventory)], None)
        for loss in (0, LOSS):
            for name in fleet.names:
                fleet.loss(name, loss)
            for label, values in zip(("connect, s", "there and back, s"), _links(hosts, options.rounds), strict=True):
                _show(f"{label}, {loss}% of packets lost", values)
        for name in fleet.names:
            fleet.loss(name, 0)
        _show("sshd is killed: seen after, s", [_until_lost(fleet, host, "killed") for host in hosts[:2]])
        _show("power is cut: seen after, s", [_until_lost(fleet, host, "off") for host in hosts[2:4]])


def _links(hosts: Sequence[Host], rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each connection, and of each line's round trip."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        done = list(chain.from_iterable(pool.map(_link, hosts) for _ in range(rounds)))
    return [connected for connected, _ in done], [s for _, lines in done for s in lines]


def _link(host: Host) -> tuple[float, list[float]]:
    began = time.perf_counter()
    reach, channel = _opened(host)
    with reach:
        connected = time.perf_counter() - began
        lines = []
        for _ in range(MESSAGES):
            sent = time.perf_counter()
            _echo(channel)
            lines.append(time.perf_counter() - sent)
    return connected, lines


def _opened(host: Host) -> tuple[Reach, Channel]:
    """Return a connection, and a process at its other end that has answered."""
    reach = connect(host, 60.0)
    channel = reach.open(["cat"])
    _echo(channel)
    return reach, channel


def _echo(channel: Channel) -> None:
    channel.write(b'{"e": "begin", "step": "12"}\n')
    channel.readline(timeout=60.0)


def _until_lost(fleet: Fleet, host: Host, manner: str) -> float:
    """Return the seconds until a reader that waits for a host is notified."""
    reach, channel = _opened(host)
    with reach:
        began = time.perf_counter()
        if manner == "off":
            fleet.power_off(host.name)
        else:
            fleet.exec(host.name, ["pkill", "-9", "sshd"], check=False)
        try:
            channel.readline(timeout=120.0)
        except LinkLost:
            return time.perf_counter() - began
    raise SystemExit(f"{host.name}: its loss was not seen")


def _show(label: str, values: Sequence[float]) -> None:
    ordered = sorted(values)
    cells = "".join(f"{ordered[round(q * (len(ordered) - 1))]:9.4f}" for q in AT)
    print(f"{label:34}{cells} {os.getloadavg()[0]:8.1f}", flush=True)


if __name__ == "__main__":
    main()
