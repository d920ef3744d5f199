"""Write the files to run a watch as a service: systemd units, alert rules, a dashboard and the collector for hosts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.hosts.agent import agent_source

UNITS = ("fleetmark-watch.service", "fleetmark-watch.timer", "fleetmark-metrics.service")
PLAIN = ("fleetmark-rules.yml", "fleetmark-dashboard.json", "prometheus.yml")
AGENT = ("collector.py", "nic_counters.py", "usage.py")  # the first file imports the others


def contents(
    *, watch: Sequence[str], serve: Sequence[str], every_s: float, folder: Path, user: str, becomes: bool
) -> dict[str, str]:
    """Return a mapping of file names to file contents.

    ``watch`` and ``serve``: the commands of the services. ``folder``: their working directory. ``becomes``: whether the
    watch uses sudo on this machine, which NoNewPrivileges would prevent.
    """
    values = {
        "@COMMAND@": _command(watch),
        "@SERVE@": _command(serve),
        "@FOLDER@": _plain("working folder", str(folder)).replace("%", "%%"),
        "@USER@": f"User={_plain('user', user)}\n" if user else "",
        "@EVERY@": f"{every_s:.0f}",
        "@DELAY@": f"{min(300.0, every_s / 10):.0f}",
        "@SEALED@": "no" if becomes else "yes",
    }
    units = {name: _filled(_text(name), values) for name in UNITS}
    return units | {name: _text(name) for name in PLAIN} | {name: agent_source(name).decode() for name in AGENT}


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files to ``folder``, and create it if necessary. Raise FleetmarkError if it is a file."""
    if folder.exists() and not folder.is_dir():
        raise FleetmarkError(f"--install {folder}: is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FleetmarkError(f"--install {folder}: cannot be created: {error.strerror}") from error
    for name, text in texts.items():
        write_atomic(folder / name, text)
    return [folder / name for name in texts]


def _text(name: str) -> str:
    return files("fleetmark.verbs.watch").joinpath("files", name).read_text("utf-8")


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _command(words: Sequence[str]) -> str:
    """Return a command in systemd's syntax: double % and $, and put words with spaces or quotes in double quotes."""
    return " ".join(_quoted(_plain("command", word)) for word in words)


def _quoted(word: str) -> str:
    safe = word.replace("%", "%%").replace("$", "$$")
    if safe == shlex.quote(safe) or (safe and not set(safe) & set(" \t'\"\\;")):
        return safe
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _plain(name: str, text: str) -> str:
    if any(not c.isprintable() for c in text):
        raise FleetmarkError(f"--install: the {name} contains control characters; a systemd unit cannot hold them")
    return text
