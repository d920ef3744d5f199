"""Run this Python's Ansible to read inventories, Ansible settings, and values with templates."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts import plain
from fleetmark.hosts.ansible_cfg import config_file, config_variable

_LONG_LIMIT = 1 << 16  # characters of --limit

# Ansible's output is parsed, so it must be complete and without colours. A log file could contain passwords.
_QUIET = {
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_FORCE_COLOR": "0",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
    "ANSIBLE_LOCALHOST_WARNING": "0",
    "ANSIBLE_DEVEL_WARNING": "0",
    "ANSIBLE_LOG_PATH": os.devnull,
    "ANSIBLE_LOAD_CALLBACK_PLUGINS": "0",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """The output of ``ansible-inventory --list``. ``hosts``: variables by host name, in inventory order.

    ``groups``: hosts and child groups by group name; ``warnings``: complete sentences.
    """

    hosts: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    warnings: tuple[str, ...]

    def groups_of(self, host: str) -> tuple[str, ...]:
        """Return the sorted groups of ``host``, also through child groups, without ``all`` and ``ungrouped``."""
        holding = {name for name, (hosts, _) in self.groups.items() if host in hosts}
        while grown := {n for n, (_, children) in self.groups.items() if n not in holding and holding & set(children)}:
            holding |= grown
        return tuple(sorted(holding - {"all", "ungrouped"}))


def list_inventory(sources: Sequence[str], limit: str | None) -> tuple[Listed, Mapping[str, Any]]:
    """Return the inventory, and the connection settings of ansible.cfg and ``ANSIBLE_*`` (``settings``).

    A plain list of hosts is read without Ansible (``plain``). Raise FleetmarkError with Ansible's error message if
    Ansible fails.
    """
    if len(sources) == 1 and limit is None and not _is_configured() and (document := plain.read(sources[0])):
        return _listed(document, ()), {}
    words = ["inventory", "--list", *(w for s in sources for w in ("-i", s))]
    with ThreadPoolExecutor(1) as background, _limit_words(limit) as chosen:
        setting_lookup = background.submit(settings)
        done = _ansible([*words, *chosen])
        if done.returncode:
            raise FleetmarkError(f"{', '.join(sources)}: {_last_words(done.stderr)}")
        return _listed(json.loads(done.stdout), _warnings(done.stderr)), setting_lookup.result()


@contextlib.contextmanager
def _limit_words(limit: str | None) -> Iterator[list[str]]:
    """Yield Ansible's option for ``limit``.

    A command-line argument has at most 128 KiB, so a long list is passed as a file.
    """
    if not limit or len(limit) < _LONG_LIMIT:
        yield ["--limit", limit] if limit else []
        return
    with tempfile.NamedTemporaryFile("w", suffix=".hosts") as file:
        file.write(limit.replace(",", "\n"))
        file.flush()
        yield ["--limit", f"@{file.name}"]


def settings() -> Mapping[str, Any]:
    """Return the Ansible settings that the user changed, by name. Names of the ssh plugin are lower case.

    All other names are upper case. Without an ansible.cfg and ``ANSIBLE_*`` variables, the result is empty, and Ansible
    is not started.
    """
    if not _is_configured():
        return {}
    done = _ansible(["config", "dump", "--only-changed", "--format", "json", "-t", "all"])
    if done.returncode:
        raise FleetmarkError(f"ansible.cfg: {_last_words(done.stderr)}")
    values: dict[str, Any] = {}
    for entry in json.loads(done.stdout):
        if "name" in entry:
            values[entry["name"]] = entry["value"]
        for plugin in entry.get("CONNECTION_PLUGINS", ()):
            values |= {option["name"]: option["value"] for option in plugin.get("ssh", ())}
    return values


def _is_configured() -> bool:
    """Return whether the user changed any setting of Ansible. Raise FleetmarkError like ``config_file``."""
    return any(k.startswith("ANSIBLE_") for k in os.environ) or config_file() is not None


def template(
    sources: Sequence[str], limit: str | None, names: Iterable[str]
) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]]:
    """Evaluate variables with Ansible (templates, vault). Return the values and the reasons of failures, by host."""
    expressions = ", ".join(f"{json.dumps(n)}: {n} if {n} is defined else none" for n in names)
    words = ["adhoc", "all", *(w for s in sources for w in ("-i", s))]
    words += ["-m", "ansible.builtin.debug", "-a", json.dumps({"msg": f"{{{{ {{{expressions}}} }}}}"})]
    # The debug action connects to no host, but Ansible still loads the connection plugin.
    with _limit_words(limit) as chosen:
        done = _ansible([*words, *chosen, "-e", '{"ansible_connection": "local"}', "--forks", "16"])
    values: dict[str, Mapping[str, Any]] = {}
    failed: dict[str, str] = {}
    for match in re.finditer(r"^(.+?) \| ([A-Z]+)!? => (?=\{)", done.stdout, re.MULTILINE):
        reply, _ = json.JSONDecoder().raw_decode(done.stdout, match.end())
        if match[2] == "SUCCESS":
            values[match[1]] = reply["msg"]
        else:
            failed[match[1]] = " ".join(str(reply.get("msg")).split())
    if not values and not failed:
        raise FleetmarkError(f"{', '.join(sources)}: {_last_words(done.stderr)}")
    return values, failed


def complaint(source: str, warnings: Sequence[str]) -> str | None:
    """Return why Ansible cannot read ``source``, with the line if known, or None if Ansible can read it.

    Ansible only warns, and continues without hosts. Each inventory plugin prints its own error. Use the error of the
    plugin that matches the file.
    """
    path = str(Path(source).expanduser().resolve())
    # Ansible before 2.19 wraps warnings, even inside paths.
    verdict = _squeezed(f"Unable to parse {path} as an inventory source")
    end = next((n for n, w in enumerate(warnings) if _squeezed(w).startswith(verdict)), None)
    if end is None:
        return None
    reasons: dict[str, str] = {}
    for warning in reversed(warnings[:end]):
        if warning.startswith("Unable to parse"):  # earlier warnings concern another source
            break
        match = re.match(r"(?:\* )?Failed to parse (?:inventory|\S+) with '?(\w+)'? plugin: (.*)", warning)
        if match and "no root 'plugin' key" not in match[2]:
            reasons.setdefault(match[1], match[2])
    if Path(path).suffix in (".yml", ".yaml", ".json"):
        order = ["auto", "yaml"]
    else:
        order = ["script" if os.access(path, os.X_OK) else "ini"]
    words = next((reasons[plugin] for plugin in order if plugin in reasons), None) or next(
        iter(reasons.values()), "no plugin reads it"
    )
    line, words = _line_and_words(path, words)
    return f"{source}{line and f' line {line}'}: Ansible cannot read it: {words}"


def sentences(warnings: Sequence[str]) -> list[str]:
    """Return the warnings for the user, with one per unreadable source instead of one per plugin."""
    texts = []
    for warning in warnings:
        if unread := re.match(r"Unable to parse (.+) as an inventory source", warning):
            if not Path(unread[1]).is_dir():  # the warning for a directory repeats those for its files
                texts.append(complaint(unread[1], warnings) or warning)
        elif not re.match(r"(\* )?Failed to parse|No inventory was parsed", warning):
            texts.append(_python_words(warning))
    return texts


def _python_words(text: str) -> str:
    """Return ``text`` with plain names of Python types, such as ``int``, instead of Ansible's own classes."""
    return re.sub(r"<class '[\w.]*?(?:_AnsibleTagged)?(\w+)'>", lambda m: m[1].lower(), text)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _line_and_words(path: str, words: str) -> tuple[str, str]:
    origin = re.search(rf"Origin: {re.escape(path)}:(\d+)", words)
    script = re.search(r"Standard error from inventory script: (.*)", words)
    words = re.split(r" Failed to parse inventory with '\w+' plugin\. <<< caused by >>>", words)[0]
    words = words.removeprefix("Failed to parse inventory: ").removeprefix(f"{path}:").strip()
    words = _python_words(words).rstrip(".")
    if script:
        words += f": {script[1]}"
    if origin:
        return origin[1], words
    if before := re.match(r"(\d+): (.*)", words):  # Ansible before 2.19
        return before[1], before[2]
    wrong = re.search(r"got: (\S+)$|'([^']+)'", words)  # the INI plugin of 2.19 does not report the line
    if wrong and Path(path).is_file():
        word = rf"(^|[\s\[=]){re.escape(wrong[1] or wrong[2])}($|[\s\]])"
        lines = Path(path).read_text(errors="replace").splitlines()
        numbers = [n for n, line in enumerate(lines, 1) if re.search(word, line)]
        if len(numbers) == 1:
            return str(numbers[0]), words
    return "", words


