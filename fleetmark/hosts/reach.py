"""Running things on a host, here or over SSH, as oneself or as root: one small interface, whatever is behind it."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shlex
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.inventory import Host

SUDO_TIMEOUT_S = 30.0  # sudo's own delays after a wrong password, and slow directories, included
MAX_OUTPUT = 16 << 20  # bytes of stdout, and of stderr, that a command run to its end may print; facts are 1 MiB
CHUNK = 1 << 20  # bytes read at once
_KEEP_ERRORS = 64 * 1024  # bytes of stderr a long-lived process leaves for a later question
_END_S = 2.0  # what a local process gets to end by itself once nobody listens


class ReachError(FleetmarkError):
    """A host could not be reached, or not be used as asked. Begins with the host's name."""


class LinkLost(ReachError):
    """The connection was there, and went away: the host may be alive, and what runs detached on it goes on."""


class Flood(ReachError):
    """A host sent more than anything Fleetmark runs there would."""


class Stalled(ReachError):
    """A process on a host does not take what is written to it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: exit status (negative: ended by a signal), stdout and stderr."""

    rc: int
    out: bytes
    err: bytes


class Channel(ABC):
    """A process on a host with its pipes. One thread reads; another may write or close."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._out = bytearray()
        self._err = bytearray()
        self._ended = False  # neither stdout nor stderr will say more

    @abstractmethod
    def write(self, data: bytes, timeout: float | None = None) -> None:
        """All of ``data`` to stdin. Raises ReachError when nobody reads it any more, Stalled where a host takes none of
        it for ``timeout`` seconds.
        """

    @abstractmethod
    def end_input(self) -> None:
        """Nothing more comes on stdin."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> int:
        """The exit status, negative when a signal ended it.

        Raises TimeoutError while it runs still, LinkLost when the link went first.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the process: its pipes close, and no signal is sent over SSH. What it detached lives on."""

    @abstractmethod
    def _fill(self, timeout: float | None) -> bool:
        """Wait until there is more (at most CHUNK) in ``_out`` or ``_err``, or ``_ended`` is set; False when the time
        is up first.
        """

    def readline(self, timeout: float | None = None, most: int = MAX_OUTPUT) -> bytes:
        """The next line of stdout with its newline; empty when the process has ended.

        Raises TimeoutError when none came in ``timeout`` seconds (it may be read for later), Flood for a line of more
        than ``most`` bytes, LinkLost.
        """
        searched = 0
        deadline = _deadline(timeout)
        while True:
            end = self._out.find(b"\n", searched)
            if end >= 0 or self._ended:
                line = bytes(self._out[: end + 1 or None])
                del self._out[: len(line)]
                return line
            searched = len(self._out)
            if searched > most:
                raise Flood(f"{self.host}: sent a line of more than {most >> 10} KiB")
            if not self._fill(_left(deadline)):
                raise TimeoutError(f"{self.host}: nothing said for {timeout:g} s")
            del self._err[:-_KEEP_ERRORS]

    def lines(self, timeout: float | None = None, most: int = MAX_OUTPUT) -> Iterator[bytes]:
        """Lines of stdout until the process ends; ``timeout`` and ``most`` bytes hold for each."""
        while line := self.readline(timeout, most):
            yield line

    def errors(self) -> str:
        """What it said on stderr so far, its end where that was long."""
        return self._err.decode(errors="replace").strip()

    def read_all(self, deadline: float | None) -> tuple[bytes, bytes]:
        """Stdout and stderr to their ends. Raises TimeoutError at ``deadline`` (monotonic clock), Flood beyond
        MAX_OUTPUT, LinkLost.
        """
        while not self._ended:
            self._refuse_flood()
            if not self._fill(_left(deadline)):
                raise TimeoutError
        return bytes(self._out), bytes(self._err)

    def _refuse_flood(self) -> None:
        if max(len(self._out), len(self._err)) > MAX_OUTPUT:
            raise Flood(f"{self.host}: sent more than {MAX_OUTPUT >> 20} MiB where Fleetmark asked for little")

    def become(self, mark: str, password: str | None) -> None:
        """Get past a sudo that was started by ``_sudo``: until its command runs, with all before that forgotten.

        Raises ReachError with sudo's words when it refuses.
        """
        asks, starts = f"{mark}?".encode(), f"{mark}!".encode()
        deadline = _deadline(SUDO_TIMEOUT_S)
        prompts = 0
        while starts not in self._err:
            if self._err.count(asks) > prompts:
                prompts += 1
                if prompts > 1:
                    raise ReachError(f"{self.host}: sudo does not take the password; check ansible_become_password")
                self.write(f"{password}\n".encode())
                continue
            if self._ended:
                raise ReachError(f"{self.host}: {_sudo_refused(self._err.replace(asks, b'').decode(errors='replace'))}")
            self._refuse_flood()
            if not self._fill(_left(deadline)):
                raise ReachError(f"{self.host}: sudo did not answer in {SUDO_TIMEOUT_S:g} s")
        del self._err[: self._err.index(starts) + len(starts)]


