"""Before anything is installed: which hosts answer, and their facts. A dead host costs its timeout once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.runtime import raise_open_file_limit
from fleetmark.hosts.agent import agent_source
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import Reach
from fleetmark.hosts.ssh.target import UnknownKey
from parsers.facts import load, normalise

PARALLEL = 64
FACTS_TIMEOUT_S = 60.0
WORK_DIR = "/var/tmp"  # Fleetmark uses fleetmark-UID below it; it survives a reboot, which /tmp may not

_PLAIN_PATH = re.compile(r"/[\w./+@:~-]+", re.ASCII)

# The first suitable Python reads the agent's program from stdin; platform-python is RHEL 8's. An older one does not
# read stdin and ends with 126; then the next is tried. A separate check would start one more Python on every host.
_FIND_PYTHON = """
run='import sys
if sys.version_info < (3, 6): sys.exit(126)
exec(compile(sys.stdin.read(), "facts.py", "exec"))'
for p in "$1" python3 /usr/bin/python3 /usr/libexec/platform-python; do
  [ -n "$p" ] && command -v "$p" >/dev/null 2>&1 || continue
  "$p" -c "$run" "$2"
  status=$?
  [ $status = 126 ] || exit $status
done
echo "no Python 3.6 or later" >&2; exit 127
"""


@dataclass(frozen=True, slots=True)
class Checked:
    """One host after the preflight: its facts, or the reason why there are none. ``reach`` stays open."""

    host: Host
    reach: Reach | None = None
    facts: Facts | None = None
    raw: dict[str, Any] | None = None
    reason: str | None = None
    unknown_key: UnknownKey | None = None


def check_hosts(
    hosts: Sequence[Host],
    probes: Sequence[str],
    *,
    pythons: Sequence[str] = (),
    containers: Sequence[str] = (),
    work_dir: str = WORK_DIR,
    timeout_s: float = 10.0,
    heard: Callable[[Checked], None] = lambda _: None,
    connected: Callable[[Host, float], Reach] = connect,
) -> list[Checked]:
    """Facts of every host, in the order of ``hosts``; ``heard`` is called as each answers or fails. ``pythons``: what
    is asked about its torch there; ``containers``: images that are looked for. ``connected``: the reach of a
    host, with the seconds that connecting may take.
    """
    options: dict[str, Any] = {"probe": list(probes), "work": f"{work_dir.rstrip('/')}/fleetmark-{{uid}}"}
    if pythons or containers:
        options |= {"torch": list(pythons), "containers": list(containers)}
        options |= {"interpreter": agent_source("interpreter.py").decode()}

    def one(host: Host) -> Checked:
        checked = _check(host, json.dumps(options), timeout_s, connected)
        heard(checked)
        return checked

    raise_open_file_limit()
    with ThreadPoolExecutor(max_workers=min(PARALLEL, len(hosts) or 1)) as pool:
        return list(pool.map(one, hosts))


def _check(host: Host, options: str, timeout_s: float, connected: Callable[[Host, float], Reach]) -> Checked:
    reach = None
    try:
        reach = connected(host, timeout_s)
        argv = ["sh", "-c", _FIND_PYTHON, "sh", host.python or "", options]
        ran = reach.run(argv, stdin=agent_source("facts.py"), timeout=FACTS_TIMEOUT_S, sudo=host.become)
        now = time.time()
        if ran.rc != 0:
            words = ran.err.decode(errors="replace").strip().splitlines() or [f"exit status {ran.rc}"]
            hint = "; install python3 or set ansible_python_interpreter" if ran.rc == 127 else ""
            raise FleetmarkError(f"{words[-1]}{hint}")
        doc = load(ran.out.strip().rpartition(b"\n")[2])  # a login script may have printed lines before
        for path in (doc["python"], doc["work"]):  # they become Ansible variables, which Ansible evaluates
            if not _PLAIN_PATH.fullmatch(path):
                raise FleetmarkError(f"it names a path that Fleetmark does not trust: {path!r}")
        facts = normalise(doc, skew=doc["time"] - now, root=doc["euid"] == 0, work_dir=doc["work"])
    except FleetmarkError as error:
        if reach:
            reach.close()
        unknown = error if isinstance(error, UnknownKey) else None
        return Checked(host, reason=" ".join(str(error).split()).removeprefix(f"{host.name}: "), unknown_key=unknown)
    return Checked(host, reach, facts, doc)
