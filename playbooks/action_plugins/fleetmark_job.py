"""Ansible action: start a host's job in one round trip, or report it running, finished, or the host busy.

An action plugin rather than a module: it sends only the agent to the host's Python. Ansible's module library would cost
a host four times the CPU time. Arguments: ``job``, the job's file on the controller;
``failed``, workload to message for those that could not be deployed, whose steps are left out.
"""

import json
import re
import resource
import shlex
from pathlib import Path

from ansible.plugins.action import ActionBase

MAX_ANSWER = 1 << 20  # bytes
MORE_MEMORY = 256 << 20  # bytes that this worker process may allocate further, because a host decides how much it sends
STATES = ("started", "running", "finished", "busy", "error")
AGENT = Path(__file__).parent.parent / "agent"
BOOT = (
    "import json,sys;d=json.load(sys.stdin);n={'__name__':'job'};exec(d['source']['job.py'],n)\n"
    "try:print('FLEETMARK'+json.dumps(n['start'](d)))\n"
    "except (OSError,RuntimeError) as e:print('FLEETMARK'+json.dumps({'state':'error','error':str(e)}))"
)


class ActionModule(ActionBase):
    """``fleetmark_job: {job: FILE, failed: {workload: message}}``. The result has ``state`` and its details."""

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        job = json.loads(Path(self._task.args["job"]).read_text())
        failed = {name: str(why)[:1000] for name, why in (self._task.args.get("failed") or {}).items()}
        job["steps"] = [s for s in job["steps"] if s["workload"] not in failed]
        result["failed_workloads"] = failed
        if not job["steps"]:
            return {**result, "state": "nothing", "changed": False}
        source = {p.name: p.read_text() for p in sorted(AGENT.glob("*.py")) if p.name != "facts.py"}
        payload = json.dumps({"job": job, "source": source}).encode()
        if self._connection.transport != "local":  # there the runner, and its tools, would inherit the limit
            limit_memory()
        ran = self._low_level_execute_command(shlex.join([task_vars["fm_python"], "-c", BOOT]), in_data=payload)
        answer = answer_in(ran["stdout"])
        if not answer:
            words = (ran["stderr"] or ran["stdout"]).strip().splitlines() or [f"exit status {ran['rc']}"]
            answer = {"state": "error", "error": words[-1][:300]}
        state = answer["state"]
        return {**result, **answer, "failed": state in ("busy", "error"), "changed": state == "started"}


def answer_in(stdout):
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
        **texts(answer, ["error"]),
        **({"holder": texts(holder, ["campaign", "owner", "since"])} if holder else {}),
    }


def texts(doc, names):
    return {name: doc[name][:1000] for name in names if isinstance(doc.get(name), str)}


def limit_memory():
    """Limit this process, which is forked for one task: if a host floods it, only that task fails."""
    taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # data and stack, proc(5)
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MORE_MEMORY, resource.RLIM_INFINITY))
