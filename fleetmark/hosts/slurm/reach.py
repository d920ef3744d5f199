"""Run processes on a node of a Slurm job through a shared folder, which ``playbooks/agent/node.py`` serves."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from fleetmark.base.files import decode_json
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.reach import CHUNK, Channel, LinkLost, Reach, ReachError
from fleetmark.hosts.slurm.job import Job

_LOOK_S = 0.1  # polling interval for a file that another machine writes
_OF_STEP = re.compile(rb'\{"e": "(?:part|end)", "step": "([0-9]{1,9})"')
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)  # the name of a process's folder
_STATUS = re.compile(r"-?\d{1,4}", re.ASCII)
_MOST = 1 << 20  # maximum bytes of a document
_SHORT = 64  # maximum bytes of an exit status
_TRIES = 100  # maximum attempts to find a free number


class SlurmReach(Reach):
    """Run commands on one node of a job. Processes outlive the controller; their output stays in the shared folder."""

    holds_sessions = False  # after the job, a follower's output is found by its command

    def __init__(self, host: Host, job: Job) -> None:
        super().__init__(host)
        self.job = job
        self.folder = job.folder / "nodes" / host.name
        self._channels: list[Channel] = []

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._channels.clear()

    def returns(self) -> bool | None:
        if self.job.why_over(self.host.name):
            return False
        state = self.job.state
        return True if state.is_waiting and not state.is_held else None

    def _start(self, argv: Sequence[str]) -> Channel:
        return self._open(argv, False)

    def _start_again(self, argv: Sequence[str]) -> Channel:
        return self._open(argv, True)

    def _open(self, argv: Sequence[str], again: bool) -> Channel:
        if reason := self.job.why_over(self.host.name):
            if argv[1].endswith("/follow.py") and (last := self._last(argv)) is not None:
                return _Record(self.host.name, last, reason)
            raise ReachError(f"{self.host.name}: {reason}")
        start = self.start_of_job()
        if self.job.state.is_waiting:
            raise ReachError(f"{self.host.name}: its Slurm job {self.job.id} waits for a restart")
        if start is None:
            raise ReachError(f"{self.host.name}: its part of Slurm job {self.job.id} does not run")
        folder = self._request(json.dumps({"argv": list(argv), "again": again}))
        channel = _FileChannel(self, folder, start)
        self._channels.append(channel)
        return channel

    def _request(self, text: str) -> Path:
        """Return the folder of a new process. Ansible also requests processes, from another process."""
        try:
            new = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
            try:
                (new / "in").touch()
                (new / "request").write_text(text)
                return self._numbered(new)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
        except OSError as error:
            raise ReachError(f"{self.host.name}: cannot write in {self.folder}: {error.strerror}") from None

    def _numbered(self, new: Path) -> Path:
        """Rename ``new`` to the next free number. Raise OSError on failure."""
        for _ in range(_TRIES):
            folder = self.folder / f"{max(self._numbers(), default=0) + 1:05d}"
            try:
                return new.rename(folder)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
        raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))

    def _numbers(self) -> list[int]:
        return [int(path.name) for path in self.folder.iterdir() if _NUMBER.fullmatch(path.name)]

    def start_of_job(self) -> int | None:
        """Return which start of the Slurm job runs on the node: 0, or the number of requeues. None if none runs."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            restart = _document(self.folder / "up")["restart"]
            return restart if isinstance(restart, int) else None
        return None

    def _last(self, argv: Sequence[str]) -> Path | None:
        """Return the folder of the last process with this command, run by any Python."""
        with contextlib.suppress(OSError):
            for folder in sorted((p for p in self.folder.iterdir() if _NUMBER.fullmatch(p.name)), reverse=True):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    if _document(folder / "request")["argv"][1:] == list(argv)[1:]:
                        return folder
        return None


