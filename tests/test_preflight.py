"""Test which late hosts the preflight leaves to join later and which it waits for, with simulated hosts."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fleetmark.hosts import preflight
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked, check_hosts
from tests.schedules import facts

PATIENCE_S = 120.0


class Hosts:
    """Simulate hosts that answer at once, except slow ones, which wait until they are released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slow: set[str] = set()
        self.dead: set[str] = set()
        self.go = threading.Event()
        self.closed: list[str] = []
        monkeypatch.setattr(preflight, "LATE_S", 0.2)
        monkeypatch.setattr(preflight, "_check", self._check)

    def _check(self, host: Host, *_: Any) -> Checked:
        if host.name in self.slow:
            assert self.go.wait(PATIENCE_S)
        if host.name in self.dead:
            return Checked(host=host, reason="no route to host")
        reach: Any = type("Reach", (), {"close": lambda _: self.closed.append(host.name)})()
        return Checked(host=host, reach=reach, facts=facts(hostname=host.name), raw={})

    def ask(self, hosts: Sequence[Host], leave_late: bool = True) -> list[Checked]:
        return check_hosts(hosts, [], leave_late=leave_late)

    def waits_for_all(self, hosts: Sequence[Host], leave_late: bool = True) -> list[Checked]:
        """Return the answers of a preflight, after checking that it waits until the slow hosts are released."""
        with ThreadPoolExecutor(1) as pool:
            answers = pool.submit(self.ask, hosts, leave_late)
            threading.Event().wait(1.0)
            assert not answers.done()
            self.go.set()
            return answers.result(PATIENCE_S)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(monkeypatch)


def named(*names: str, connection: Any = "ssh") -> list[Host]:
    return [Host(name, name, name, connection=connection) for name in names]


def test_a_late_host_does_not_hold_up_the_others_and_answers_later(hosts: Hosts) -> None:
    hosts.slow = {"h2"}
    one, two, three = hosts.ask(named("h1", "h2", "h3"))
    assert one.facts and three.facts and not two.facts
    assert two.reason and two.reason.startswith("sent no facts within ") and two.late
    hosts.go.set()
    answer = two.late.result(PATIENCE_S)
    assert answer.facts and answer.host.name == "h2" and hosts.closed == []
    two.close()
    assert hosts.closed == ["h2"]


def test_a_late_host_that_is_not_needed_any_more_is_closed_once_it_answers(hosts: Hosts) -> None:
    hosts.slow = {"h2"}
    two = hosts.ask(named("h1", "h2", "h3"))[1]
    two.close()
    assert hosts.closed == []
    hosts.go.set()
    assert two.late and two.late.result(PATIENCE_S)
    until = threading.Event()
    two.late.add_done_callback(lambda _: until.set())
    assert until.wait(PATIENCE_S) and hosts.closed == ["h2"]


def test_a_tenth_of_many_hosts_may_be_late_and_no_more(hosts: Hosts) -> None:
    many = named(*(f"h{n}" for n in range(20)))
    hosts.slow = {"h3", "h7"}
    assert [c.host.name for c in hosts.ask(many) if c.late] == ["h3", "h7"]
    hosts.slow = {"h3", "h7", "h9"}
    assert not [c for c in hosts.waits_for_all(many) if c.late]


def test_all_are_waited_for_where_no_host_may_join_later(hosts: Hosts) -> None:
    hosts.slow = {"h2"}
    assert all(c.facts for c in hosts.waits_for_all(named("h1", "h2", "h3"), leave_late=False))


def test_a_pair_is_waited_for_and_so_are_hosts_beside_dead_ones(hosts: Hosts) -> None:
    hosts.slow = {"h2"}
    assert all(c.facts for c in hosts.waits_for_all(named("h1", "h2")))
    hosts.go.clear()
    hosts.dead = {"h1"}
    assert [bool(c.facts) for c in hosts.waits_for_all(named("h1", "h2", "h3"))] == [False, True, True]


def test_this_machine_is_waited_for(hosts: Hosts) -> None:
    """Check that the local machine is never late, because its user may still be typing a password."""
    hosts.slow = {"here"}
    assert all(c.facts for c in hosts.waits_for_all([*named("h1", "h2"), *named("here", connection="local")]))
