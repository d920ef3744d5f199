"""Starts hosts' jobs if nothing is to be deployed: over the connections that are open already, without Ansible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetmark.base.redact import redacted
from fleetmark.campaign.hostrun import Run
from fleetmark.hosts.agent import BOOT, answer_of, payload
from fleetmark.hosts.reach import LinkLost, ReachError

START_S = 120.0  # in which a host stores its job and begins


def start(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply of the host's agent to ``job``, as ``replies.read_launch`` takes it; ``error`` if there was
    none.

    A session or a link that is lost meanwhile is opened once more: the agent answers ``running`` to a job that it has
    already.
    """
    answer = _over_session(run, job) or _over_link(run, job)
    cleared: dict[str, Any] = redacted(answer)
    return cleared


def _over_session(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    """{} if there is no session, or none any more."""
    try:
        if run.session and (answer := run.session.start(job, START_S)):
            return answer
    except LinkLost:
        run.reach.close()
    except ReachError:
        pass  # a process of its own says why, where that fails too
    run.end_session()
    return {}


def _over_link(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    words = [run.python, "-c", BOOT]
    document = payload(job)
    try:
        try:
            ran = run.reach.run(words, stdin=document, timeout=START_S, sudo=run.sudo, again=True)
        except LinkLost:
            run.reach.close()
            ran = run.reach.run(words, stdin=document, timeout=START_S, sudo=run.sudo, again=True)
    except ReachError as error:
        return {"state": "error", "error": str(error).removeprefix(f"{run.host}: ")[:1000]}
    return answer_of(ran.rc, ran.out.decode(errors="replace"), ran.err.decode(errors="replace"))
