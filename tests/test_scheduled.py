"""A campaign is written in one piece or not at all; a damaged job is made again; hosts that were away join later."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign import prepare
from fleetmark.campaign import run as campaign
from fleetmark.campaign.options import Options
from fleetmark.campaign.resumed import scheduled
from fleetmark.cli.app import app
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.record import archive as archives
from fleetmark.record import campaigns, drafts, journal
from fleetmark.record.archive import Archive
from fleetmark.record.view import load_results
from tests.drives import save_step
from tests.schedules import facts

SUITE = """description: x
repeats: 2
workloads:
  selftest:
  fio: {set: {size: 1GiB, runtime: 1}, cases: ["randread*"]}
  iperf3: {repeats: 1, set: {duration: 1, streams: 2, udp_rate: ""}}
  stream: {set: {threads: [1, 2]}}
"""
NAMES = ("h1", "h2", "h3", "h4")


class Fleet:
    """Hosts that report their facts, or are away, and never run anything."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.away: set[str] = set()
        self.checked: list[str] = []
        self.driven = 0
        self.root = root
        (root / "s.yml").write_text(SUITE)
        hosts = [Host(n, f"10.0.0.{n[1:]}", f"10.1.0.{n[1:]}", labels={"gen": "x"}) for n in NAMES]
        monkeypatch.setattr(prepare, "load_inventory", lambda *_: hosts)
        monkeypatch.setattr(prepare, "check_hosts", self.check)
        monkeypatch.setattr(campaign, "_drive", self.drive)

    def check(self, hosts: Sequence[Host], *_: Any, **__: Any) -> list[Checked]:
        self.checked += [h.name for h in hosts]
        return [
            Checked(host=h, reason="no route to host")
            if h.name in self.away
            else Checked(host=h, reach=None, facts=facts(hostname=h.name), raw={})
            for h in hosts
        ]

    def drive(self, archive: Archive, options: Any, console: Any, checked: Sequence[Checked], credentials: Any) -> bool:
        self.driven += 1
        archive.close()
        return False

    def run(self) -> Archive:
        options = Options(suite=str(self.root / "s.yml"), root=self.root, seed=7)
        return campaign.run(options, Console(file=io.StringIO()))[0]

    def resume(self, archive: Archive) -> None:
        self.checked.clear()
        try:
            campaign.resume(archive, Options(suite=""), Console(file=io.StringIO()))
        finally:
            archive.close()


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fleet:
    return Fleet(monkeypatch, tmp_path)


def jobs(archive: Archive) -> dict[str, bytes]:
    return {p.stem: p.read_bytes() for p in sorted((archive.path / "jobs").iterdir())}


# --- late hosts ------------------------------------------------------------------------------------------------------


