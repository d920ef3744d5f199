"""Run a parser from outside the package in a separate process, with limits on time, memory and output."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit import isolated

TIME_S = 20.0  # time limit per output
REPLY_BYTES = 64 << 20  # maximum size of the measurements as JSON
PRINTED_BYTES = 1 << 20  # maximum size of a parser's printed text, which is discarded
_PART = 1 << 16
_ENOUGH = 3  # after this many timeouts a parser is not run again, so that the campaign can finish

_slow: Counter[tuple[Path, int]] = Counter()  # timeouts by file and modification time

_PARSED = TypeAdapter(Parsed)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A parser file with the interface of a parser module; ``time_s`` is the time limit of each call."""

    tool: str
    path: Path
    time_s: float = TIME_S

    def parse(self, raw: bytes, command: Sequence[str] = ()) -> Parsed:
        """Return the parsed ``raw`` output. Raise ParseError if the parser does, and FleetmarkError if it fails."""
        with tempfile.TemporaryFile() as file:
            file.write(raw)
            file.seek(0)
            return self._run(file, command)

    @property
    def shown(self) -> str:
        """Return the file name for messages and records: its path relative to the parent of its folder."""
        extension = extensions.owner(self.path)
        return str(self.path.relative_to(extension.path.parent)) if extension else self.path.name

    def _run(self, file: BinaryIO | IO[bytes], command: Sequence[str]) -> Parsed:
        key = (self.path, self.path.stat().st_mtime_ns)
        if _slow[key] >= _ENOUGH:
            raise self._failed(f"took longer than {self.time_s:g} s on {_ENOUGH} outputs, so it was not run again")
        words = [sys.executable, "-P", "-m", isolated.__name__, str(self.path), self.tool, json.dumps(list(command))]
        with subprocess.Popen(
            words,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        ) as process:
            try:
                reply, fault = self._received(process)
            finally:
                _end(process)
            if fault == self._too_long:
                _slow[key] += 1
            if fault:
                raise self._failed(fault)
        return self._parsed(reply, process.returncode)

    @property
    def _too_long(self) -> str:
        return f"took longer than {self.time_s:g} s"

    def _received(self, process: subprocess.Popen[bytes]) -> tuple[bytes, str]:
        """Return the reply, and why the parser must be killed before it exits; empty if it exited by itself."""
        deadline = time.monotonic() + self.time_s
        limits = {"reply": REPLY_BYTES, "print": PRINTED_BYTES}
        parts: dict[str, list[bytes]] = {"reply": [], "print": []}
        with selectors.DefaultSelector() as selector:
            for pipe, name in ((process.stdout, "reply"), (process.stderr, "print")):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, name)
            while selector.get_map():
                if (left := deadline - time.monotonic()) <= 0:
                    return b"", self._too_long
                for key, _ in selector.select(left):
                    part = os.read(key.fd, _PART)
                    if not part:
                        selector.unregister(key.fileobj)
                        continue
                    parts[key.data].append(part)
                    limits[key.data] -= len(part)
                    if limits[key.data] < 0:
                        kept = REPLY_BYTES if key.data == "reply" else PRINTED_BYTES
                        verb = "returned" if key.data == "reply" else "printed"
                        return b"", f"{verb} more than {kept >> 20} MiB"
        # Do not reap it here: until then its process ID is not reused, so killing its group is safe.
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > deadline:
                return b"", self._too_long
            time.sleep(0.002)
        return b"".join(parts["reply"]), ""

    def _parsed(self, reply: bytes, status: int) -> Parsed:
        if status < 0:
            raise self._failed(f"was killed by signal {-status} ({signal.Signals(-status).name})")
        try:
            answer: dict[str, Any] = json.loads(reply)
        except ValueError:
            raise self._failed(f"exited with status {status} without measurements") from None
        if refused := answer.get("refused"):
            raise ParseError(self.tool, str(refused[0]), line=refused[1], got=refused[2])
        if error := answer.get("error"):
            raise self._failed(str(error))
        try:
            return _PARSED.validate_python(answer.get("parsed"))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise self._failed(f"returned invalid measurements: {place}: {first['msg']}") from None

    def _failed(self, problem: str) -> FleetmarkError:
        return FleetmarkError(
            f"{self.tool}: its parser {self.shown} {problem}; correct it, then parse the raw files again: "
            "fleetmark rebuild CAMPAIGN"
        )


def _environment() -> dict[str, str]:
    """Return the environment of a parser, without the user's tokens and keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return kept | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the parser and all processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
