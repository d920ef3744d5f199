"""Connect to a host: this machine itself, or another one over SSH."""

from __future__ import annotations

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import LocalReach, Reach, ReachError


def connect(host: Host, timeout_s: float | None = None) -> Reach:
    """Return the connection to ``host``, which opens at the first use.

    ``timeout_s`` limits connecting, in seconds; without it the user's ConnectTimeout does, or 10 s. Raise ReachError
    for a host that cannot be used.
    """
    if host.unusable:
        raise ReachError(f"{host.name}: {host.unusable}")
    if host.connection == "local":
        return LocalReach(host)
    from fleetmark.hosts.ssh.connection import SshReach  # here, since paramiko takes 0.15 s to load

    return SshReach(host, timeout_s)
