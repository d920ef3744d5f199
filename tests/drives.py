"""Drives of campaigns with simulated hosts: lines over a connection that does not exist."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from fleetmark.campaign.drive import Drive
from fleetmark.campaign.hostrun import Run
from fleetmark.campaign.listen import listen
from fleetmark.campaign.progress import Cell, Progress
from fleetmark.hosts.reach import Channel, Reach, ReachError
from fleetmark.record import replies
from fleetmark.record.archive import Archive
from fleetmark.record.steps import Exchange, Step


class Wire(Channel):
    """A channel with fixed output that records what is written to it."""

    def __init__(self, host: str, says: bytes = b"") -> None:
        super().__init__(host)
        self._out += says
        self._ended = True
        self.orders: list[str] = []

    def write(self, data: bytes, timeout: float | None = None) -> None:
        for line in data.decode().splitlines():
            order = json.loads(line)
            if order["order"] != "have":
                assert order.keys() <= {"order", "step"}
                self.orders.append(" ".join(order.values()))

    def end_input(self) -> None:
        pass

    def wait(self, timeout: float | None = None) -> int:
        return 0

    def close(self) -> None:
        pass

    def _fill(self, timeout: float | None) -> bool:
        return True


class Says(Reach):
    """A host that says ``lines`` over its only connection."""

    def __init__(self, host: str, lines: bytes) -> None:
        self.wire: Wire | None = Wire(host, lines)

    @property
    def is_root(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def _start(self, argv: Any) -> Channel:
        wire, self.wire = self.wire, None
        if not wire:
            raise ReachError("it is off")
        return wire


def step(number: int, *, serves: bool = False, workload: str = "iperf3", members: tuple[str, ...] = ()) -> Step:
    return Step(
        id=f"{number:05d}",
        workload=workload,
        case="tcp-1",
        repeat=0,
        argv=("true",),
        env={},
        expect_s=1,
        timeout_s=5,
        gate=True,
        subject="h1>h2",
        serves=serves,
        members=members,
    )


def make_drive(root: Path, steps: dict[str, list[Step]], exchanges: list[Exchange], workload: str = "iperf3") -> Drive:
    """A campaign of one workload whose hosts all run."""
    archive = Archive.create(root, "c", {"hosts": []}).writable()
    progress = Progress(Console(file=io.StringIO()), [workload], "c")
    runs = []
    for host, mine in steps.items():
        progress.add(host, {workload: Cell(len(mine))}, 1)
        by_id = {s.id: s for s in mine}
        run = Run(
            host=host,
            reach=cast(Reach, None),
            python="python3",
            sudo=False,
            folder="/x",
            steps=by_id,
            pending=set(by_id),
            phase="running",
        )
        run.channel = Wire(host)
        runs.append(run)
    return Drive(archive, runs, exchanges, progress, 0)


def orders(drive: Drive, host: str) -> list[str]:
    return cast(Wire, drive.runs[host].channel).orders


def drain(drive: Drive) -> None:
    while not drive.heard.empty():
        drive._hear(1)


def tell(drive: Drive, host: str, kind: str = "event", **doc: Any) -> None:
    """Pass on an event of a host that keeps the protocol, or of Ansible about it."""
    drive.heard.put((host, kind, replies.read_event(json.dumps(doc).encode()) if kind == "event" else doc))
    drain(drive)


def say(drive: Drive, host: str, *lines: bytes | dict[str, Any]) -> None:
    """Pass on any lines of a host over a connection of its own, which is lost at their end."""
    run = drive.runs[host]
    before = cast(Wire, run.channel).orders
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    run.reach = Says(host, b"".join(line + b"\n" for line in encoded))
    listen(run, drive.archive, drive.heard, -1.0, lambda: False)
    cast(Wire, run.channel).orders[:0] = before
    drain(drive)


def parts(number: str, files: dict[str, bytes]) -> list[bytes | dict[str, Any]]:
    """A finished step as the agent sends it."""
    packed = {name: base64.b64encode(zlib.compress(data)).decode() for name, data in files.items()}
    sent: list[bytes | dict[str, Any]] = [
        {"e": "part", "step": number, "name": name, "data": data} for name, data in packed.items()
    ]
    return [*sent, {"e": "end", "step": number, "files": {name: len(data) for name, data in files.items()}}]


def result(**more: Any) -> bytes:
    return json.dumps({"ended": "exit", "started": 1.7e9, "wall_s": 1.0, "rc": 0, "reason": None, **more}).encode()


def outcomes(drive: Drive, host: str) -> list[tuple[str, str]]:
    return [
        (e["status"], e["reason"]) for e in drive.archive.journal() if e["e"] == "outcome" and e.get("host") == host
    ]


def save_step(archive: Archive, host: str, doc: Any, files: dict[str, bytes]) -> Path:
    """A finished step put on record, as ``Receiver`` and ``Drive`` do it together."""
    folder = archive.begin_step(host, doc)
    for name, data in files.items():
        with archive.new_file(folder, name) as out:
            out.write(data)
    return archive.save_step(host, doc, folder)
