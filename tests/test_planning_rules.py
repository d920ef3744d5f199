"""The example with one rule or term of sale more, at the same margins: why the plans of docs/reference/plan.md differ."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from fleetmark.demand import question as demand
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Plan
from fleetmark.planner.capacity.solve import solve

SCENARIOS = {
    "slips": "skus: {turin: {slips: {1: 10%}}}",
    "lot": "skus: {turin: {lot: 15}}",
    "racks": "sites: {fra: {racks: 15, rack_power: 15 kW}}",
    "pools": "workloads: {web: {pool: front}, batch: {pool: back}}",
}


def planned(text: str, folder: Path, seconds: float = 60.0, gap: float = 0.005) -> tuple[Ledger, Plan]:
    file = folder / "scenario.yml"
    file.write_text(text)
    q = demand.read(demand.EXAMPLE, folder, file if text else None)
    plan = solve(q, gap=gap, seconds=seconds, margin=dict.fromkeys(q.workloads, 1.02))
    assert isinstance(plan, Plan)
    return Ledger(q, plan.stock, plan.use), plan


@cache
def as_it_is(folder: Path) -> tuple[Ledger, Plan]:
    return planned("", folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ledger, Plan]:
    return as_it_is(tmp_path_factory.mktemp("base"))


def bought(plan: Plan) -> dict[str, int]:
    return {str(s): int(n) for s, n in plan.stock.groupby("sku")["buy"].sum().items()}


def test_the_clock_does_not_decide(base: tuple[Ledger, Plan], tmp_path: Path) -> None:
    """A solve of the example ends by its gap: a machine that is slower a thousand times over gives the same plan."""
    _, again = planned("", tmp_path, seconds=60_000.0)
    pd.testing.assert_frame_equal(base[1].stock, again.stock)
    pd.testing.assert_frame_equal(base[1].use, again.use)
    assert again.gap <= 0.005


def test_orders_that_may_come_late_are_placed_earlier_and_other_servers_fill_the_gap(
    base: tuple[Ledger, Plan], tmp_path: Path
) -> None:
    ledger, plan = planned(SCENARIOS["slips"], tmp_path)
    assert ledger.question.skus["turin"].allowance == 1  # 10% late are more than 2.5%, which deliveries may take
    turin = plan.stock[plan.stock["sku"] == "turin"]
    assert not turin[turin["period"] < 3]["arrive"].any()
    assert turin[turin["period"] >= 5]["buy"].sum() == 0  # would come after the last period
    assert bought(plan)["genoa"] > bought(base[1])["genoa"]
    assert plan.bound > base[1].objective


def test_a_rack_bought_whole_is_fifteen_servers(base: tuple[Ledger, Plan], tmp_path: Path) -> None:
    _, plan = planned(SCENARIOS["lot"], tmp_path, gap=0.03)
    turin = plan.stock[plan.stock["sku"] == "turin"]["buy"]
    assert turin.any() and not (turin % 15).any()
    assert plan.objective >= base[1].bound


def test_positions_for_racks_limit_a_site_before_its_power_does(base: tuple[Ledger, Plan], tmp_path: Path) -> None:
    ledger, plan = planned(SCENARIOS["racks"], tmp_path)
    fra = ledger.sites.index("fra")
    assert 14.5 < ledger.racks(liquid=False)[fra].max() <= 15 + 1e-6
    assert ledger.budgeted_w[fra].max() < base[0].budgeted_w[fra].max()  # 15 kW hold 15 turin, 20 genoa or 26 icelake
    assert plan.bound > base[1].objective


def test_pools_share_no_server(base: tuple[Ledger, Plan], tmp_path: Path) -> None:
    ledger, plan = planned(SCENARIOS["pools"], tmp_path)
    assert set(ledger.pooled) == {"front", "back"}
    for name, servers in ledger.pooled.items():
        assert (servers == servers.round()).all() and servers.any(), name
    assert (sum(ledger.pooled.values()) <= ledger.active).all()
    assert plan.objective >= base[1].bound  # at the same margins only servers that are shared cost more
