"""A small capacity question, and plans from decisions by hand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pandas as pd

from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import HOURS, KINDS, Cohort, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.reports.formats import xlsx
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan.document import document as plan_document

ENGLISH = Language()
CREATED, COMMAND = "2027-01-20T10:00:00Z", "fleetmark plan demand.yml"
PERIODS = ("2027-Q1", "2027-Q2", "2027-Q3", "2027-Q4", "2028-Q1", "2028-Q2")
Decisions = Mapping[tuple[str, str, int], int]  # (sku, site, period) to servers
Uses = Mapping[tuple[str, str, str, int], float]  # (sku, site, workload, period) to servers


def question() -> Question:
    """Three sites, two of them in one failure domain; a SKU that is no longer sold; every feature of a question."""
    return Question(
        currency="EUR",
        date="2027-01-15",
        periods=PERIODS,
        years=0.25,
        workloads={
            "web": Workload(
                "web",
                "requests/s",
                (300.0, 320.0, 340.0, 370.0, 390.0, 420.0),
                (0.02, 0.03, 0.04, 0.05, 0.06, 0.07),
                0.65,
                reason="p99 50 ms: Erlang C",
            ),
            "batch": Workload(
                "batch", "icelake servers", (6.0,) * 6, (0.0,) * 6, 0.8, sites=frozenset({"ams", "fra"}), dedicated=True
            ),
        },
        skus={
            "old": Sku(
                "old",
                {"web": Worth(10.0), "batch": Worth(1.0)},
                None,
                110.0,
                300.0,
                rack_units=2,
                ports=2,
                support=200.0,
                space=90.0,
                migration=50.0,
                age_limit=10,
            ),
            "new": Sku(
                "new",
                {
                    "web": Worth(18.3, 0.0111, 9.37, "fleetmark compare: genoa over icelake"),
                    "batch": Worth(1.83, 0.02, 5.2),
                },
                9000.0,
                150.0,
                520.5,
                rack_units=1,
                lead=1,
                support=250.0,
                space=60.0,
                migration=75.0,
                minimum_order=4,
                embodied=1300.0,
            ),
            "gpu": Sku(
                "gpu",
                {"batch": Worth(6.5, 0.05)},
                41000.0,
                300.0,
                1800.0,
                rack_units=4,
                gpus=4,
                ports=3,
                lead=2,
                support=900.0,
                space=200.0,
                age_limit=3,
                embodied=3300.0,
            ),
        },
        sites={
            "ams": Site("ams", 60_000.0, 240.0, 200.0, 900_000.0, domain="nl", spares=1),
            "rtm": Site("rtm", 40_000.0, None, None, None, domain="nl", spares=0, energy_price=0.19, pue=1.4),
            "fra": Site("fra", 80_000.0, 400.0, 300.0, spares=2),
        },
        fleet=(
            Cohort("old", "ams", 50, 8),
            Cohort("old", "fra", 70, 6),
            Cohort("old", "ams", 20, 2),
            Cohort("old", "rtm", 0),
            Cohort("gpu", "fra", 2, arrives=3),
        ),
        discount=0.07,
        energy_price=0.14,
        pue=1.3,
        carbon_price=80.0,
        grid=0.35,
        survive=True,
        quantile=0.9,
        budget=(700_000.0, None, 500_000.0, None, None, None),
        source={"demand.yml": "sha256 0011", "fleetmark": "0.1.0"},
    )


def decided(q: Question, buy: Decisions, retire: Decisions, use: Uses, margin: Mapping[str, float]) -> Plan:
    """The plan of those decisions: servers in use are active. Costs by the model's formulas."""
    stock, used, costs = [], [], []
    for (sku, site), t in product(product(q.skus.values(), q.sites), range(len(q.periods))):
        mine = [((s, k, p), n) for (s, k, p), n in buy.items() if (s, k) == (sku.name, site)]
        here_before = [c for c in q.fleet if (c.sku, c.site) == (sku.name, site)]
        start = sum(c.count for c in here_before if c.arrives is None)
        placed = {p: sum(c.count for c in here_before if c.arrives == p) for p in range(len(q.periods))}
        arrived = sum(n for p, n in placed.items() if p <= t)
        arrived += sum(n for (_, _, p), n in mine if p + sku.lead <= t)
        gone = sum(n for (s, k, p), n in retire.items() if (s, k) == (sku.name, site) and p <= t)
        here = {w: n for (s, k, w, p), n in use.items() if (s, k, p) == (sku.name, site, t)}
        active = -int(-sum(here.values()) // 1)
        installed = start + arrived - gone
        row = {
            "sku": sku.name,
            "site": site,
            "period": t,
            "buy": buy.get((sku.name, site, t), 0),
            "arrive": buy.get((sku.name, site, t - sku.lead), 0) + placed[t],
            "retire": retire.get((sku.name, site, t), 0),
            "installed": installed,
            "active": active,
            "idle_w": active * sku.idle_w,
            "peak_w": installed * sku.peak_w,
        }
        stock.append(row)
        used += [
            {"sku": sku.name, "site": site, "workload": w, "period": t, "servers": n, "working": n}
            for w, n in here.items()
        ]
        pue = q.sites[site].pue or q.pue
        price = q.sites[site].energy_price or q.energy_price
        watts = active * sku.idle_w + sum(
            (sku.peak_w - sku.idle_w) * q.workloads[w].utilisation * n for w, n in here.items()
        )
        kwh = watts * HOURS * q.years * pue / 1000
        money = {
            "purchase": row["buy"] * (sku.price or 0.0),
            "rent": installed * sku.rent * q.years,
            "energy": kwh * price,
            "support": installed * sku.support * q.years,
            "space": installed * sku.space * q.years,
            "migration": row["retire"] * sku.migration,
            "residual": 0.0,
            "carbon": q.carbon_price / 1000 * (row["buy"] * sku.embodied + q.grid * kwh),
        }
        costs += [
            {"period": t, "kind": kind, "money": money[kind], "present": money[kind] * q.weight(t)} for kind in KINDS
        ]
    table = pd.DataFrame(costs).groupby(["period", "kind"], as_index=False, sort=False).sum()
    total = float(table["present"].sum())
    return Plan(
        pd.DataFrame(stock), pd.DataFrame(used), table, total, total * 0.995, gap=0.005, seconds=1.2, margin=margin
    )


_BUY = {("new", "ams", 1): 24, ("new", "rtm", 1): 4, ("new", "rtm", 3): 4, ("new", "fra", 2): 4, ("new", "fra", 3): 41}
_RETIRE = {("old", "ams", 0): 9, ("old", "ams", 2): 41, ("old", "fra", 0): 4, ("old", "fra", 4): 66}
_USE = {
    ("old", "ams", "web"): (48.5, 51.7, 15, 18, 14, 15),
    ("old", "ams", "batch"): (8, 8, 4, 1, 1, 4),
    ("old", "fra", "web"): (48.5, 51.7, 54.95, 59.8, 0, 0),
    ("old", "fra", "batch"): (8, 8, 8, 4, 0, 0),
    ("new", "ams", "web"): (0, 0, 21, 19, 19, 21),
    ("new", "ams", "batch"): (0, 0, 2, 4, 4, 2),
    ("new", "rtm", "web"): (0, 0, 0.82, 3.83, 7.78, 7.88),
    ("new", "fra", "web"): (0, 0, 0, 0, 34.45, 37.1),
    ("new", "fra", "batch"): (0, 0, 0, 2, 5, 5),
}


def plan(q: Question) -> Plan:
    """A plan that keeps every limit of ``question()``."""
    use = {(s, k, w, t): n for (s, k, w), row in _USE.items() for t, n in enumerate(row) if n}
    return decided(q, _BUY, _RETIRE, use, {"web": 1.05})


def document(answer: Answer, language: Language = ENGLISH) -> Document:
    """The document of an answer at a fixed time."""
    return plan_document(answer, CREATED, COMMAND, language)


def workbook(answer: Answer, *, created: str = "", command: str = "", language: Language = ENGLISH) -> bytes:
    """The workbook of an answer."""
    return xlsx.render(plan_document(answer, created, command, language), language)
