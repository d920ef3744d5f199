"""Cases that several hosts run together: who takes part, in which order, and what a mixed or lost host changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark.campaign.drive import Drive
from fleetmark.campaign.groups import schedule_gangs
from fleetmark.campaign.resolve import Resolved, resolve
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Exchange, HostSchedule
from fleetmark.workloads import Choice, Manifest
from tests.drives import make_drive, orders, step, tell
from tests.schedules import facts

MANIFEST = Manifest.model_validate(
    {
        "name": "ring",
        "title": "Ring",
        "class": "collective",
        "description": "-",
        "licence": "-",
        "citation": "-",
        "alike": [{"name": "NCCL", "value": "{{ facts.software.nccl }}"}],
        "parameters": {"nodes": {"type": "str", "many": True, "default": ["all"], "description": "-"}},
        "cases": [
            {
                "name": "{{ op }}-{{ hosts if n == 'all' else n }}n",
                "foreach": {"op": ["sum", "max"], "n": "{{ nodes }}"},
                "nodes": "{{ hosts if n == 'all' else n }}",
                "argv": ["mpirun", "--host", "{{ members | map(attribute='address') | join(',') }}", "{{ op }}"],
                "expect": 1,
            }
        ],
        "metrics": {
            "busbw": {"unit": "B/s", "better": "higher", "kind": "responsiveness", "description": "-", "headline": True}
        },
    }
)


def scheduled(
    count: int, nodes: Any = "all", versions: dict[int, str] | None = None, hostname: str = "n"
) -> tuple[dict[str, HostSchedule], list[Exchange]]:
    """``count`` hosts whose NCCL is 2.21, but for those in ``versions``; all call themselves ``hostname``."""
    able = []
    for n in range(1, count + 1):
        resolved = resolve(
            MANIFEST,
            {"nodes": [str(nodes)]},
            facts(software={"nccl": (versions or {}).get(n, "2.21")}, hostname=hostname),
            "c",
        )
        assert isinstance(resolved, Resolved)
        able.append((Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), resolved))
    schedules = {host.name: HostSchedule(host=host.name) for host, _ in able}
    exchanges = schedule_gangs(MANIFEST, able, schedules, Choice(), 2, 1, set())
    return schedules, exchanges


def test_one_host_leads_and_the_others_are_held() -> None:
    schedules, exchanges = scheduled(3)
    lead = schedules["h1"].steps
    assert sorted({s.case for s in lead}) == ["max-3n", "sum-3n"]
    assert len(lead) == 4 and all(s.members == ("h1", "h2", "h3") and s.subject == "3 nodes" for s in lead)
    assert lead[0].argv[2] == "10.0.0.1,10.0.0.2,10.0.0.3"
    for name in ("h2", "h3"):
        held = schedules[name].steps
        assert [(s.case, s.repeat) for s in held] == [(s.case, s.repeat) for s in lead]
        assert all(s.serves and s.argv == () and s.timeout_s > lead[0].timeout_s for s in held)
    assert len(exchanges) == 8


@pytest.mark.parametrize("hostname", ["n1,n[2-9]", "n1 --jobid=7", "-x", "", "n" * 300])
def test_a_name_that_would_be_more_than_one_node_is_refused(hostname: str) -> None:
    schedules, exchanges = scheduled(2, hostname=hostname)
    assert not exchanges
    assert "which is not a valid host name" in schedules["h1"].refused[0].reason


EACH = MANIFEST.model_copy(
    update={
        "cases": (
            MANIFEST.cases[0].model_copy(
                update={
                    "each": True,
                    "argv": (
                        "{{ facts.python }}", "ring", "{{ op }}", "--node={{ node }}",
                        "--master={{ members[0].address }}",
                    ),
                    "when": "{{ op == 'sum' or facts.boost }}",
                }
            ),
        )
    }
)  # fmt: skip


def each(*boost: bool) -> tuple[dict[str, HostSchedule], list[Exchange]]:
    """A host for each of ``boost``, which only the case ``max`` needs; each has a Python of its own."""
    able = []
    for n, has in enumerate(boost, 1):
        host_facts = facts(software={"nccl": "2.21"}, hostname="n", python=f"/opt/{n}/python3", boost=has)
        resolved = resolve(EACH, {"nodes": ["all"]}, host_facts, "c")
        assert isinstance(resolved, Resolved)
        able.append((Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), resolved))
    schedules = {host.name: HostSchedule(host=host.name) for host, _ in able}
    return schedules, schedule_gangs(EACH, able, schedules, Choice(), 2, 1, set())


def test_every_host_runs_the_command_by_its_own_facts_where_the_case_says_so() -> None:
    schedules, exchanges = each(True, True, True)
    assert len(exchanges) == 2 * 2 * 2  # cases, repeats, hosts beside the lead
    for n, host in enumerate(("h1", "h2", "h3")):
        steps = schedules[host].steps
        assert len(steps) == 4 and {s.serves for s in steps} == {n > 0}
        assert {s.argv[0] for s in steps} == {f"/opt/{n + 1}/python3"}
        assert {s.argv[3:] for s in steps} == {(f"--node={n}", "--master=10.0.0.1")}
        assert all(s.ends and s.gate for s in steps)
    assert [s.argv[2] for s in schedules["h1"].steps] == [s.argv[2] for s in schedules["h3"].steps]


def test_a_case_that_one_of_the_hosts_does_not_have_is_refused_once() -> None:
    schedules, _ = each(True, False, True)
    assert {s.case for s in schedules["h1"].steps} == {"sum-3n"}
    assert [(r.case, r.reason) for r in schedules["h1"].refused] == [
        ("max-3n", "refused: the settings derived from the facts of h2 do not include this case")
    ]


def test_groups_cover_every_host() -> None:
    schedules, _ = scheduled(5, nodes=2)
    groups = {s.members for p in schedules.values() for s in p.steps if s.members}
    assert groups == {("h1", "h2"), ("h3", "h4"), ("h4", "h5")}
    assert len({(s.case, s.repeat, s.subject) for s in schedules["h4"].steps}) == len(schedules["h4"].steps)


def test_steps_stand_in_one_order_on_all_hosts() -> None:
    """Otherwise two hosts could wait for each other for ever."""
    schedules, exchanges = scheduled(5, nodes=3)
    rank = {(e.client, e.client_step): n for n, e in enumerate(exchanges)}
    server = {(e.server, e.server_step): rank[e.client, e.client_step] for e in exchanges}
    for schedule in schedules.values():
        ranks = [rank.get((schedule.host, s.id), server.get((schedule.host, s.id), -1)) for s in schedule.steps]
        assert ranks == sorted(ranks) and -1 not in ranks


def test_mixed_versions_are_refused_with_the_list() -> None:
    schedules, exchanges = scheduled(4, versions={3: "2.19.3"})
    assert not exchanges and not any(p.steps for p in schedules.values())
    assert [(r.case, r.reason) for r in schedules["h1"].refused] == [
        (f"{op}-4n", "refused: NCCL differs among the nodes: 2.19.3 on h3; 2.21 on h1, h2, h4") for op in ("sum", "max")
    ]


def test_a_group_that_is_alike_runs_beside_one_that_is_not() -> None:
    schedules, _ = scheduled(4, nodes=2, versions={3: "2.19.3"})
    assert schedules["h1"].steps and not schedules["h1"].refused
    assert schedules["h3"].refused and not schedules["h3"].steps


def test_more_nodes_than_there_are() -> None:
    schedules, _ = scheduled(2, nodes=8)
    assert schedules["h1"].refused[0].reason == "refused: 8 hosts are requested, but only 2 can run it (h1, h2)"


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """h1 leads h2 and h3, all running."""
    steps = {
        host: [step(0, serves=host != "h1", workload="ring", members=("h1", "h2", "h3") if host == "h1" else ())]
        for host in ("h1", "h2", "h3")
    }
    return make_drive(tmp_path, steps, [Exchange(h, "00000", "h1", "00000") for h in ("h2", "h3")], "ring")


def test_the_lead_begins_when_all_others_are_held(drive: Drive) -> None:
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h1", e="wait", step="00000")
    assert (orders(drive, "h1"), orders(drive, "h2"), orders(drive, "h3")) == ([], [], [])  # h3 is still at work
    tell(drive, "h3", e="wait", step="00000")
    assert (orders(drive, "h1"), orders(drive, "h2"), orders(drive, "h3")) == ([], ["go 00000"], ["go 00000"])
    tell(drive, "h2", e="ready", step="00000")
    assert orders(drive, "h1") == []
    tell(drive, "h3", e="ready", step="00000")
    assert orders(drive, "h1")[-1] == "go 00000"


def test_a_node_lost_in_the_middle_ends_the_lead_with_its_name(drive: Drive) -> None:
    for host in ("h1", "h2", "h3"):
        tell(drive, host, e="wait", step="00000")
    for host in ("h2", "h3", "h1"):
        tell(drive, host, e="begin", step="00000")
    drive.heard.put(("h3", "gone", "power cut"))
    drive._hear(1)
    assert orders(drive, "h1")[-1] == "cancel 00000"
    assert drive.runs["h1"].excuses == {"00000": "its node h3 was lost: stopped answering: power cut"}


def test_a_node_that_never_came_sends_the_lead_away(drive: Drive) -> None:
    drive.heard.put(("h3", "gone", "power cut"))
    drive._hear(1)
    tell(drive, "h1", e="wait", step="00000")
    assert orders(drive, "h1")[-1] == "skip 00000"
    assert drive.runs["h1"].excuses == {"00000": "its node h3 was lost: stopped answering: power cut"}


def test_the_others_are_released_when_the_lead_is_lost(drive: Drive) -> None:
    for host in ("h2", "h3"):
        tell(drive, host, e="begin", step="00000")
    drive.heard.put(("h1", "gone", "power cut"))
    drive._hear(1)
    assert orders(drive, "h2") == orders(drive, "h3") == ["cancel 00000"]
