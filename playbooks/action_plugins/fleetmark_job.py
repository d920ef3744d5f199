"""Start a host's job in one round trip from Ansible, or report that it runs, has finished, or that the host is busy.

This is an action plugin instead of a module, because it sends only the agent to the host's Python. Ansible's module
library would take four times the CPU time on the host. Arguments: ``job``, the job's file on the controller;
``failed``, the message by workload that could not be deployed; its steps are omitted.
"""

import json
import resource
import shlex
from pathlib import Path

from ansible.plugins.action import ActionBase

from fleetmark.hosts.agent import BOOT, answer_of, payload

MORE_MEMORY = 256 << 20  # bytes that this worker process may allocate further, because a host decides how much it sends


class ActionModule(ActionBase):
    """``fleetmark_job: {job: FILE, failed: {workload: message}}``. The result has ``state`` and its details."""

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        job = json.loads(Path(self._task.args["job"]).read_text())
        failed = {name: str(reason)[:1000] for name, reason in (self._task.args.get("failed") or {}).items()}
        job["steps"] = [s for s in job["steps"] if s["workload"] not in failed]
        result["failed_workloads"] = failed
        if not job["steps"]:
            return {**result, "state": "nothing", "changed": False}
        if self._connection.transport != "local":  # there the runner, and its tools, would inherit the limit
            limit_memory()
        words = shlex.join([task_vars["fm_python"], "-c", BOOT])
        ran = self._low_level_execute_command(words, in_data=payload(job))
        answer = answer_of(ran["rc"], ran["stdout"], ran["stderr"])
        state = answer["state"]
        return {**result, **answer, "failed": state in ("busy", "error"), "changed": state == "started"}


def limit_memory():
    """Limit this process, which is forked for one task: if a host floods it, only that task fails."""
    taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # data and stack, proc(5)
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MORE_MEMORY, resource.RLIM_INFINITY))
