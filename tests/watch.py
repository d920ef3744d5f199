"""Run a command in this process, and record the processes, connections and files that it opens."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.cli.app import app


def invoke(root: Path, verb: str) -> Result:
    """Run a command in this process. Every error about wrong input must be a FleetmarkError, which is one sentence."""
    words = [word.replace("FOLDER", str(root.parent)) for word in verb.split()]
    result = CliRunner().invoke(app, [*words, "--results", str(root)])
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        assert isinstance(error, FleetmarkError), f"{verb}: {error!r}"
    return result


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class Watch:
    """Record processes and connections that this process starts, and files that it opens for writing elsewhere."""

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] = ()
        self.seen: list[str] = []
        self.is_on = False
        self.on_open: Callable[[str], None] = lambda _: None
        sys.addaudithook(self._hook)

    @contextlib.contextmanager
    def over(self, *allowed: Path, on_open: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Watch; call ``on_open`` with the path of each file or folder before it is opened."""
        self.allowed, self.seen, self.on_open, self.is_on = tuple(map(str, allowed)), [], on_open, True
        try:
            yield
        finally:
            self.is_on = False

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect"):
            self.seen.append(f"{event} {args}"[:300])
        elif event == "socket.getaddrinfo":
            self.seen.append(f"{event} {args[0]!r}")
        elif event == "open" and isinstance(args[0], str):
            self.on_open(args[0])
            is_written = isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if (
                args[0].startswith("/")
                and is_written
                and not args[0].startswith(("/dev/", "/proc/self/", *self.allowed))
            ):
                self.seen.append(f"open {args[0]} to write")


WATCH = Watch()
