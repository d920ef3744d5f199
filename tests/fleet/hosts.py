"""Real SSH hosts for tests, made of network namespaces by fleet.sh: bring them up, break them, take them down."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SCRIPT = Path(__file__).with_name("fleet.sh")
NEEDS = ("ip", "nsenter", "unshare", "ssh", "ssh-keygen", "/usr/sbin/sshd")
TAGS = 255


def missing() -> str | None:
    """Why this machine cannot hold a fleet, in one sentence; None where it can."""
    if os.geteuid() != 0:
        return "a fleet needs root, to make namespaces"
    absent = [tool for tool in NEEDS if shutil.which(tool) is None]
    if absent:
        return f"a fleet needs {', '.join(absent)} (packages iproute2, util-linux, openssh-client, openssh-server)"
    probe = subprocess.run(["unshare", "-m", "-n", "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        return f"this machine lends no namespaces: {probe.stderr.strip()}"
    return None


class Fleet:
    """``size`` hosts, h1 to hN. A context manager: up on entry, down on exit, whatever happened between.

    Each fleet has a tag (0 to 254), which is the third octet of its addresses and part of every name it makes, so that
    several live side by side. ``hide`` are folders the hosts must not see, ``share`` those that all share with this
    machine.
    """

    def __init__(
        self, size: int, *, hide: Sequence[str] = (), share: Sequence[Path] = (), upper: str = "tmpfs"
    ) -> None:
        self.size = size
        self.tag: int | None = None
        self._settings = {
            "HIDE": " ".join(hide),
            "SHARE": " ".join(map(str, share)),
            "UPPER": upper,
            "OWNER": secrets.token_hex(8),
        }

    def __enter__(self) -> Fleet:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def up(self) -> None:
        """Claim a free tag, looking first at one that follows from our process id, and start the hosts."""
        try:
            for step in range(TAGS):
                self.tag = (os.getpid() + step) % TAGS
                done = self._call("up", str(self.size), check=False)
                if done.returncode == 0:
                    return
                if done.returncode != 3:  # 3: another fleet holds this tag
                    raise RuntimeError(f"no fleet: {done.stderr.strip()}")
            raise RuntimeError(f"no fleet: all {TAGS} tags are taken; end old ones with TAG=n {SCRIPT} down")
        except BaseException:  # a Ctrl-C in the middle leaves nothing behind either
            self.down()
            raise

    def down(self) -> None:
        """End this fleet and remove all it made; nothing where it is not up."""
        if self.tag is not None:
            self._call("down")
            self.tag = None

    @property
    def names(self) -> list[str]:
        return [f"h{i}" for i in range(1, self.size + 1)]

    @property
    def state(self) -> Path:
        """The folder with the fleet's key, inventory, SSH configuration and known_hosts."""
        return Path(f"/run/fleetmark-fleet/{self.tag}.state")

    @property
    def folder(self) -> Path:
        """The folder with what its hosts run by: their process ids and limits, and what they wrote to their disks."""
        return Path(f"/run/fleetmark-fleet/{self.tag}")

    @property
    def inventory(self) -> Path:
        """An Ansible inventory (INI) of all hosts: as root, by the fleet's own SSH configuration."""
        return self.state / "hosts.ini"

    @property
    def ssh_config(self) -> Path:
        """An OpenSSH configuration that knows the hosts' names, our key, and their real host keys (strict checking)."""
        return self.state / "ssh_config"

    @property
    def key(self) -> Path:
        return self.state / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.state / "known_hosts"

    def address(self, host: str) -> str:
        """``h3`` lives at 10.77.TAG.3; ``h0`` stands for this machine, seen from the fleet."""
        return f"10.77.{self.tag}.{int(host[1:]) or 254}"

    def exec(
        self, host: str, argv: Sequence[str], *, input: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run ``argv`` as root on ``host``, past SSH and even while its cable is out.

        Raises RuntimeError with what it said on stderr when it fails, unless ``check`` is off.
        """
        return self._call("exec", host, *argv, input=input, check=check)

    def cut(self, host: str) -> None:
        """Pull the host's network cable: packets in both directions are lost."""
        self._call("cut", host)

    def heal(self, host: str) -> None:
        """Put the cable back."""
        self._call("heal", host)

    def power_off(self, host: str) -> None:
        """Cut the power: every process dies, and no peer gets a message."""
        self._call("off", host)

    def power_on(self, host: str) -> None:
        """Power on: same disk, same host keys, empty /tmp and /run. Returns when its sshd answers."""
        self._call("on", host)

    def cpu(self, host: str, percent: int, *, period_us: int = 100_000) -> None:
        """Quota of the host in per cent of one core, handed out anew every ``period_us``; 0 lifts it."""
        self._call("cpu", host, str(percent), str(period_us))

    def io(self, host: str, bytes_per_s: int) -> None:
        """Limit reads and writes of the disk under /srv, B/s each; 0 lifts it."""
        self._call("io", host, str(bytes_per_s))

    def rate(self, host: str, rate: str, *, burst: int = 256 << 10) -> None:
        """Limit the host's link both ways, as tc writes it (``1gbit``); ``off`` lifts it. ``burst``: bytes it may send
        at once after a pause.
        """
        self._call("rate", host, rate, str(burst))

    def loss(self, host: str, percent: int, hook: str = "input") -> None:
        """Drop that part of the packets that the host receives (``hook``: input) or sends (output); 0 lifts it."""
        self._call("loss", host, str(percent), hook)

    def lacks(self, host: str, *commands: str) -> None:
        """Remove commands from the host's PATH, for good."""
        self._call("lacks", host, *commands)

    def _call(self, *args: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", str(SCRIPT), *args],
            env=self._environment(),
            capture_output=True,
            text=True,
            input=input or "",
            check=False,
            start_new_session=True,  # Ctrl-C is for us, not for a script half-way through
        )
        if check and done.returncode:
            raise RuntimeError(f"fleet {' '.join(args)}: {done.stderr.strip() or f'exit {done.returncode}'}")
        return done

    def _environment(self) -> Mapping[str, str]:
        # Only what fleet.sh needs: names set by a developer's own fleet must not reach ours.
        return {"PATH": os.environ["PATH"], "TAG": str(self.tag), **self._settings}
