"""Ansible's part of a run: deploy what hosts lack and start their jobs, telling what happens as it happens."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetmark.ask_ansible import settings, utf8_locale

PLAYBOOKS = Path(__file__).resolve().parent.parent / "playbooks"
TASK_TIMEOUT_S = int(os.environ.get("ANSIBLE_TASK_TIMEOUT") or 1800)  # of one task: a package manager that hangs
MAX_FORKS = 50  # a fork costs the controller 20 MB; jobs run detached, so more would gain little

OnEvent = Callable[[str, str, Mapping[str, Any]], None]  # host, what, details


def agent_source(name: str) -> bytes:
    """The text of one of the files that run on a host."""
    return (PLAYBOOKS / "agent" / name).read_bytes()


def launch(
    inventory: Sequence[str],
    variables: Mapping[str, Mapping[str, Any]],
    jobs: Mapping[str, Mapping[str, Any]],
    on_event: OnEvent,
    cancelled: Callable[[], bool],
) -> str | None:
    """Run the playbook on the hosts of ``jobs``; ``variables`` (host to variables) add to what ``inventory`` says.

    ``on_event`` hears ``deploying`` {workload}, ``launched`` {state, dir, failed_workloads, ...}, ``refused`` {error}
    and ``unreachable`` {error}. Returns Ansible's own words when the playbook as a whole could not run.
    """
    import ansible_runner

    private = Path(tempfile.mkdtemp(prefix="fleetmark-ansible-"))
    try:
        known = {}
        for number, (name, job) in enumerate(jobs.items()):
            file = private / f"job{number}.json"
            file.write_text(json.dumps(job))
            known[name] = {**variables[name], "fm_job": str(file)}
        hosts = private / "fleetmark.yml"
        hosts.write_text(json.dumps({"fleetmark_run": {"hosts": _untemplated(known)}}))
        done = ansible_runner.run(
            private_data_dir=str(private),
            project_dir=str(Path.cwd()),
            playbook=str(PLAYBOOKS / "run.yml"),
            inventory=[*inventory, str(hosts)],
            forks=min(len(jobs), MAX_FORKS),
            quiet=True,
            envvars=_environment(),
            event_handler=lambda event: _hear(event, on_event),
            cancel_callback=cancelled,
            settings={"suppress_ansible_output": True, "pexpect_timeout": 1},
        )
        if done.status in ("successful", "canceled") or done.stats:
            return None
        said = [line.strip() for line in done.stdout.read().splitlines() if line.strip()]
        return next((line for line in said if "ERROR" in line), said[-1] if said else f"ansible: {done.status}")
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _untemplated(value: Any) -> Any:
    """``value`` for an inventory in JSON, with every text marked as no template: some are what hosts say of themselves,
    and Ansible would evaluate them.
    """
    if isinstance(value, Mapping):
        return {key: _untemplated(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_untemplated(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


def _environment() -> dict[str, str]:
    """The Ansible beside this Python, one connection per host, dead links noticed; what the user set for SSH stands."""
    theirs = settings()
    # ansible-runner switches host key checking off where nobody switched it on.
    checking = os.environ.get("ANSIBLE_HOST_KEY_CHECKING") or str(theirs.get("host_key_checking", True))
    alive = "-C -o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
    return {
        **utf8_locale(),
        **({} if theirs.get("ssh_args") else {"ANSIBLE_SSH_ARGS": alive}),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_HOST_KEY_CHECKING": checking,
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_TASK_TIMEOUT": str(TASK_TIMEOUT_S),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOWS": "1",
        "ANSIBLE_FORCE_COLOR": "0",
    }


def _hear(event: Mapping[str, Any], on_event: OnEvent) -> bool:
    """One of Ansible's events as one of ours; the others are of no interest. False: the runner need not keep it."""
    data = event.get("event_data", {})
    host, kind, action = data.get("host"), event.get("event"), data.get("task_action")
    result = data.get("res") or {}
    if not host:
        return kind == "playbook_on_stats"
    if kind == "runner_on_unreachable":
        on_event(host, "unreachable", {"error": _one_line(result.get("msg"))})
    elif action == "fleetmark_job" and kind == "runner_on_ok":
        on_event(host, "launched", _answer(result))
    elif action == "fleetmark_job" and kind == "runner_on_failed":
        refused = {"state": "error", "error": _one_line(result.get("msg"))}
        on_event(host, "refused", _answer(result) if result.get("state") else refused)
    elif kind == "runner_on_start" and data.get("role") and data["role"] not in ("packages", "source"):
        on_event(host, "deploying", {"workload": data["role"]})
    return True


def _answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """What ``fleetmark_job`` returned, without what Ansible adds to every result."""
    return {key: result[key] for key in ("state", "error", "holder", "failed_workloads") if result.get(key) is not None}


def _one_line(text: Any) -> str:
    return " ".join(str(text or "no reason given").split())[:300]