def test_a_host_that_answers_late_joins_in_the_same_run(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    late: Future[Checked] = Future()
    host = Host("h4", "10.0.0.4", "10.1.0.4", labels={"gen": "x"})
    driven: list[list[str]] = []

    def check(hosts: Sequence[Host], *_: Any, **more: Any) -> list[Checked]:
        assert more["leave_late"], "nothing in this suite keeps a host from joining later"
        return [*fleet.check(hosts[:3]), Checked(host=host, reason="sent no facts within 5 s", late=late)]

    def drive(archive: Archive, _options: Any, _console: Any, checked: Sequence[Checked], _credentials: Any) -> bool:
        if not driven:
            late.set_result(
                Checked(host=host, reach=None, facts=facts(hostname="h4"), raw={})
            )  # while the other hosts measure
        driven.append([c.host.name for c in checked if c.facts])
        return False

    monkeypatch.setattr(prepare, "check_hosts", check)
    monkeypatch.setattr(campaign, "_drive", drive)
    archive = fleet.run()
    assert driven == [["h1", "h2", "h3"], ["h4", "h1", "h2", "h3"]], (
        "the pairs of the late host need the other hosts again"
    )
    assert archive.campaign()["planned"] == [["h1", "h2", "h3"], ["h4"]]
    assert sorted(jobs(archive)) == list(NAMES)
    assert [e["e"] for e in archive.journal() if e["e"] in ("unreachable", "joined")] == ["unreachable", "joined"]
    archive.close()


def test_a_host_that_never_answers_stays_lost_with_its_reason(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    late: Future[Checked] = Future()
    host = Host("h4", "10.0.0.4", "10.1.0.4", labels={"gen": "x"})
    late.set_result(Checked(host=host, reason="sent no facts within 60 s"))
    monkeypatch.setattr(
        prepare,
        "check_hosts",
        lambda hosts, *_, **__: [
            *fleet.check(hosts[:3]),
            Checked(host=host, reason="sent no facts within 5 s", late=late),
        ],
    )
    monkeypatch.setattr(campaign, "_drive", lambda *_: False)
    archive = fleet.run()
    reasons = [e["reason"] for e in archive.journal() if e["e"] == "unreachable"]
    assert reasons == ["sent no facts within 5 s", "sent no facts within 60 s"]
    archive.close()
    monkeypatch.setattr(prepare, "check_hosts", fleet.check)
    fleet.resume(archive)
    assert sorted(jobs(archive)) == list(NAMES), "the host joins when the campaign is resumed"


# --- written whole ---------------------------------------------------------------------------------------------------


def test_a_controller_killed_while_it_plans_leaves_no_half_campaign(fleet: Fleet, tmp_path: Path) -> None:
    """The controller is killed at each of its writes in turn, until it succeeds."""
    real = archives.create_inside
    for dies_at in range(40):
        child = os.fork()
        if child == 0:
            count = [0]

            def write(*args: Any, count: list[int] = count, dies_at: int = dies_at, **more: Any) -> None:
                if count[0] == dies_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                count[0] += 1
                real(*args, **more)

            archives.create_inside = write  # type: ignore[attr-defined]
            fleet.run()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status):
            break
        assert campaigns.campaigns(tmp_path) == []
        assert [p.name[:5] for p in tmp_path.iterdir() if p.is_dir()] == [".new-"], "one at most: the next run sweeps"
    assert dies_at == 9, "campaign.json, and facts and job of four hosts"
    (archive,) = campaigns.campaigns(tmp_path)
    assert len(jobs(archive)) == 4 and not list(tmp_path.glob(".new-*"))


def test_a_campaign_that_is_being_made_is_left_alone(tmp_path: Path) -> None:
    draft, lock = drafts.make_draft(tmp_path, tmp_path, "busy")
    drafts.remove_unfinished(tmp_path, tmp_path)
    assert draft.exists()
    os.close(lock)
    drafts.remove_unfinished(tmp_path, tmp_path)
    assert not draft.exists()


def test_archives_are_for_their_owner_alone_and_documents_as_the_umask_says(fleet: Fleet, tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        archive = fleet.run().writable()
        step = {**json.loads(jobs(archive)["h1"])["steps"][0]}
        folder = save_step(archive, "h1", step, {"result.json": b"", "stdout": b""})
        archive.set_aside(folder)
        save_step(archive, "h1", step, {"stdout": b""})
        archive.write_measurements([])
        archive.note("ended", owed=0)
        archive.close()
        done = CliRunner().invoke(app, ["report", archive.id, "--results", str(tmp_path)], catch_exceptions=False)
        assert done.exit_code == 0
        page = tmp_path / "mine.html"
        CliRunner().invoke(app, ["report", archive.id, "--results", str(tmp_path), "--html", str(page)])
    finally:
        os.umask(old)
    for path in [archive.path, *archive.path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert (archive.path / "summary.html").exists() and len(list(archive.path.glob("superseded/*/h1/*/*/*"))) == 1
    assert stat.S_IMODE(page.stat().st_mode) == 0o644


# --- made again ------------------------------------------------------------------------------------------------------

CUT: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:1000]),
    "empty": lambda file: file.write_bytes(b""),
    "a list": lambda file: file.write_text("[1]"),
    "another": lambda file: file.write_bytes(file.read_bytes().replace(b'"repeat": 1', b'"repeat": 9')),
}


@pytest.mark.parametrize("way", CUT)
@pytest.mark.parametrize("names", [("h2",), NAMES])
def test_a_damaged_job_is_made_again_byte_for_byte(fleet: Fleet, way: str, names: Sequence[str]) -> None:
    archive = fleet.run()
    before = jobs(archive)
    for name in names:
        CUT[way](archive.path / "jobs" / f"{name}.json")
    assert jobs(archive) != before
    fleet.resume(archive)
    assert jobs(archive) == before
    assert sorted(fleet.checked) == list(NAMES), "all of them still owe everything"


def test_a_job_that_comes_out_otherwise_is_refused_in_one_sentence(fleet: Fleet) -> None:
    archive = fleet.run()
    (archive.path / "jobs" / "h2.json").unlink()
    archive.save_campaign({**archive.campaign(), "seed": 8})
    with pytest.raises(FleetmarkError, match=r"jobs/h2.json is missing, and today's schedule differs from it") as error:
        fleet.resume(archive)
    assert "\n" not in str(error.value)
    (archive.path / "facts" / "h2.json").unlink()
    with pytest.raises(FleetmarkError, match=r"jobs/h2.json is missing, and the facts of h2 are missing as well"):
        fleet.resume(archive)


