"""Recognise hosts that are in use: hosts in production, and busy hosts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from fleetmark.base.facts import Facts
from fleetmark.hosts.inventory import Host

PRODUCTION = "production"
_NO = ("", "0", "false", "no", "off", "none")
MOST_LOAD = 0.5  # maximum one-minute load per CPU; runnable threads decide too, as load outlasts a benchmark
MOST_RUNNING = 0.25  # maximum runnable threads per CPU at one moment
EPHEMERAL = 32_768  # the first port that Linux chooses by itself, for example for the NFS client's callbacks
MOST_NAMED = 8  # maximum number of ports in a sentence
# Ports of a server's own administration: SSH, mail, rpcbind, Slurm, node and DCGM exporters, kubelet.
OWN_PORTS = frozenset({22, 25, 111, 6817, 6818, 6819, 9100, 9400, 10_250})


def why_busy(host: Host, facts: Facts) -> str:
    """Return why Fleetmark needs the user's consent to use a host, as a phrase to follow its name; empty if it needs
    none.
    """
    if label := _production(host.labels):
        return f"in production by the label {label}"
    if PRODUCTION in host.groups:
        return f"in production by the inventory's group {PRODUCTION}"
    cpus = facts.cpu.threads
    if not cpus or facts.running is None or facts.load1 is None:
        return ""
    if facts.load1 > MOST_LOAD * cpus and facts.running > MOST_RUNNING * cpus:
        return f"busy (load {facts.load1:g}, runnable threads {facts.running}, CPUs {cpus})"
    return ""


def other_users(host: Host, facts: Facts) -> str:
    """Return who else uses a host, as a phrase to follow its name; empty if no other user is known."""
    known = OWN_PORTS | {host.port or 22}
    ports = [port for port in facts.ports if port < EPHEMERAL and port not in known]
    parts = []
    if facts.sessions:
        parts.append(f"users at a terminal: {facts.sessions}")
    if ports:
        further = f" and {len(ports) - MOST_NAMED} more" if len(ports) > MOST_NAMED else ""
        parts.append(f"TCP ports of services: {', '.join(map(str, ports[:MOST_NAMED]))}{further}")
    return f"others use it ({'; '.join(parts)}), and a benchmark may slow them down" if parts else ""


def _production(labels: Mapping[str, str]) -> str:
    """Return the label that marks a host as being in production, as NAME=VALUE."""
    for name, value in labels.items():
        is_named = name.lower() == PRODUCTION and value.lower() not in _NO
        if is_named or value.lower() == PRODUCTION:
            return f"{name}={value}"
    return ""