def _listed(doc: Mapping[str, Any], warnings: tuple[str, ...]) -> Listed:
    variables = doc.get("_meta", {}).get("hostvars", {})
    groups = {
        name: (tuple(group.get("hosts", ())), tuple(group.get("children", ())))
        for name, group in doc.items()
        if name != "_meta"
    }
    hosts: dict[str, Mapping[str, Any]] = {}
    waiting = ["all"]
    visited = set()
    while waiting:  # depth first, which is the order in the file
        name = waiting.pop(0)
        if name in visited:
            continue
        visited.add(name)
        members, children = groups.get(name, ((), ()))
        hosts |= {host: _plain(variables.get(host, {})) for host in members if host not in hosts}
        waiting = [*children, *waiting]
    return Listed(hosts, groups, warnings)


def _plain(value: Any) -> Any:
    """Return ``value`` without the wrapper that marks values of a dynamic inventory as unsafe for templates."""
    if isinstance(value, dict):
        if set(value) == {"__ansible_unsafe"}:
            return value["__ansible_unsafe"]
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list) else value


def utf8_locale() -> Mapping[str, str]:
    """Return the environment variables that Ansible needs to start, because it requires a UTF-8 locale."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")  # the first one that is set takes effect: locale(7)
    chosen = next((value for name in names if (value := os.environ.get(name))), "")
    return {} if re.search(r"utf-?8", chosen, re.IGNORECASE) else {"LC_ALL": "C.UTF-8"}


def _ansible(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Run a module of this Python, because its scripts may not be on PATH. -P: load no module from the current folder.
    argv = [sys.executable, "-P", "-m", "ansible", *words]
    return subprocess.run(
        argv,
        env={**os.environ, **_QUIET, **config_variable(), **utf8_locale()},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def _warnings(stderr: str) -> tuple[str, ...]:
    chunks = re.split(r"^\s*\[(?:DEPRECATION )?WARNING\]:", stderr, flags=re.MULTILINE)[1:]
    return tuple(" ".join(chunk.split()) for chunk in chunks)


def _last_words(stderr: str) -> str:
    """Return Ansible's error message on one line."""
    errors = re.split(r"^\s*(?:\[ERROR\]:|ERROR!)", stderr, flags=re.MULTILINE)
    return " ".join(re.split(r"\n\s*\n", errors[-1].strip())[0].split()) or "ansible printed no error"