@pytest.mark.parametrize("field", ["seed", "hosts", "exchanges", "settings", "inventory", "owner"])
def test_a_campaign_that_cannot_go_on_says_what_is_wrong(fleet: Fleet, field: str) -> None:
    archive = fleet.run()
    file = archive.path / "campaign.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: 5.5}))
    with pytest.raises(FleetmarkError, match=f"damaged \\(.*{field}"):
        fleet.resume(archive)


# --- joined ----------------------------------------------------------------------------------------------------------


def meet(archive: Archive) -> list[str]:
    """Work through all lists as hosts do, each in order. Returns the pairs that met."""
    request = scheduled.request_of(archive)
    lists = {n: [s for s in j["steps"] if s["gate"]] for n, j in scheduled.jobs(archive, request).items()}
    positions = dict.fromkeys(lists, 0)
    partner = {(e.server, e.server_step): (e.client, e.client_step) for e in request.exchanges}
    met = []
    moved = True
    while moved:
        moved = False
        for server, steps in lists.items():
            here = steps[positions[server]]["id"] if positions[server] < len(steps) else None
            client, client_step = partner.get((server, here or ""), ("", ""))
            if (
                client
                and positions[client] < len(lists[client])
                and lists[client][positions[client]]["id"] == client_step
            ):
                met.append(lists[client][positions[client]]["subject"])
                positions[server] += 1
                positions[client] += 1
                moved = True
    assert all(positions[n] == len(lists[n]) for n in lists), "nobody waits for somebody who waits for them"
    return met


@pytest.mark.parametrize("away", [{"h3"}, {"h1", "h4"}, {"h2", "h3", "h4"}, set(NAMES)])
def test_hosts_that_were_away_join_behind_what_is_scheduled(fleet: Fleet, away: set[str]) -> None:
    fleet.away = away
    archive = fleet.run()
    before = {n: json.loads(text) for n, text in jobs(archive).items()} if away != set(NAMES) else {}
    assert set(before) == set(NAMES) - away
    outcomes = journal.read(archive)[0]
    assert set(outcomes.query("case == '*'")["host"]) == away
    fleet.away = set()
    fleet.resume(archive)
    after = {n: json.loads(text) for n, text in jobs(archive).items()}
    assert set(after) == set(NAMES) and set(fleet.checked) == set(NAMES)
    for name, job in before.items():
        assert after[name]["steps"][: len(job["steps"])] == job["steps"]
    alone = {n: sorted(s["case"] for s in j["steps"] if s["subject"] == "host") for n, j in after.items()}
    assert len({tuple(cases) for cases in alone.values()}) == 1 and alone["h1"]
    assert sorted(meet(archive)) == sorted(f"{a}>{b}" for a, b in permutations(NAMES, 2))
    outcomes, _, _ = journal.read(archive)
    assert not (outcomes["status"] == "lost").any()
    hosts = load_results(archive).hosts
    assert all(h.reachable and h.reason is None for h in hosts)
    text = jobs(archive)
    for name in NAMES:
        (archive.path / "jobs" / f"{name}.json").unlink()
    fleet.resume(archive)
    assert jobs(archive) == text, "the jobs of joined hosts are made again too"
    assert json.loads((archive.path / "campaign.json").read_text())["planned"] == [
        [n for n in NAMES if n not in away],
        [n for n in NAMES if n in away],
    ]


def test_a_host_that_is_still_away_says_why_and_may_join_later(fleet: Fleet, tmp_path: Path) -> None:
    fleet.away = {"h3", "h4"}
    archive = fleet.run()
    fleet.away = {"h4"}
    fleet.resume(archive)
    assert set(jobs(archive)) == {"h1", "h2", "h3"}
    outcomes, _, _ = journal.read(archive)
    lost = outcomes[outcomes["status"] == "lost"]
    assert set(lost["host"]) == {"h4"} and set(lost["reason"]) == {"unreachable: no route to host"}
    (host,) = [h for h in load_results(archive).hosts if h.name == "h4"]
    assert (host.reachable, host.reason) == (False, "no route to host")
    line = CliRunner().invoke(app, ["campaigns", "--results", str(tmp_path), "--format", "json"])
    assert json.loads(line.stdout)[0]["statuses"] == {"lost": 4}
    fleet.away = set()
    fleet.resume(archive)
    assert sorted(meet(archive)) == sorted(f"{a}>{b}" for a, b in permutations(NAMES, 2))


