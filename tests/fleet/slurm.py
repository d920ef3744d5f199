"""A Slurm cluster on the tests' hosts: slurmctld on the first, slurmd on each; its commands work on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet

NEEDS = ("srun", "sbatch", "slurmctld", "slurmd", "munged")

_CONF = """ClusterName=test
SlurmctldHost=h1({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={socket},cred_expire=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=/var/spool/slurm
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldTimeout=30
SlurmdTimeout=30
ReturnToService=2
KillWait=5
InactiveLimit=0
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SchedulerTimeSlice=5
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=30:00
PartitionName=short Nodes=h1 State=UP MaxTime=1
"""

JOIN = """
mkdir -p /run/munge /var/log/munge /var/lib/munge /etc/munge /etc/slurm "/var/spool/slurm/$(hostname)"
head -c 1024 /dev/zero | tr '\\0' k >/etc/munge/munge.key
chown -R munge /run/munge /var/log/munge /var/lib/munge /etc/munge
chmod 600 /etc/munge/munge.key
setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged --force
echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
for file in /usr/lib/*/pmix2/lib/libpmix.so.2; do # Slurm looks for the name that only the development package gives it
    [ ! -e "$file" ] || ln -sfn libpmix.so.2 "${file%.2}"
done
cat >/etc/slurm/slurm.conf
[ "$(hostname)" != h1 ] || /usr/sbin/slurmctld
/usr/sbin/slurmd -N "$(hostname)"
"""


def missing() -> str | None:
    """Why this machine cannot hold a Slurm cluster; None where it can."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    absent = [tool for tool in NEEDS if shutil.which(tool, path=path) is None]
    return (
        f"Slurm is not installed here ({', '.join(absent)}: packages slurmctld, slurmd, slurm-client, munge)"
        if absent
        else None
    )


class Cluster:
    """Slurm over a fleet. ``env`` holds what its commands need on this machine; ``more``: lines of slurm.conf. A context
    manager.
    """

    def __init__(self, fleet: Fleet, folder: Path, more: str = "") -> None:
        self.fleet, self.folder, self.more = fleet, folder, more
        self.env: Mapping[str, str] = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._munged: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        nodes = "\n".join(
            f"NodeName={h} NodeAddr={self.fleet.address(h)} CPUs=2 RealMemory=512 Feature=gen:{'new' if n % 2 else 'old'},ib State=UNKNOWN"
            for n, h in enumerate(self.fleet.names)
        )
        conf = _CONF.format(address=self.fleet.address("h1"), nodes=nodes, socket="{socket}") + self.more
        self._theirs = conf.replace("{socket}", "/run/munge/munge.socket.2")
        for host in self.fleet.names:
            self.join(host)
        ours = self.folder / "munge"
        ours.mkdir(mode=0o700)
        (ours / "key").write_bytes(b"k" * 1024)
        (ours / "key").chmod(0o600)
        socket = ours / "socket"
        (self.folder / "slurm.conf").write_text(conf.replace("{socket}", str(socket)))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        words = ["/usr/sbin/munged", "-F", "--force", f"--socket={socket}", f"--key-file={ours / 'key'}"]
        words += [f"--pid-file={ours / 'pid'}", f"--log-file={ours / 'log'}", f"--seed-file={ours / 'seed'}"]
        self._munged = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: self.ask("sinfo", "-h", "-o", "%T", "-p", "all").split() == ["idle"])
        return self

    def __exit__(self, *_: object) -> None:
        if self._munged:
            self._munged.terminate()
            self._munged.wait()

    def join(self, host: str) -> None:
        """Start Slurm on a host that is new, or was off."""
        self.fleet.exec(host, ["sh", "-euc", JOIN], input=self._theirs)

    def unreachable(self) -> Path:
        """A configuration whose slurmctld is nowhere."""
        file = self.folder / "nowhere.conf"
        text = (self.folder / "slurm.conf").read_text()
        file.write_text(text.replace("SlurmctldHost=h1(", "SlurmctldPort=1\nMessageTimeout=2\nSlurmctldHost=h1("))
        return file

    def ask(self, *words: str) -> str:
        """The output of one of Slurm's commands; empty where it fails."""
        return subprocess.run(words, capture_output=True, text=True, check=False, env=self.env, timeout=200).stdout

    def tell(self, *words: str) -> None:
        """One of Slurm's commands, again until it works: on a busy machine a credential may be too old on arrival."""

        def works() -> bool:
            return subprocess.run(words, capture_output=True, check=False, env=self.env, timeout=200).returncode == 0

        self.until(works)

    def jobs(self) -> list[str]:
        """The states of all jobs that are not over."""
        return self.ask("squeue", "-h", "-o", "%T").split()

    def until(self, condition: Callable[[], bool], patience: float = 300) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, f"not within {patience} s:\n{self.ask('scontrol', 'show', 'node')}"
            time.sleep(0.2)


class Lent(Command):
    """``fleetmark run --slurm`` with its results in the shared folder."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        super().__init__(cluster.fleet, root)
        self.cluster = cluster
        self.env = {**cluster.env, "COLUMNS": "200", "FLEETMARK_RESULTS": str(root)}

    def words(self, *more: str) -> list[str]:
        return [FLEETMARK, "run", *(() if "--resume" in more else ("--slurm",)), *more]

    def refused(self, *more: str) -> str:
        """The sentence with which a command ends before any job is submitted."""
        done = self.run(*more)
        assert done.returncode == 2, done.stdout + done.stderr
        assert not self.cluster.jobs()
        return done.stderr.strip()

    def job(self) -> str:
        return next(str(e["job"]) for e in reversed(self.events()) if e["e"] == "slurm")
