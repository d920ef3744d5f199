"""Synchronise the local copy of a store's results root: fetch changes before a verb, and store them after it.

``.store/FOLDER.json`` under the copy has the object version of each file in a folder, and the file's size and time
after the transfer. This distinguishes changes in the store from local changes. A folder without such a file was created
locally and is not stored yet. Measurements are never removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Any

from fleetmark.base.errors import CannotKeep, FleetmarkError, leave_out
from fleetmark.base.inside import PRIVATE_FILE, PRIVATE_FOLDER, append_inside, replace_inside
from fleetmark.record.store import place
from fleetmark.record.store.lock import NAME as DRIVEN
from fleetmark.record.store.notes import Notes, entry_of, is_content, looked, looks_of
from fleetmark.record.store.objects import Objects, Stored
from fleetmark.record.store.place import ABOUT

SHELVES = ("references", "baselines", "profiles", "imports")
_GONE, _INCOMING = ".gone", ".incoming"
_PAGE, _FIGURES = "summary.html", "measurements.parquet"
_LOCKS = ("controller.lock", DRIVEN)  # have no meaning on other machines
_MARK, _MARKED = ".fleetmark", b"a results root of Fleetmark\n"
_HEAD = "campaign.json"  # stored last, because a folder without this file is not a campaign
_OF_HOSTS = ("facts", "jobs")
_ID = re.compile(r"\d{8}T\d{6}-")
_MOST = 20_000  # maximum number of files for which raw/ is fetched too
_SPARE = 1 << 30  # bytes to leave free on the disk


class Need(IntEnum):
    """The part of the root that a verb reads; each level includes the previous ones."""

    SHELVES = 0  # pinned references, baselines, profiles, imported tables
    LIST = 1  # and the small files of campaigns
    FIGURES = 2  # and the measurements


def copy_of(url: str) -> StoreCopy:
    """Return the local copy of the root at ``url``. Raise FleetmarkError if the URL is invalid."""
    objects = Objects(url)
    root = place.copy_root(objects)
    is_new = not root.exists()
    if is_new and (before := place.before(objects)) and before.is_dir():
        with _writing(root):
            root.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            before.rename(root)
    copy = StoreCopy(root, objects)
    for other in place.others(objects) if is_new else ():
        if kept := StoreCopy(other, objects).unstored():
            reason = (
                f"of other credentials or another address, and not stored; if it belongs to {url}, move it to {root}"
            )
            leave_out(f"{', '.join(kept[:4])}{' and others' if kept[4:] else ''} in {other}", FleetmarkError(reason))
    return copy


class StoreCopy:
    """Synchronise ``root``, a local folder that verbs use as a results root, with the store's ``objects``."""

    def __init__(self, root: Path, objects: Objects) -> None:
        self.root, self.objects = root, objects
        self._notes = Notes(root / ABOUT)
        with _writing(root):
            (root / ABOUT).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            if not (root / ABOUT / "url").exists():
                replace_inside(root / ABOUT / "url", root, objects.url)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the copy; other commands on this machine wait for the lock."""
        with _writing(self.root):
            lock = append_inside(self.root / ABOUT / "lock", self.root)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)

    # ------------------------------------------------------------ from the store

    def pull(self, need: Need) -> None:
        """Fetch changed files of all campaigns.

        Move campaigns that were deleted from the store into a hidden folder.
        """
        with self._alone():
            remote = self.objects.folders()
            self._shelves(remote)
            if need is Need.SHELVES:
                return
            names = [n for n in remote if n not in SHELVES]
            self._set_gone_aside(set(remote))
            self._campaigns(names, figures=need is Need.FIGURES)

    def pull_campaign(self, name: str) -> tuple[list[str], list[str]]:
        """Fetch all files, including raw files, of the campaign ``name`` (an id, the start of an id, or last).

        Return the ids of the matching campaigns in the store, and sentences about files that were not fetched.
        """
        with self._alone():
            remote = self.objects.folders()
            self._shelves(remote)
            self._set_gone_aside(set(remote))
            chosen = [n for n in _meant(name, {*remote, *self._folders()}) if n in remote and not self._is_own(n)]
            left: list[str] = []
            for n, objects in self.objects.everything(chosen).items():
                wanted = {k: o for k, o in objects.items() if k != _PAGE and not k.startswith("superseded/")}
                wanted = {k: o for k, o in wanted.items() if k.rpartition("/")[2] not in _LOCKS}
                if len(wanted) > _MOST:
                    left.append(self._too_many(n, len(wanted)))
                    wanted = {k: o for k, o in wanted.items() if not k.startswith("raw/")}
                self._fetch({n: wanted} if _HEAD in wanted else {})
            return chosen, left

    def _too_many(self, name: str, n: int) -> str:
        command = shlex.join(["aws", "s3", "sync", f"{self.objects.url}/{name}/raw", f"{self.root / name}/raw"])
        return (
            f"{name} has {n} files in the store, so those under raw/ are not fetched, and telemetry is left out: "
            f"{command}"
        )

    def _shelves(self, remote: Sequence[str]) -> None:
        names = [n for n in SHELVES if n in remote]
        self._fetch(self.objects.everything(names))

    def _campaigns(self, names: Sequence[str], *, figures: bool) -> None:
        """Fetch the small files of campaigns, and their ``figures``."""
        top = self.objects.files([n for n in names if not self._is_own(n)])
        left = {_PAGE, *_LOCKS} | (set() if figures else {_FIGURES})
        wanted = {n: {name: o for name, o in objects.items() if name not in left} for n, objects in top.items()}
        # A folder without its head is not a campaign, or is not completely stored yet.
        changed = [n for n, objects in wanted.items() if _HEAD in objects and self._differs(n, objects)]
        inner = self.objects.everything([f"{n}/{kind}" for n in changed for kind in _OF_HOSTS])
        for n in changed:
            for kind in _OF_HOSTS:
                wanted[n] |= {f"{kind}/{name}": o for name, o in inner[f"{n}/{kind}"].items()}
        self._fetch({n: wanted[n] for n in changed})

    def unstored(self) -> list[str]:
        """Return the campaigns that were created locally and are not completely stored yet."""
        return sorted(n for n in self._folders() - set(SHELVES) if self._is_own(n))

    def _is_own(self, name: str) -> bool:
        """Return whether a campaign was created locally and is not completely stored yet."""
        return (self.root / name).is_dir() and not self._notes.has(name)

    def _differs(self, folder: str, objects: Mapping[str, Stored]) -> bool:
        manifest = self._notes.entries(folder)
        return any(manifest.get(name, {}).get("version") != o.version for name, o in objects.items())

    def _fetch(self, wanted: Mapping[str, Mapping[str, Stored]]) -> None:
        """Fetch all objects of folders that differ from the local files, in one batch."""
        incoming = self.root / _INCOMING / secrets.token_hex(4)
        files: dict[str, tuple[str, str, Stored]] = {}
        for folder, objects in wanted.items():
            manifest = self._notes.entries(folder)
            self._refuse_clash(folder, objects)
            for name, o in objects.items():
                entry = manifest.get(name, {})
                if entry.get("version") == o.version:
                    continue
                file = self.root / folder / name
                if file.is_dir() or any(p.is_file() for p in file.parents[: name.count("/") + 1]):
                    raise FleetmarkError(
                        f"{file} is a file on one side and a folder on the other ({self.objects.url}); "
                        "move or rename one of them"
                    )
                if self._is_changed(folder, name, entry, o):
                    raise FleetmarkError(
                        f"{self.root / folder / name}: changed locally and in {self.objects.url}; move one of them away"
                    )
                files[str(len(files))] = (folder, name, o)
        if not files:
            return
        size, free = sum(o.size for _, _, o in files.values()), shutil.disk_usage(self.root).free
        if size > free - _SPARE:
            raise FleetmarkError(
                f"{self.objects.url}: needs {size >> 20:,} MiB, but {self.root} has room for "
                f"{max(0, free - _SPARE) >> 20:,} MiB; set FLEETMARK_STORES to another folder"
            )
        for folder in {folder for folder, _, _ in files.values()}:  # before any of its files arrive
            self._notes.add(folder, {})
        try:
            incoming.mkdir(mode=PRIVATE_FOLDER, parents=True)
            self.objects.fetch({f"{folder}/{name}": incoming / n for n, (folder, name, _) in files.items()})
            self._place(files, incoming)
        finally:
            shutil.rmtree(self.root / _INCOMING, ignore_errors=True)

    def _refuse_clash(self, folder: str, names: Collection[str]) -> None:
        """Raise FleetmarkError if a name is both an object and a folder, which a store allows but a file system does
        not.
        """
        for name in (n for n in names if "/" in n):
            above = (str(parent) for parent in PurePosixPath(name).parents)
            if clash := next((parent for parent in above if parent in names), None):
                raise FleetmarkError(
                    f"{self.objects.url}/{folder}/{clash}: both an object and a folder ({name}); "
                    "rename or remove one of them"
                )

    def _is_changed(self, folder: str, name: str, entry: Mapping[str, Any], stored: Stored) -> bool:
        """Return whether fetching a file would overwrite a local change or a local file that was never stored."""
        file = self.root / folder / name
        if entry:
            return looks_of(file) not in (entry["looks"], None)
        return folder in SHELVES and file.is_file() and not is_content(stored, file)

    def _place(self, files: Mapping[str, tuple[str, str, Stored]], incoming: Path) -> None:
        came: dict[str, dict[str, Any]] = {}
        for n, (folder, name, o) in files.items():
            file = self.root / folder / name
            file.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            (incoming / n).chmod(PRIVATE_FILE)
            (incoming / n).replace(file)
            came.setdefault(folder, {})[name] = entry_of(o, file)
        for folder, entries in came.items():
            self._notes.add(folder, entries)

    def _set_gone_aside(self, remote: set[str]) -> None:
        """Move local campaigns that were deleted from the store into a hidden folder, unless a local controller is
        running them.
        """
        for name in self._copied() - remote:
            if self._is_driven(name):
                continue
            aside = self.root / _GONE / f"{name}.{secrets.token_hex(4)}"
            aside.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            if (self.root / name).is_dir():
                (self.root / name).rename(aside)
            self._notes.forget(name)

    # ------------------------------------------------------------ to the store

    def check_writable(self) -> None:
        """Raise CannotKeep if the store cannot be written, or FleetmarkError if it does not answer."""
        self.objects.folders()
        self.objects.write(_MARK, _MARKED)
        if self.objects.read(_MARK) != _MARKED:
            raise CannotKeep(
                f"{self.objects.url}: written data cannot be read back; check the store that AWS_ENDPOINT_URL names"
            )

    def push(self, changed: Sequence[str] = ()) -> list[str]:
        """Store the folders created locally, those in ``changed``, and the shelves.

        Return their names. Raise CannotKeep if the store refuses; the local files remain, and the next call continues.
        """
        self.expect(changed)
        with self._alone():
            waiting = self._waiting()
            local_folders = {n for n in self._folders() - set(SHELVES) if self._is_own(n)}
            driven = {n for n in local_folders | waiting if n not in changed and self._is_driven(n)}
            names = [n for n in sorted((local_folders | waiting | set(SHELVES)) - driven) if (self.root / n).is_dir()]
            stored = [n for n in names if self._store(n)]
            self._wait_for(waiting & driven)
            return stored

    def expect(self, changed: Sequence[str]) -> None:
        """Note that the folders in ``changed`` are about to change, so that a later ``push`` stores them even after a
        crash.
        """
        with self._alone():
            self._wait_for({*self._waiting(), *changed})

    def _waiting(self) -> set[str]:
        with contextlib.suppress(FileNotFoundError):
            return {*(self.root / ABOUT / "waiting").read_text().splitlines()} - {""}
        return set()

    def _wait_for(self, names: set[str]) -> None:
        replace_inside(self.root / ABOUT / "waiting", self.root, "\n".join(sorted(names)))

    def _store(self, folder: str) -> bool:
        """Store new and changed files of a folder, with campaign.json last. Return whether there were any."""
        manifest, local_looks = self._notes.entries(folder), self._walk(folder)
        files = {
            name: self.root / folder / name for name, looks in local_looks.items() if looked(manifest, name) != looks
        }
        moved = {
            name.split("/", 2)[2] for name in local_looks if name.startswith("superseded/") and name.count("/") > 1
        }
        removed = [
            n for n in manifest if n.startswith("raw/") and n not in local_looks and n.removeprefix("raw/") in moved
        ]
        if not files and not removed:
            return False
        is_local = self._is_own(folder) and folder not in SHELVES  # stored by this copy only
        remote = {} if is_local else self.objects.everything([folder])[folder]
        for name in files:
            known = manifest.get(name, {}).get("version")
            if name in remote and name != _PAGE and remote[name].version != known:
                raise FleetmarkError(
                    f"{self.objects.url}/{folder}/{name}: changed in the store since it was read, so nothing is "
                    f"stored; the local measurements are in {self.root / folder}"
                )
        head = {name: files.pop(name) for name in (_HEAD,) if name in files}
        for part in (files, head):
            self.objects.store({f"{folder}/{name}": path for name, path in part.items()})
        self.objects.remove([f"{folder}/{name}" for name in removed])
        remote = self.objects.everything([folder])[folder]
        stored = {**files, **head}
        if short := [n for n, p in stored.items() if n not in remote or remote[n].size != p.stat().st_size]:
            raise FleetmarkError(
                f"{self.objects.url}/{folder}/{short[0]}: the stored object is incomplete; run the command again"
            )
        self._notes.add(folder, {n: {"version": remote[n].version, "looks": local_looks[n]} for n in stored}, removed)
        return True

    def _walk(self, folder: str) -> dict[str, list[int]]:
        """Return the state of every file in a folder by its relative path, without files that are being written."""
        top = self.root / folder
        looks: dict[str, list[int]] = {}
        for level, folders, names in os.walk(top):
            folders[:] = [f for f in folders if not f.startswith(".part-")]
            for name in names:
                file = Path(level, name)
                if name not in _LOCKS and not file.is_symlink():
                    looks[str(file.relative_to(top))] = looks_of(file) or []
        return looks

    def _is_driven(self, folder: str) -> bool:
        """Return whether a controller on this machine is working on a campaign."""
        with contextlib.suppress(OSError):
            lock = os.open(self.root / folder / "controller.lock", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(lock)
        return False

    # ------------------------------------------------------------ local state

    def _folders(self) -> set[str]:
        with os.scandir(self.root) as entries:
            return {e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")}

    def _copied(self) -> set[str]:
        """Return the local campaigns that came from the store or were stored there."""
        return self._notes.folders() - set(SHELVES)


@contextlib.contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Raise FleetmarkError, with advice, if the copy cannot be written."""
    try:
        yield
    except OSError as error:
        raise FleetmarkError(
            f"{error.filename or root}: {error.strerror}; set FLEETMARK_STORES to another folder"
        ) from error


def _meant(name: str, names: set[str]) -> list[str]:
    """Return the folders that ``name`` may refer to.

    ``last`` refers to the latest campaign and the last folder of any name.
    """
    ordered = sorted(names - set(SHELVES))
    if name != "last":
        return [n for n in ordered if n == name] or [n for n in ordered if n.startswith(name)]
    return sorted({*ordered[-1:], *[n for n in ordered if _ID.match(n)][-1:]})