def test_a_join_that_was_cut_short_is_made_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.away = {"h3"}
    archive = fleet.run()
    before = jobs(archive)
    fleet.away = set()
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "save_campaign", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fleet.resume(archive)
    assert jobs(archive)["h1"] != before["h1"]
    fleet.away = {"h3"}
    fleet.resume(archive)
    assert {n: t for n, t in jobs(archive).items() if n != "h3"} == before
    fleet.away = set()
    fleet.resume(archive)
    assert sorted(meet(archive)) == sorted(f"{a}>{b}" for a, b in permutations(NAMES, 2))


# --- authors of campaigns --------------------------------------------------------------------------------------------


class Colleague:
    """Simulate another user with their own key, who resumes the fleet's campaigns and answers ``word`` to prompts."""

    def __init__(
        self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, word: str = "y", *, terminal: bool = True
    ) -> None:
        self.fleet, self.shown, self.questions = fleet, io.StringIO(), 0
        self._word = word
        self._console = Console(file=self.shown, force_terminal=terminal, width=400, highlight=False)
        monkeypatch.setenv("XDG_STATE_HOME", str(fleet.root / "colleague"))
        monkeypatch.setattr("sys.stdin.isatty", lambda: terminal, raising=False)
        monkeypatch.setattr("builtins.input", self._answer)

    def _answer(self, *_: Any) -> str:
        self.questions += 1
        return self._word

    def resume(self, archive: Archive, *inventory: str) -> None:
        self.fleet.checked.clear()
        try:
            campaign.resume(Archive(archive.path), Options(suite="", inventory=inventory), self._console)
        finally:
            archive.close()


