"""What a test has left on the hosts that it shares with others: processes, listeners, throttles, cut cables, programs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path

from tests.fleet.hosts import Fleet

SSHD = {"sshd", "sshd-session", "sshd-auth"}
PROGRAMS = ("usr/local/bin", "usr/local/sbin")
NETWORK = "tc qdisc show dev eth0; nft list tables; ip route show type blackhole"


def programs(fleet: Fleet) -> dict[str, set[str]]:
    """What each host has in its PATH that this machine has not."""
    uppers = {host: fleet.folder / host / "upper" for host in fleet.names}
    return {h: {str(f) for p in PROGRAMS for f in (upper / p).glob("*")} for h, upper in uppers.items()}


def remains(
    fleet: Fleet,
    before: dict[str, set[str]],
    patience_s: float = 120.0,
    daemons: Collection[str] = SSHD,
    ports: Collection[int] = (22,),
) -> list[str]:
    """What is there now that no host begins with, one line each; processes have a while to end, then are ended.

    ``daemons`` and ``ports`` are the hosts' own.
    """
    deadline = time.monotonic() + patience_s
    left: list[str] = []
    for host, has in programs(fleet).items():
        state = Host(fleet, host, daemons, ports)
        left += state.configured() + [f"{host}: {file}" for file in sorted(has - before[host])]
        while (busy := state.listeners() + list(state.processes())) and time.monotonic() < deadline:
            time.sleep(0.1)
        left += busy
        for pid in state.processes().values():
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
    return left


def state(path: Path) -> tuple[object, ...] | None:
    """Return type, mode and content of a path; None if it does not exist, also as a whiteout of an overlay."""
    try:
        info = path.lstat()
    except OSError:
        return None
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        return None
    if stat.S_ISLNK(info.st_mode):
        return "link", str(path.readlink())
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(info.st_mode) else ""
    return stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, content


class Host:
    """One host, seen from this machine without a process on it."""

    def __init__(
        self, fleet: Fleet, name: str, daemons: Collection[str] = SSHD, ports: Collection[int] = (22,)
    ) -> None:
        self.fleet, self.name, self.daemons, self.expected_ports = fleet, name, daemons, set(ports)

    def pids(self) -> list[int]:
        """All its processes by their numbers on this machine; its first one is first."""
        outer = int((self.fleet.folder / f"{self.name}.pid").read_text())
        pids, parents = [], [outer]
        while parents:
            children = [c for p in parents for c in children_of(p)]
            pids += children
            parents = children
        return pids

    def processes(self) -> dict[str, int]:
        """Processes that are not the host's own, each with its number."""
        names = {pid: command(pid) for pid in self.pids()}
        expected = f"__init {self.name[1:]}", "sleep infinity"  # a host's first process, and what it sleeps by
        return {
            f"{self.name}: process {words}": pid
            for pid, (name, words) in names.items()
            if words and name not in self.daemons and not words.endswith(expected)
        }

    def listeners(self) -> list[str]:
        """TCP ports other than the host's own on which somebody listens; sshd, where nobody does."""
        rows = [
            line.split()
            for protocol in ("tcp", "tcp6")
            for line in self.inside(f"net/{protocol}").read_text().splitlines()
        ]
        ports = {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}
        lacks = [] if 22 in ports else [f"{self.name}: no sshd"]
        return lacks + [f"{self.name}: a listener on port {port}" for port in sorted(ports - self.expected_ports)]

    def inside(self, path: str) -> Path:
        return Path(f"/proc/{self.pids()[0]}/{path}")

    def configured(self) -> list[str]:
        """Its network and throttles, where they are not as at the beginning."""
        number, tag = self.name[1:], self.fleet.tag
        cable = Path(f"/sys/class/net/fm{tag}v{number}")
        words = ["ip", "netns", "exec", f"fm{tag}-h{number}", "sh", "-c", NETWORK]
        network = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        unusual = [line for line in network.splitlines() if not line.startswith("qdisc noqueue")]
        mtu = self.inside("root/sys/class/net/eth0/mtu").read_text().strip()
        limits = sorted(file.name for file in self.fleet.folder.glob(f"{self.name}.limits/*"))
        setting = list(self.inside("root/var/tmp").glob("fleetmark-*/jobs/*/*/setting.json"))
        faults = [
            (cable.joinpath("operstate").read_text().strip() != "up", "its cable is cut"),
            (unusual, f"its network: {unusual}"),
            (mtu != "1500", f"MTU {mtu}"),
            (limits, f"limits of {', '.join(limits)}"),
            (setting, f"a setting that is not put back: {setting}"),
        ]
        return [f"{self.name}: {fault}" for wrong, fault in faults if wrong]


def children_of(pid: int) -> list[int]:
    return [int(c) for c in read(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text()).split()]


def command(pid: int) -> tuple[str, str]:
    """The name of a process, and its command line; empty where it is gone, or a zombie."""
    words = read(lambda: Path(f"/proc/{pid}/cmdline").read_text(errors="replace")).replace("\0", " ").strip()
    return (read(lambda: Path(f"/proc/{pid}/comm").read_text()).strip(), words[:200]) if words else ("", "")


def read(text: Callable[[], str]) -> str:
    try:
        return text()
    except OSError:
        return ""  # it has just ended
