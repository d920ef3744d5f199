"""Run Ansible: deploy missing tools on hosts, start their jobs, and report each event as it happens."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.redact import access, git_credentials, redact, redacted
from fleetmark.campaign.bundle import unpack
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.ansible import settings, utf8_locale
from fleetmark.hosts.ansible_cfg import config_variable

TASK_TIMEOUT_S = int(os.environ.get("ANSIBLE_TASK_TIMEOUT") or 1800)  # timeout of one task; package managers may hang
_FOLDER = "fleetmark-ansible-"  # prefix of Ansible's private folder in the system's folder for temporary files
_YOUNG_S = 60.0  # the controller of a younger folder may not have locked it yet
MAX_FORKS = 50  # a fork uses 20 MB on the controller; jobs run detached, so more forks would gain little

OnEvent = Callable[[str, str, Mapping[str, Any]], None]  # host, what, details


def launch(
    inventory: Sequence[str],
    variables: Mapping[str, Mapping[str, Any]],
    jobs: Mapping[str, Mapping[str, Any]],
    credentials: Mapping[str, str],
    on_event: OnEvent,
    cancelled: Callable[[], bool],
    bundle: Path | None = None,
) -> str | None:
    """Run the playbook on the hosts of ``jobs``. Return Ansible's error message if the playbook could not run at all.

    ``variables`` has variables by host, added to those of ``inventory``. ``credentials`` are the secrets that
    ``redact.conceal`` removed. Ansible reads them from files that only this user can read. ``on_event`` gets
    ``deploying`` {workload}, ``launched`` {state, dir, failed_workloads, ...}, ``refused`` {error} and ``unreachable``
    {error}. Roles take sources, and hosts take packages, from ``bundle`` if it is given.
    """
    import ansible_runner

    try:
        environment = _environment()
    except FleetmarkError as error:
        return str(error)
    with _private_folder() as private:
        secrets = {
            "fm_secrets": _write(private / "secrets.json", json.dumps(access(credentials))),
            "fm_git_credentials": _write(private / "git-credentials", git_credentials(credentials)),
        }
        packages: Mapping[str, tuple[str, str]] = {}
        if bundle:
            try:
                packages = unpack(bundle, private / "bundle")
            except (FleetmarkError, OSError) as error:
                return f"--bundle: {error}"
            environment["XDG_CACHE_HOME"] = str(private / "bundle")  # the role source looks here first
        host_variables = {}
        for number, (name, job) in enumerate(jobs.items()):
            file = _write(private / f"job{number}.json", json.dumps(job))
            archive, digest = packages.get(variables[name].get("fm_distribution", ""), ("", ""))
            bundled = {"fm_bundle": archive, "fm_bundle_sha256": digest}
            host_variables[name] = {**variables[name], **secrets, **bundled, "fm_job": file}
        ours = {"fleetmark_run": {"hosts": _untemplated(host_variables)}}
        hosts = _write(private / "fleetmark.yml", json.dumps(ours))
        done = ansible_runner.run(
            private_data_dir=str(private),
            project_dir=str(Path.cwd()),
            playbook=str(PLAYBOOKS / "run.yml"),
            inventory=[*inventory, hosts],
            forks=min(len(jobs), MAX_FORKS),
            quiet=True,
            envvars=environment,
            event_handler=lambda event: _hear(
                event, lambda host, event_name, more: on_event(host, event_name, redacted(more))
            ),
            status_handler=_keep_no_environment,
            cancel_callback=cancelled,
            settings={"suppress_ansible_output": True, "pexpect_timeout": 1},
        )
        if done.status in ("successful", "canceled") or done.stats:
            return None
        lines = [line.strip() for line in done.stdout.read().splitlines() if line.strip()]
        return redact(
            next((line for line in lines if "ERROR" in line), lines[-1] if lines else f"ansible: {done.status}")
        )


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """Create a folder that only this user can read, and lock it. Remove the folders of dead processes."""
    _remove_stale()
    private = Path(tempfile.mkdtemp(prefix=_FOLDER))
    lock = os.open(private, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield private
    finally:
        shutil.rmtree(private, ignore_errors=True)
        os.close(lock)


def _remove_stale() -> None:
    """Remove the folders of this user's killed controllers, since they may contain credentials."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):  # the folder may belong to another user or a live controller, or be gone
            info = folder.lstat()
            if info.st_uid != os.geteuid() or time.time() - info.st_mtime < _YOUNG_S:
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _write(path: Path, text: str) -> str:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    return str(path)


