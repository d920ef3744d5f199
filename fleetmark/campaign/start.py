"""Start hosts' jobs over open connections, without Ansible, if there is nothing to deploy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetmark.base.redact import redacted
from fleetmark.campaign.hostrun import Run
from fleetmark.hosts.agent import BOOT, answer_of, payload
from fleetmark.hosts.reach import LinkLost, ReachError

START_S = 120.0  # time for a host to store its job and start it


def start(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply of the host's agent to ``job`` in the form of ``replies.read_launch``; ``error`` if there was no
    reply.

    If the session or the link is lost, it is opened once more. The agent answers ``running`` to a job that it already
    has.
    """
    answer = _over_session(run, job) or _over_link(run, job)
    cleared: dict[str, Any] = redacted(answer)
    return cleared


def _over_session(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply over the host's session, or an empty mapping if there is no usable session."""
    try:
        if run.session and (answer := run.session.start(job, START_S)):
            return answer
    except LinkLost:
        run.reach.close()
    except ReachError:
        pass  # the separate process reports the cause if it fails, too
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
