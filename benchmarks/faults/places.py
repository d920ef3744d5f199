"""Where campaigns of ``benchmarks.faults`` run: over SSH, over SSH with results in an object store, or on Slurm nodes."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import stores
from tests.fleet.command import Command
from tests.fleet.hosts import Fleet
from tests.fleet.remains import SSHD
from tests.fleet.slurm import Cluster, Lent

OVER = ("ssh", "store", "slurm")
BUCKET = "faults"
DAEMONS = {"munged", "slurmctld", "slurmd", "slurmscriptd"}
ALONE_S = 600.0  # nodes that hear of no controller, because it was killed before it noted its job, end after 300 s
PORTS = (6817, 6818)  # slurmctld's and slurmd's


class Stored(Command):
    """``fleetmark`` with its results at a URL, whose local copy lies under ``root``."""

    def __init__(self, fleet: Fleet, root: Path, url: str) -> None:
        super().__init__(fleet, root)
        self.env |= {"FLEETMARK_RESULTS": url, "FLEETMARK_STORES": str(root / "copies")}

    @property
    def campaign(self) -> Path:
        heads = self.root.glob("copies/**/@/*/campaign.json")
        return max((head.parent for head in heads), default=self.root / "none yet")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Hosts, and where their results go. ``cluster``: the Slurm that lends them. ``shared``: a folder that all see."""

    over: str
    fleet: Fleet
    cluster: Cluster | None = None
    shared: Path | None = None
    store: stores.Store | None = None

    def command(self, root: Path, number: int) -> Command:
        if self.cluster:
            return Lent(self.cluster, root)
        return Stored(self.fleet, root, f"s3://{BUCKET}/{number}") if self.store else Command(self.fleet, root)

    def words(self, work: str) -> list[str]:
        """Return the options of a new campaign."""
        if self.cluster:
            return ["--nodes", str(len(self.fleet.names)), "--shared", str(self.shared), "--work-dir", work]
        return ["--work-dir", work]

    @property
    def daemons(self) -> set[str]:
        return SSHD | DAEMONS if self.cluster else SSHD

    @property
    def ports(self) -> Sequence[int]:
        return (22, *PORTS) if self.cluster else (22,)

    def join(self, host: str) -> None:
        """Start what a host that was off needs besides SSH."""
        if self.cluster:
            self.cluster.join(host)

    def job(self, campaign: Path) -> str | None:
        """Return the last Slurm job of a campaign."""
        journal = campaign / "journal.jsonl"
        lines = journal.read_bytes().splitlines() if journal.exists() else []
        events = [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]
        return next((str(e["job"]) for e in reversed(events) if e["e"] == "slurm"), None)

    def ask(self, *words: str) -> str:
        return self.cluster.ask(*words) if self.cluster else ""

    @contextlib.contextmanager
    def store_away(self) -> Iterator[None]:
        """Deny every request to the object store while the body runs."""
        server = self.store.server._server if self.store else None
        assert server
        application, server.app = server.app, _refuse
        try:
            yield
        finally:
            server.app = application

    def lost_objects(self, campaign: Path, number: int) -> list[str]:
        """Return the files of a complete campaign that the object store lacks or has otherwise."""
        if not self.store:
            return []
        client, lost = self.store.client, []
        for file in [*(campaign / "raw").rglob("*"), campaign / "measurements.parquet", campaign / "journal.jsonl"]:
            if not file.is_file():
                continue
            key = f"{number}/{campaign.name}/{file.relative_to(campaign)}"
            try:
                content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            except client.exceptions.NoSuchKey:
                content = None
            if content != file.read_bytes():
                lost.append(f"{key} in the object store {'is missing' if content is None else 'differs'}")
        return lost

    def left(self) -> list[str]:
        """Return what is left of jobs outside the hosts."""
        if not self.cluster or not self.shared:
            return []
        cluster = self.cluster
        cluster.until(lambda: set(cluster.jobs()) <= {"COMPLETING"}, ALONE_S)
        return [f"{file} is left" for file in self.shared.rglob("*") if file.is_file()]


def _refuse(_: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], object]) -> list[bytes]:
    start("503 Service Unavailable", [("Content-Type", "text/plain")])
    return [b"away"]


@contextlib.contextmanager
def placed(over: str, hosts: int) -> Iterator[Place]:
    """Yield a place, and remove it afterwards."""
    with contextlib.ExitStack() as stack:
        if over == "slurm":
            shared = Path(tempfile.mkdtemp(prefix="fleetmark-faults-", dir="/var/lib"))
            stack.callback(shutil.rmtree, shared, ignore_errors=True)
            fleet = stack.enter_context(Fleet(hosts, share=[shared]))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetmark-slurm-")))
            yield Place(over=over, fleet=fleet, cluster=stack.enter_context(Cluster(fleet, folder)), shared=shared)
            return
        fleet = stack.enter_context(Fleet(hosts))
        if over == "store":
            copies = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleetmark-copies-")))
            yield Place(over=over, fleet=fleet, store=stack.enter_context(stores.store(copies, BUCKET)))
            return
        yield Place(over=over, fleet=fleet)
