"""Fetch the sources, distribution packages and wheels of a bundle on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.redact import access, redact
from fleetmark.campaign.bundle import target_of
from fleetmark.campaign.bundle.wanted import Checkout, Download
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.hosts.sources import request_for

MAX_SOURCE = 64 << 30  # maximum bytes of one source
TIMEOUT_S = 60.0  # maximum time without any data
COMMAND_S = 1800.0


@dataclass(frozen=True, slots=True)
class Target:
    """A distribution: its package family, its newest Python (at least 3.11), and its C library."""

    family: str
    python: str
    glibc: int  # minor version N of glibc 2.N


TARGETS: Mapping[str, Target] = {
    "debian12": Target("debian", "3.11", 36),
    "debian13": Target("debian", "3.13", 41),
    "ubuntu22.04": Target("debian", "3.11", 35),
    "ubuntu24.04": Target("debian", "3.12", 39),
    "rocky9": Target("rhel", "3.12", 34),
    "alma9": Target("rhel", "3.12", 34),
    "rhel9": Target("rhel", "3.12", 34),
    "rocky10": Target("rhel", "3.12", 39),
    "alma10": Target("rhel", "3.12", 39),
    "rhel10": Target("rhel", "3.12", 39),
}


def here() -> str:
    """Return the name of this machine's distribution, or an empty string if it has none."""
    with contextlib.suppress(OSError):
        return target_of(platform.freedesktop_os_release().get("PRETTY_NAME", ""))
    return ""


def download(wanted: Download, credentials: Mapping[str, str], folder: Path) -> Path:
    """Fetch a source into ``folder``, under the name that the role ``source`` uses.

    ``credentials`` are the result of ``secrets_of``. Raise FleetmarkError if the download fails.
    """
    request = request_for(access(credentials).get(wanted.url, {"url": wanted.url}))
    path = folder / f"{wanted.sha256}-{Path(urlsplit(wanted.url).path).name}"
    digest, size = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer, path.open("wb") as out:
            while block := answer.read(1 << 20):
                size += len(block)
                if size > MAX_SOURCE:
                    raise FleetmarkError(f"{wanted.parameter}: larger than {MAX_SOURCE >> 30} GiB")
                digest.update(block)
                out.write(block)
    except (OSError, urllib.error.URLError) as error:
        raise FleetmarkError(f"{wanted.parameter}: cannot fetch {redact(wanted.url)}: {error}") from error
    if digest.hexdigest() != wanted.sha256:
        raise FleetmarkError(
            f"{wanted.parameter}: {redact(wanted.url)} has sha256 {digest.hexdigest()}, not {wanted.sha256}: "
            "correct the checksum, or do not use this file"
        )
    return path


def checkout(wanted: Checkout, folder: Path) -> Path:
    """Archive a commit into ``folder/fleetmark`` in the same way as the role ``source``. Raise FleetmarkError if it
    fails.
    """
    script = PLAYBOOKS / "roles" / "source" / "files" / "archive.sh"
    words = ["sh", str(script), wanted.git, wanted.commit, wanted.sha256]
    done = _run(words, env={**os.environ, "XDG_CACHE_HOME": str(folder)})
    if done.returncode:
        raise FleetmarkError(f"{wanted.parameter}: {redact(_last(done.stderr))}")
    return Path(done.stdout.splitlines()[0])


def packages(names: Sequence[str], archive: Path) -> list[str]:
    """Write an apt repository of ``names`` and all their dependencies to ``archive``, for this distribution.

    Packages that every system of the distribution has (priority required, or essential) are omitted. Return a sentence
    for each of ``names`` that the distribution lacks. Without package lists, no archive is written. Raise
    FleetmarkError if apt fails.
    """
    with tempfile.TemporaryDirectory(prefix="fleetmark-packages-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # apt drops its privileges while it downloads
        config = _configuration(folder)
        refreshed = _apt(config, "update")
        if refreshed.returncode:
            return [f"packages {', '.join(names)}: apt cannot read the package lists ({_last(refreshed.stderr)})"]
        known = _records(config, names)
        missing = [f"package {name}: apt does not have it here" for name in names if name not in known]
        versions = _closure(config, sorted(known))
        records = _records(config, [f"{name}={version}" for name, version in versions.items()])
        usual = re.compile(r"^(Essential: yes|Priority: required)$", re.MULTILINE)
        kept = {name: record for name, record in records.items() if not usual.search(record)}
        repository = folder / "repository"
        repository.mkdir()
        repository.chmod(0o777)
        if kept:
            wanted = [f"{name}={versions[name]}" for name in kept]
            done = _run(["apt-get", "-c", str(config), "-q", "download", *wanted], cwd=repository)
            if done.returncode:
                raise FleetmarkError(f"apt cannot fetch packages: {_last(done.stderr)}")
        (repository / "Packages").write_text("\n".join(_renamed(record, repository) for record in kept.values()))
        with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
            for file in sorted(repository.iterdir()):
                tar.add(file, arcname=file.name, filter=_plain)
    return missing


def wheels(target: Target, folder: Path) -> list[str]:
    """Fetch wheels of this Fleetmark and its dependencies for ``target``. Return a sentence for each missing wheel."""
    wheel = _own_wheel(folder)
    if isinstance(wheel, str):
        return [wheel]
    words = ["download", "--dest", str(folder), "--only-binary", ":all:", "--implementation", "cp"]
    words += ["--python-version", target.python]
    for minor in range(target.glibc, 16, -1):
        words += ["--platform", f"manylinux_2_{minor}_{platform.machine()}"]
    words += ["--platform", f"manylinux2014_{platform.machine()}"]
    done = _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "--quiet", str(wheel)])
    if done.returncode:
        return [f"wheels for Python {target.python}: {_last(done.stderr)}"]
    return []


