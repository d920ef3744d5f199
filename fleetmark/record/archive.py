"""The archive: a campaign is a directory of plain files, and this is the only place that touches them.

campaign.json         the request: suite, seed, settings, command line, hosts, versions, hashes
journal.jsonl         every change of state, appended and fsynced
facts/HOST.json       the host, normalised, and the raw command output it was read from
jobs/HOST.json        the job as it travelled to the host
raw/HOST/WORKLOAD/CASE/REPEAT/   step.json, result.json (how it ran and ended), stdout, ...
measurements.parquet  rebuilt from raw at any time
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, unquote

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from fleetmark.base import schema
from fleetmark.base.errors import CannotKeep, FleetmarkError
from fleetmark.base.facts import Facts, Identity, Known, once
from fleetmark.base.files import decode_json
from fleetmark.base.inside import (
    PRIVATE_FOLDER,
    append_inside,
    create_inside,
    folder_inside,
    folders_below,
    move_inside,
    open_inside,
    open_new_inside,
    read_inside,
    remove_inside,
    replace_inside,
    sync_inside,
)
from fleetmark.base.signature import is_signed, sign
from fleetmark.record.documents import (
    CampaignHead,
    IdentityPart,
    Job,
    Scheduled,
    StoredStepFile,
    TelemetryPart,
    as_line,
    event_of,
    facts_document,
    fault,
)
from fleetmark.record.drafts import make_draft, remove_unfinished
from fleetmark.record.replies import MAX_RESULT_BYTES, NoReply, Result, Telemetry, read

SCHEMA = 1
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # the path is valid, but the disk is full or failing
_ROWS = 1 << 17  # rows per row group in measurements.parquet
_PART = re.compile(r"\.(campaign\.json|measurements\.parquet|summary\.html)\.[0-9a-f]{8}")  # unfinished writes
_Model = TypeVar("_Model", bound=BaseModel)


def utc(seconds: float | None = None) -> str:
    """A moment (now, if none is given) as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=4096)  # asked for every file, of the same names
def safe_name(name: str) -> str:
    """``name`` as one path component, which people can read back; a long one is cut, with a hash at its end."""
    component = quote(name, safe=" >@+=,:")
    if component in (".", ".."):
        component = component.replace(".", "%2E")
    if len(component.encode()) > 150:
        component = f"{component[:130]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return component


def _head(campaign: Mapping[str, Any]) -> str:
    """Return the text of campaign.json, signed by this user."""
    return json.dumps(sign({"schema": SCHEMA, **campaign}), indent=1)


