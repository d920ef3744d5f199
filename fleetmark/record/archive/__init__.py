"""Store campaigns as directories of plain files. Only this package reads and writes these files.

campaign.json         the request: suite, seed, settings, command line, hosts, versions, hashes
journal.jsonl         every change of state, appended and fsynced; a hash chain with the digests of all files that count
facts/HOST.json       the host, normalised, and the raw command output it was read from
jobs/HOST.json        the job as it travelled to the host
raw/HOST/WORKLOAD/CASE/REPEAT/   step.json, result.json (how it ran and ended), stdout, ...
measurements.parquet  rebuilt from raw at any time
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from fleetmark.base import schema
from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.files import decode_json
from fleetmark.base.inside import (
    PRIVATE_FOLDER,
    append_inside,
    create_inside,
    folder_inside,
    folders_below,
    move_inside,
    open_new_inside,
    remove_inside,
    replace_inside,
    sync_inside,
)
from fleetmark.base.signature import sign
from fleetmark.record.archive import chain, ssh_signature
from fleetmark.record.archive.integrity import statement
from fleetmark.record.archive.names import safe_name, utc
from fleetmark.record.archive.reading import SCHEMA, StoredCampaign
from fleetmark.record.documents import Scheduled, as_line, facts_document, fault
from fleetmark.record.drafts import make_draft, remove_unfinished

__all__ = ["FAILED_HOSTS", "Archive", "safe_name", "utc"]

FAILED_HOSTS = "failed.hosts"  # further files of a campaign
COUNTED = ("campaign.json", "measurements.parquet")  # files that figures depend on, in addition to raw files
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # the path is valid, but the disk is full or failing
_ROWS = 1 << 17  # rows per row group in measurements.parquet
_PART = re.compile(r"\.(campaign\.json|measurements\.parquet|summary\.html)\.[0-9a-f]{8}")  # unfinished writes


def _head(campaign: Mapping[str, Any]) -> str:
    """Return the text of campaign.json, signed by this user."""
    return json.dumps(sign({"schema": SCHEMA, **campaign}), indent=1)


class Archive(StoredCampaign):
    """Read and write the directory of one campaign. Writing requires the controller's lock (``writable``).

    Writes follow no symlink below ``root``, the folder that the user named.
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        """Open ``path`` below the results root ``root``, by default the parent folder of ``path``."""
        super().__init__(path, root)
        self._journal: int | None = None
        self._unsynced = False
        self._chain: str | None = chain.START  # the last digest of the journal's chain; None for an unchained journal
        self._lock: int | None = None

    @classmethod
    def create(
        cls,
        folder: Path,
        campaign_id: str,
        campaign: Mapping[str, Any],
        hosts: Mapping[str, Scheduled] | None = None,
        root: Path | None = None,
    ) -> Archive:
        """Create a campaign in ``folder`` with the facts and jobs of ``hosts``. A single rename makes this atomic.

        ``root``: the results root that contains ``folder``; ``folder`` itself by default. Raise CannotKeep if the disk
        is full, and FleetmarkError if the campaign cannot be written for another reason.
        """
        root = root or folder
        archive = cls(folder / campaign_id, root)
        try:
            root.mkdir(parents=True, exist_ok=True)
            with folder_inside(folder, root, make=PRIVATE_FOLDER):
                remove_unfinished(folder, root)
            draft, lock = make_draft(folder, root, campaign_id)
            try:
                for name in ("facts", "jobs") if hosts else ():
                    with folder_inside(draft / name, root, make=PRIVATE_FOLDER):
                        pass
                for host, scheduled in (hosts or {}).items():
                    create_inside(draft / "facts" / f"{safe_name(host)}.json", root, scheduled.facts)
                    create_inside(draft / "jobs" / f"{safe_name(host)}.json", root, scheduled.job)
                create_inside(draft / "campaign.json", root, _head(campaign))
                if os.path.lexists(archive.path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                move_inside(draft, archive.path, root)
                sync_inside(folder, root)
            except OSError:
                remove_inside(draft, root)
                raise
            finally:
                os.close(lock)
        except OSError as error:
            kind = CannotKeep if error.errno in _FULL else FleetmarkError
            raise kind(
                f"cannot create {archive.path}: {error.strerror}; nothing was started; choose a folder with --results"
            ) from error
        return archive

    # ------------------------------------------------------------ writing

    def writable(self) -> Archive:
        """Lock this campaign for one controller. Raise FleetmarkError if another controller holds the lock."""
        file = self.path / "journal.jsonl"
        try:
            self._lock = append_inside(self.path / "controller.lock", self.root)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._journal = append_inside(file, self.root)
            raw = self._read(file)
            complete = raw.rfind(b"\n") + 1
            if complete:
                self._chain = chain.stated(raw[raw.rfind(b"\n", 0, complete - 1) + 1 : complete]) or None
            if raw[complete:].startswith(b"{"):  # a crash left a partial line: do not append to it
                os.truncate(self._journal, complete)
            self._remove_parts()
        except BlockingIOError as error:
            raise FleetmarkError(
                f"campaign {self.id} is in use by another fleetmark process on this machine"
            ) from error
        except OSError as error:
            raise CannotKeep(f"cannot write in {self.path}: {fault(error)}") from error
        return self

    def _remove_parts(self) -> None:
        """Remove partly received and partly written files that a killed controller left."""
        for part in folders_below(self.path / "raw", 4):
            if part.name.startswith(".part-"):
                remove_inside(part, self.root)
        for part in self.path.glob(".*.????????"):
            if _PART.fullmatch(part.name):
                remove_inside(part, self.root)

    def close(self) -> None:
        for handle in (self._journal, self._lock):
            if handle is not None:
                os.close(handle)
        self._journal = self._lock = None

    def note(self, event: str, *, sync: bool = True, **fields: Any) -> None:
        """Append one event to the journal.

        With ``sync``, the event is on disk when this returns. Otherwise it reaches the disk with the next synced event
        or the next call of ``sync()``. In both cases it survives the end of this process.
        """
        assert self._journal is not None, "writable() comes first"
        text, head = as_line({"t": utc(), "e": event, **fields}), self._chain
        if head is not None:
            text, head = chain.chained(text, head)
        line = f"{text}\n".encode()
        before = os.fstat(self._journal).st_size
        try:
            while line:
                line = line[os.write(self._journal, line) :]
            self._chain = head
            self._unsynced = True
            if sync:
                self._sync(self._journal)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._journal, before)  # remove the partial line
            raise self._cannot_keep(self.path / "journal.jsonl", error) from error

    def record(self, name: str) -> None:
        """Journal the digest of the file ``name`` of this campaign as it is now. Raise OSError if it cannot be read."""
        size, digest = self.digest(name)
        self._list("kept", file=name, size=size, sha256=digest)

    def _list(self, event: str, **fields: Any) -> None:
        """Journal which files count. A folder without a controller, such as an import, has no journal."""
        if self._journal is not None:
            self.note(event, sync=False, **fields)

    def end(self, event: str, **fields: Any) -> None:
        """Journal the end of a run or a rebuild with this user's signature, which covers the journal before it."""
        self.note(event, **sign({**fields, "campaign": self.id, "after": self._chain or ""}))

    def sign(self, key: Path) -> None:
        """Sign the journal up to here with an SSH key. Raise FleetmarkError if the key cannot sign."""
        signature = ssh_signature.sign(statement(self.id, self._chain or ""), key)
        self.note("signed", key=ssh_signature.fingerprint(signature), signature=signature)

    @property
    def head(self) -> str | None:
        """Return the digest of the journal's last line, or None if the journal is not chained."""
        return self._chain

    def sync(self) -> None:
        """Flush all events so far to disk."""
        if self._journal is not None:
            with self.keeping(self.path / "journal.jsonl"):
                self._sync(self._journal)

    def _sync(self, journal: int) -> None:
        if self._unsynced:
            os.fsync(journal)
            self._unsynced = False

    def save_facts(self, host: str, facts: Facts, raw: Mapping[str, Any]) -> str:
        """Save a host's facts. Return the stored document, whose SHA-256 goes into campaign.json."""
        document = facts_document(facts, raw)
        self.keep(f"facts/{safe_name(host)}.json", document)
        return document

    def save_job(self, host: str, job: str) -> None:
        """Save ``job``, a JSON text whose SHA-256 campaign.json contains."""
        self.keep(f"jobs/{safe_name(host)}.json", job)

    def save_campaign(self, campaign: Mapping[str, Any]) -> None:
        """Replace campaign.json and sign it as this user."""
        head = _head(campaign)
        self.keep("campaign.json", head)
        if self._campaign is not None:
            self._campaign = decode_json(head)

    def begin_step(self, host: str, step: Mapping[str, Any]) -> Path:
        """Create a temporary folder with step.json beside the step's final folder, to fill for ``save_step``."""
        final = self.raw_dir(host, step)
        part = final.with_name(f".part-{secrets.token_hex(4)}")
        with self.keeping(final), folder_inside(part, self.root, make=PRIVATE_FOLDER):
            create_inside(part / "step.json", self.root, json.dumps({"host": host, **step}))
        return part

    def new_file(self, folder: Path, name: str) -> BinaryIO:
        """Create a file in a folder made by ``begin_step`` and open it for writing. Raise OSError on failure."""
        return open_new_inside(folder / safe_name(name), self.root)

    def append_to(self, name: str) -> int:
        """Open a campaign file for reading and appending, and return its descriptor. Raise OSError on failure."""
        return append_inside(self.path / name, self.root)

    def discard(self, path: Path) -> None:
        """Remove a file or folder of this campaign; ignore errors."""
        remove_inside(path, self.root)

    def save_step(self, host: str, step: Mapping[str, Any], part: Path, excuse: str = "") -> Path:
        """Save the folder ``part`` atomically as a finished step, and journal the digests of its files before.

        A controller that is killed in between leaves a line without a folder; the host then sends the step again.
        If the step is already saved (in a resumed campaign), the first version stays. ``excuse``: why the controller
        skipped or ended the step.
        """
        final = self.raw_dir(host, step)
        with self.keeping(final):
            if final.exists():
                self.discard(part)
                return final
            if excuse:
                replace_inside(part / "step.json", self.root, json.dumps({"host": host, **step, "excuse": excuse}))
            self._list("stored", folder=self.named(final), files=self.digests(part))
            move_inside(part, final, self.root)
        return final

    @contextlib.contextmanager
    def keeping(self, path: Path) -> Iterator[None]:
        """Raise CannotKeep, with the command that resumes the campaign, if a write to ``path`` in the block fails."""
        try:
            yield
        except OSError as error:
            raise self._cannot_keep(path, error) from error

    def set_aside(self, folder: Path) -> None:
        """Move the files of a lost step aside, so that a resumed campaign can run the step again."""
        aside = self.path / "superseded" / utc() / folder.relative_to(self.path / "raw")
        self._list("superseded", folder=self.named(folder))
        try:
            move_inside(folder, aside, self.root)
        except OSError as error:
            raise self._cannot_keep(aside, error) from error

    def write_failed_hosts(self, hosts: Iterable[str]) -> None:
        """Save the names of hosts for ``--limit @FILE``, one per line.

        Without hosts, remove the list of an earlier run.
        """
        lines = [f"{host}\n" for host in hosts if host.isprintable() and not host.startswith(("#", "@"))]
        if lines:
            self.keep(FAILED_HOSTS, "".join(lines))
        else:
            self.discard(self.path / FAILED_HOSTS)

    def write_page(self, page: str) -> Path:
        """Save the campaign's summary page."""
        return self.keep("summary.html", page)

    def keep(self, name: str, data: bytes | str) -> Path:
        """Save ``data`` as the file ``name`` of this campaign, replacing an old one. Raise CannotKeep on failure."""
        file = self.path / name
        try:
            replace_inside(file, self.root, data)
            if name in COUNTED:
                self.record(name)
        except OSError as error:
            raise self._cannot_keep(file, error) from error
        return file

    def _cannot_keep(self, file: Path, error: OSError) -> CannotKeep:
        """Return the error for a ``file`` that could not be written, with the command that resumes without loss."""
        again = shlex.join(["fleetmark", "run", "--resume", str(self.path.resolve())])
        return CannotKeep(
            f"cannot write {file}: {fault(error)}; hosts continue and keep their results; free disk space, then {again}"
        )

    def write_measurements(self, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write all measurements of the campaign to one Parquet file with the columns of ``base.schema``.

        An existing file is replaced. ``rows`` are consumed in batches, so only one batch is in memory at a time.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        rest, sink = iter(rows), pa.BufferOutputStream()
        with pq.ParquetWriter(sink, schema.arrow(), compression="zstd") as out:
            while part := list(islice(rest, _ROWS)):
                out.write_table(schema.table(part))
        return self.keep("measurements.parquet", sink.getvalue().to_pybytes())
