"""Read Ansible inventories with Ansible itself, and convert them to typed hosts."""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.hosts.ansible import Listed, complaint, list_inventory, sentences, template

PREFIX = "fleetmark_"
GENERATION = "fleetmark_generation"  # for example icelake; becomes the label ``gen``
LABELS = "fleetmark_labels"  # for example {rack: r12, role: db}
PEER_ADDRESS = "fleetmark_address"  # the address for other hosts, if it differs from ansible_host
IGNORED_PORTS = "fleetmark_ignored_ports"  # TCP ports of services that do not make a host busy, for example [9273]
_VARIABLES = (GENERATION, LABELS, PEER_ADDRESS, IGNORED_PORTS)

# Ansible's names for each setting. If several are set, the last one takes effect, as in its ssh plugin.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "password": ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
    "key_file": ("ansible_private_key_file", "ansible_ssh_private_key_file"),
    "timeout": ("ansible_timeout", "ansible_ssh_timeout"),
    "ssh_args": ("ansible_ssh_args",),
    "ssh_common_args": ("ansible_ssh_common_args",),
    "ssh_extra_args": ("ansible_ssh_extra_args",),
    "host_key_checking": ("ansible_host_key_checking", "ansible_ssh_host_key_checking"),
    "connection": ("ansible_connection",),
    "python": ("ansible_python_interpreter",),
    "become": ("ansible_become",),
    "become_user": ("ansible_become_user",),
    "become_method": ("ansible_become_method",),
    "become_password": ("ansible_sudo_pass", "ansible_become_pass", "ansible_become_password"),
}
# The same settings as in ansible.cfg or ANSIBLE_*, which apply to all hosts.
_SETTINGS: Mapping[str, str] = {
    "port": "port",
    "user": "remote_user",
    "key_file": "private_key_file",
    "timeout": "timeout",
    "ssh_args": "ssh_args",
    "ssh_common_args": "ssh_common_args",
    "ssh_extra_args": "ssh_extra_args",
    "host_key_checking": "host_key_checking",
    "connection": "DEFAULT_TRANSPORT",
    "python": "INTERPRETER_PYTHON",
    "become": "DEFAULT_BECOME",
    "become_user": "DEFAULT_BECOME_USER",
    "become_method": "DEFAULT_BECOME_METHOD",
}
_log = logging.getLogger(__name__)
_SSH = frozenset({"ssh", "smart", "paramiko", "paramiko_ssh"})


@dataclass(frozen=True, slots=True)
class Host:
    """A server and how to reach it.

    ``address``: the address for SSH, possibly a name in the user's SSH configuration; ``peer_address``: the address for
    other hosts; ``ssh_args``: command-line options of OpenSSH; ``unusable``: the reason why Fleetmark cannot use it;
    ``ignored_ports``: TCP ports of services that do not make the host busy.
    """

    name: str
    address: str
    peer_address: str
    _: KW_ONLY
    connection: Literal["ssh", "local", "slurm"] = "ssh"
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    ssh_args: tuple[str, ...] = ()
    password: str | None = field(default=None, repr=False)
    become: bool = False
    become_password: str | None = field(default=None, repr=False)
    python: str | None = None
    groups: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    ignored_ports: frozenset[int] = frozenset()
    unusable: str | None = None


