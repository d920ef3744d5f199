"""A copy of this process that loads modules while this one is busy or waits, and works when it is asked to.

A third of a short campaign is the loading of what shows its results. Threads would not help: they load one after the
other. The copy is made before there are threads; it ends with the process that made it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fleetmark.base.runtime import flushed

_DONE, _FAILED = b".", b"-"


class Twin:
    """``load`` runs in the copy at once. ``work`` runs in it for each line that it is sent, and returns whether that
    was done, or the exit status with which the copy ends. A context manager: at its end the copy is gone.
    """

    def __init__(self, load: Callable[[], None], work: Callable[[str], bool | int]) -> None:
        lines, self._lines = os.pipe()
        self._replies, replies = os.pipe()
        self._asking, self._is_loaded = threading.Lock(), False
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid:
            os.close(lines)
            os.close(replies)
            return
        status = 70  # of EX_SOFTWARE; an error that nobody expects prints its traceback
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is its maker's, until it works
            os.close(self._lines)
            gc.disable()
            load()
            gc.freeze()  # it stays: to look for cycles in it takes a tenth of loading it
            gc.enable()
            _reply(replies, _DONE)
            status = flushed(_serve(lines, replies, work))
        except BaseException:  # noqa: BLE001
            sys.excepthook(*sys.exc_info())
            flushed(status)
        finally:
            os._exit(status)  # whatever failed: the stack below belongs to its maker

    def wait_loaded(self) -> None:
        """Return when all is loaded, and the copy idle."""
        with self._asking:
            if not self._is_loaded:
                os.read(self._replies, 1)
                self._is_loaded = True

    def ask(self, line: str) -> bool:
        """Have the copy work on ``line``. Whether it was done; it was not where the copy has ended."""
        self.wait_loaded()
        with self._asking:
            self._send(line)
            return os.read(self._replies, 1) == _DONE

    def _send(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its exit status says why it ended
            os.write(self._lines, line.encode() + b"\n")

    def finish(self, line: str) -> int:
        """Have the copy work on ``line``, and wait for its end. Its exit status; Ctrl-C is the copy's meanwhile."""
        usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._send(line)
            return self._reap()
        finally:
            signal.signal(signal.SIGINT, usual)

    def _reap(self) -> int:
        pid, self._pid = self._pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._reap()
        os.close(self._lines)
        os.close(self._replies)


def _serve(lines: int, replies: int, work: Callable[[str], bool | int]) -> int:
    with os.fdopen(lines) as source:
        for line in source:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                result = work(line.rstrip("\n"))
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            if not isinstance(result, bool):
                return result
            _reply(replies, _DONE if result else _FAILED)
    return 0


def _reply(replies: int, word: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # its maker was killed: there is no further line
        os.write(replies, word)
