"""Connect to a host: this machine itself, or another one over SSH."""

from __future__ import annotations

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import LocalReach, Reach, ReachError


def connect(host: Host, timeout_s: float | None = None) -> Reach:
    """Return the connection to ``host``. The connection opens at its first use.

    ``timeout_s``: the connection timeout in seconds; the default is the user's ConnectTimeout, or 10 s. Raise
    ReachError if the host cannot be used.
    """
    if host.unusable:
        raise ReachError(f"{host.name}: {host.unusable}")
    if host.connection == "local":
        return LocalReach(host)
    from fleetmark.hosts.ssh.connection import SshReach  # imported at first use, because paramiko takes 0.15 s to load

    return SshReach(host, timeout_s)
