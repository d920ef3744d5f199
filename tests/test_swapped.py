"""Swap files of a campaign while a verb reads them: the verb refuses, or runs only what it checked.

An audit hook swaps the campaign before the n-th time that the verb opens it, for every n. Hosts are simulated: they
report facts, and record every job that would start.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fleetmark.base import inside
from fleetmark.campaign import prepare
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.cli.app import app  # noqa: F401  loads every verb, so that no import is counted as an open
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.record.archive import Archive
from tests.drives import Says
from tests.records import row
from tests.schedules import facts
from tests.watch import WATCH, content, invoke

NAMES = ("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8")
CAMPAIGN = "20261101T000000-mine-abcd"
SUITE = 'description: x\nrepeats: 2\nworkloads:\n  fio: {set: {size: 1GiB, runtime: 1}, cases: ["randread-4k-qd32"]}\n'
VERBS = {
    "resume": f"run --resume {CAMPAIGN}",
    "confirm": f"diagnose {CAMPAIGN} --confirm",
    "tune": f"tune h3 governor --try -b --campaign {CAMPAIGN}",
}
EVIL = "/bin/evil"
_RANDOM = re.compile(r"\d{8}T\d{6}-[a-z]+-[0-9a-f]{4}|\"created\": \"[^\"]*\"")


class Fleet:
    """Hosts that report facts and start nothing. ``acts`` lists what a verb requested from inventory and hosts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.acts: list[str] = []
        patch.setattr(prepare, "load_inventory", self.load_inventory)
        patch.setattr(prepare, "check_hosts", self.check_hosts)
        patch.setattr(campaign, "start", self.start)
        patch.setattr(campaign, "launch", self.launch)
        patch.setattr(campaign.secrets, "randbelow", lambda _: 7)

    def act(self, *details: Any) -> None:
        self.acts.append(_RANDOM.sub("*", json.dumps(details, default=repr)))

    def load_inventory(self, sources: Sequence[str], limit: str | None) -> list[Host]:
        self.act("inventory", sources)
        wanted = limit.split(",") if limit else NAMES
        return [Host(n, f"10.0.0.{n[1:]}", f"10.1.0.{n[1:]}", labels={"gen": "x"}) for n in NAMES if n in wanted]

    def check_hosts(self, hosts: Sequence[Host], probes: Any, **more: Any) -> list[Checked]:
        probe_options = {name: more[name] for name in ("pythons", "containers", "work_dir")}
        for host in hosts:
            self.act("check", host.name, host.address, host.become, probes, probe_options)
        return [
            Checked(host=h, reach=Says(h.name, b""), facts=facts(hostname=h.name, governor="powersave"), raw={})
            for h in hosts
        ]

    def start(self, run: Any, job: Mapping[str, Any]) -> dict[str, Any]:
        self.act("start", run.host, run.python, run.sudo, dict(sorted(job.items())))
        return {"state": "error", "error": "this host starts nothing"}

    def launch(self, *details: Any) -> str:
        self.act("launch", *details[:3])
        return "this host starts nothing"


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(monkeypatch)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a results root (``root``) and another version of its campaign (``evil``).

    In the campaign, h3 is slow, and every step is pending.
    """
    folder = tmp_path_factory.mktemp("swapped")
    with pytest.MonkeyPatch.context() as patch:
        Fleet(patch)
        patch.setattr(campaign, "_drive", lambda archive, *_: archive.close())
        (folder / "mine.yml").write_text(SUITE)
        options = Options(suite=str(folder / "mine.yml"), root=folder / "root", seed=1)
        archive, _ = campaign.run(options, Console(file=io.StringIO()))
    archive.path.rename(folder / "root" / CAMPAIGN)
    archive = Archive(folder / "root" / CAMPAIGN)
    rename(archive)
    kind = {"workload": "fio", "case": "randread-4k-qd32", "metric": "read_iops", "class": "disk-iops", "unit": "1/s"}
    archive.write_measurements(
        row(campaign=CAMPAIGN, host=host, subject="host", repeat=repeat, value=value, **kind)
        for n, host in enumerate(NAMES)
        for repeat in range(3)
        for value in [(5e5 if host == "h3" else 1e6) * (1 + n / 500 + repeat / 300)]
    )
    make_evil(archive, folder / "evil")
    return folder


def rename(archive: Archive) -> None:
    """Sign the campaign and its jobs again, under its fixed name."""
    document = archive.campaign()
    old = document["id"]
    for host in document["jobs"]:
        text = json.dumps(archive.job(host)).replace(old, CAMPAIGN)
        archive.save_job(host, text)
        document["jobs"][host] = campaign.digest(text)
    archive.save_campaign({**document, "id": CAMPAIGN})


def make_evil(archive: Archive, target: Path) -> None:
    """Copy the campaign, and plant a valid command, container or address in everything that decides what runs where."""
    shutil.copytree(archive.path, target)
    document = json.loads((target / "campaign.json").read_text())
    for host in NAMES:
        file = target / "jobs" / f"{host}.json"
        job = json.loads(file.read_text())
        for step in job["steps"]:
            step["argv"] = [EVIL]
        file.write_text(json.dumps(job))
        document["jobs"][host] = campaign.digest(file.read_bytes())
        file = target / "facts" / f"{host}.json"
        host_facts = json.loads(file.read_text())
        host_facts["facts"] |= {"python": EVIL, "work_dir": EVIL}
        file.write_text(json.dumps(host_facts))
        document["facts"][host] = campaign.digest(file.read_bytes())
    document["suite_as_read"]["workloads"]["fio"]["in_container"] = "evil/image"
    document["settings"]["fio"]["size"] = 2 << 30
    for listed in document["hosts"]:
        listed["address"] = listed["peer"] = "203.0.113.9"
    document |= {"inventory": [EVIL], "limit": "h1", "become": True, "work_dir": EVIL}
    (target / "campaign.json").write_text(json.dumps(document))


Swap = Callable[[Path, Path, Path], Callable[[], None]]


def swap_file(live: Path, evil: Path, aside: Path) -> Callable[[], None]:
    """Replace campaign.json. Return the function that undoes it."""
    (live / "campaign.json").rename(aside)
    (evil / "campaign.json").rename(live / "campaign.json")

    def undo() -> None:
        (live / "campaign.json").rename(evil / "campaign.json")
        aside.rename(live / "campaign.json")

    return undo


def swap_folder(live: Path, evil: Path, aside: Path) -> Callable[[], None]:
    """Replace the campaign's folder."""
    live.rename(aside)
    evil.rename(live)

    def undo() -> None:
        live.rename(evil)
        aside.rename(live)

    return undo


