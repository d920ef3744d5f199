"""The files that run on hosts, as stored on this machine; how a job is handed to a host, and what its agent answers.

A job travels to any Python of the host: behind the agent's files to the session that told its facts
(``fleetmark.hosts.session``), with them in one trip to a process of its own where there is none
(``fleetmark.campaign.start``), or by Ansible behind a deployment (its action ``fleetmark_job``).
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
MAX_ANSWER = 1 << 20  # bytes
STATES = ("started", "running", "finished", "busy", "error")
# The program that a host's Python gets as its argument; ``payload`` is its input.
BOOT = (
    "import json,sys;d=json.load(sys.stdin);n={'__name__':'job'};exec(d['source']['job.py'],n)\n"
    "try:print('FLEETMARK'+json.dumps(n['start'](d)))\n"
    "except (OSError,RuntimeError) as e:print('FLEETMARK'+json.dumps({'state':'error','error':str(e)}))"
)


# What a session loads to tell facts, in this order.
OF_FACTS = ("commands.py", "trim.py", "reading.py", "needed.py", "facts.py")
# What each job loads; the others are for some jobs.
OF_EVERY_JOB = (
    "job.py",
    "follow.py",
    "runner.py",
    "telemetry.py",
    "nic_counters.py",
    "processes.py",
    "outputs.py",
    "optional.py",
)


def agent_source(name: str) -> bytes:
    """The text of one of the files that run on a host."""
    return (PLAYBOOKS / "agent" / name).read_bytes()


@cache
def sources() -> Mapping[str, str]:
    """The files that stay beside a job, by name."""
    files = sorted((PLAYBOOKS / "agent").glob("*.py"))
    others = (*OF_FACTS, "node.py", "session.py")
    return {file.name: file.read_text() for file in files if file.name not in others}


def codes(names: Sequence[str]) -> bytes:
    """The code of such files, by name, as a Python of the very version of this one reads it, behind the number of that
    version. A host needs 20 ms to compile the agent itself.
    """
    compiled = {name: compile(agent_source(name), name, "exec", dont_inherit=True) for name in names}
    return MAGIC_NUMBER + marshal.dumps(compiled)


def payload(job: Mapping[str, Any]) -> bytes:
    """A job and the agent's files as ``BOOT`` reads them."""
    return json.dumps({"job": job, "source": sources()}).encode()


def answer_of(rc: int, out: str, err: str) -> dict[str, Any]:
    """The agent's answer, or the last words of what stood in its way, as the state ``error``."""
    if answer := answer_in(out):
        return answer
    words = (err or out).strip().splitlines() or [f"exit status {rc}"]
    return {"state": "error", "error": words[-1][:300]}


def answer_in(stdout: str) -> dict[str, Any]:
    """The agent's answer, {} where there is none. Only known names of known types are passed on: Ansible would execute
    a host's ``ansible_facts`` or ``add_host``.
    """
    line = re.search(r"^FLEETMARK(\{.*\})\s*$", stdout[-MAX_ANSWER:], re.MULTILINE)
    try:
        answer = json.loads(line[1]) if line else {}
    except (ValueError, RecursionError):
        return {}
    if answer.get("state") not in STATES:
        return {}
    holder = answer.get("holder") if isinstance(answer.get("holder"), dict) else {}
    return {
        "state": answer["state"],
        **_texts(answer, ["error", "cleared", "left"]),
        **({"holder": _texts(holder, ["campaign", "owner", "since"])} if holder else {}),
    }


def _texts(doc: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    return {name: doc[name][:1000] for name in names if isinstance(doc.get(name), str)}