def _own_wheel(folder: Path) -> Path | str:
    """Build a wheel of this Fleetmark in ``folder``. Return its path, or the reason if there is none."""
    before = sorted(folder.glob("fleetmark-*.whl"))
    if before:
        return before[0]
    distribution = importlib.metadata.distribution("fleetmark")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}").get("url", "")
    source = unquote(urlsplit(origin).path) if origin.startswith("file:") else f"fleetmark=={distribution.version}"
    words = ["wheel", "--no-deps", "--quiet", "--wheel-dir", str(folder), source]
    done = _run([sys.executable, "-m", "pip", "--disable-pip-version-check", *words])
    built = sorted(folder.glob("fleetmark-*.whl"))
    return built[0] if built else f"wheels: pip cannot build {source}: {_last(done.stderr)}"


def _configuration(folder: Path) -> Path:
    """Write an apt configuration that uses the host's sources with all their components, but separate package lists."""
    sources = folder / "sources"
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    every = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    extra = "multiverse" if here().startswith("ubuntu") else "non-free"
    for file in every:
        if file.is_file() and file.suffix in (".list", ".sources"):
            text = file.read_text("utf-8", errors="replace")
            text = re.sub(r"^(deb\s.*\smain\b.*|Components:.*\bmain\b.*)$", rf"\1 {extra}", text, flags=re.MULTILINE)
            (sources / file.name).write_text(text)
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)  # for apt's own user, who may lack write access to a restricted /tmp
    (folder / "status").touch()
    config = folder / "apt.conf"
    config.write_text(
        'Dir::Etc::sourcelist "/dev/null";\n'
        f'Dir::Etc::sourceparts "{sources}";\nDir::State::lists "{folder}/lists";\nDir::Cache "{folder}/cache";\n'
        f'Dir::State::status "{folder}/status";\nAcquire::Languages "none";\nAcquire::Retries "2";\n'
        "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"
    )
    return config


def _closure(config: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the versions of ``names`` and of all their dependencies, for a system without any packages."""
    if not names:
        return {}
    done = _apt(config, "-s", "-qq", "install", "--no-install-recommends", *names)
    if done.returncode:
        raise FleetmarkError(f"apt cannot resolve {' '.join(names)}: {_last(done.stderr)}")
    lines = re.finditer(r"^Inst (\S+) \((\S+)", done.stdout, re.MULTILINE)
    return {match[1]: match[2] for match in lines}


def _records(config: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the records in the package lists by name; ``names`` are packages, or PACKAGE=VERSION."""
    done = _run(["apt-cache", "-c", str(config), "show", "-o", "APT::Cache::AllVersions=false", *names])
    records: dict[str, str] = {}
    for record in done.stdout.split("\n\n"):
        if match := re.search(r"^Package: (\S+)$", record, re.MULTILINE):
            records.setdefault(match[1], record.strip() + "\n")
    return records


def _renamed(record: str, folder: Path) -> str:
    """Return a package record with the path of its file in ``folder``, under the file's name in the archive."""
    fields = dict(re.findall(r"^(Package|Version|Architecture|Filename): (\S+)$", record, re.MULTILINE))
    name = Path(fields["Filename"]).name
    version = fields["Version"].replace(":", "%3a")
    (folder / f"{fields['Package']}_{version}_{fields['Architecture']}.deb").rename(folder / name)
    return re.sub(r"^Filename: .*$", f"Filename: ./{name}", record, flags=re.MULTILINE)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


def _apt(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return _run(["apt-get", "-c", str(config), "-q", *words], env={**os.environ, "TMPDIR": str(config.parent / "tmp")})


def _run(
    words: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    if not shutil.which(words[0]):
        raise FleetmarkError(f"collecting needs {words[0]} on this machine; install it")
    plain = {**(env or os.environ), "LC_ALL": "C"}
    try:
        return subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            env=plain,
            cwd=cwd,
            timeout=COMMAND_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise FleetmarkError(f"{words[0]} took longer than {COMMAND_S / 60:.0f} minutes; try again") from error


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (next((line for line in lines if line.startswith(("E:", "ERROR"))), lines[-1] if lines else ""))[:300]