def test_somebody_elses_campaign_is_resumed_by_nobody_without_a_terminal(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = fleet.run()
    colleague = Colleague(fleet, monkeypatch, terminal=False)
    with pytest.raises(
        FleetmarkError, match=r"you did not start it here \(campaign.json names .*@.*resume it from a terminal"
    ):
        colleague.resume(archive)
    assert fleet.checked == [] and colleague.questions == 0


def test_somebody_elses_campaign_goes_on_once_its_reader_agrees(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = fleet.run()
    before = jobs(archive)
    colleague = Colleague(fleet, monkeypatch)
    colleague.resume(archive)
    shown = colleague.shown.getvalue()
    assert "fio.size=" in shown and "'h1', 'h2', 'h3', 'h4'" in shown and "/var/tmp" in shown
    assert set(fleet.checked) == set(NAMES) and fleet.driven == 2 and jobs(archive) == before
    colleague.resume(archive)
    assert colleague.questions == 1, "the colleague is not asked again after adopting the campaign"


def test_an_adopted_campaign_still_names_the_one_that_it_was_run_for(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = fleet.run()
    archive.save_campaign({**archive.campaign(), "parent": "20260101T000000-x-0000"})
    Colleague(fleet, monkeypatch).resume(archive)
    assert Archive(archive.path).campaign()["parent"] == "20260101T000000-x-0000"


def test_whoever_does_not_agree_runs_nothing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = fleet.run()
    colleague = Colleague(fleet, monkeypatch, "n")
    with pytest.raises(FleetmarkError, match="nothing was run"):
        colleague.resume(archive)
    assert fleet.checked == [] and colleague.questions == 1


def test_an_inventory_that_the_record_names_is_never_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = fleet.run()
    archive.save_campaign({**archive.campaign(), "inventory": ["/tmp/evil.sh"]})
    colleague = Colleague(fleet, monkeypatch)
    monkeypatch.setattr(prepare, "load_inventory", lambda sources, _: pytest.fail(f"{sources} is read"))
    with pytest.raises(FleetmarkError, match="specify your own with -i"):
        colleague.resume(archive)
    assert colleague.questions == 0


def test_a_planted_job_runs_for_nobody(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a job with a matching digest: it never runs, even if the user confirms."""
    archive = fleet.run()
    doc, file = archive.campaign(), archive.path / "jobs" / "h2.json"
    job = json.loads(file.read_text())
    job["steps"][0]["argv"] = ["sh", "-c", "touch /root/owned"]
    file.write_text(json.dumps(job))
    doc["jobs"]["h2"] = scheduled.digest(file.read_bytes())
    (archive.path / "campaign.json").write_text(json.dumps(doc))
    with pytest.raises(FleetmarkError, match="you did not start it here"):
        fleet.resume(archive)  # the original author resumes the modified campaign
    with pytest.raises(FleetmarkError, match="its jobs do not match its suite, your inventory and your hosts"):
        Colleague(fleet, monkeypatch).resume(archive)
    assert fleet.driven == 1, "by its author, once"


def test_addresses_come_from_the_readers_inventory(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = fleet.run()
    doc = archive.campaign()
    doc["hosts"][0]["address"] = doc["hosts"][0]["peer"] = "203.0.113.9"
    (archive.path / "campaign.json").write_text(json.dumps(doc))
    colleague = Colleague(fleet, monkeypatch)
    colleague.resume(archive)
    assert archive.campaign()["hosts"][0]["address"] == "10.0.0.1"


def test_facts_that_changed_make_no_job(fleet: Fleet) -> None:
    archive = fleet.run()
    file = archive.path / "facts" / "h2.json"
    file.write_text(file.read_text().replace("/var/tmp/fleetmark-0", "/etc"))
    (archive.path / "jobs" / "h2.json").unlink()
    with pytest.raises(FleetmarkError, match="facts/h2.json.*changed since the campaign was scheduled"):
        fleet.resume(archive)


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("slurm", {"nodes": 1, "sbatch": ["--wrap=id"]}, "a job of Slurm"),
        ("trial", {"host": "h1", "rule": "r", "items": [], "sides": [True]}, "a trial of a setting"),
    ],
)
def test_only_its_author_resumes_what_names_commands(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, field: str, value: Any, kind: str
) -> None:
    archive = fleet.run()
    archive.save_campaign({**archive.campaign(), field: value})
    with pytest.raises(FleetmarkError, match=f"only its author can resume {kind}"):
        Colleague(fleet, monkeypatch).resume(archive)


def test_a_campaign_under_another_name_is_not_its_authors(fleet: Fleet) -> None:
    """Rename an old campaign so that it sorts last: ``--resume last`` must not run it again."""
    archive = fleet.run()
    copy = archive.path.rename(archive.path.with_name("29991231T000000-s-0000"))
    with pytest.raises(FleetmarkError, match="you did not start it here"):
        fleet.resume(Archive(copy))


def test_without_a_place_for_the_key_the_user_is_told(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    (fleet.root / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(fleet.root / "state"))
    shown = io.StringIO()
    archive, _ = campaign.run(Options(suite=str(fleet.root / "s.yml"), root=fleet.root), Console(file=shown, width=400))
    assert "has no permanent signature" in shown.getvalue() and archive.own_campaign() is not None


def test_settings_that_the_suite_hides_run_nothing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = fleet.run()
    doc = archive.campaign()
    doc["suite_as_read"]["workloads"]["fio"]["set"] = {"erase": True}
    (archive.path / "campaign.json").write_text(json.dumps(doc))
    colleague = Colleague(fleet, monkeypatch)
    with pytest.raises(FleetmarkError, match="its suite does not match what was scheduled"):
        colleague.resume(archive)
    assert colleague.questions == 0 and fleet.checked == []


def test_a_record_without_jobs_asks_nothing(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its hosts would count as late, and be scheduled without anything to verify."""
    archive = fleet.run()
    (archive.path / "campaign.json").write_text(json.dumps({**archive.campaign(), "jobs": {}, "planned": [[]]}))
    with pytest.raises(FleetmarkError, match="its suite does not match what was scheduled"):
        Colleague(fleet, monkeypatch).resume(archive)


def test_facts_on_record_decide_nothing_for_a_colleague(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts name another work directory, and jobs and digests are made to fit."""
    archive = fleet.run()
    doc = archive.campaign()
    for name in NAMES:
        for kind in ("facts", "jobs"):
            file = archive.path / kind / f"{name}.json"
            file.write_text(file.read_text().replace("/var/tmp/fleetmark-0", "/tmp/evil"))
            doc[kind][name] = scheduled.digest(file.read_bytes())
    (archive.path / "campaign.json").write_text(json.dumps(doc))
    before = jobs(archive)
    assert any(b"/tmp/evil" in job for job in before.values()), "else this shows nothing"
    with pytest.raises(FleetmarkError, match="its jobs do not match its suite, your inventory and your hosts"):
        Colleague(fleet, monkeypatch).resume(archive)


def test_what_was_checked_is_what_is_used(fleet: Fleet) -> None:
    archive = fleet.run()
    checked = Archive(archive.path)
    assert checked.own_campaign() is not None
    (archive.path / "campaign.json").write_text(json.dumps({**archive.campaign(), "settings": {"stream": {"x": 1}}}))
    assert "stream" in checked.campaign()["settings"] and checked.campaign()["settings"]["stream"] != {"x": 1}