def _keep_no_environment(status: Mapping[str, Any], runner_config: Any) -> None:
    """Keep ansible-runner's file with the complete environment (tokens, keys) off the disk.

    Ansible needs the environment because inventories read it. A file on disk would remain if the process is killed.
    ansible-runner has no setting for this, so a pipe replaces the file, and its content is discarded.
    """
    if status["status"] != "starting":
        return
    folder = Path(runner_config.artifact_dir)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pipe = folder / "command"
    os.mkfifo(pipe, 0o600)
    threading.Thread(target=_drain, args=(pipe,), daemon=True).start()


def _drain(pipe: Path) -> None:
    with pipe.open("rb") as end:
        while end.read(1 << 16):
            pass


def _untemplated(value: Any) -> Any:
    """Return ``value`` for an inventory in JSON with every string marked as unsafe.

    Some strings come from hosts. Without the mark, Ansible would evaluate them as templates.
    """
    if isinstance(value, Mapping):
        return {key: _untemplated(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_untemplated(item) for item in value]
    return {"__ansible_unsafe": value} if isinstance(value, str) else value


def _environment() -> dict[str, str]:
    """Return Ansible's environment variables, which limit it to one connection per host and detect dead links.

    The user's SSH settings take precedence. Raise FleetmarkError if Ansible refuses the user's configuration, or if
    other users can change it.
    """
    theirs = settings()
    # ansible-runner disables host key checking unless it is enabled explicitly.
    checking = os.environ.get("ANSIBLE_HOST_KEY_CHECKING") or str(theirs.get("host_key_checking", True))
    alive = "-C -o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
    return {
        **config_variable(),
        **utf8_locale(),
        **({} if theirs.get("ssh_args") else {"ANSIBLE_SSH_ARGS": alive}),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "ANSIBLE_HOST_KEY_CHECKING": checking,
        "ANSIBLE_PIPELINING": "True",
        # A persistent connection may belong to a host that has rebooted in the meantime.
        "ANSIBLE_SSH_RETRIES": os.environ.get("ANSIBLE_SSH_RETRIES") or "1",
        "ANSIBLE_TASK_TIMEOUT": str(TASK_TIMEOUT_S),
        **_roles(theirs),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOWS": "1",
        "ANSIBLE_FORCE_COLOR": "0",
    }


def _roles(theirs: Mapping[str, Any]) -> dict[str, str]:
    """Return the variable that makes Ansible search the folders of external workloads first."""
    folders = [str(extension.path / "roles") for extension in extensions.extensions()]
    usual = theirs.get("DEFAULT_ROLES_PATH") or ["~/.ansible/roles", "/usr/share/ansible/roles", "/etc/ansible/roles"]
    return {"ANSIBLE_ROLES_PATH": os.pathsep.join([*folders, *map(str, usual)])} if folders else {}


def _hear(event: Mapping[str, Any], on_event: OnEvent) -> bool:
    """Translate one of Ansible's events; ignore most of them. Return False if the runner need not store the event."""
    data = event.get("event_data", {})
    host, kind, action = data.get("host"), event.get("event"), data.get("task_action")
    result = data.get("res") or {}
    if not host:
        return kind == "playbook_on_stats"
    if kind == "runner_on_unreachable":
        on_event(host, "unreachable", {"error": _one_line(_words_of(result))})
    elif action == "fleetmark_job" and kind == "runner_on_ok":
        on_event(host, "launched", _answer(result))
    elif action == "fleetmark_job" and kind == "runner_on_failed":
        refused = {"state": "error", "error": _one_line(result.get("msg"))}
        on_event(host, "refused", _answer(result) if result.get("state") else refused)
    elif kind == "runner_on_start" and data.get("role") and data["role"] not in ("packages", "source", "torch_python"):
        on_event(host, "deploying", {"workload": data["role"]})
    return True


def _answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of ``fleetmark_job`` without the keys that Ansible adds to every result."""
    keys = ("state", "error", "holder", "failed_workloads", "cleared", "left", "warning")
    return {key: result[key] for key in keys if result.get(key) is not None}


def _words_of(result: Mapping[str, Any]) -> Any:
    """Return Ansible's message. For a loop, return the message of the first unreachable item."""
    items = result.get("results")
    each = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    return next((item.get("msg") for item in each if item.get("unreachable")), result.get("msg"))


def _one_line(text: Any) -> str:
    return " ".join(str(text or "no reason given").split())[:300]
