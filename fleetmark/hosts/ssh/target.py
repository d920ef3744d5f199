"""Find the target of an SSH connection and the host keys to check with the user's OpenSSH."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import ReachError


@dataclass(kw_only=True, frozen=True, slots=True)
class Target:
    """A host with OpenSSH's configuration applied; for the settings see ssh_config(5).

    ``strict`` is ``yes``, ``accept-new`` or ``no``. ``proxy`` is a shell command whose standard streams are the
    connection, and ``through`` is its ProxyJump or ProxyCommand. ``timeout`` is ConnectTimeout in seconds, if set.
    ``revoked`` is the path in RevokedHostKeys.
    """

    hostname: str
    port: int
    user: str
    family: socket.AddressFamily
    key_name: str  # the host's name in known_hosts
    key_names: tuple[str, ...]  # ``name``, and the other names that OpenSSH looks up
    known_hosts: tuple[Path, ...]  # the user's files first
    strict: str
    hash_known_hosts: bool
    identities: tuple[Path, ...]
    identities_only: bool
    agent: str | None  # path of the agent's socket
    proxy: str | None
    through: str
    timeout: float | None
    revoked: Path | None = None

    @property
    def proxy_name(self) -> str:
        """Return the proxy's name in messages, without the arguments of a ProxyCommand, which may hold a password."""
        return "its ProxyCommand" if " " in self.through else self.through


class UnknownKey(ReachError):
    """Report a host without a key in known_hosts. ``reason``: the problem, without the host's name and advice."""

    def __init__(self, host: str, reason: str, target: Target, file: Path) -> None:
        self.reason = reason
        # ssh-keyscan cannot connect through a bastion, and writes the host's name instead of its alias.
        name = target.hostname.lower()
        plain = not target.proxy and target.key_name in (name, f"[{name}]:{target.port}")
        self.scan = Scan(target.port, file, target.hash_known_hosts, target.hostname) if plain else None
        trusted = ", or, on a trusted network, add the key as `fleetmark hosts` shows" if self.scan else ""
        super().__init__(f"{host}: {reason}; log in once with ssh{trusted}")


@dataclass(frozen=True, slots=True)
class Scan:
    """The arguments of ssh-keyscan for one host."""

    port: int
    file: Path
    hashed: bool
    hostname: str

    def command(self, *scans: Scan) -> str:
        """Return the command that adds the keys of this host and the hosts in ``scans`` to ``file``.

        The scans differ only in their host names.
        """
        words = ["ssh-keyscan", *(["-H"] if self.hashed else []), "-p", str(self.port)]
        names = dict.fromkeys(scan.hostname for scan in (self, *scans))
        return f"{shlex.join([*words, *names])} >> {shlex.quote(str(self.file))}"


def scans(unknown: Iterable[UnknownKey]) -> list[str]:
    """Return the commands that add all unknown keys, one for each port and file."""
    alike: dict[tuple[int, Path, bool], list[Scan]] = {}
    for scan in (u.scan for u in unknown if u.scan):
        alike.setdefault((scan.port, scan.file, scan.hashed), []).append(scan)
    return [first.command(*others) for first, *others in alike.values()]


