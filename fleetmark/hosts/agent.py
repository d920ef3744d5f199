"""Load the files that run on hosts, send a job to a host, and parse the agent's answer.

A job can run under any Python interpreter on the host: in the session that reported the facts
(``fleetmark.hosts.session``), in a process of its own if there is no session (``fleetmark.campaign.start``), or through
Ansible after a deployment (its action ``fleetmark_job``).
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

PLAYBOOKS = (Path(__file__).parents[1] / "playbooks").resolve()  # in a checkout, a link to a folder of the repository
MAX_ANSWER = 1 << 20  # maximum size in bytes
STATES = ("started", "running", "finished", "busy", "error")
# The modules that start a job, and those that serve on a Slurm node; each imports only earlier modules.
OF_START = ("files", "private", "lock", "steps", "disks", "network", "groups", "job")
OF_NODE = ("files", "private", "lock", "steps", "node")
OF_CLEAN = (*OF_START, "clean")
_LOAD = "for n in {names!r}:m=sys.modules[n]=types.ModuleType(n);exec({source}[n+'.py'],m.__dict__)\n"
# The program for a host's Python, passed as an argument; ``payload`` is its input.
BOOT = (
    "import json,sys,types;d=json.load(sys.stdin)\n"
    + _LOAD.format(names=OF_START, source="d['source']")
    + "try:print('FLEETMARK'+json.dumps(m.start(d)))\n"
    "except (OSError,RuntimeError) as e:print('FLEETMARK'+json.dumps({'state':'error','error':str(e)}))"
)
# Like BOOT, for ``fleetmark clean``.
CLEAN_BOOT = (
    "import json,sys,types;sys.dont_write_bytecode=True;d=json.load(sys.stdin)\n"
    + _LOAD.format(names=OF_CLEAN, source="d['source']")
    + "print('FLEETMARK'+json.dumps(m.clean(d)))\n"
)
# A Slurm node executes this code with ``node_program`` as first argument; it contains no quotes.
NODE_BOOT = "import base64,sys,zlib;exec(zlib.decompress(base64.b64decode(sys.argv[1])))"


def agent_source(name: str) -> bytes:
    """Return the text of a file that runs on hosts."""
    return (PLAYBOOKS / "agent" / name).read_bytes()


@cache
def agent_module(name: str) -> ModuleType:
    """Load an agent module that imports no other agent module, for code that both sides share."""
    module = ModuleType(name)
    exec(compile(agent_source(f"{name}.py"), f"{name}.py", "exec"), module.__dict__)
    return module


@cache
def node_program() -> str:
    """Return the program for a Slurm node, packed for ``NODE_BOOT``, which calls ``node.main``.

    The job script carries it, so that a node runs no code from the shared folder.
    """
    texts = {f"{name}.py": agent_source(f"{name}.py").decode() for name in OF_NODE}
    text = f"import sys,types\nd={texts!r}\n{_LOAD.format(names=OF_NODE, source='d')}m.main(*sys.argv[2:])\n"
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


@cache
def fact_sources() -> Mapping[str, str]:
    """Return the files that report the facts of a host, by name."""
    return _texts_in(PLAYBOOKS / "agent" / "facts")


@cache
def sources() -> Mapping[str, str]:
    """Return the files that are stored in a job's folder, by name."""
    return {
        name: text
        for name, text in (_texts_in(PLAYBOOKS / "agent") | _texts_in(PLAYBOOKS / "agent" / "shares")).items()
        if name not in ("clean.py", "collector.py", "node.py", "session.py", "usage.py")
    }


def _texts_in(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.glob("*.py"))}


def payload(job: Mapping[str, Any]) -> bytes:
    """Encode a job and the agent's files in the format that ``BOOT`` reads."""
    return json.dumps({"job": job, "source": sources()}).encode()


def answer_of(rc: int, out: str, err: str) -> dict[str, Any]:
    """Return the agent's answer, or the state ``error`` with the last line of output if there is no answer."""
    if answer := answer_in(out):
        return answer
    words = (err or out).strip().splitlines() or [f"exit status {rc}"]
    return {"state": "error", "error": words[-1][:300]}


def answer_in(stdout: str) -> dict[str, Any]:
    """Return the agent's answer, or {} if there is none.

    Only known names with known types are passed on, because Ansible would execute a host's ``ansible_facts`` or
    ``add_host``.
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
        **_texts(answer, ["error", "cleared", "left", "warning"]),
        **({"holder": _texts(holder, ["campaign", "owner", "since", "process"])} if holder else {}),
    }


def _texts(doc: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    return {name: doc[name][:1000] for name in names if isinstance(doc.get(name), str)}
