"""The archive: a campaign is a directory of plain files, and this is the only place that touches them.

campaign.json         what was asked: suite, seed, settings, command line, hosts, versions, hashes
journal.jsonl         every change of state, appended and fsynced
facts/HOST.json       the host, normalised, and the raw command output it was read from
jobs/HOST.json        the job as it travelled to the host
raw/HOST/WORKLOAD/CASE/REPEAT/   step.json, result.json (how it ran and ended), stdout, ...
measurements.parquet  rebuilt from raw at any time
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.parse import quote

from pydantic_core import from_json

from fleetmark.facts import Facts
from fleetmark.model import FleetmarkError

SCHEMA = 1


def utc(seconds: float | None = None) -> str:
    """A moment (now, if none is given) as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def safe_name(name: str) -> str:
    """``name`` as one path component, reversible by eye; a long one is cut and told apart by a hash."""
    made = quote(name, safe=" >@+=,:")
    if made in (".", ".."):
        made = made.replace(".", "%2E")
    if len(made.encode()) > 150:
        made = f"{made[:130]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return made


def write_atomic(path: Path, data: bytes | str) -> None:
    """``path``, or the file that it is a link to, holds all of ``data`` or what it held before. Raises FleetmarkError
    where it cannot be written, and for a device or a pipe, which would be replaced.
    """
    raw = data.encode() if isinstance(data, str) else data
    part = None
    try:
        file = path.resolve()
        if file.exists() and not file.is_file():
            raise FleetmarkError(f"cannot write {path}: it is no plain file; give another name")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name[:40]}.", delete=False) as out:
            part = Path(out.name)
            out.write(raw)
            out.flush()
            os.fsync(out.fileno())
        part.chmod(0o644)
        part.rename(file)
    except OSError as error:
        if part:
            part.unlink(missing_ok=True)
        raise FleetmarkError(f"cannot write {path}: {error.strerror}") from error


