"""Ansible action: start a host's job (or find it running, finished, or the host taken) in one trip.

An action plugin rather than a module: it sends the agent's own few lines to the Python there and nothing of Ansible's
module library, which costs a host a quarter of the CPU time. Arguments: ``job``, the job's file on the controller;
``failed``, workload to message for those that could not be deployed, whose steps are left out.
"""

import json
import re
import shlex
from pathlib import Path

from ansible.plugins.action import ActionBase

AGENT = Path(__file__).parent.parent / "agent"
BOOT = (
    "import json,sys;d=json.load(sys.stdin);n={'__name__':'job'};exec(d['source']['job.py'],n)\n"
    "try:print('FLEETMARK'+json.dumps(n['start'](d)))\n"
    "except (OSError,RuntimeError) as e:print('FLEETMARK'+json.dumps({'state':'error','error':str(e)}))"
)


class ActionModule(ActionBase):
    """``fleetmark_job: {job: FILE, failed: {workload: message}}``. The result has ``state`` and what goes with it."""

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        job = json.loads(Path(self._task.args["job"]).read_text())
        failed = self._task.args.get("failed") or {}
        job["steps"] = [s for s in job["steps"] if s["workload"] not in failed]
        result["failed_workloads"] = failed
        if not job["steps"]:
            return {**result, "state": "nothing", "changed": False}
        source = {p.name: p.read_text() for p in sorted(AGENT.glob("*.py")) if p.name != "facts.py"}
        payload = json.dumps({"job": job, "source": source}).encode()
        ran = self._low_level_execute_command(shlex.join([task_vars["fm_python"], "-c", BOOT]), in_data=payload)
        said = re.search(r"^FLEETMARK(\{.*\})\s*$", ran["stdout"], re.MULTILINE)
        if said:
            answer = json.loads(said[1])
        else:
            words = (ran["stderr"] or ran["stdout"]).strip().splitlines() or [f"exit status {ran['rc']}"]
            answer = {"state": "error", "error": words[-1]}
        state = answer["state"]
        return {**result, **answer, "failed": state in ("busy", "error"), "changed": state == "started"}