def swap_link(live: Path, evil: Path, aside: Path) -> Callable[[], None]:
    """Replace the campaign's folder with a symlink out of the root."""
    live.rename(aside)
    live.symlink_to(evil)

    def undo() -> None:
        live.unlink()
        aside.rename(live)

    return undo


# Pairs of a swap and whether it is undone before the next open. All pairs are tested for resuming, which is fast.
SWAPS = ((swap_file, False), (swap_file, True), (swap_folder, False), (swap_link, False))
MORE_SWAPS = (*SWAPS, (swap_folder, True), (swap_link, True))


class Swapper:
    """Swap the campaign before a path with one of ``names`` is opened for the n-th time.

    ``back``: undo the swap before the next open.
    """

    def __init__(self, folder: Path, swap: Swap, n: int, back: bool, names: tuple[str, ...]) -> None:
        self.folder, self.swap, self.n, self.back = folder, swap, n, back
        self.opens = 0
        self.undo: Callable[[], None] | None = None
        self.names = names

    def __call__(self, path: str) -> None:
        if self.undo and self.back:
            undo, self.undo = self.undo, None
            undo()
        if path.endswith(self.names):
            self.opens += 1
            if self.opens == self.n:
                live, evil = self.folder / "root" / CAMPAIGN, self.folder / "evil"
                self.undo = self.swap(live, evil, self.folder / "aside")


def swapped(places: Path, tmp_path: Path, name: str) -> Iterator[tuple[Swapper, str]]:
    """Run a verb with every swap, and for every n until the verb opens the campaign less often."""
    for swap, back in MORE_SWAPS if name == "resume" else SWAPS:
        names = ("campaign.json", "controller.lock")[: 1 if swap is swap_file else 2]
        if swap is not swap_file and name == "resume":
            names += (CAMPAIGN,)
        for n in count(1):
            folder = tmp_path / f"{swap.__name__}-{back}-{n}"
            shutil.copytree(places, folder)
            inside._real.cache_clear()
            swapper = Swapper(folder, swap, n, back, names)
            with WATCH.over(folder / "root", on_open=swapper):
                invoke(folder / "root", VERBS[name])
            if swapper.opens < n:
                assert n > 2, "the verb opens the campaign at least twice"
                break
            yield swapper, f"{VERBS[name]}: {swap.__name__} at open {n}{', then back' if back else ''}"


@pytest.mark.parametrize("name", VERBS)
def test_a_campaign_that_is_swapped_runs_nothing_else(
    places: Path, tmp_path: Path, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(places, tmp_path / "clean")
    invoke(tmp_path / "clean" / "root", VERBS[name])
    checked = set(fleet.acts)
    assert any(act.startswith('["start"') for act in checked), "without a swap, the verb starts jobs"
    assert EVIL not in "".join(checked)
    fleet.acts.clear()
    for swapper, title in swapped(places, tmp_path, name):
        assert not set(fleet.acts) - checked, f"{title}: {sorted(set(fleet.acts) - checked)[0]}"
        assert not WATCH.seen, f"{title}: {WATCH.seen[:3]}"
        if swapper.swap is swap_link:
            assert content(swapper.folder / "evil") == content(places / "evil"), f"{title} writes outside the root"
        shutil.rmtree(swapper.folder)
        fleet.acts.clear()
