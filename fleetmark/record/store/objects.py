"""List, fetch and store the objects of a results root in an object store, with s3fs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleetmark.base.errors import CannotKeep, FleetmarkError, required
from fleetmark.record.store.refusals import code_of, sentence

_URL = re.compile(r"s3://[a-z0-9][a-z0-9._-]{1,62}(/[^\x00-\x1f?#]*)?")
_AT_ONCE = 32  # maximum concurrent requests
_SMALL = 1 << 16  # bytes
_LONGEST = 255  # maximum length of a file name in bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: its size in bytes, and its ETag, which changes with the content."""

    size: int
    version: str


class Objects:
    """Access the objects under ``url``, s3://BUCKET/PATH. Every method raises FleetmarkError if the store refuses."""

    def __init__(self, url: str) -> None:
        if not _URL.fullmatch(url) or not all(map(_is_plain, url.rstrip("/").split("/")[3:])):
            raise FleetmarkError(f"--results {url}: write it as s3://BUCKET/PATH, or name a folder")
        self.url = url.rstrip("/")
        s3fs = required("s3fs", "stores", f"--results {url}: an object store")
        self._base = self.url.removeprefix("s3://")
        settings = {"connect_timeout": 10, "retries": {"total_max_attempts": 1}}  # s3fs itself retries up to five times
        self._store: Any = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True, config_kwargs=settings)

    def place(self) -> tuple[str, ...]:
        """Return path components that distinguish this bucket from others of the same name.

        Amazon's bucket names are unique within a partition. For other stores, the components are the address and the
        account.
        """
        with self._asked("list"):
            client = self._store.s3.meta
        host = urlsplit(client.endpoint_url).hostname or ""
        if host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
            return ("s3" if client.partition == "aws" else str(client.partition),)
        address = re.sub(r"//[^/]*@", "//", client.endpoint_url)  # a password is not part of a folder's name
        return address, f"by={self._account()}"  # a bucket name cannot contain =

    def _account(self) -> str:
        """Return the access key or profile in use. Temporary session keys change too often to serve as a name."""
        key = os.environ.get("AWS_ACCESS_KEY_ID")  # takes precedence over profiles
        if key and not os.environ.get("AWS_SESSION_TOKEN"):
            return key
        return str(self._store.session.profile or "default")

    @contextlib.contextmanager
    def _asked(self, doing: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (OSError, BotoCoreError, ClientError, ValueError) as error:  # ValueError: an invalid address
            kind = CannotKeep if doing == "write in" else FleetmarkError
            raise kind(sentence(error, self.url, doing)) from error

    def folders(self) -> list[str]:
        """Return the names of the folders directly under the root, in order. Raise FleetmarkError if the bucket does
        not exist.
        """
        with self._asked("list"):
            entries = self._listed(self._base)
        names = (_last(e["name"]) for e in entries if e["type"] == "directory")
        return sorted(n for n in names if _is_plain(n) and not n.startswith("."))

    def files(self, folders: Sequence[str]) -> dict[str, dict[str, Stored]]:
        """Return the objects directly in each of the ``folders``, by name. Many folders are listed concurrently."""
        with self._asked("list"), ThreadPoolExecutor(_AT_ONCE) as pool:
            listed = list(pool.map(lambda f: self._listed(f"{self._base}/{f}"), folders))
        return {
            folder: {
                _last(e["name"]): _stored(e) for e in entries if e["type"] == "file" and _is_plain(_last(e["name"]))
            }
            for folder, entries in zip(folders, listed, strict=True)
        }

    def everything(self, folders: Sequence[str]) -> dict[str, dict[str, Stored]]:
        """Return every object below each of the ``folders``, by its relative path."""
        with self._asked("list"), ThreadPoolExecutor(_AT_ONCE) as pool:
            listed = list(pool.map(self._below, folders))
        return dict(zip(folders, listed, strict=True))

    def _below(self, folder: str) -> dict[str, Stored]:
        start = f"{self._base}/{folder}/"
        try:
            entries = self._store.find(start, detail=True, refresh=True)
        except FileNotFoundError as error:
            if code_of(error) == "NoSuchBucket":
                raise
            return {}
        inside = {str(name).removeprefix(start): e for name, e in entries.items() if e["type"] == "file"}
        return {name: _stored(e) for name, e in inside.items() if all(map(_is_plain, name.split("/")))}

    def _listed(self, path: str) -> list[dict[str, Any]]:
        try:
            entries: list[dict[str, Any]] = self._store.ls(path, detail=True, refresh=True)
        except FileNotFoundError as error:
            if code_of(error) == "NoSuchBucket":
                raise
            return []  # an empty folder is not an object
        return entries

    def fetch(self, files: Mapping[str, Path]) -> None:
        """Fetch objects by name, each to a file in an existing folder."""
        if files:
            with self._asked("read"):
                self._store.get(
                    [f"{self._base}/{n}" for n in files], [str(p) for p in files.values()], batch_size=_AT_ONCE
                )

    def store(self, files: Mapping[str, Path]) -> None:
        """Store files as objects with these names. Raise CannotKeep on failure."""
        if files:
            with self._asked("write in"):
                self._store.put(
                    [str(p) for p in files.values()], [f"{self._base}/{n}" for n in files], batch_size=_AT_ONCE
                )

    def write(self, name: str, content: bytes) -> None:
        """Store ``content`` as the object ``name``. Raise CannotKeep on failure."""
        with self._asked("write in"):
            self._store.pipe_file(f"{self._base}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Store ``content`` as the object ``name`` unless that exists. Return whether the object was created."""
        with self._asked("write in"):
            try:
                self._store.pipe_file(f"{self._base}/{name}", content, mode="create")
            except FileExistsError:
                return False
            except OSError as error:
                if code_of(error) in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
                    return False
                raise
        return True

    def read(self, name: str) -> bytes:
        """Return the content of a small object; empty if it does not exist."""
        with self._asked("read"):
            try:
                content: bytes = self._store.cat_file(f"{self._base}/{name}", start=0, end=_SMALL)
            except OSError as error:
                if isinstance(error, FileNotFoundError) or code_of(error) == "InvalidRange":  # missing or empty
                    return b""
                raise
        return content

    def remove(self, names: Collection[str]) -> None:
        """Remove the objects with these names."""
        if names:
            with self._asked("write in"), contextlib.suppress(FileNotFoundError):
                self._store.rm([f"{self._base}/{n}" for n in names])


def _stored(entry: Mapping[str, Any]) -> Stored:
    return Stored(int(entry["size"] or 0), str(entry.get("ETag") or entry.get("LastModified")).strip('"'))


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _is_plain(name: str) -> bool:
    """Return whether a part of an untrusted key is safe as a local file name."""
    return name not in ("", ".", "..") and name.isprintable() and len(name.encode()) <= _LONGEST