class Archive:
    """The directory of one campaign. Writing needs the controller's lock (``writable``); reading needs no lock.

    Every file is validated when read, and no symlink out of the archive is followed: an archive may come from anyone.
    Writes follow no symlink below ``root``, the folder that the user named.
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        """Open ``path`` below the results root ``root``, by default the parent folder of ``path``."""
        self.path = path
        self.root = root or path.parent
        self._campaign: dict[str, Any] | None = None
        self._journal: int | None = None
        self._unsynced = False
        self._lock: int | None = None

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def create(
        cls,
        folder: Path,
        campaign_id: str,
        campaign: Mapping[str, Any],
        hosts: Mapping[str, Scheduled] | None = None,
        root: Path | None = None,
    ) -> Archive:
        """A new campaign in ``folder`` with the facts and jobs of ``hosts``: all of it, by one rename, or nothing.

        ``root``: the results root that ``folder`` lies in; ``folder`` itself by default. Raises FleetmarkError if that
        cannot be written, CannotKeep if the disk is full.
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
                f"cannot make {archive.path}: {error.strerror}; nothing was begun: choose another place with --results"
            ) from error
        return archive

    @classmethod
    def open(cls, path: Path) -> Archive:
        """The campaign at ``path``. Raises FleetmarkError when there is none, or one of a later schema."""
        archive = cls(path)
        archive.campaign()
        return archive

    def campaign(self) -> dict[str, Any]:
        """The content of campaign.json. Raises FleetmarkError when the file is absent, broken, or of a later schema."""
        if self._campaign is not None:
            return self._campaign
        file = self.path / "campaign.json"
        try:
            document = decode_json(self._read(file))
            schema = document.get("schema") if isinstance(document, dict) else SCHEMA
            if schema != SCHEMA:
                raise FleetmarkError(
                    f"{self.path}: schema {schema} is not one this version of Fleetmark reads ({SCHEMA})"
                )
            CampaignHead.model_validate(document)
        except FileNotFoundError as error:
            raise FleetmarkError(f"{self.path} is no campaign: it has no campaign.json") from error
        except ValidationError as error:
            raise FleetmarkError(f"{file}: damaged ({fault(error)}); restore it, or leave the campaign out") from error
        except (OSError, ValueError) as error:
            raise FleetmarkError(f"{file}: cannot be read: {fault(error)}; restore it, or leave it out") from error
        campaign: dict[str, Any] = document
        return campaign

    def pin(self) -> dict[str, Any]:
        """Return campaign.json, and use this content from now on, so that nobody can change it after a check.

        Raise FleetmarkError like ``campaign``.
        """
        self._campaign = self.campaign()
        return self._campaign

    def own_campaign(self) -> dict[str, Any] | None:
        """Pin campaign.json and return it if this user started the campaign and nobody changed the file, else None.

        Raises FleetmarkError as ``campaign`` does.
        """
        document = self.pin()
        return document if document.get("id") == self.id and is_signed(document) else None

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
            if raw[complete:].startswith(b"{"):  # a crash left a partial line: do not append to it
                os.truncate(self._journal, complete)
            self._remove_parts()
        except BlockingIOError as error:
            raise FleetmarkError(f"campaign {self.id} is being driven by another fleetmark on this machine") from error
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

    def note(self, event: str, *, sync: bool = True, **more: Any) -> None:
        """Append one event to the journal. With ``sync`` it is on disk when this returns; else no later than the next
        one with it, or ``sync``. Either way it outlives this process.
        """
        assert self._journal is not None, "writable() comes first"
        line = (as_line({"t": utc(), "e": event, **more}) + "\n").encode()
        before = os.fstat(self._journal).st_size
        try:
            while line:
                line = line[os.write(self._journal, line) :]
            self._unsynced = True
            if sync:
                self._sync(self._journal)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._journal, before)  # no half line
            raise self._cannot_keep(self.path / "journal.jsonl", error) from error

    def sync(self) -> None:
        """Have all events so far on disk."""
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
        """Open a new file for writing in a folder of ``begin_step``. Raise OSError if that fails."""
        return open_new_inside(folder / safe_name(name), self.root)

    def append_to(self, name: str) -> int:
        """Open a file in the campaign's own folder for reading and appending. Return its descriptor. Raise OSError."""
        return append_inside(self.path / name, self.root)

    def discard(self, path: Path) -> None:
        """Remove a file or folder of this campaign; ignore errors."""
        remove_inside(path, self.root)

    def save_step(self, host: str, step: Mapping[str, Any], part: Path, excuse: str = "") -> Path:
        """Save the folder ``part`` atomically as a finished step.

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
            move_inside(part, final, self.root)
        return final

    @contextlib.contextmanager
    def keeping(self, path: Path) -> Iterator[None]:
        """For writes at ``path``. Raises CannotKeep, with the command to type, where they fail."""
        try:
            yield
        except OSError as error:
            raise self._cannot_keep(path, error) from error

    def raw_dir(self, host: str, step: Mapping[str, Any]) -> Path:
        """The folder of a step's raw files."""
        leaf = str(step["repeat"])
        if step["subject"] not in ("host", "lo"):  # a pair or several nodes: a host may be in more than one
            leaf += f" {step['subject']}"
        if step.get("serves"):
            leaf += " server"
        parts = (host, step["workload"], step["case"], leaf)
        return self.path.joinpath("raw", *map(safe_name, parts))

    def set_aside(self, folder: Path) -> None:
        """Move the files of a lost step aside, so that a resumed campaign can run the step again."""
        aside = self.path / "superseded" / utc() / folder.relative_to(self.path / "raw")
        try:
            move_inside(folder, aside, self.root)
        except OSError as error:
            raise self._cannot_keep(aside, error) from error

    def write_page(self, page: str) -> Path:
        """Save the campaign's summary page."""
        return self.keep("summary.html", page)

    def keep(self, name: str, data: bytes | str) -> Path:
        """Save ``data`` as the file ``name`` of this campaign, replacing an old one. Raise CannotKeep on failure."""
        file = self.path / name
        try:
            replace_inside(file, self.root, data)
        except OSError as error:
            raise self._cannot_keep(file, error) from error
        return file

    def _cannot_keep(self, file: Path, error: OSError) -> CannotKeep:
        """Return the error for a ``file`` that could not be written, with the command that resumes without loss."""
        again = shlex.join(["fleetmark", "run", "--resume", str(self.path.resolve())])
        return CannotKeep(
            f"cannot write {file}: {fault(error)}; hosts go on with what they have, and keep it: "
            f"make room, then {again}"
        )

    # ------------------------------------------------------------ reading

    def _read(self, file: Path, most: int | None = None) -> bytes:
        return read_inside(file, self.path, most)

    def inside(self, name: str) -> Path:
        """Return the path of the file ``name`` of this campaign, to be read by another library.

        Raises FleetmarkError for a link out of the campaign, and for a pipe or a device.
        """
        file = self.path / name
        if file.exists() and not file.is_file():
            raise FleetmarkError(f"{file}: it is not a plain file; remove it")
        if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(self.path)):
            raise FleetmarkError(f"{file}: a link leads out of the campaign; put the file itself there")
        return file

    def named(self, file: Path) -> str:
        """The path of ``file`` relative to the campaign's folder."""
        return str(file.relative_to(self.path))

    def journal_blocks(self, size: int = 2 << 20) -> Iterator[bytes]:
        """The journal in blocks of whole lines of about ``size`` bytes, none where there is none; what a crash cut off
        stands last. Raises FleetmarkError where it cannot be read."""
        file = self.path / "journal.jsonl"
        try:
            with open_inside(file, self.path) as journal:
                rest = b""
                while block := journal.read(size):
                    lines, end, after = block.rpartition(b"\n")
                    if end:
                        yield rest + lines + end
                        rest = after
                    else:
                        rest += block
                if rest:
                    yield rest
        except FileNotFoundError:
            return
        except OSError as error:
            raise FleetmarkError(f"{file}: cannot be read: {fault(error)}") from error

    def journal(self) -> Iterator[dict[str, Any]]:
        """Every event, oldest first; a last line cut off by a crash is skipped.

        Raises FleetmarkError for a line that is no event.
        """
        file = self.path / "journal.jsonl"
        before = 0
        for block in self.journal_blocks():
            *lines, cut_off = block.split(b"\n")
            for number, line in enumerate((*lines, cut_off), before + 1):
                if not line:
                    continue
                try:
                    yield event_of(line)
                except ValueError as error:
                    if line is not cut_off or not line.startswith(b"{"):
                        raise FleetmarkError(
                            f"{file} line {number}: {error}: the journal was edited or damaged; take the line out"
                        ) from error
            before += len(lines)

    def facts(self) -> dict[str, Facts]:
        """Return the facts of the hosts that have them, by host name. Hosts share equal parts in memory."""
        known: Known = {}
        return {name: facts for name in self.host_names() if (facts := self.facts_of(name, known)) is not None}

    def facts_of(
        self, host: str, known: Known | None = None, accepts: Callable[[bytes], bool] = lambda _: True
    ) -> Facts | None:
        """Return the facts of a host, or None if it has none.

        ``known``: parts of facts from earlier reads, which ``once`` shares between hosts. Raise FleetmarkError if
        the file contains no facts, or if the caller does not accept it.
        """
        file = self.path / "facts" / f"{safe_name(host)}.json"
        try:
            raw = self._read(file)
            if not accepts(raw):
                raise ValueError("it has changed since the campaign was scheduled")
            return once(from_json(raw)["facts"], {} if known is None else known)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FleetmarkError(f"{file}: not facts of this version: {fault(error)}") from error

    def facts_text(self, host: str) -> bytes:
        """Return the stored text of a host's facts; empty if it has none. Raise FleetmarkError if it cannot be read."""
        file = self.path / "facts" / f"{safe_name(host)}.json"
        try:
            return self._read(file)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise FleetmarkError(f"{file}: cannot be read: {fault(error)}") from error

    def identity_of(self, host: str) -> Identity | None:
        """Return the identity of a host, or None if it has no facts. Raise FleetmarkError like ``facts_of``."""
        file = self.path / "facts" / f"{safe_name(host)}.json"
        try:
            return IdentityPart.model_validate_json(self._read(file)).facts
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise FleetmarkError(f"{file}: not facts of this version: {fault(error)}") from error

    def host_names(self) -> list[str]:
        return [h["name"] for h in self.campaign()["hosts"]]

    def look_over(self) -> None:
        """Raises FleetmarkError where files are missing or cut. It reads only their ends, which is cheap."""
        campaign = self.campaign()
        for host in campaign.get("jobs", {}):
            for kind in ("facts", "jobs"):
                file = self.path / kind / f"{safe_name(host)}.json"
                if (self._head(file), self._tail(file, 2).rstrip()[-1:]) != (b"{", b"}"):
                    raise FleetmarkError(f"{file}: missing, cut or damaged; `fleetmark run --resume` makes a job again")
        file = self.path / "measurements.parquet"
        if os.path.lexists(file) and self._tail(file, 4) != b"PAR1":
            raise FleetmarkError(f"{file}: not a complete Parquet file; `fleetmark parse` rebuilds it from raw files")

    def job(self, host: str, accepts: Callable[[bytes], bool] = lambda _: True) -> dict[str, Any] | None:
        """Return the job of a host, or None if it has none.

        Raise FleetmarkError if the file cannot be read, is not a job, or is not accepted by the caller.
        """
        file = self.path / "jobs" / f"{safe_name(host)}.json"
        try:
            raw = self._read(file)
            if not accepts(raw):
                raise FleetmarkError(f"{file}: it has changed since the campaign was scheduled")
            read(Job, raw)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FleetmarkError(f"{file}: cannot be read: {fault(error)}") from error
        except NoReply as error:
            raise FleetmarkError(f"{file}: damaged ({error})") from error
        document: dict[str, Any] = decode_json(raw)
        return document

    def steps(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Every finished step that has raw output: its folder and its description.

        Where step.json is damaged, the description comes from the job, or else from the folder's name.
        """
        scheduled: dict[str, dict[Path, Mapping[str, Any]]] = {}
        for folder in sorted(folders_below(self.path / "raw", 4)):
            if folder.name.startswith("."):  # half written when a controller died
                continue
            step: Mapping[str, Any]
            try:
                step = self.step(folder)
            except FleetmarkError:
                host = unquote(folder.relative_to(self.path / "raw").parts[0])
                if host not in scheduled:
                    scheduled[host] = self._folders(host)
                step = scheduled[host].get(folder) or self._by_name(folder)
            yield folder, step

    def _folders(self, host: str) -> dict[Path, Mapping[str, Any]]:
        """Raw folder to step, for the steps of the host's job; empty where the job is damaged too."""
        try:
            job = self.job(host) or {"steps": []}
        except FleetmarkError:
            job = {"steps": []}
        return {self.raw_dir(host, step): {"host": host, **step} for step in job["steps"]}

    def _by_name(self, folder: Path) -> Mapping[str, Any]:
        """A step as far as the name of its folder describes it."""
        host, workload, case, leaf = map(unquote, folder.relative_to(self.path / "raw").parts)
        serves = leaf.endswith(" server")
        repeat, _, subject = leaf.removesuffix(" server").partition(" ")
        number = int(repeat) if repeat.isascii() and repeat.isdigit() and len(repeat) < 9 else 0
        where = {"repeat": number, "subject": subject or "host", "serves": serves}
        return {"host": host, "workload": workload, "case": case, **where}

    def step(self, folder: Path) -> dict[str, Any]:
        """The step of ``folder``. Raises FleetmarkError where step.json is damaged, naming what is wrong."""
        stored = self._typed(StoredStepFile, folder / "step.json").root
        step = stored.as_json()
        if self.raw_dir(stored.host, step) != folder:
            raise FleetmarkError(f"{self.named(folder / 'step.json')} cannot be read: it is of another step")
        return step

    def result(self, folder: Path) -> Result:
        """The host's result of the step in ``folder``: how and when it ended, telemetry.

        Raises FleetmarkError where result.json is damaged, naming what is wrong.
        """
        return self._typed(Result, folder / "result.json")

    def telemetry(self, folder: Path) -> Telemetry | None:
        """The telemetry of the step in ``folder``, None where it has none. Raises FleetmarkError as ``result`` does."""
        return self._typed(TelemetryPart, folder / "result.json").telemetry

    def _typed(self, model: type[_Model], file: Path) -> _Model:
        try:
            return read(model, self._read(file, MAX_RESULT_BYTES))
        except (OSError, NoReply) as error:
            raise FleetmarkError(f"{self.named(file)} cannot be read: {fault(error)}") from error

    def tail(self, folder: Path, name: str, most: int) -> bytes:
        """The last ``most`` bytes of a raw file; empty where it cannot be read."""
        return self._tail(folder / safe_name(name), most)

    def _head(self, path: Path) -> bytes:
        """The first byte."""
        try:
            with open_inside(path, self.path) as file:
                return file.read(1)
        except OSError:
            return b""

    def _tail(self, path: Path, most: int) -> bytes:
        try:
            with open_inside(path, self.path) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - most))
                return file.read(most)
        except OSError:
            return b""

    def open_raw(self, folder: Path, name: str) -> BinaryIO | None:
        """A raw file to read from, which may be larger than memory; None where the run left none.

        Raises FleetmarkError where it is no plain file.
        """
        file = folder / safe_name(name)
        try:
            return open_inside(file, self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FleetmarkError(f"{self.named(file)} cannot be read: {fault(error)}") from error

    def write_measurements(self, rows: Iterable[Mapping[str, Any]]) -> Path:
        """All measurements of the campaign as one Parquet file of ``base.schema``, replacing the one before.

        ``rows`` are taken a part at a time: no more of them are in memory at once.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        rest, sink = iter(rows), pa.BufferOutputStream()
        with pq.ParquetWriter(sink, schema.arrow(), compression="zstd") as out:
            while part := list(islice(rest, _ROWS)):
                out.write_table(schema.table(part))
        return self.keep("measurements.parquet", sink.getvalue().to_pybytes())
