"""Group the hosts that do not answer by cause, each with a command that fixes or diagnoses the cause."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, message

Login = Sequence[str]  # ssh's arguments for a login: -p PORT -l USER ADDRESS


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of hosts that do not answer. ``pattern`` recognises it in the reason.

    ``title``: a text for several hosts whose reasons differ only in names and addresses; ``advice``: what to do;
    ``command``: a function that returns the command for the login of the first host.
    """

    title: Message
    advice: Message
    pattern: re.Pattern[str]
    command: Callable[[Login], str]

    def key(self, reason: str) -> str:
        """Return the grouping key of a reason: the cause's title, or the reason itself if the cause is unknown."""
        return reason if self is CAUSES[-1] else self.title

    def reason(self, reasons: Sequence[str]) -> str:
        """Return one reason for several hosts: their common reason if all are equal, else the title of the cause."""
        return reasons[0] if len(set(reasons)) == 1 else self.title


def cause_of(reason: str) -> Cause:
    """Return the cause that matches a reason such as ``10.0.0.4 port 22 did not answer within 10 s``."""
    return next(cause for cause in CAUSES if cause.pattern.search(reason))


def by_cause(reasons: Iterable[tuple[str, str]]) -> list[tuple[Cause, list[str], str]]:
    """Group hosts by cause, the most frequent first. ``reasons``: hosts with their reasons.

    Return the cause, its hosts and their reason. Hosts without a known cause are grouped by the text of the reason.
    """
    groups: dict[str, tuple[Cause, list[str], list[str]]] = {}
    for host, reason in reasons:
        cause = cause_of(reason)
        _, hosts, texts = groups.setdefault(cause.key(reason), (cause, [], []))
        hosts.append(host)
        texts.append(reason)
    listed = [(cause, hosts, cause.reason(texts)) for cause, hosts, texts in groups.values()]
    return sorted(listed, key=lambda group: -len(group[1]))


def _ssh(login: Login, *words: str, options: Sequence[str] = ()) -> str:
    return shlex.join(["ssh", *options, *login, *words])


def _address(login: Login) -> str:
    return login[-1] if login else ""


def _port(login: Login) -> str:
    return login[login.index("-p") + 1] if "-p" in login else "22"


def _copy_key(login: Login) -> str:
    user = [f"{login[login.index('-l') + 1]}@"] if "-l" in login else [""]
    port = ["-p", _port(login)] if "-p" in login else []
    return shlex.join(["ssh-copy-id", *port, f"{user[0]}{_address(login)}"])


def _known_name(login: Login) -> str:
    return _address(login) if _port(login) == "22" else f"[{_address(login)}]:{_port(login)}"


def _route(login: Login) -> str:
    try:
        return f"ip route get {ipaddress.ip_address(_address(login))}"
    except ValueError:
        return shlex.join(["ping", "-c", "3", _address(login)])


_INSTALL = "sudo apt-get install -y python3 || sudo dnf install -y python3"
CAUSES = (
    Cause(
        message("the host key is not known"),
        message("compare the fingerprint that ssh shows, then accept it"),
        re.compile(r"its host key .* is not known|is known by a certificate authority only"),
        _ssh,
    ),
    Cause(
        message("the host key changed"),
        message("if the host was reinstalled, remove its old key, then log in once with ssh"),
        re.compile("its host key CHANGED"),
        lambda login: shlex.join(["ssh-keygen", "-R", _known_name(login)]),
    ),
    Cause(
        message("the log-in is refused"),
        message("install your key on the host, or name the right user and key in the inventory"),
        re.compile("log-in as .* is refused|MaxAuthTries"),
        _copy_key,
    ),
    Cause(
        message("sudo needs a password"),
        message("allow sudo without a password, or set ansible_become_password in the inventory"),
        re.compile("sudo (needs a password|refuses)|is not in the sudoers file"),
        lambda login: _ssh(login, "sudo visudo -f /etc/sudoers.d/fleetmark", options=["-t"]),
    ),
    Cause(
        message("there is no sudo"),
        message("install sudo, or log in as root"),
        re.compile("the host has no sudo"),
        lambda login: _ssh(login, "su -c 'apt-get install -y sudo || dnf install -y sudo'", options=["-t"]),
    ),
    Cause(
        message("there is no Python"),
        message("install Python 3, or set ansible_python_interpreter in the inventory"),
        re.compile("install python3|python3?: (command )?not found"),
        lambda login: _ssh(login, _INSTALL, options=["-t"]),
    ),
    Cause(
        message("no answer in time"),
        message("check whether the host is up, whether the address is correct, and whether a firewall blocks the port"),
        re.compile("did not answer within"),
        lambda login: shlex.join(["ping", "-c", "3", _address(login)]),
    ),
    Cause(
        message("the connection is refused"),
        message("start sshd on the host, or set ansible_port to its port"),
        re.compile("refuses connections"),
        lambda login: shlex.join(["nc", "-vz", _address(login), _port(login)]),
    ),
    Cause(
        message("there is no route"),
        message("check the route to the host"),
        re.compile("cannot be reached|cannot connect through|no route to host|network is unreachable", re.IGNORECASE),
        _route,
    ),
    Cause(
        message("the name does not resolve"),
        message("set ansible_host in the inventory, or add the name to DNS or to your SSH configuration"),
        re.compile("does not resolve"),
        lambda login: shlex.join(["getent", "hosts", _address(login)]),
    ),
    Cause(
        message("another reason"),
        message("check where the log-in fails"),
        re.compile(""),
        lambda login: _ssh(login, "true", options=["-v"]),
    ),
)
