"""Recognise hosts that are in use: in production, under load, with other users at terminals, or with services. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from fleetmark.base.facts import Facts
from fleetmark.hosts.inventory import Host

PRODUCTION = "production"
_NO = ("", "0", "false", "no", "off", "none")
MOST_LOAD = 0.5  # maximum one-minute load per CPU; runnable threads decide too, as load outlasts a benchmark
MOST_RUNNING = 0.25  # maximum runnable threads per CPU at one moment
EPHEMERAL = 32_768  # the first port that Linux chooses by itself, for example for the NFS client's callbacks
MOST_NAMED = 8  # maximum number of ports or users in a sentence
# TCP ports of a server's own administration. docs/how-to/production.md lists them.
OWN_PORTS: Mapping[str, Collection[int]] = {
    "SSH": (22,),
    "mail": (25,),
    "rpcbind": (111,),
    "LLMNR of systemd-resolved": (5355,),
    "Slurm": (6817, 6818, 6819),
    "kubelet and kube-proxy": (10_250, 10_255, 10_256),
    "exporters of node and DCGM metrics, DCGM": (9100, 9400, 5555),
    "agents of Zabbix, Checkmk and NRPE": (10_050, 6556, 5666),
    "clients of Lustre and Storage Scale": (988, 1191),
}
_OWN_PORTS = frozenset(port for ports in OWN_PORTS.values() for port in ports)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def why_in_use(host: Host, facts: Facts, users: Sequence[str] = (), urls: Collection[str] = ()) -> str:
    """Return why Fleetmark needs the user's consent to use a host, as a phrase to follow its name; empty if it needs
    none.

    ``users``: the names of other users at terminals. ``urls``: endpoints to measure, whose services do not count. Users
    and services of this machine do not count, because its user started the command.
    """
    causes = [_production(host), _load(facts)]
    if host.connection != "local":
        causes += [
            _some("other users at terminals:", list(dict.fromkeys(users))),
            _some("services on TCP ports", [str(port) for port in foreign_ports(host, facts, urls)]),
        ]
    return "; ".join(filter(None, causes))


def foreign_ports(host: Host, facts: Facts, urls: Collection[str] = ()) -> list[int]:
    """Return the TCP ports of services that do not belong to a server's administration, nor to ``urls``."""
    names = {host.name, host.address, host.peer_address, *_LOOPBACK}
    split = [urlsplit(url) for url in urls]
    measured = {url.port or {"http": 80, "https": 443}.get(url.scheme) for url in split if url.hostname in names}
    known = _OWN_PORTS | {host.port or 22} | host.ignored_ports | measured
    return [port for port in facts.ports if port < EPHEMERAL and port not in known]


def _production(host: Host) -> str:
    """Return the mark that a host is in production, if it has one."""
    for name, value in host.labels.items():
        is_named = name.lower() == PRODUCTION and value.lower() not in _NO
        if is_named or value.lower() == PRODUCTION:
            return f"in production by the label {name}={value}"
    return f"in production by the inventory's group {PRODUCTION}" if PRODUCTION in host.groups else ""


def _load(facts: Facts) -> str:
    cpus = facts.cpu.threads
    if not cpus or facts.running is None or facts.load1 is None:
        return ""
    if facts.load1 > MOST_LOAD * cpus and facts.running > MOST_RUNNING * cpus:
        return f"busy (load {facts.load1:g}, runnable threads {facts.running}, CPUs {cpus})"
    return ""


def _some(title: str, names: Sequence[str]) -> str:
    """Return ``title`` with the first names; empty if there are none."""
    further = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{title} {', '.join(names[:MOST_NAMED])}{further}" if names else ""
