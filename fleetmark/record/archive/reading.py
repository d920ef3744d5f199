"""Read a campaign. Check each file on reading, because anyone may have written it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from fleetmark.base.errors import FleetmarkError, unread_schema
from fleetmark.base.facts import Facts, Identity, Known, once
from fleetmark.base.files import decode_json
from fleetmark.base.inside import folders_below, open_inside, read_inside
from fleetmark.base.signature import is_signed
from fleetmark.base.units import is_whole
from fleetmark.record.archive import chain
from fleetmark.record.archive.names import safe_name
from fleetmark.record.documents import (
    CampaignHead,
    IdentityPart,
    Job,
    StoredStepFile,
    TelemetryPart,
    event_of,
    fault,
)
from fleetmark.record.replies import MAX_RESULT_BYTES, NoReply, Result, StepTelemetry, read

SCHEMA = 1

_Model = TypeVar("_Model", bound=BaseModel)


class StoredCampaign:
    """Read the directory of one campaign. Symlinks that leave the directory are not followed."""

    def __init__(self, path: Path, root: Path | None = None) -> None:
        """Open ``path`` below the results root ``root``, by default the parent folder of ``path``."""
        self.path = path
        self.root = root or path.parent
        self._campaign: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the campaign at ``path``. Raise FleetmarkError if there is none, or if its schema is newer."""
        archive = cls(path)
        archive.campaign()
        return archive

    def campaign(self) -> dict[str, Any]:
        """Return campaign.json. Raise FleetmarkError if it is missing or damaged, or if its schema is newer."""
        if self._campaign is not None:
            return self._campaign
        file = self.path / "campaign.json"
        try:
            document = decode_json(self._read(file))
            schema = document.get("schema") if isinstance(document, dict) else SCHEMA
            if schema != SCHEMA:
                raise unread_schema(self.path, schema, SCHEMA)
            CampaignHead.model_validate(document)
        except FileNotFoundError as error:
            raise FleetmarkError(f"{self.path} is not a campaign: it has no campaign.json") from error
        except ValidationError as error:
            raise FleetmarkError(f"{file}: damaged ({fault(error)}); restore it, or exclude the campaign") from error
        except (OSError, ValueError) as error:
            raise FleetmarkError(f"{file}: cannot be read: {fault(error)}; restore it, or exclude it") from error
        campaign: dict[str, Any] = document
        return campaign

    def pin(self) -> dict[str, Any]:
        """Return campaign.json and cache it, so that nobody can change it after a check.

        Raise FleetmarkError like ``campaign``.
        """
        self._campaign = self.campaign()
        return self._campaign

    def own_campaign(self) -> dict[str, Any] | None:
        """Pin campaign.json and return it if this user started the campaign and nobody changed the file, else None.

        Raise FleetmarkError like ``campaign``.
        """
        document = self.pin()
        return document if document.get("id") == self.id and is_signed(document) else None

    def raw_dir(self, host: str, step: Mapping[str, Any]) -> Path:
        """Return the folder of a step's raw files."""
        leaf = str(step["repeat"])
        if step["subject"] not in ("host", "lo"):  # a pair or group of hosts; a host may belong to several groups
            leaf += f" {step['subject']}"
        if step.get("serves"):
            leaf += " server"
        parts = (host, step["workload"], step["case"], leaf)
        return self.path.joinpath("raw", *map(safe_name, parts))

    def _read(self, file: Path, limit_bytes: int | None = None) -> bytes:
        return read_inside(file, self.path, limit_bytes)

    def inside(self, name: str) -> Path:
        """Return the path of the campaign file ``name``, for a library that needs a path.

        Raise FleetmarkError if it is a pipe, a device, or a link that leaves the campaign.
        """
        file = self.path / name
        if file.exists() and not file.is_file():
            raise FleetmarkError(f"{file}: it is not a plain file; remove it")
        if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(self.path)):
            raise FleetmarkError(f"{file}: a link leads out of the campaign; put the file itself there")
        return file

    def named(self, file: Path) -> str:
        """Return the path of ``file`` relative to the campaign's folder."""
        return str(file.relative_to(self.path))

    def journal_blocks(self, size: int = 2 << 20) -> Iterator[bytes]:
        """Yield the journal in blocks of whole lines, each about ``size`` bytes.

        A line that a crash truncated comes last. Yield nothing if there is no journal. Raise FleetmarkError if it
        cannot be read.
        """
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
        """Yield every event, oldest first. Skip a last line that a crash truncated.

        Raise FleetmarkError if another line is not an event.
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
                            f"{file} line {number}: {error}: the journal was edited or damaged; remove the line"
                        ) from error
            before += len(lines)

    def is_chained(self) -> bool:
        """Return whether the journal is a hash chain. Versions before hash chains wrote plain journals."""
        first = next(self.journal_blocks(1 << 16), b"")
        return bool(chain.stated(first.partition(b"\n")[0]))

    def last_digest(self) -> str:
        """Return the digest of the journal's last whole line; empty if that line is not chained."""
        lines = self._tail(self.path / "journal.jsonl", 1 << 20).rpartition(b"\n")[0]
        return chain.stated(lines.rpartition(b"\n")[2])

    def has_digest(self, digest: str) -> bool:
        """Return whether a line of the journal has this digest, which means that the campaign once ended with that
        line.
        """
        return any(f'"chain": "{digest}"}}'.encode() in block for block in self.journal_blocks())

    def stored_folders(self) -> set[str]:
        """Return the folders of raw files, relative to the campaign, that the journal lists as stored."""
        stored: set[str] = set()
        for event in self.journal():
            if event["e"] == "stored":
                stored.add(event["folder"])
            elif event["e"] == "superseded":
                stored.discard(event["folder"])
        return stored

    def digests(self, folder: Path) -> dict[str, tuple[int, str]]:
        """Return the size and the SHA-256 of every file in ``folder``. Raise OSError if one is not a plain file."""
        return {file.name: self.digest(self.named(file)) for file in sorted(folder.iterdir())}

    def digest(self, name: str) -> tuple[int, str]:
        """Return the size and the SHA-256 of a file of the campaign. Raise OSError if it cannot be read."""
        with open_inside(self.path / name, self.path) as file:
            return chain.digest_of(file)

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
        """Raise FleetmarkError if files are missing or truncated. This is cheap: only their ends are read."""
        campaign = self.campaign()
        for host in campaign.get("jobs", {}):
            for kind in ("facts", "jobs"):
                file = self.path / kind / f"{safe_name(host)}.json"
                if (self._head(file), self._tail(file, 2).rstrip()[-1:]) != (b"{", b"}"):
                    raise FleetmarkError(
                        f"{file}: missing, truncated or damaged; recreate the job: fleetmark run --resume"
                    )
        file = self.path / "measurements.parquet"
        if os.path.lexists(file) and self._tail(file, 4) != b"PAR1":
            raise FleetmarkError(f"{file}: not a complete Parquet file; `fleetmark rebuild` rebuilds it from raw files")

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
        """Yield the folder and the description of each finished step that has raw output.

        If step.json is damaged, the description comes from the job, or else from the folder's name.
        """
        scheduled: dict[str, dict[Path, Mapping[str, Any]]] = {}
        for folder in sorted(folders_below(self.path / "raw", 4)):
            if folder.name.startswith("."):  # a partly written file of a controller that died
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
        """Return the steps of a host's job by their raw folder. The result is empty if the job is damaged."""
        try:
            job = self.job(host) or {"steps": []}
        except FleetmarkError:
            job = {"steps": []}
        return {self.raw_dir(host, step): {"host": host, **step} for step in job["steps"]}

    def _by_name(self, folder: Path) -> Mapping[str, Any]:
        """Return the part of a step's description that its folder name contains."""
        host, workload, case, leaf = map(unquote, folder.relative_to(self.path / "raw").parts)
        serves = leaf.endswith(" server")
        repeat, _, subject = leaf.removesuffix(" server").partition(" ")
        number = int(repeat) if is_whole(repeat) and len(repeat) < 9 else 0
        step = {"workload": workload, "case": case, "repeat": number, "subject": subject or "host"}
        return {"host": host, **step, "serves": serves}

    def step(self, folder: Path) -> dict[str, Any]:
        """Return the step in ``folder``. Raise FleetmarkError with the reason if step.json is damaged."""
        stored = self._typed(StoredStepFile, folder / "step.json").root
        step = stored.as_json()
        if self.raw_dir(stored.host, step) != folder:
            raise FleetmarkError(f"{self.named(folder / 'step.json')} cannot be read: it belongs to another step")
        return step

    def result(self, folder: Path) -> Result:
        """Return the host's result of the step in ``folder``: its telemetry, and how and when it ended.

        Raise FleetmarkError with the reason if result.json is damaged.
        """
        return self._typed(Result, folder / "result.json")

    def telemetry(self, folder: Path) -> StepTelemetry | None:
        """Return the telemetry of a step, or None if it has none. Raise FleetmarkError like ``result``."""
        return self._typed(TelemetryPart, folder / "result.json").telemetry

    def _typed(self, model: type[_Model], file: Path) -> _Model:
        try:
            return read(model, self._read(file, MAX_RESULT_BYTES))
        except (OSError, NoReply) as error:
            raise FleetmarkError(f"{self.named(file)} cannot be read: {fault(error)}") from error

    def tail(self, folder: Path, name: str, limit_bytes: int) -> bytes:
        """Return the last ``limit_bytes`` bytes of a raw file, or nothing if it cannot be read."""
        return self._tail(folder / safe_name(name), limit_bytes)

    def _head(self, path: Path) -> bytes:
        """Return the first byte of a file."""
        try:
            with open_inside(path, self.path) as file:
                return file.read(1)
        except OSError:
            return b""

    def _tail(self, path: Path, limit_bytes: int) -> bytes:
        try:
            with open_inside(path, self.path) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
                return file.read(limit_bytes)
        except OSError:
            return b""

    def open_raw(self, folder: Path, name: str) -> BinaryIO | None:
        """Open a raw file, which may be larger than memory. Return None if the run left no such file.

        Raise FleetmarkError if it is not a plain file.
        """
        file = folder / safe_name(name)
        try:
            return open_inside(file, self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FleetmarkError(f"{self.named(file)} cannot be read: {fault(error)}") from error
