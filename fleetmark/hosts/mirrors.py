"""Ask hosts whether they reach a mirror of their package manager, before anything is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.preflight import PARALLEL
from fleetmark.hosts.reach import Reach, ReachError

_TIMEOUT_S = 30.0
_LONGEST = 300  # characters of a reason


def silent_mirrors(hosts: Mapping[str, tuple[Reach, str]]) -> dict[str, str]:
    """Return the hosts that reach no mirror, each with the reason. ``hosts``: connection and system family by name.

    Only apt can be asked; hosts of other families are left out, as are hosts that give no answer.
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