class Archive:
    """One campaign's directory. Writing needs the controller's lock (``writable``); reading needs nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal: IO[str] | None = None
        self._lock: IO[str] | None = None

    @property
    def id(self) -> str:
        return self.path.name

    @classmethod
    def create(cls, root: Path, campaign_id: str, campaign: Mapping[str, Any]) -> Archive:
        """A new campaign under ``root``. Raises FleetmarkError where that cannot be written."""
        archive = cls(root / campaign_id)
        try:
            archive.path.mkdir(parents=True)
        except OSError as error:
            raise FleetmarkError(
                f"cannot make {archive.path}: {error.strerror}; choose another place with --results"
            ) from error
        write_atomic(archive.path / "campaign.json", json.dumps({"schema": SCHEMA, **campaign}, indent=1))
        return archive

    @classmethod
    def open(cls, path: Path) -> Archive:
        """The campaign at ``path``. Raises FleetmarkError when there is none, or one of a later schema."""
        archive = cls(path)
        schema = archive.campaign().get("schema")
        if schema != SCHEMA:
            raise FleetmarkError(f"{path}: schema {schema} is not one this version of Fleetmark reads ({SCHEMA})")
        return archive

    def campaign(self) -> dict[str, Any]:
        """What was asked for. Raises FleetmarkError when the file is absent or broken."""
        file = self.path / "campaign.json"
        try:
            found: dict[str, Any] = json.loads(file.read_text())
        except FileNotFoundError as error:
            raise FleetmarkError(f"{self.path} is no campaign: it has no campaign.json") from error
        except (OSError, ValueError) as error:
            raise FleetmarkError(f"{file}: cannot be read: {error}") from error
        return found

    # ------------------------------------------------------------ writing

    def writable(self) -> Archive:
        """This campaign for one controller alone. Raises FleetmarkError while another holds it."""
        try:
            self._lock = (self.path / "controller.lock").open("w")
        except OSError as error:
            raise FleetmarkError(f"cannot write in {self.path}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FleetmarkError(f"campaign {self.id} is being driven by another fleetmark on this machine") from error
        file = self.path / "journal.jsonl"
        if file.exists():  # a crash may have left half a line, which the next would be glued to
            whole = file.read_bytes()
            os.truncate(file, whole.rfind(b"\n") + 1)
        self._journal = file.open("a")
        return self

    def close(self) -> None:
        for handle in (self._journal, self._lock):
            if handle:
                handle.close()

    def note(self, event: str, *, sync: bool = True, **more: Any) -> None:
        """Append one event to the journal; it is on disk when this returns, unless told not to ``sync``."""
        assert self._journal, "writable() comes first"
        try:
            self._journal.write(json.dumps({"t": utc(), "e": event, **more}) + "\n")
            if sync:
                self._journal.flush()
                os.fsync(self._journal.fileno())
        except OSError as error:
            raise FleetmarkError(
                f"cannot write {self.path}/journal.jsonl: {error.strerror}; hosts keep what they finish: make "
                f"room, then fleetmark run --resume {self.path}"
            ) from error

    def save_facts(self, host: str, facts: Facts, raw: Mapping[str, Any]) -> None:
        doc = {"facts": facts.model_dump(mode="json"), "raw": raw}
        write_atomic(self.path / "facts" / f"{safe_name(host)}.json", json.dumps(doc))

    def save_job(self, host: str, job: Mapping[str, Any]) -> None:
        write_atomic(self.path / "jobs" / f"{safe_name(host)}.json", json.dumps(job))

    def begin_step(self, host: str, step: Mapping[str, Any]) -> Path:
        """An empty folder beside where the step's files will lie, to fill and hand to ``save_step``."""
        final = self.raw_dir(host, step)
        final.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=final.parent, prefix=".part-"))

    def save_step(self, host: str, step: Mapping[str, Any], part: Path, excuse: str = "") -> Path:
        """Keep what ``part`` holds as a finished step, all or nothing; one that came twice (a resumed campaign) is kept
        as it first was. ``excuse``: why the controller had the step skipped or ended.
        """
        doc = {"host": host, **step, **({"excuse": excuse} if excuse else {})}
        final = self.raw_dir(host, doc)
        try:
            if final.exists():
                shutil.rmtree(part)
                return final
            with (part / "step.json").open("w") as out:
                json.dump(doc, out)
                out.flush()
                os.fsync(out.fileno())
            part.chmod(0o755)
            part.rename(final)
        except OSError as error:
            raise FleetmarkError(f"cannot write {final}: {error.strerror}") from error
        return final

    def raw_dir(self, host: str, step: Mapping[str, Any]) -> Path:
        """Where a step's raw files lie."""
        leaf = str(step["repeat"])
        if step["subject"] not in ("host", "lo"):  # a pair or several nodes: a host may be in more than one
            leaf += f" {step['subject']}"
        if step.get("serves"):
            leaf += " server"
        parts = (host, step["workload"], step["case"], leaf)
        return self.path.joinpath("raw", *map(safe_name, parts))

    def set_aside(self, folder: Path) -> None:
        """Move what a lost step left out of the way, so that a resumed campaign can run it again."""
        aside = self.path / "superseded" / utc() / folder.relative_to(self.path / "raw")
        aside.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(aside)

    # ------------------------------------------------------------ reading

    def journal(self) -> Iterator[dict[str, Any]]:
        """Every event, oldest first; a last line cut off by a crash is passed over."""
        file = self.path / "journal.jsonl"
        if not file.exists():
            return
        lines = file.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                if number < len(lines):
                    raise FleetmarkError(
                        f"{file} line {number}: not JSON: the journal was edited or damaged"
                    ) from error

    def facts(self) -> dict[str, Facts]:
        """Host name to facts, for the hosts that gave them."""
        return {name: facts for name in self.host_names() if (facts := self.facts_of(name)) is not None}

    def facts_of(self, host: str) -> Facts | None:
        """The host's facts, None where it gave none. Raises FleetmarkError for a file that holds no such thing."""
        file = self.path / "facts" / f"{safe_name(host)}.json"
        try:
            return Facts.model_validate(from_json(file.read_bytes())["facts"]) if file.exists() else None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FleetmarkError(f"{file}: not facts of this version: {str(error).splitlines()[0]}") from error

    def host_names(self) -> list[str]:
        return [h["name"] for h in self.campaign()["hosts"]]

    def job(self, host: str) -> dict[str, Any] | None:
        file = self.path / "jobs" / f"{safe_name(host)}.json"
        if not file.exists():
            return None
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def steps(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Every finished step there is raw output of: its folder and what it was."""
        for file in sorted((self.path / "raw").glob("*/*/*/*/step.json")):
            if not file.parent.name.startswith("."):  # half written when a controller died
                yield file.parent, json.loads(file.read_text())

    def result(self, folder: Path) -> dict[str, Any]:
        """What the host said of a step in ``folder``: how it ended, when, telemetry."""
        found: dict[str, Any] = json.loads((folder / "result.json").read_text())
        return found

    def read(self, folder: Path, name: str) -> bytes | None:
        file = folder / safe_name(name)
        return file.read_bytes() if file.exists() else None

    def open_raw(self, folder: Path, name: str) -> BinaryIO | None:
        """A raw file to read from, which may be larger than memory; None where the run left none."""
        file = folder / safe_name(name)
        return file.open("rb") if file.exists() else None

    def write_measurements(self, rows: Sequence[Mapping[str, Any]]) -> Path:
        """All measurements of the campaign as one Parquet file (MEASUREMENT_SCHEMA), replacing the one before."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        fields = [pa.field(name, _arrow(pa, kind)) for name, kind in MEASUREMENT_SCHEMA.items()]
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=pa.schema(fields))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        path = self.path / "measurements.parquet"
        write_atomic(path, sink.getvalue().to_pybytes())
        return path


MEASUREMENT_SCHEMA: Mapping[str, str] = {
    "campaign": "str",
    "host": "str",
    "subject": "str",
    "workload": "str",
    "case": "str",
    "metric": "str",
    "labels": "str",
    "repeat": "int",
    "value": "float",
    "unit": "str",
    "better": "str",
    "class": "str",
    "headline": "bool",
    "bits": "bool",
    "time": "str",
    "tool_version": "str",
    "raw": "str",
    "status": "str",
    "standing": "str",
    "members": "str",
}


def _arrow(pa: Any, kind: str) -> Any:
    return {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}[kind]


def campaigns(root: Path) -> list[Archive]:
    """The campaigns under a results root, oldest first."""
    return [Archive(p.parent) for p in sorted(root.glob("*/campaign.json"))]


def find(root: Path, name: str) -> Archive:
    """The campaign a user means: a path, an id under ``root``, the start of one, or ``last``.

    Raises FleetmarkError when none or several answer to it.
    """
    if (Path(name) / "campaign.json").exists():
        return Archive.open(Path(name))
    there = campaigns(root)
    if name == "last" and there:
        return Archive.open(there[-1].path)
    matching = [a for a in there if a.id == name] or [a for a in there if a.id.startswith(name)]
    if len(matching) == 1:
        return Archive.open(matching[0].path)
    if not matching:
        known = f"the latest is {there[-1].id}" if there else f"there is none under {root}"
        raise FleetmarkError(f"no campaign {name!r}: {known}; `fleetmark campaigns` lists them, --results says where")
    raise FleetmarkError(f"{name!r} could be {', '.join(a.id for a in matching)}: type more of it")
