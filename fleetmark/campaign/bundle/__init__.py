"""Read bundles: files with everything that an offline run would otherwise download, and the SHA-256 of each part.

A bundle is an uncompressed tar. Its first member is ``bundle.json`` (``Contents``); the others are regular files:

    sources/NAME                  a source, under the name that the role ``source`` looks for in its cache
    packages/TARGET-MACHINE.tar   distribution packages and their index, such as packages/debian12-x86_64.tar
    wheels/NAME.whl               Python packages for a controller
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts

SCHEMA: Literal["fleetmark/bundle/1"] = "fleetmark/bundle/1"
INDEX = "bundle.json"
MAX_INDEX = 4 << 20  # bytes
MAX_ENTRIES = 10_000
MAX_HEADER = 64 << 10  # maximum bytes of an extended header
_BLOCK = 1 << 20
_LARGE = re.compile(rb"^\d{1,3} size=(\d{1,15})$", re.MULTILINE)
_SHA256 = r"[0-9a-f]{64}"
_PATH = (
    rf"^(sources/{_SHA256}-[A-Za-z0-9._+~%-]{{1,150}}"
    r"|packages/[a-z0-9.]{1,32}-[A-Za-z0-9_]{1,32}\.tar|wheels/[A-Za-z0-9._+!-]{1,200}\.whl)$"
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Part):
    """A file of a bundle.

    ``origin`` is the source from which it was fetched, without credentials; ``bytes`` is its size.
    """

    path: Annotated[str, Field(pattern=_PATH)]
    sha256: Annotated[str, Field(pattern=f"^{_SHA256}$")]
    bytes: Annotated[int, Field(ge=0)]
    origin: Annotated[str, Field(max_length=4000)] = ""


class Contents(_Part):
    """List the contents of a bundle.

    ``targets`` are distributions; ``missing`` has a sentence for each thing that could not be collected.
    """

    schema_: Annotated[Literal["fleetmark/bundle/1"], Field(alias="schema")] = SCHEMA
    fleetmark: str
    created: str
    suite: str
    targets: tuple[str, ...]
    entries: Annotated[tuple[Entry, ...], Field(max_length=MAX_ENTRIES)]
    missing: tuple[str, ...] = ()


def target_of(system: str) -> str:
    """Return the short name of a distribution, such as ``debian12`` for ``Debian GNU/Linux 12 (bookworm)``; empty if
    unknown.

    ``system`` is PRETTY_NAME of /etc/os-release. Only for Ubuntu do minor releases have different packages.
    """
    match = re.match(r"([A-Za-z]+)\b\D*(\d+)(\.\d+)?", system)
    if not match:
        return ""
    name = {"red": "rhel", "almalinux": "alma"}.get(match[1].lower(), match[1].lower())
    return name + match[2] + (match[3] or "" if name == "ubuntu" else "")


def distribution_of(facts: Facts) -> str:
    """Return the name of a host's package archive in a bundle, such as ``debian12-x86_64``."""
    return f"{target_of(facts.os or '')}-{facts.cpu.arch or ''}"


def check(file: Path) -> Contents:
    """Return the contents of a bundle, after checking every hash, size and name in it.

    Raise FleetmarkError if the file is not a bundle, is damaged, or contains a file that its index does not list.
    """
    return _read(file, None)


def unpack(file: Path, folder: Path) -> dict[str, tuple[str, str]]:
    """Check a bundle again, and write its sources and packages below ``folder``, which is created.

    If ``folder`` is used as the cache, the role ``source`` finds the sources in ``folder/fleetmark``. Return the path
    and SHA-256 of each package archive by distribution, such as ``debian12-x86_64``.
    """
    folder.mkdir(mode=0o700)
    (folder / "fleetmark").mkdir(mode=0o700)
    contents = _read(file, folder / "fleetmark")
    packages = [entry for entry in contents.entries if entry.path.startswith("packages/")]
    return {Path(e.path).stem: (str(folder / "fleetmark" / Path(e.path).name), e.sha256) for e in packages}


def _read(file: Path, folder: Path | None) -> Contents:
    try:
        _bound_headers(file)
        with file.open("rb") as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
            members = iter(tar)
            contents = _index(tar, next(members, None), file)
            left = {entry.path: entry for entry in contents.entries}
            if len(left) < len(contents.entries):
                raise FleetmarkError(f"{file}: it contains a file twice; collect it again")
            for member in members:
                entry = left.pop(member.name, None)
                if entry is None or not member.isreg() or member.size != entry.bytes:
                    raise FleetmarkError(f"{file}: {member.name[:200]!r} does not match {INDEX}; collect it again")
                _take(tar, member, entry, file, folder)
    except (tarfile.TarError, EOFError) as error:
        raise FleetmarkError(f"{file}: not a bundle, or truncated ({error}); collect it again") from error
    if left:
        raise FleetmarkError(f"{file}: {min(left)} is missing; collect it again")
    return contents


def _bound_headers(file: Path) -> None:
    """Raise FleetmarkError unless all headers are small and those of files, because tarfile reads headers whole into
    memory.
    """
    extended = b""
    with file.open("rb") as raw:
        while any(block := raw.read(tarfile.BLOCKSIZE)):
            member = tarfile.TarInfo.frombuf(block, tarfile.ENCODING, "surrogateescape")
            size = int(large[1]) if (large := _LARGE.search(extended)) else member.size  # files of 8 GiB or more
            blocks = -(-max(size, 0) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
            extended = b""
            if member.type == tarfile.XHDTYPE and size <= MAX_HEADER:
                extended = raw.read(blocks)[:size]
            elif member.type in tarfile.REGULAR_TYPES:
                raw.seek(blocks, os.SEEK_CUR)
            else:
                raise FleetmarkError(f"{file}: {member.name[:200]!r} is not a regular file; collect it again")


def _index(tar: tarfile.TarFile, member: tarfile.TarInfo | None, file: Path) -> Contents:
    if member is None or member.name != INDEX or not member.isreg() or member.size > MAX_INDEX:
        raise FleetmarkError(f"{file}: not a bundle: its first file is not {INDEX}; create one with fleetmark bundle")
    text = tar.extractfile(member)
    assert text is not None  # a regular file
    try:
        contents = Contents.model_validate_json(text.read())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise FleetmarkError(f"{file}: {INDEX}: {place}: {first['msg']}; collect it again") from error
    for entry in contents.entries:
        name = entry.path.rpartition("/")[2]
        if entry.path.startswith("sources/") and not name.startswith(f"{entry.sha256}-"):
            raise FleetmarkError(f"{file}: {entry.path}: the SHA-256 in its name is not {entry.sha256}")
    return contents


def _take(tar: tarfile.TarFile, member: tarfile.TarInfo, entry: Entry, file: Path, folder: Path | None) -> None:
    """Read a member completely, check its SHA-256, and write it into ``folder`` if a run needs it there."""
    source = tar.extractfile(member)
    assert source is not None  # a regular file
    wanted = folder if folder and not entry.path.startswith("wheels/") else None
    digest = hashlib.sha256()
    with _new(wanted / member.name.rpartition("/")[2]) if wanted else contextlib.nullcontext() as out:
        while block := source.read(_BLOCK):
            digest.update(block)
            if out:
                out.write(block)
    if digest.hexdigest() != entry.sha256:
        raise FleetmarkError(f"{file}: {entry.path} has sha256 {digest.hexdigest()}, not {entry.sha256}; copy it again")


@contextlib.contextmanager
def _new(path: Path) -> Iterator[IO[bytes]]:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
        yield out
