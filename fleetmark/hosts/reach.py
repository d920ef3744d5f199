"""Run commands on a host, locally or over SSH, as the user or as root, through one interface."""

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

SUDO_TIMEOUT_S = 30.0  # includes sudo's own delays after a wrong password, and slow directory services
MAX_OUTPUT = 16 << 20  # maximum bytes of stdout, and of stderr, of a command that ``run`` waits for; facts are 1 MiB
CHUNK = 1 << 20  # maximum bytes per read
_KEEP_ERRORS = 64 * 1024  # bytes of stderr to keep for a long-lived process
_END_S = 2.0  # timeout for a local process to end after its pipes close


class ReachError(FleetmarkError):
    """Report that a host cannot be reached or used. The message begins with the host's name."""


class LinkLost(ReachError):
    """Report that an open connection ended. The host may be alive, and its detached processes continue."""


class Flood(ReachError):
    """Report that a host sent more output than any command of Fleetmark prints."""


class Stalled(ReachError):
    """Report that a process on a host does not read its input."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a command: exit status (negative: ended by a signal), stdout and stderr."""

    rc: int
    out: bytes
    err: bytes


class Channel(ABC):
    """Communicate with a process on a host through pipes. One thread reads, and another may write or close."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._out = bytearray()
        self._err = bytearray()
        self._ended = False  # whether stdout and stderr have ended

    @abstractmethod
    def write(self, data: bytes, timeout: float | None = None) -> None:
        """Write all of ``data`` to stdin.

        Raise ReachError if the process has ended, or Stalled if it reads nothing for ``timeout`` seconds.
        """

    @abstractmethod
    def end_input(self) -> None:
        """Close stdin."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, which is negative if a signal ended the process.

        Raise TimeoutError if the process still runs, or LinkLost if the link was lost before its end.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the process's pipes. No signal is sent over SSH, and detached children continue."""

    @abstractmethod
    def _fill(self, timeout: float | None) -> bool:
        """Read at most CHUNK bytes into ``_out`` or ``_err``, or set ``_ended``. Return False after ``timeout``."""

    def readline(self, timeout: float | None = None, limit: int = MAX_OUTPUT) -> bytes:
        """Return the next line of stdout with its newline, or nothing if the process has ended.

        Raise TimeoutError if no line arrives in ``timeout`` seconds (a later call can read it), Flood if a line has
        more than ``limit`` bytes, and LinkLost.
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
            if searched > limit:
                raise Flood(f"{self.host}: sent a line of more than {limit >> 10} KiB")
            if not self._fill(_left(deadline)):
                raise TimeoutError(f"{self.host}: no output for {timeout:g} s")
            del self._err[:-_KEEP_ERRORS]

    def lines(self, timeout: float | None = None, limit: int = MAX_OUTPUT) -> Iterator[bytes]:
        """Yield the lines of stdout until the process ends. ``timeout`` and ``limit`` (bytes) apply to each line."""
        while line := self.readline(timeout, limit):
            yield line

    def errors(self) -> str:
        """Return the output on stderr so far, or only the end of a long output."""
        return self._err.decode(errors="replace").strip()

    def read_all(self, deadline: float | None) -> tuple[bytes, bytes]:
        """Read stdout and stderr to their ends.

        Raise TimeoutError at ``deadline`` (monotonic), Flood if there are more than MAX_OUTPUT bytes, and LinkLost.
        """
        while not self._ended:
            self._refuse_flood()
            if not self._fill(_left(deadline)):
                raise TimeoutError
        return bytes(self._out), bytes(self._err)

    def _refuse_flood(self) -> None:
        if max(len(self._out), len(self._err)) > MAX_OUTPUT:
            raise Flood(f"{self.host}: sent more than {MAX_OUTPUT >> 20} MiB, more than Fleetmark expects")

    def become(self, mark: str, password: str | None) -> None:
        """Answer the sudo that ``_sudo`` started until its command runs. Discard all stderr before that.

        Raise ReachError with sudo's message if sudo refuses.
        """
        asks, starts = f"{mark}?".encode(), f"{mark}!".encode()
        deadline = _deadline(SUDO_TIMEOUT_S)
        prompts = 0
        while starts not in self._err:
            if self._err.count(asks) > prompts:
                prompts += 1
                if prompts > 1:
                    raise ReachError(f"{self.host}: sudo rejects the password; check ansible_become_password")
                self.write(f"{password}\n".encode())
                continue
            if self._ended:
                raise ReachError(f"{self.host}: {_sudo_refused(self._err.replace(asks, b'').decode(errors='replace'))}")
            self._refuse_flood()
            if not self._fill(_left(deadline)):
                raise ReachError(f"{self.host}: sudo did not answer in {SUDO_TIMEOUT_S:g} s")
        del self._err[: self._err.index(starts) + len(starts)]


class Reach(ABC):
    """Run commands on one host. The connection opens at the first use, and again after ``close``."""

    holds_sessions = True  # whether one process may collect facts, start a job and follow it

    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    @abstractmethod
    def is_root(self) -> bool:
        """Return whether the user is root and needs no sudo."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection. Processes on the host continue."""

    @abstractmethod
    def _start(self, argv: Sequence[str]) -> Channel:
        """Start a process on the host with pipes for its standard streams."""

    def _start_again(self, argv: Sequence[str]) -> Channel:
        """Start a process that a host repeats if it restarts by itself, as with a requeued Slurm job."""
        return self._start(argv)

    def returns(self) -> bool | None:
        """Return whether a host that does not answer will answer again, or None if this is unknown."""
        return None

    def open(self, argv: Sequence[str], *, sudo: bool = False, again: bool = False) -> Channel:
        """Start a long-lived process, as root if ``sudo`` is set. Raise ReachError on failure."""
        if not sudo or self.is_root:
            return self._start_again(argv) if again else self._start(argv)
        mark = f"fleetmark-{secrets.token_hex(8)}"
        channel = self._start(_sudo(argv, mark, ask=self.host.become_password is not None))
        try:
            channel.become(mark, self.host.become_password)
        except BaseException:
            channel.close()
            raise
        return channel

    def run(
        self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 60.0, sudo: bool = False, again: bool = False
    ) -> Ran:
        """Run a command and wait until it and its output have ended. Its background processes must close its pipes.

        ``again``: a host that restarts by itself, as with Slurm, repeats the command. Raise LinkLost or ReachError on
        failure, and ReachError if the command takes longer than ``timeout`` seconds after connecting.
        """
        channel = self.open(argv, sudo=sudo, again=again)
        try:
            deadline = _deadline(timeout)
            feeder = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)
            feeder.start()  # write in a thread, because two full pipes would wait for each other
            out, err = channel.read_all(deadline)
            return Ran(channel.wait(_left(deadline)), out, err)
        except TimeoutError:
            raise ReachError(f"{self.host.name}: {_short(argv)} did not end within {timeout:g} s") from None
        finally:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class LocalReach(Reach):
    """Run commands on this machine, without a connection."""

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
        # In its own process group, the process gets no Ctrl-C from the terminal. It stays in the session, so that sudo
        # remembers a password that was typed at this terminal.
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
        except (OSError, ValueError):  # ValueError: this side closed the pipe
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
            with contextlib.suppress(PermissionError):  # a process run by sudo, which ends when its pipes close
                self._process.terminate()  # not its group, so that a detached job continues
        # Close pipes only while no thread reads them, because the number of a closed descriptor can be reused.
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
    """Return the command that runs ``argv`` as root.

    Stderr shows MARK? when sudo asks for the password, and MARK! when the command begins. This shows whether sudo or
    the command reads stdin and gives the exit status.
    """
    options = ["-S", "-p", f"{mark}?"] if ask else ["-n"]
    return ["sudo", "-H", *options, "--", "/bin/sh", "-c", 'printf %s "$0" >&2; exec "$@"', f"{mark}!", *argv]


def _sudo_refused(stderr: str) -> str:
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any("password is required" in w for w in words):
        return "sudo needs a password; set ansible_become_password, or allow sudo without one there"
    if any("not found" in w for w in words):
        return "the host has no sudo; log in as root, or install it"
    return f"sudo refuses: {words[-1].removeprefix('sudo: ')}" if words else "sudo ended without a message"


def _feed(channel: Channel, data: bytes) -> None:
    try:
        if data:
            channel.write(data)
        channel.end_input()
    except ReachError:
        pass  # the process may end without reading all input; its exit status shows whether it failed


def _short(argv: Sequence[str]) -> str:
    text = " ".join(shlex.join(argv).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())
