"""Define the options of a run, and convert them to the content of ``campaign.json``."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fleetmark.base import extensions
from fleetmark.base.redact import conceal, redacted
from fleetmark.base.user import user_name
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.bundle import check
from fleetmark.campaign.resumed.scheduled import host_entry
from fleetmark.campaign.schedule import Settings
from fleetmark.campaign.turns import Turns
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import WORK_DIR
from fleetmark.hosts.slurm.cluster import Request as SlurmRequest
from fleetmark.record.archive import ssh_signature, utc
from fleetmark.record.steps import Schedule, Trial
from fleetmark.workloads import Suite, workload_of
from fleetmark.workloads.external import recorded
from fleetmark.workloads.manifest import files as manifest_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of ``fleetmark run``.

    - ``content``: the suite itself, if it is not read by its name
    - ``parent``: the campaign that started this one; ``root`` is then a folder below ``within``, the user's results
      root
    - ``sign``: the SSH key that signs the journal at the end
    - ``guard``: whether to refuse hosts that are in production or busy
    """

    suite: str
    content: Suite | None = None
    parent: str = ""
    within: Path | None = None
    inventory: tuple[str, ...] = ()
    limit: str | None = None
    settings: Settings | None = None
    repeats: int | None = None
    seed: int | None = None
    become: bool = False
    work_dir: str = WORK_DIR
    root: Path = Path("fleetmark-results")
    connect_timeout_s: float | None = None
    patience_s: float = 120.0
    until: Until | None = None
    slurm: SlurmRequest | None = None
    shared: Path | None = None
    at_once: tuple[str, ...] = ()
    trial: Trial | None = None
    bundle: Path | None = None
    sign: Path | None = None
    guard: bool = False

    @property
    def turns(self) -> Turns:
        return Turns.parse(self.at_once)

    def check_turns(self) -> None:
        """Raise FleetmarkError if a limit given with --at-once is invalid."""
        Turns.parse(self.at_once)

    def check_bundle(self) -> None:
        """Raise FleetmarkError if the bundle given with --bundle is damaged, or is not a bundle."""
        if self.bundle:
            check(self.bundle)

    def check_key(self) -> None:
        """Raise FleetmarkError if the key given with --sign cannot sign without user interaction."""
        if self.sign:
            ssh_signature.sign("", self.sign)

    @property
    def rounds(self) -> int | None:
        """Return the number of repeats of each case if the command line sets it, or None."""
        return self.until.maximum if self.until else self.repeats


def campaign_document(
    options: Options, name: str, seed: int, hosts: Sequence[Host], schedule: Schedule, suite: Suite
) -> dict[str, Any]:
    """Return the content of ``campaign.json``, which describes the campaign well enough to repeat it."""
    from fleetmark import __version__

    workloads = list(dict.fromkeys(map(workload_of, schedule.settings)))
    manifests = {path.stem: _digest(path) for w in workloads for path in manifest_files(w)}
    return {
        "id": name,
        "created": utc(),
        "suite": str(Path(options.suite).resolve()) if Path(options.suite).is_file() else options.suite,
        # Settings are stored separately in "settings", without credentials.
        "suite_as_read": redacted(suite.model_dump(mode="json", exclude={"workloads": {"__all__": {"set"}}})),
        "workloads": workloads,
        "settings": schedule.settings,
        "repeats": options.repeats,
        "until": asdict(options.until) if options.until else None,
        "seed": seed,
        "command": command_of(options, seed),
        "owner": author(),
        "inventory": resolved(options.inventory),
        "limit": options.limit,
        "become": options.become,
        "work_dir": options.work_dir,
        "slurm": asdict(options.slurm) if options.slurm else None,
        "shared": str(options.shared.resolve()) if options.shared else None,
        "at_once": list(options.at_once),
        "parent": options.parent,
        "trial": asdict(options.trial) if options.trial else None,
        "hosts": [host_entry(host) for host in hosts],
        "exchanges": [asdict(e) for e in schedule.exchanges],
        "versions": {
            "fleetmark": __version__,
            "python": platform.python_version(),
            "ansible-core": importlib.metadata.version("ansible-core"),
            "ansible-runner": importlib.metadata.version("ansible-runner"),
        },
        "extensions": recorded(schedule.settings),
        "sha256": manifests | {f"agent/{p.name}": _digest(p) for p in sorted((PLAYBOOKS / "agent").rglob("*.py"))},
    }


def author() -> str:
    """Return the user and machine of this process as USER@MACHINE."""
    return f"{user_name()}@{socket.gethostname()}"


def resolved(inventory: Sequence[str]) -> list[str]:
    """Return the inventory sources with absolute file paths."""
    return [str(Path(source).resolve()) if Path(source).exists() else source for source in inventory]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def command_of(options: Options, seed: int) -> list[str]:
    """Return the command line that repeats the run with the same seed."""
    words = ["fleetmark", "run"]
    for source in options.inventory:
        words += ["-i", source]
    if options.limit:
        words += ["--limit", options.limit]
    words += ["--suite", options.suite, "--seed", str(seed)]
    if options.until:
        words += ["--until-ci", f"{options.until.ci:.4%}", "--max-repeats", str(options.until.maximum)]
    if options.repeats:
        words += ["--repeats", str(options.repeats)]
    for workload, settings in conceal(options.settings or {})[0].items():
        for parameter, value in settings.items():
            words += ["--set", f"{workload}.{parameter}={value}"]
    if options.slurm:
        words += ["--slurm", *options.slurm.words()]
    for option, path in (("--shared", options.shared), ("--bundle", options.bundle and options.bundle.resolve())):
        words += [option, str(path)] if path else []
    for bound in options.at_once:
        words += ["--at-once", bound]
    for extension in extensions.chosen():
        words += ["--workloads", str(extension.path)]
    if options.become:
        words.append("--become")
    if options.work_dir != WORK_DIR:
        words += ["--work-dir", options.work_dir]
    return words
