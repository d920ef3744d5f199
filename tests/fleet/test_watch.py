"""A watch over real hosts, scraped by a real Prometheus: a fault becomes an alert, and its repair ends the alert."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.watch import SICK, WELL, Monitoring, watched
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet


def test_a_fault_becomes_an_alert_and_recovers(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    if shutil.which("prometheus") is None:
        pytest.skip("needs Prometheus (package prometheus)")
    with Fleet(5) as fleet, Monitoring(tmp_path, interval_s=1) as prometheus:
        for host in fleet.names:
            fleet.cpu(host, WELL)
        assert watched(fleet, tmp_path) == 0
        prometheus.wait_for(lambda alerts: "FleetmarkSlow" not in alerts, rounds=1)
        fleet.cpu("h2", SICK)
        assert watched(fleet, tmp_path) == 1
        alerts = prometheus.wait_for(lambda alerts: "FleetmarkSlow" in alerts, rounds=2)
        assert alerts["FleetmarkSlow"] == {"h2"}
        fleet.cpu("h2", WELL)
        assert watched(fleet, tmp_path) == 0
        prometheus.wait_for(lambda alerts: "FleetmarkSlow" not in alerts, rounds=3)