def load_inventory(
    sources: Sequence[str],
    limit: str | None = None,
    warn: Callable[[str], None] = _log.warning,
) -> list[Host]:
    """Return the hosts of Ansible inventories in order, or this machine if there are no ``sources``.

    A source is a file, directory, script or ``h1,h2,``. ansible.cfg, ``ANSIBLE_*``, group_vars and vaults apply as for
    Ansible in the current folder. ``warn`` is called with Ansible's warnings. Raise FleetmarkError if an inventory is
    missing, malformed or empty, or if ``limit`` matches no host.
    """
    if not sources:
        host = this_machine()
        if limit not in (None, "all", "localhost", host.name):
            raise FleetmarkError(f"--limit {_short(limit)} matches no host: without -i, only this machine is used")
        return [host]
    for source in sources:
        if "," not in source and not Path(source).expanduser().exists():
            raise FleetmarkError(
                f"no inventory {source}: no such file or directory (for a host name, append a comma: -i {source},)"
            )
    listed, settings = list_inventory(sources, limit)
    for source in sources:
        # Ansible skips unreadable files in a directory with a warning.
        if Path(source).expanduser().is_file() and (problem := complaint(source, listed.warnings)):
            raise FleetmarkError(problem)
    if not listed.hosts:
        raise FleetmarkError(_nothing(sources, limit, listed))
    for warning in (*sentences(listed.warnings), *_unknown_variables(listed)):
        warn(warning)
    passwords = {
        "password": _password_file(settings.get("CONNECTION_PASSWORD_FILE")),
        "become_password": _password_file(settings.get("BECOME_PASSWORD_FILE")),
    }
    defaults = {k: settings[v] for k, v in _SETTINGS.items() if settings.get(v) not in (None, "")}
    defaults |= {k: v for k, v in passwords.items() if v}
    variables, failed = _templated(sources, limit, listed.hosts)
    return [_host(name, variables[name], defaults, listed.groups_of(name), failed.get(name)) for name in listed.hosts]


def _unknown_variables(listed: Listed) -> Iterator[str]:
    """Yield a warning for each unknown variable whose name begins with Fleetmark's prefix."""
    hosts_by_name: dict[str, list[str]] = {}
    for host, variables in listed.hosts.items():
        for name in variables:
            if name.startswith(PREFIX) and name not in _VARIABLES:
                hosts_by_name.setdefault(name, []).append(host)
    for name, hosts in hosts_by_name.items():
        yield f"{_some(hosts, 3)}: Fleetmark has no inventory variable {name}{suggest(name, list(_VARIABLES))}"


def this_machine() -> Host:
    """Return the machine on which Fleetmark runs, to be used without SSH."""
    return Host(socket.gethostname(), "localhost", "localhost", connection="local")


def _nothing(sources: Sequence[str], limit: str | None, listed: Listed) -> str:
    listing = ", ".join(sources)
    unlimited = list_inventory(sources, None)[0] if limit else listed
    if limit and unlimited.hosts:
        groups = sorted(set(unlimited.groups) - {"all", "ungrouped"})
        present = f"hosts {_some(list(unlimited.hosts))}" + (f"; groups {_some(groups)}" if groups else "")
        return f"--limit {_short(limit)} matches no host in {listing}, which has {present}"
    return f"{listing}: no hosts in this inventory{''.join(f'; {s}' for s in sentences(listed.warnings))}"


def _short(limit: str | None) -> str:
    text = limit or ""
    return text if len(text) <= 80 else f"{text[:79]}…"


def _some(names: Sequence[str], limit: int = 12) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _templated(
    sources: Sequence[str], limit: str | None, hosts: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]]:
    """Return the hosts' variables. Ansible evaluates templates and vaulted values that Fleetmark uses."""
    ours = [name for names in _NAMES.values() for name in names] + list(_VARIABLES)
    open_names = [n for n in ours if any(_needs_ansible(v.get(n)) for v in hosts.values())]
    if not open_names:
        return hosts, {}
    values, failed = template(sources, limit, open_names)
    worked_out = {
        host: {**variables, **{k: v for k, v in values.get(host, {}).items() if v is not None}}
        for host, variables in hosts.items()
    }
    return worked_out, failed


def _needs_ansible(value: Any) -> bool:
    if isinstance(value, dict):
        return "__ansible_vault" in value or any(_needs_ansible(v) for v in value.values())
    return isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#"))


