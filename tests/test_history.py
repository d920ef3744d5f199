"""Test ``fleetmark history``: series over campaigns, change points, and their output in every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fleetmark.cli.app import app
from fleetmark.planner.diagnosis.history import Lasting, changes, lasting, usual_noise
from fleetmark.record.diagnosis.history import history
from tests.commands import refused
from tests.fleets import usual
from tests.records import NULL, TRIAD, record
from tests.schedules import facts

UNKNOWN = np.full(60, np.nan)


def campaigns(root: Path, count: int = 10, slower_from: int = 6) -> None:
    """Record daily campaigns of two hosts. From the campaign ``slower_from`` on, one is 10% slower in one benchmark."""
    for number in range(count):
        values = usual(("a", "b"), repeats=3, seed=number)
        if number >= slower_from:
            values["a", TRIAD] = [0.9 * v for v in values["a", TRIAD]]
        archive = record(root, f"202601{number + 1:02d}T000000-x", {"a": {}, "b": {}}, values)
        archive.save_campaign(archive.campaign() | {"created": f"2026-01-{number + 1:02d}T00:00:00Z"})


def run(root: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["history", *words, "--results", str(root)], catch_exceptions=False)
    return done.exit_code, done.stdout


@pytest.mark.parametrize("seed", range(20))
def test_a_drop_is_dated_and_noise_is_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.01, 24)
    assert changes(values, UNKNOWN[:24], 0.03) == []
    (change,) = changes(values + np.where(np.arange(24) >= 14, np.log(0.9), 0.0), UNKNOWN[:24], 0.03)
    assert abs(change.position - 14) <= 1 and change.change == pytest.approx(np.log(0.9), abs=0.02) and change.p < 1e-3


def test_down_and_up_again_are_two_changes_and_one_odd_campaign_is_none() -> None:
    values = np.random.default_rng(1).normal(0, 0.01, 30)
    twice = values + np.where((np.arange(30) >= 10) & (np.arange(30) < 20), -0.2, 0.0)
    assert [c.position for c in changes(twice, UNKNOWN[:30], 0.03)] == [10, 20]
    values[12] -= 0.3
    assert changes(values, UNKNOWN[:30], 0.03) == []


def test_what_matters_little_short_series_and_constants_are_no_change() -> None:
    small = np.where(np.arange(40) >= 20, -0.01, 0.0)
    assert changes(small, UNKNOWN[:40], 0.03) == []
    assert changes(np.array([0.0, 0.0, -1.0, -1.0]), UNKNOWN[:4], 0.03) == []
    assert changes(np.zeros(40), UNKNOWN[:40], 0.03) == []
    wide = np.full(40, 0.2)  # repeats vary more than the campaigns' centres
    assert changes(np.where(np.arange(40) >= 38, -0.2, 0.0), wide, 0.03) == []


def test_a_host_that_became_slower_is_named_with_its_date(tmp_path: Path) -> None:
    campaigns(tmp_path)
    result = history(tmp_path, ["stream/*"])
    (series,) = result.changed()
    assert (series.host, series.campaigns[series.changes[0].position]) == ("a", "20260107T000000-x") and series.slower
    page = tmp_path / "h.html"
    status, text = run(tmp_path, "--html", str(page))
    assert status == 1 and "1 host became permanently worse" in text and "since 2026-01-07" in " ".join(text.split())
    html = page.read_text("utf-8")
    assert html.count("<svg") >= 6 and "since 2026-01-07" in html and "stroke-dasharray" in html
    assert "持久变差" in run(tmp_path, "--lang", "zh-CN")[1]
    (document,) = json.loads(run(tmp_path, "-m", "stream/*/triad", "--limit", "a", "--format", "json")[1])
    assert len(document["points"]) == 10 and document["changes"][0]["campaign"] == "20260107T000000-x"


def test_nothing_changed_and_too_few_campaigns(tmp_path: Path) -> None:
    campaigns(tmp_path, count=4)
    status, text = run(tmp_path)
    assert status == 0 and "There is no lasting change over 4 campaigns." in text
    assert "fewer than 5 campaigns: 6 series" in text
    assert {s.benchmark["metric"] for s in history(tmp_path, [], "b").series} >= {TRIAD.metric, NULL.metric}


def test_bad_requests(tmp_path: Path) -> None:
    assert "no campaign has measurements; name another folder" in refused(tmp_path, "history")
    record(tmp_path, "20260101T000000-lost", {"a": {}}, {})
    assert "no campaign has measurements; run one first" in refused(tmp_path, "history")
    campaigns(tmp_path, count=2)
    assert "no benchmark matches fio/x" in refused(tmp_path, "history", "-m", "fio/x")
    assert "--limit z matches no host; there are" in refused(tmp_path, "history", "--limit", "z")


def lasting_of(values: np.ndarray) -> list[Lasting]:
    """Judge hosts x campaigns like ``history``: without what they have in common, corrected for 8 metrics."""
    relative = values - np.median(values, axis=1, keepdims=True)
    relative -= np.median(relative, axis=0)
    noise = usual_noise(list(relative))
    unknown = np.full(values.shape[1], np.nan)
    return [lasting(each, unknown, 0.03, 0.01 / (8 * len(values)), noise) for each in relative]


def moved(result: Lasting) -> bool:
    return bool(result.steps or result.trends)


def test_a_loss_of_half_a_percent_each_time_is_named() -> None:
    named = blamed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values = rng.normal(0, 0.01 / 3**0.5, (12, 11))  # 3 repeats
        values[3] += np.log1p(-0.005) * np.arange(11)
        results = lasting_of(values)
        named += any(t.change < 0 for t in results[3].trends) or any(c.change < 0 for c in results[3].steps)
        blamed += sum(moved(r) for n, r in enumerate(results) if n != 3)
    assert named >= 57 and blamed == 0


def test_a_year_of_sound_nights_raises_no_alarm() -> None:
    values = np.random.default_rng(1).normal(0, 0.01, (100, 365))
    assert sum(map(moved, lasting_of(values))) == 0
    heavy = 0.01 * np.random.default_rng(1).standard_t(3, (100, 365))
    assert sum(map(moved, lasting_of(heavy))) <= 2


def test_a_decline_without_noise_is_a_slope_and_a_step_beside_it_is_both() -> None:
    ramp = np.log(np.linspace(1, 0.5, 9))
    (trend,) = lasting(ramp, UNKNOWN[:9], 0.03).trends
    assert (trend.start, trend.end) == (0, 8) and np.exp(trend.change) == pytest.approx(0.5, abs=0.04)
    both = 0.005 * np.random.default_rng(2).normal(size=40) - 0.003 * np.arange(40)
    result = lasting(both - np.where(np.arange(40) >= 20, 0.2, 0.0), UNKNOWN[:40], 0.03)
    assert result.steps or len(result.trends) > 1
    assert sum(t.change for t in result.trends) + sum(c.change for c in result.steps) == pytest.approx(-0.32, abs=0.06)
    step = np.where(np.arange(20) >= 10, -0.1, 0.0) + 0.005 * np.random.default_rng(3).normal(size=20)
    result = lasting(step, UNKNOWN[:20], 0.03)
    assert [c.position for c in result.steps] == [10] and not result.trends


def test_a_slope_and_a_change_of_all_hosts_are_said_with_their_facts(tmp_path: Path) -> None:
    hosts = tuple(f"h{n}" for n in range(8))
    for number in range(11):
        values = usual(hosts, repeats=3, seed=number)
        values["h2", NULL] = [v * 1.01**number for v in values["h2", NULL]]
        if number >= 6:
            for host in hosts:
                values[host, TRIAD] = [0.9 * v for v in values[host, TRIAD]]
        archive = record(tmp_path, f"202601{number + 1:02d}T000000-x", {h: {} for h in hosts}, values)
        archive.save_campaign(archive.campaign() | {"created": f"2026-01-{number + 1:02d}T00:00:00Z"})
        for host in hosts:
            archive.save_facts(host, facts(kernel="6.2" if number >= 6 else "6.1"), {})
    fleet, single = sorted(history(tmp_path, [], []).changed(), key=lambda s: s.host)
    assert (fleet.host, fleet.benchmark["metric"], fleet.changes[0].position) == ("", "triad", 6)
    assert fleet.causes == ((("kernel", "6.1", "6.2"),),)
    assert single.host == "h2" and single.slower
    monthly = single.monthly(single.trends[0])
    assert monthly is not None and monthly == pytest.approx(np.exp(-np.log(1.01) * 30.44) - 1, abs=0.06)
    status, text = run(tmp_path)
    shown = " ".join(text.split())
    assert (
        status == 1
        and "1 host became permanently worse" in shown
        and "All hosts together became worse in stream" in shown
    )
    page = tmp_path / "h.html"
    run(tmp_path, "--html", str(page))
    html = page.read_text("utf-8")
    assert "kernel changed from 6.1 to 6.2" in html and "a month" in html and "all hosts" in html