def _open(path: Path, flags: int = os.O_RDONLY) -> BinaryIO:
    """Open a file that a node may have written. Raise OSError on failure, or if it is not a plain file."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe would block
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(handle, "rb" if flags == os.O_RDONLY else "ab")


def _document(path: Path) -> Any:
    """Return the JSON in a file that a node may have written. Raise OSError or ValueError on failure."""
    with _open(path) as source:
        raw = source.read(_MOST + 1)
    if len(raw) > _MOST:
        raise ValueError(f"it is larger than {_MOST >> 20} MiB")
    return decode_json(raw)


class _FileChannel(Channel):
    """Communicate with a process on a node through files, reopened for each poll as network file systems require."""

    def __init__(self, reach: SlurmReach, folder: Path, start: int) -> None:
        super().__init__(reach.host.name)
        self._reach, self._folder, self._of = reach, folder, start
        self._offsets = {"out": 0, "err": 0}

    def write(self, data: bytes, timeout: float | None = None) -> None:
        try:
            with _open(self._folder / "in", os.O_WRONLY | os.O_APPEND) as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise ReachError(f"{self.host}: cannot write in {self._folder}: {error.strerror}") from None

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            (self._folder / "in.end").touch()

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (text := self._status()) is None:
            self._if_lost()
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{self.host}: the process still runs")
            time.sleep(_LOOK_S)
        if not _STATUS.fullmatch(text):
            raise LinkLost(f"{self.host}: its Slurm job was requeued")
        return int(text)

    def close(self) -> None:
        self.end_input()
        self._ended = True

    def _fill(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ended:
            over = self._status() is not None  # check before reading: output is written before the status
            if self._read():
                return True
            if over:
                self._ended = True
                if not _STATUS.fullmatch(self._status() or ""):
                    raise LinkLost(f"{self.host}: its Slurm job was requeued")
                return True
            self._if_lost()
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S if deadline is None else max(0.0, min(_LOOK_S, deadline - time.monotonic())))
        return True

    def _read(self) -> bool:
        grown = False
        for name, sink in (("out", self._out), ("err", self._err)):
            data = self._bytes(name, self._offsets[name], CHUNK)
            if data:
                sink.extend(data)
                self._offsets[name] += len(data)
                grown = True
        return grown

    def _status(self) -> str | None:
        data = self._bytes("rc", 0, _SHORT)
        return None if data is None else data.decode(errors="replace")

    def _bytes(self, name: str, offset: int, limit: int) -> bytes | None:
        """Return up to ``limit`` bytes of a file, or None if it does not exist yet. Raise LinkLost if reading fails."""
        try:
            with _open(self._folder / name) as source:
                source.seek(offset)
                return source.read(limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LinkLost(f"{self.host}: cannot read {self._folder / name}: {error.strerror}") from None

    def _if_lost(self) -> None:
        if reason := self._reach.job.why_over(self.host):
            if not self._read():
                raise LinkLost(f"{self.host}: {reason}")
        elif self._reach.job.state.is_waiting or self._reach.start_of_job() != self._of:
            raise LinkLost(f"{self.host}: its Slurm job was requeued")


class _Record(Channel):
    """Read the steps that the follower of a finished job left in the shared folder."""

    def __init__(self, host: str, folder: Path, reason: str) -> None:
        super().__init__(host)
        self._why = reason
        self._have: set[str] = set()
        self._files = [path for path in sorted(folder.glob("*out")) if path.name == "out" or "restart-" in path.name]
        try:
            self._file = _open(self._files[0]) if self._files else None
        except OSError as error:
            raise ReachError(f"{host}: cannot read {self._files[0]}: {error.strerror}") from None

    def write(self, data: bytes, timeout: float | None = None) -> None:
        for line in data.splitlines():
            order = json.loads(line)
            if order.get("order") == "have":
                self._have = set(order["steps"])

    def end_input(self) -> None:
        pass

    def wait(self, timeout: float | None = None) -> int:
        return 0

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _fill(self, timeout: float | None) -> bool:
        """Read the next line about a step that the controller lacks. Skip all other events."""
        while self._file and (line := self._file.readline(CHUNK)):
            match = _OF_STEP.match(line)
            if match and match[1].decode() not in self._have and line.endswith(b"\n"):
                self._out += line
                return True
        self.close()
        raise LinkLost(f"{self.host}: {self._why}")
