"""Implement ``fleetmark doctor``: check this machine's requirements for controlling a fleet, with a command to fix each
problem.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count
from fleetmark.base.units import human
from fleetmark.reports.lists import checks as report
from fleetmark.reports.lists.checks import Check
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents

LEAST_FREE_BYTES = 1 << 30
_COMMAND_S = 20.0  # timeout for each program's version query
_INSTALLERS = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "zypper": "zypper install -y",
    "apk": "apk add",
}
_FONTS = (("fonts", ":", "fonts-dejavu-core"), ("Chinese fonts", ":lang=zh", "fonts-noto-cjk"))
# Developer tools, which need no check.
_DEVELOPERS = frozenset({"dev", "all"})


def show(root: str, form: str, console: Console, files: Documents) -> bool:
    """Print the checks, and write the requested ``files``. Return whether all requirements of ``run`` are met."""
    checks = [*_needed(root), *_useful()]
    documents.show(report.document(checks), form, console, files)
    return all(check.is_good for check in checks if check.is_needed)


def _needed(root: str) -> Iterator[Check]:
    """Yield the checks of requirements that every run has."""
    yield Check("Python", True, True, platform.python_version(), "")
    yield _packages("packages", "", is_needed=True)
    yield _ansible()
    yield _program("ssh", "openssh-client", "reaches hosts", is_needed=True)
    yield _program("ssh-keygen", "openssh-client", "reads keys", is_needed=True)
    yield from _results(root)
    yield _clock()


def _useful() -> Iterator[Check]:
    """Yield the checks of requirements that some verbs or workloads have."""
    yield _keys()
    yield _program("git", "git", "fetches sources that a workload names by a repository")
    yield _program("make", "make", "runs the targets of a checkout")
    yield _pdf()
    yield from _fonts()
    for extra in _extras():
        yield _packages(f"extra {extra}", extra)


def _program(name: str, package: str, purpose: str, *, is_needed: bool = False) -> Check:
    path = shutil.which(name)
    return Check(name, is_needed, path is not None, path or f"not found; it {purpose}", _install(package))


def _install(package: str) -> str:
    """Return the command that installs a package of this machine's distribution; empty if no manager is known."""
    words = next((words for name, words in _INSTALLERS.items() if shutil.which(name)), "")
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}{words} {package}" if words else ""


def _requirements(extra: str) -> list[Requirement]:
    """Return the package's requirements, or those that its ``extra`` adds."""
    try:
        listed = [Requirement(text) for text in importlib.metadata.requires("fleetmark") or ()]
    except (importlib.metadata.PackageNotFoundError, InvalidRequirement):
        return []
    if not extra:
        return [r for r in listed if r.marker is None or r.marker.evaluate({"extra": ""})]
    marked = [(r, r.marker) for r in listed if r.marker]
    return [r for r, marker in marked if marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})]


def _extras() -> list[str]:
    try:
        names = importlib.metadata.metadata("fleetmark").get_all("Provides-Extra") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(set(names) - _DEVELOPERS)


def _packages(name: str, extra: str, *, is_needed: bool = False) -> Check:
    """Check the Python packages that Fleetmark or one of its extras requires."""
    required = [r for r in _requirements(extra) if r.name != "fleetmark"]
    lacking = [problem for requirement in required if (problem := _lack(requirement))]
    wanted = f"fleetmark[{extra}]" if extra else "fleetmark"
    command = shlex.join([sys.executable, "-m", "pip", "install", "--upgrade", wanted])
    finding = count(len(required), "Python package") if not lacking else "; ".join(lacking)
    return Check(name, is_needed, not lacking, finding, command)


def _lack(requirement: Requirement) -> str:
    """Return the problem with an installed package; empty if there is none."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} {version} is not {requirement.specifier}"


def _ansible() -> Check:
    done = _output([sys.executable, "-m", "ansible", "adhoc", "--version"])
    first = done.splitlines()[0] if done else "it does not start"
    command = shlex.join([sys.executable, "-m", "pip", "install", "--upgrade", "ansible-core", "ansible-runner"])
    return Check("ansible", True, bool(done), first, command)


def _output(argv: Sequence[str]) -> str:
    """Return a program's output; empty if it fails or takes too long."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_COMMAND_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _results(root: str) -> Iterator[Check]:
    """Check that campaigns can be saved: the results folder is writable and has free space."""
    if ":/" in root:
        yield Check("results", True, True, f"{root} is an object store, which is not checked", "")
        return
    folder = Path(root).absolute()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    elsewhere = "export FLEETMARK_RESULTS=$HOME/fleetmark-results"
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        yield Check("results", True, False, f"{folder} cannot be written: {error.strerror}", elsewhere)
        return
    yield Check("results", True, True, str(folder), "")
    free = shutil.disk_usage(parent).free
    text = f"{human(free, 'B')} free in {parent}"
    yield Check("space", True, free >= LEAST_FREE_BYTES, text, elsewhere)


def _clock() -> Check:
    """Check the clock, because campaigns are named by time, and certificates and stores reject a wrong time."""
    newest = Path(__file__).stat().st_mtime
    if time.time() < newest - 86400:
        return Check("clock", True, False, f"it is {time.strftime('%Y-%m-%d %H:%M')}, before this program", _SYNC)
    state = _output(["timedatectl", "show", "--property", "NTPSynchronized", "--value"])
    text = {"yes": "synchronised", "no": "not synchronised"}.get(state, "the synchronisation is unknown")
    return Check("clock", False, state != "no", text, _SYNC)


_SYNC = "sudo timedatectl set-ntp true"


def _keys() -> Check:
    agent = os.environ.get("SSH_AUTH_SOCK")
    files = sorted(path.with_suffix("").name for path in (Path.home() / ".ssh").glob("id_*.pub"))
    finding = "an agent" if agent and Path(agent).exists() else ", ".join(files)
    return Check("ssh key", False, bool(finding), finding or "no key in ~/.ssh and no agent", "ssh-keygen -t ed25519")


def _pdf() -> Check:
    from fleetmark.reports.formats import pdf

    try:
        pdf.check()
    except FleetmarkError as error:
        command = _install("libpango-1.0-0 libpangoft2-1.0-0")
        return Check("PDF", False, False, " ".join(str(error).split()), command)
    return Check("PDF", False, True, "WeasyPrint and its libraries", "")


def _fonts() -> Iterator[Check]:
    """Check the fonts for PDF files. Chinese needs an additional font."""
    if shutil.which("fc-list") is None:
        yield Check("fonts", False, False, "fc-list is not installed, so the fonts are unknown", _install("fontconfig"))
        return
    for name, pattern, package in _FONTS:
        number = len(_output(["fc-list", pattern]).splitlines())
        finding = f"{number} for PDF files" if number else "no fonts for PDF files"
        yield Check(name, False, number > 0, finding, _install(package))
