"""Connect Ansible to a node of a Slurm job through a folder that it shares with the controller, without SSH or root."""

import shlex
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import ReachError
from fleetmark.hosts.slurm.job import Job
from fleetmark.hosts.slurm.reach import SlurmReach

DOCUMENTATION = """
name: fleetmark_node
short_description: a node of a Slurm job
description: Commands run on a node through files in a shared folder.
options:
  node:
    description: The Slurm job, with the folder that its nodes share.
    type: dict
    required: true
    vars:
      - name: fm_node
"""
LONGEST_S = 7200.0  # timeout of one command; Ansible's task timeout is shorter


class Connection(ConnectionBase):
    """Run commands on a node, one after the other."""

    transport = "fleetmark_node"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def exec_command(self, cmd, in_data=None, sudoable=True):
        """Run a command to its end. Return its exit status, stdout and stderr."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        ran = self._run(cmd, in_data or b"")
        return ran.rc, ran.out, ran.err

    def put_file(self, in_path, out_path):
        """Copy a file to the node."""
        ran = self._run(f"cat > {shlex.quote(out_path)}", Path(in_path).read_bytes())
        if ran.rc:
            raise AnsibleConnectionFailure(f"{out_path}: {ran.err.decode(errors='replace').strip()}")

    def fetch_file(self, in_path, out_path):
        """Copy a file from the node."""
        ran = self._run(f"cat {shlex.quote(in_path)}", b"")
        if ran.rc:
            raise AnsibleConnectionFailure(f"{in_path}: {ran.err.decode(errors='replace').strip()}")
        Path(out_path).write_bytes(ran.out)

    def close(self):
        self._connected = False

    def _run(self, cmd, data):
        node = self.get_option("node")
        name = self._play_context.remote_addr
        reach = SlurmReach(Host(name, name, name), Job(node["id"], Path(node["folder"]), node["partition"]))
        try:
            return reach.run(["/bin/sh", "-c", cmd], stdin=data, timeout=LONGEST_S)
        except ReachError as error:
            raise AnsibleConnectionFailure(str(error)) from error
