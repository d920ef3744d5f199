"""Submit, monitor and end the Slurm job whose nodes are the hosts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.agent import NODE_BOOT, agent_module, node_program
from fleetmark.hosts.slurm import cluster
from fleetmark.hosts.slurm.cluster import Request, State

_LOOK_S = 2.0  # polling interval for the job, to spare the cluster's controller
_NODES_S = 10.0  # polling interval for its nodes
_END_S = 15.0  # timeout for nodes to exit by themselves
UNSAFE = 96  # exit status of a node if other users can replace the shared folder
UNSEEN = 97  # exit status of a node that cannot see the shared folder
NO_PYTHON = 98
# Slurm stores the script, so nobody can change it while the job is queued. It carries the code for the nodes and the
# digest of the token that identifies the shared folder. -I: import nothing from the current folder.
_SCRIPT = """#!/bin/sh
exec srun --no-kill --kill-on-bad-exit=0 --wait=0 --overlap --mem=0 --cpu-bind=none --export=ALL --input=none \\
  --output=none --error=none --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 \\
  /bin/sh -c '
    for python in python3 /usr/bin/python3 /usr/libexec/platform-python; do
      command -v "$python" >/dev/null && exec "$python" -I -S -c "$1" "$2" "$3" "$SLURMD_NODENAME" "$4"
    done
    exit 98' sh 'BOOT' 'PROGRAM' 'SHARED' 'TOKEN'
"""


def _script(folder: Path, token: bytes) -> str:
    """Return the job script for a shared folder that contains ``token``."""
    values = {
        "'BOOT'": NODE_BOOT,
        "'PROGRAM'": node_program(),
        "'SHARED'": str(folder),
        "'TOKEN'": hashlib.sha256(token).hexdigest(),
    }
    script = _SCRIPT
    for name, value in values.items():
        script = script.replace(name, f"'{value}'")
    return script


def refuse_replaceable(folder: Path, *, create: bool = False) -> None:
    """Raise FleetmarkError if another user can change or replace ``folder``, from which nodes execute requests.

    ``create``: create missing folders, and make the folder itself private to this user. Raise OSError if that fails.
    """
    private = agent_module("private")
    try:
        os.close(private.open_private(str(folder), create))
    except private.NotPrivate as error:
        raise FleetmarkError(f"--shared {error}") from None


def _remove(folder: Path) -> None:
    """Remove the folder of a job that ran nothing, and its parent folders if they are then empty."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # the folder holds files of another job or another campaign
        for level in (folder.parent, folder.parent.parent):
            level.rmdir()


class Job:
    """A submitted job. ``folder`` is shared by its nodes and this machine. A thread updates ``state``."""

    def __init__(self, id_: str, folder: Path, partition: str | None) -> None:
        self.id, self.folder, self.partition = id_, folder, partition
        self.state = State("")  # not queried yet
        self.is_over = False  # no more output will come: the job has ended, or its nodes were told to exit
        self.dead: Mapping[str, str] = {}
        self.names: list[str] = []
        self._nodelist = ""  # the nodelist from which ``names`` was expanded
        self._out: frozenset[str] = frozenset()  # the nodes in ``names`` that Slurm removed from the job
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @classmethod
    def submit(cls, request: Request, name: str, folder: Path) -> Job:
        """Submit a job that starts the agent on every node. Raise FleetmarkError if Slurm refuses it."""
        if "'" in str(folder) or "\n" in str(folder):
            raise FleetmarkError(f"--shared {folder}: its name has a quote, which the job script cannot contain")
        try:
            for level in (folder.parent.parent, folder.parent, folder, folder / "nodes"):
                refuse_replaceable(level, create=True)
            token = secrets.token_hex(32).encode()
            with (folder / "token").open("xb") as out:
                out.write(token)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise FleetmarkError(f"--shared {folder}: cannot write there: {error.strerror}") from error
        try:
            job = cls(cluster.submit(request, name, _script(folder, token)), folder, request.partition)
        except BaseException:
            _remove(folder)
            raise
        (folder / "job").write_text(job.id)
        return job

    def as_json(self) -> dict[str, str | None]:
        """Return the values that Ansible's connection plugin needs to reach the job's nodes."""
        return {"id": self.id, "folder": str(self.folder), "partition": self.partition}

    def look(self) -> None:
        """Query Slurm for the state of the job and its nodes."""
        self.state = cluster.state(self.id)
        self.is_over = self.state.is_final or (self.folder / "done").exists()
        listed, word = self.state.nodelist, self.state.word
        # A requeued job may get other nodes. While a job ends, Slurm lists only the nodes that are still running.
        if listed != self._nodelist and (
            word == "RUNNING" or (listed and not self.names and not self.state.is_waiting)
        ):
            names, self._nodelist = cluster.hostnames(listed), listed
            if set(names) < set(self.names):  # a node failed: the job continues without it
                self._out = frozenset(self.names) - frozenset(names)
            else:
                self.names, self._out = names, frozenset()

    def watch(self) -> None:
        """Update ``state`` and ``dead``, and signal to the nodes that the controller is running, until ``end`` is
        called.
        """
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        last_query = 0.0
        while not self._done.wait(_LOOK_S):
            with contextlib.suppress(FleetmarkError, OSError):  # Slurm's controller may be unavailable for a while
                self.tell_alive()
                self.look()
                if self.names and time.monotonic() - last_query > _NODES_S:
                    last_query = time.monotonic()
                    self.dead = cluster.dead(self.names)

    def tell_alive(self) -> None:
        """Update the heartbeat file, which tells the nodes that the controller is still alive."""
        new = self.folder / ".alive"
        new.touch()
        new.rename(self.folder / "alive")

    def why_over(self, node: str) -> str:
        """Return why a node will send no more output; empty if it still may send some."""
        if self.is_over:
            because = f" ({self.state.reason})" if self.state.reason else ""
            return f"its Slurm job {self.id} ended: {self.state.word}{because}"
        if self.names and not self.state.is_waiting and node not in self.names:
            return f"Slurm job {self.id} restarted on other nodes"
        if node in self.dead:
            return f"Slurm reports the node as {self.dead[node].rstrip('*')}"
        if node in self._out:
            return f"Slurm removed the node from job {self.id}"
        return ""

    def discard(self) -> None:
        """End a job that has run no step yet, and remove its files."""
        self.end()
        _remove(self.folder)

    def end(self) -> None:
        """Tell the nodes to exit, which ends the job. Cancel the job if they do not exit."""
        self._done.set()
        with contextlib.suppress(OSError):
            (self.folder / "done").touch()
        deadline = time.monotonic() + _END_S
        with contextlib.suppress(FleetmarkError):
            self.look()
            if self.state.is_waiting:
                cluster.cancel(self.id)
                return
            while not self.state.is_final and self.state.word != "COMPLETING" and time.monotonic() < deadline:
                time.sleep(0.5)
                self.look()
            if not self.state.is_final:
                cluster.cancel(self.id)