class Reach(ABC):
    """A way to one host. Opens its connection when first used, keeps it, and may be used again after ``close``."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    @abstractmethod
    def is_root(self) -> bool:
        """Whether it works as root already, so that no sudo is needed."""

    @abstractmethod
    def close(self) -> None:
        """Give up the connection; nothing on the host is killed."""

    @abstractmethod
    def _start(self, argv: Sequence[str]) -> Channel:
        """A process on the host, with pipes for its standard streams."""

    def open(self, argv: Sequence[str], *, sudo: bool = False) -> Channel:
        """Start a process that lives long, as root with ``sudo``. Raises ReachError."""
        if not sudo or self.is_root:
            return self._start(argv)
        mark = f"fleetmark-{secrets.token_hex(8)}"
        channel = self._start(_sudo(argv, mark, ask=self.host.become_password is not None))
        try:
            channel.become(mark, self.host.become_password)
        except BaseException:
            channel.close()
            raise
        return channel

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0, sudo: bool = False) -> Ran:
        """Run a command to its end, and to the end of its output: what it leaves behind must not hold its pipes.

        Raises ReachError, also when it takes longer than ``timeout`` seconds, connecting not counted; LinkLost.
        """
        channel = self.open(argv, sudo=sudo)
        try:
            deadline = _deadline(timeout)
            feeder = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)
            feeder.start()  # beside the reading, or two full pipes would wait for one another
            out, err = channel.read_all(deadline)
            return Ran(channel.wait(_left(deadline)), out, err)
        except TimeoutError:
            raise ReachError(f"{self.host.name}: {_short(argv)} did not end within {timeout:g} s") from None
        finally:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class LocalReach(Reach):
    """This machine: no connection at all."""

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    def close(self) -> None:
        pass

    def _start(self, argv: Sequence[str]) -> Channel:
        return _LocalChannel(self.host.name, argv)


class _LocalChannel(Channel):
    def __init__(self, host: str, argv: Sequence[str]) -> None:
        super().__init__(host)
        # In a process group of its own, a Ctrl-C at the terminal is for us alone to act on; in the same session, sudo
        # still knows who has given a password at this terminal.
        try:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, process_group=0
            )
        except OSError as error:
            raise ReachError(f"{host}: cannot start {argv[0]}: {error.strerror}") from None
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin = self._process.stdin
        self._reading = threading.Lock()
        self._poll = select.poll()
        self._sinks = {self._process.stdout.fileno(): self._out, self._process.stderr.fileno(): self._err}
        for number in self._sinks:
            self._poll.register(number, select.POLLIN)

    def write(self, data: bytes, timeout: float | None = None) -> None:
        try:
            while data:
                data = data[self._stdin.write(data) or 0 :]
        except (OSError, ValueError):  # ValueError: closed by our own side
            raise ReachError(f"{self.host}: the process ended") from None

    def end_input(self) -> None:
        self._stdin.close()

    def wait(self, timeout: float | None = None) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.host}: {_short(self._process.args)} still runs") from None  # type: ignore[arg-type]

    def close(self) -> None:
        self._stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(PermissionError):  # root's, by sudo: it goes when its pipes do
                self._process.terminate()  # this process alone, never its group: a job it detached is not ours to end
        # A pipe is closed when nobody reads it: its number might be another file's by then.
        if self._reading.acquire(timeout=_END_S):
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe:
                    pipe.close()
            self._ended = True
            self._reading.release()

    def _fill(self, timeout: float | None) -> bool:
        with self._reading:
            if self._ended:
                return True
            ready = self._poll.poll(None if timeout is None else timeout * 1000)
            for number, _ in ready:
                data = os.read(number, CHUNK)
                self._sinks[number].extend(data)
                if not data:
                    self._poll.unregister(number)
                    del self._sinks[number]
            self._ended = not self._sinks
            return bool(ready)


def _sudo(argv: Sequence[str], mark: str, *, ask: bool) -> list[str]:
    """``argv`` as root. On stderr comes MARK? when sudo wants the password and MARK! when the command begins: only so
    is it known to whom what is written to stdin goes, and whose the exit status is.
    """
    how = ["-S", "-p", f"{mark}?"] if ask else ["-n"]
    return ["sudo", "-H", *how, "--", "/bin/sh", "-c", 'printf %s "$0" >&2; exec "$@"', f"{mark}!", *argv]


def _sudo_refused(stderr: str) -> str:
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any("password is required" in w for w in words):
        return "sudo needs a password; set ansible_become_password, or allow sudo without one there"
    if any("not found" in w for w in words):
        return "there is no sudo there; log in as root, or install it"
    return f"sudo refuses: {words[-1].removeprefix('sudo: ')}" if words else "sudo ended without a word"


def _feed(channel: Channel, data: bytes) -> None:
    try:
        if data:
            channel.write(data)
        channel.end_input()
    except ReachError:
        pass  # it ended without reading all of it, as it may: its exit status tells


def _short(argv: Sequence[str]) -> str:
    text = " ".join(shlex.join(argv).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