def resolve(host: Host) -> Target:
    """Return the target that ``ssh -G`` reports, so that Match, Include, canonical names, -F and -o apply. Raise
    ReachError with ssh's error message.
    """
    argv = ["ssh", "-G"]
    if host.port is not None:
        argv += ["-o", f"Port={host.port}"]
    if host.user is not None:
        argv += ["-o", f'User="{host.user}"']
    if host.key_file is not None:
        argv += ["-o", f'IdentityFile="{Path(host.key_file).expanduser()}"']
    try:
        done = subprocess.run(
            [*argv, *host.ssh_args, "--", host.address],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise ReachError(f"{host.name}: this machine has no ssh; install OpenSSH's client") from None
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise ReachError(f"{host.name}: ssh refuses its configuration: {words[-1]}")
    settings: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    return _target(host, settings)


def _target(host: Host, settings: Mapping[str, Sequence[str]]) -> Target:
    def one(key: str, default: str = "") -> str:
        value = settings.get(key, (default,))[0]
        return default if value == "none" else value

    hostname, port, user = one("hostname", host.address), int(one("port", "22")), one("user")
    alias = one("hostkeyalias")
    bracketed = f"[{hostname.lower()}]:{port}" if port != 22 else hostname.lower()
    tokens = _tokens(hostname, host.address, port, user, alias)
    jump, command = one("proxyjump"), one("proxycommand")
    timeout, revoked = one("connecttimeout"), one("revokedhostkeys")
    return Target(
        hostname=hostname,
        port=port,
        user=user,
        family={"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(one("addressfamily"), socket.AF_UNSPEC),
        key_name=alias or bracketed,
        key_names=(alias,) if alias else tuple(dict.fromkeys((bracketed, hostname.lower()))),
        known_hosts=tuple(_files(settings, ("userknownhostsfile", "globalknownhostsfile"))),
        strict={"accept-new": "accept-new", "no": "no", "off": "no", "false": "no"}.get(
            one("stricthostkeychecking"), "yes"
        ),
        hash_known_hosts=one("hashknownhosts") == "yes",
        identities=tuple(
            Path(_expand(f, tokens)).expanduser() for f in settings.get("identityfile", ()) if f != "none"
        ),
        identities_only=one("identitiesonly") == "yes",
        agent=_agent(settings.get("identityagent", ["SSH_AUTH_SOCK"])[0], tokens),
        proxy=_jump(host, jump, hostname, port, timeout) if jump else _expand(command, tokens) or None,
        through=jump or command,
        timeout=float(timeout) if timeout else None,
        revoked=Path(_expand(revoked, tokens)).expanduser() if revoked else None,
    )


def _jump(host: Host, jump: str, hostname: str, port: int, timeout: str) -> str:
    """Return the proxy command for ProxyJump: another ssh process with the same configuration, as in OpenSSH.

    Command-line options other than -F do not apply to jump hosts; see -J in ssh(1).
    """
    *before, last = jump.split(",")
    words = ["exec ssh -o BatchMode=yes -o ClearAllForwardings=no"]
    words += [f"-o ConnectTimeout={timeout}"] if timeout else []
    words += [f"-F {shlex.quote(file)}" for file in _config_file(host.ssh_args)]
    words += [f"-J {shlex.quote(','.join(before))}"] if before else []
    words.append(f"-W {shlex.quote(f'[{hostname}]:{port}')}")
    words.append(shlex.quote(last if last.startswith("ssh://") else f"ssh://{last}"))
    return " ".join(words)


def _config_file(args: Sequence[str]) -> list[str]:
    files = [args[n + 1] for n, word in enumerate(args[:-1]) if word == "-F"]
    return (files + [word[2:] for word in args if word.startswith("-F") and len(word) > 2])[:1]


def _tokens(hostname: str, original: str, port: int, user: str, alias: str) -> Mapping[str, str]:
    local_host = socket.gethostname()
    return {
        "%": "%",
        "h": hostname,
        "n": original,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
        "d": str(Path.home()),
        "i": str(os.getuid()),
        "k": alias or hostname,
        "l": local_host,
        "L": local_host.partition(".")[0],
    }


def _expand(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub(r"%(.)", lambda m: tokens.get(m[1], m[0]), text)


def _agent(setting: str, tokens: Mapping[str, str]) -> str | None:
    if setting == "none":
        return None
    if setting == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    return str(Path(os.path.expandvars(_expand(setting, tokens))).expanduser())


def _files(settings: Mapping[str, Sequence[str]], keys: Iterable[str]) -> Iterable[Path]:
    for key in keys:
        # ssh -G separates files by unquoted blanks, so a new file begins at each start of a path.
        for file in re.split(r" (?=[/~])", settings.get(key, ("",))[0]):
            if file and file != "none":
                yield Path(file).expanduser()
