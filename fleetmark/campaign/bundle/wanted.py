"""List everything that the roles of a suite fetch: sources by URL or commit, and distribution packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.schedule import Settings, settings_of
from fleetmark.workloads import Suite, load, workload_of
from fleetmark.workloads.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Download:
    """A source at a URL, with its SHA-256 in lower case. ``parameter`` is the WORKLOAD.PARAMETER that contains
    the URL.
    """

    parameter: str
    url: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit of a git repository by its full hash, with the SHA-256 of its archive in lower case."""

    parameter: str
    git: str
    commit: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """List everything that a suite fetches.

    ``packages`` is by distribution family; ``local`` lists sources that are local files.
    """

    downloads: tuple[Download, ...]
    checkouts: tuple[Checkout, ...]
    packages: Mapping[str, tuple[str, ...]]
    local: tuple[str, ...]


def checksum_of(manifest: Manifest, parameter: str) -> str | None:
    """Return the parameter that has the SHA-256 of the source in ``parameter``, or None if there is none."""
    return next((key for key in (f"{parameter}_sha256", "sha256") if key in manifest.parameters), None)


def wanted(suite: Suite, settings: Settings) -> Wanted:
    """Return everything that the workloads of ``suite`` may fetch on any host with any hardware.

    Raise FleetmarkError for a URL without a SHA-256, or a commit without a full hash.
    """
    downloads: dict[Download, None] = {}
    checkouts: dict[Checkout, None] = {}
    packages: dict[str, dict[str, None]] = {}
    local: dict[str, None] = {}
    for entry, values in settings_of(suite, settings).items():
        manifest = load(workload_of(entry))
        if manifest.deploy is None:
            continue
        for family, names in manifest.deploy.packages.items():
            packages.setdefault(family, {}).update(dict.fromkeys(names))
        sources = [key for key, parameter in manifest.parameters.items() if parameter.type == "source"]
        for key in sources:
            value = _value(manifest, values, key)
            if value.startswith(("http://", "https://")):
                downloads[_download(manifest, values, key, value)] = None
            elif value:
                local[f"{manifest.name}.{key}"] = None
        given = any(_value(manifest, values, key) for key in (*sources, "path") if key in manifest.parameters)
        if not given and {"git", "commit"} <= manifest.parameters.keys():
            checkouts[_checkout(manifest, values)] = None
    by_family = {family: tuple(names) for family, names in packages.items()}
    return Wanted(tuple(downloads), tuple(checkouts), by_family, tuple(local))


def _value(manifest: Manifest, values: Mapping[str, Any], key: str) -> str:
    return str(values.get(key, manifest.parameters[key].default) or "")


def _download(manifest: Manifest, values: Mapping[str, Any], key: str, url: str) -> Download:
    name = checksum_of(manifest, key)
    digest = _value(manifest, values, name).lower() if name else ""
    if not _is_hex(digest, 64):
        raise FleetmarkError(
            f"{manifest.name}.{key} is a URL, and a bundle needs its SHA-256: --set {manifest.name}.{name or key}=SUM"
        )
    return Download(f"{manifest.name}.{key}", url, digest)


def _checkout(manifest: Manifest, values: Mapping[str, Any]) -> Checkout:
    commit = _value(manifest, values, "commit").lower()
    if not _is_hex(commit, 40):
        raise FleetmarkError(f"{manifest.name}.commit: give the full hash of 40 digits, got {commit!r}")
    digest = _value(manifest, values, "commit_sha256").lower()
    if not _is_hex(digest, 64):
        raise FleetmarkError(f"{manifest.name}.commit_sha256: give the SHA-256 of git archive, got {digest!r}")
    return Checkout(f"{manifest.name}.git", _value(manifest, values, "git"), commit, digest)


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and set(text) <= set("0123456789abcdef")
