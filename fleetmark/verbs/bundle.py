"""Implement ``fleetmark bundle``: collect all downloads of a run in one file, for hosts without a network."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fleetmark import __version__
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import count
from fleetmark.campaign.bundle import INDEX, Contents, Entry, fetch, target_of
from fleetmark.campaign.bundle.wanted import Wanted, wanted
from fleetmark.campaign.schedule import Settings, secrets_of
from fleetmark.hosts.inventory import load_inventory
from fleetmark.hosts.preflight import check_hosts
from fleetmark.record.archive import utc
from fleetmark.workloads import load_suite


@dataclass(frozen=True, slots=True)
class Collected:
    """A written bundle: its path, size in bytes, SHA-256 and contents."""

    path: Path
    size: int
    sha256: str
    contents: Contents


def collect(
    targets: str, suite_name: str, settings: Settings, output: Path, has_wheels: bool, console: Console
) -> Collected:
    """Write a bundle for ``targets``: comma-separated distributions, or an inventory whose hosts are queried.

    Sources are the same for all targets. Packages are collected only for the distribution of this machine. Other
    missing items are listed in the bundle. Raise FleetmarkError if a URL cannot be fetched or has another SHA-256.
    """
    suite = load_suite(suite_name)
    needs = wanted(suite, settings)
    credentials = secrets_of(suite, settings)
    names = _targets(targets)
    missing = [f"{key} is a file on this machine: copy it to the machine that runs fleetmark" for key in needs.local]
    with tempfile.TemporaryDirectory(prefix="fleetmark-bundle-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # apt downloads as an unprivileged user
        for name in ("sources", "packages", "wheels"):
            (folder / name).mkdir()
        origins: dict[str, str] = {}
        for download in needs.downloads:
            with console.status(f"fetching {download.url}"):
                origins[fetch.download(download, credentials, folder / "sources").name] = download.url
        for checkout in needs.checkouts:
            try:
                with console.status(f"fetching commit {checkout.commit[:12]} of {checkout.git}"):
                    sources = fetch.checkout(checkout, folder)
            except FleetmarkError as error:  # most suites have repositories for hardware that few hosts have
                missing.append(str(error))
                continue
            sources.rename(folder / "sources" / sources.name)
            origins[sources.name] = f"{checkout.git} {checkout.commit}"
        for target in names:
            missing += _packages(target, needs, folder / "packages", console)
        if has_wheels:
            for system in {fetch.TARGETS[name].python: fetch.TARGETS[name] for name in names}.values():
                with console.status(f"fetching wheels for Python {system.python}"):
                    missing += fetch.wheels(system, folder / "wheels")
        files = [p for name in ("sources", "packages", "wheels") for p in sorted((folder / name).iterdir())]
        entries = tuple(_entry(p, p.relative_to(folder).as_posix(), origins.get(p.name, "")) for p in files)
        contents = Contents(
            fleetmark=__version__,
            created=utc(),
            suite=suite.name,
            targets=tuple(names),
            entries=entries,
            missing=tuple(missing),
        )
        return _write(contents, folder, output)


def show(collected: Collected, console: Console) -> None:
    """Print the bundle's contents, the missing items, and how to use it."""
    counts = {
        kind: sum(e.path.startswith(f"{kind}/") for e in collected.contents.entries)
        for kind in ("sources", "packages", "wheels")
    }
    console.print(
        f"wrote {collected.path}: {count(counts['sources'], 'source')}, packages for "
        f"{count(counts['packages'], 'distribution')}, {count(counts['wheels'], 'wheel')}, "
        f"{collected.size / 1e6:.0f} MB",
        soft_wrap=True,
    )
    console.print(f"sha256 {collected.sha256}", soft_wrap=True)
    for sentence in collected.contents.missing:
        console.print(f"not in it: {sentence}", soft_wrap=True)
    console.print(f"use it: fleetmark run --suite {collected.contents.suite} --bundle {collected.path}", soft_wrap=True)


def _targets(text: str) -> list[str]:
    """Return the distributions in ``text``, or the distributions of the hosts if ``text`` is an inventory."""
    if Path(text).exists():
        checked = check_hosts(load_inventory([text], None), ())
        for c in checked:
            if c.reach:
                c.reach.close()
        silent = [f"{c.host.name} ({c.reason})" for c in checked if not c.facts]
        if silent:
            raise FleetmarkError(f"--for {text}: no answer from {', '.join(silent[:3])}; name distributions instead")
        names = [target_of(c.facts.os or "") for c in checked if c.facts]
    else:
        names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in fetch.TARGETS:
            hint = suggest(name, list(fetch.TARGETS))
            raise FleetmarkError(
                f"--for {name}: neither an inventory nor a supported distribution{hint}: {', '.join(fetch.TARGETS)}"
            )
    if not names:
        raise FleetmarkError("--for: name an inventory or distributions, such as --for debian12,rocky9")
    return list(dict.fromkeys(names))


def _packages(target: str, needs: Wanted, folder: Path, console: Console) -> list[str]:
    """Collect the packages of a distribution if it is that of this machine.

    Return sentences about the packages that were not collected.
    """
    names = needs.packages.get(fetch.TARGETS[target].family, ())
    if not names:
        return []
    if fetch.TARGETS[target].family != "debian":
        return [
            f"packages for {target}: install {', '.join(names)} on the hosts, for example from the installation medium"
        ]
    if target != fetch.here():
        return [f"packages for {target} ({', '.join(names)}): run fleetmark bundle on a machine with {target}"]
    with console.status(f"fetching {count(len(names), 'package')} for {target} and their dependencies"):
        return fetch.packages(names, folder / f"{target}-{platform.machine()}.tar")


def _entry(path: Path, name: str, origin: str) -> Entry:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Entry(path=name, sha256=digest, bytes=path.stat().st_size, origin=origin)


def _write(contents: Contents, folder: Path, output: Path) -> Collected:
    part = output.with_name(f".{output.name}.part")
    index = contents.model_dump_json(by_alias=True, indent=1).encode()
    try:
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
            head = tarfile.TarInfo(INDEX)
            head.size = len(index)
            tar.addfile(head, io.BytesIO(index))
            for entry in contents.entries:
                member = tarfile.TarInfo(entry.path)
                member.size, member.mode = entry.bytes, 0o644
                with (folder / entry.path).open("rb") as file:
                    tar.addfile(member, file)
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return Collected(output, output.stat().st_size, digest, contents)
