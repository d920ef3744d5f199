"""Check, before a deployment, whether hosts can reach a mirror of their package manager."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.preflight import PARALLEL
from fleetmark.hosts.reach import Reach, ReachError

_TIMEOUT_S = 30.0
_LONGEST = 300  # maximum length of a reason in characters


def silent_mirrors(hosts: Mapping[str, tuple[Reach, str]]) -> dict[str, str]:
    """Return the hosts that cannot reach a mirror, each with the reason. ``hosts``: connection and system family by
    host name.

    Only hosts with apt are checked. Hosts of other families and hosts that do not answer are omitted.
    """
    script = (PLAYBOOKS / "roles" / "packages" / "files" / "mirror.sh").read_bytes()

    def reason(host: tuple[Reach, str]) -> str:
        reach, family = host
        try:
            return reach.run(["/bin/sh", "-s", family], script, _TIMEOUT_S).out.decode(errors="replace").strip()
        except ReachError:
            return ""

    with ThreadPoolExecutor(PARALLEL) as pool:
        reasons = zip(hosts, pool.map(reason, hosts.values()), strict=True)
        return {name: " ".join(text.split())[:_LONGEST] for name, text in reasons if text}