def _host(
    name: str, variables: Mapping[str, Any], defaults: Mapping[str, Any], groups: tuple[str, ...], failed: str | None
) -> Host:
    options = dict(defaults)
    for key, names in _NAMES.items():
        values = [variables[n] for n in names if variables.get(n) is not None]
        if values:
            options[key] = values[-1]
    address = str(options.get("address", name))
    connection = str(options.get("connection", "ssh")).removeprefix("ansible.builtin.")
    python = str(options.get("python", "auto"))
    return Host(
        name=name,
        address=address,
        peer_address=str(variables.get(PEER_ADDRESS, address)),
        connection="local" if connection == "local" else "ssh",
        port=_port(name, options.get("port")),
        user=_text(options.get("user")),
        key_file=_text(options.get("key_file")),
        ssh_args=_ssh_args(name, options),
        password=_text(options.get("password")),
        become=_true(options.get("become")),
        become_password=_text(options.get("become_password")),
        python=None if python.startswith("auto") else python,
        groups=groups,
        labels=_labels(name, variables),
        ignored_ports=_ignored_ports(name, variables.get(IGNORED_PORTS, [])),
        unusable=failed or _unusable(connection, options),
    )


def _unusable(connection: str, options: Mapping[str, Any]) -> str | None:
    if connection not in _SSH | {"local"}:
        return f"ansible_connection is {connection}; Fleetmark reaches hosts by ssh or local"
    if not _true(options.get("become")):
        return None
    if (method := options.get("become_method", "sudo")) not in ("sudo", "ansible.builtin.sudo"):
        return f"ansible_become_method is {method}; Fleetmark becomes root with sudo"
    if (user := options.get("become_user", "root")) != "root":
        return f"ansible_become_user is {user}; Fleetmark can only become root"
    return None


def _ssh_args(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return SSH arguments in Ansible's order, because OpenSSH uses the first of a repeated option."""
    args = _split(name, options.get("ssh_args"))
    if "host_key_checking" in options and not _true(options["host_key_checking"]):
        args += ["-o", "StrictHostKeyChecking=no"]
    if "timeout" in options:
        args += ["-o", f"ConnectTimeout={options['timeout']}"]
    return (*args, *_split(name, options.get("ssh_common_args")), *_split(name, options.get("ssh_extra_args")))


def _split(name: str, words: Any) -> list[str]:
    try:
        return [w for w in shlex.split(str(words or "")) if w.strip()]
    except ValueError as error:
        raise FleetmarkError(f"{name}: its ansible_ssh_*args are invalid: {error}") from None  # may hold a password


def _port(name: str, value: Any) -> int | None:
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise FleetmarkError(f"{name}: ansible_port is {value!r}, not a number") from None


def _ignored_ports(name: str, value: Any) -> frozenset[int]:
    ports = value if isinstance(value, list) else [value]
    try:
        numbers = frozenset(int(str(port)) for port in ports)
    except (TypeError, ValueError):
        numbers = frozenset({0})
    if any(not 0 < number < 1 << 16 for number in numbers):
        raise FleetmarkError(f"{name}: {IGNORED_PORTS} is {value!r}; write a list of TCP ports, such as [9273, 6556]")
    return numbers


def _labels(name: str, variables: Mapping[str, Any]) -> Mapping[str, str]:
    raw = variables.get(LABELS, {})
    if not isinstance(raw, dict):
        raise FleetmarkError(f"{name}: {LABELS} is {raw!r}; write a mapping, such as {{rack: r12, role: db}}")
    labels = {str(k): _label(name, f"{LABELS}.{k}", v) for k, v in raw.items()}
    if variables.get(GENERATION) is not None:
        labels["gen"] = _label(name, GENERATION, variables[GENERATION])
    return labels


def _label(name: str, label: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise FleetmarkError(f"{name}: {label} is {value!r}; a label is one word or number")
    return str(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _true(value: Any) -> bool:
    """Return whether Ansible interprets ``value`` as true."""
    return value is True or str(value).strip().lower() in ("yes", "true", "on", "y", "t", "1", "1.0")


def _password_file(path: str | None) -> str | None:
    """Return the password from one of Ansible's password files: the output of a script, or the file's content."""
    if not path:
        return None
    try:
        if os.access(path, os.X_OK):
            return subprocess.run([path], capture_output=True, text=True, check=True).stdout.strip()
        return Path(path).expanduser().read_text().strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise FleetmarkError(f"password file {path}: {error}") from None
