"""Check before installing anything which hosts answer, and collect their facts. A dead host costs one timeout.

A run does not wait for a few late hosts. Once 90% of the hosts have answered, the others get three times the time taken
so far, but at least LATE_S seconds after the start.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts, printable
from fleetmark.base.runtime import raise_open_file_limit
from fleetmark.hosts.agent import agent_source
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import Reach
from fleetmark.hosts.session import Session
from fleetmark.hosts.ssh.target import UnknownKey
from fleetmark.parsers.facts import load, normalise

PARALLEL = 64
FACTS_TIMEOUT_S = 60.0
LATE_S = 5.0  # seconds after the start before a host can be late,
LATE_TIMES = 3.0  # and the multiple of the time in which
LATE_SHARE = 0.9  # in which this fraction of the hosts answered
WORK_DIR = "/var/tmp"  # parent of the folder fleetmark-UID; unlike /tmp, it survives a reboot

_PLAIN_PATH = re.compile(r"/[\w./+@:~-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A host after the preflight, with its facts or the reason why it has none.

    ``reach`` stays open, as does the ``session`` that reported the facts, if the caller wants it and the connection
    supports it. ``late``: the pending answer of a host that was not awaited. ``users``: the names of other users at
    terminals, which no archive stores.
    """

    host: Host
    reach: Reach | None = None
    facts: Facts | None = None
    raw: dict[str, Any] | None = None
    reason: str | None = None
    unknown_key: UnknownKey | None = None
    session: Session | None = None
    late: Future[Checked] | None = None
    users: tuple[str, ...] = ()

    def close(self) -> None:
        """Close the session and the connection; processes on the host continue."""
        if self.session:
            self.session.close()
        if self.reach:
            self.reach.close()
        if self.late:
            self.late.add_done_callback(lambda answered: answered.result().close())


def check_hosts(
    hosts: Sequence[Host],
    probes: Sequence[str],
    *,
    pythons: Sequence[str] = (),
    containers: Sequence[str] = (),
    work_dir: str = WORK_DIR,
    timeout_s: float | None = None,
    heard: Callable[[Checked], None] = lambda _: None,
    connected: Callable[[Host, float | None], Reach] = connect,
    stay: bool = False,
    leave_late: bool = False,
) -> list[Checked]:
    """Return the result for every host, in the order of ``hosts``; call ``heard`` when each host answers or fails.

    ``pythons``: interpreters whose torch version is queried; ``containers``: images to look for; ``connected``: how to
    connect to a host within the given seconds (None: the user's ssh settings); ``stay``: keep sessions open for jobs;
    ``leave_late``: return before a few late hosts have answered, which then have only ``late``. The local machine is
    always awaited, because its user may have to type a password.
    """
    options: dict[str, Any] = {"probe": list(probes), "work": f"{work_dir.rstrip('/')}/fleetmark-{{uid}}"}
    if pythons or containers:
        options |= {"torch": list(pythons), "containers": list(containers)}
        options |= {"interpreter": agent_source("interpreter.py").decode()}

    def one(host: Host) -> Checked:
        checked = _check(host, options, timeout_s, connected, stay)
        heard(checked)
        return checked

    raise_open_file_limit()
    pool = ThreadPoolExecutor(max_workers=min(PARALLEL, len(hosts) or 1))
    began = time.monotonic()
    try:
        answers = [pool.submit(one, host) for host in hosts]
        local_answers = {answer for answer, host in zip(answers, hosts, strict=True) if host.connection == "local"}
        late = _late(answers, local_answers, began) if leave_late else set()
        waited = time.monotonic() - began
        checked = [
            Checked(host=host, reason=f"sent no facts within {waited:.0f} s", late=answer)
            if answer in late
            else answer.result()
            for answer, host in zip(answers, hosts, strict=True)
        ]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown(wait=False)
    return checked


def _late(
    answers: Sequence[Future[Checked]], local_answers: set[Future[Checked]], began: float
) -> set[Future[Checked]]:
    """Wait until all hosts but a few have answered, and return the late ones. ``local_answers`` are never late.

    ``began``: the start in monotonic seconds. With fewer than 11 hosts, one may be late. Pairs need two hosts, so no
    host counts as late until two have facts.
    """
    enough = min(len(answers) - 1, math.ceil(LATE_SHARE * len(answers)))
    pending, deadline = set(answers), None
    while pending:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        done, pending = wait(pending, left, FIRST_COMPLETED)
        if not done:
            wait(pending & local_answers)
            return {answer for answer in pending - local_answers if not answer.done()}
        answered = set(answers) - pending
        if deadline is None and len(answered) >= enough and sum(a.result().facts is not None for a in answered) > 1:
            deadline = began + max(LATE_S, LATE_TIMES * (time.monotonic() - began))
    return set()


def _check(
    host: Host,
    options: Mapping[str, Any],
    timeout_s: float | None,
    connected: Callable[[Host, float | None], Reach],
    stay: bool,
) -> Checked:
    reach = session = None
    try:
        reach = connected(host, timeout_s)
        stay = stay and reach.holds_sessions
        session = Session(reach, host.python, host.become)
        ran = session.facts(options, FACTS_TIMEOUT_S, stay=stay)
        now = time.time()
        if ran.rc != 0:
            words = ran.err.decode(errors="replace").strip().splitlines() or [f"exit status {ran.rc}"]
            hint = "; install python3 or set ansible_python_interpreter" if ran.rc == 127 else ""
            raise FleetmarkError(f"{words[-1]}{hint}")
        doc = load(ran.out)
        users = tuple(map(printable, doc.pop("users", ())))
        for path in (doc["python"], doc["work"]):  # they become Ansible variables, which Ansible evaluates
            if not _PLAIN_PATH.fullmatch(path):
                raise FleetmarkError(f"it names a path that Fleetmark does not trust: {path!r}")
        facts = normalise(doc, skew=doc["time"] - now, root=doc["euid"] == 0, work_dir=doc["work"])
    except FleetmarkError as error:
        Checked(host=host, reach=reach, session=session).close()
        unknown = error if isinstance(error, UnknownKey) else None
        return Checked(
            host=host, reason=" ".join(str(error).split()).removeprefix(f"{host.name}: "), unknown_key=unknown
        )
    if stay:
        session.send_agent()
    else:
        session.close()
    return Checked(host=host, reach=reach, facts=facts, raw=doc, session=session if stay else None, users=users)
