"""The costs of a plan by period and kind, from its counts alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.capacity.question import KINDS, Question

Floats = npt.NDArray[np.float64]


def costs(question: Question, stock: pd.DataFrame, use: pd.DataFrame) -> pd.DataFrame:
    """The costs of a plan's ``stock`` and ``use`` in the form of ``Plan.costs``: a row for every period and kind.

    Purchases are paid in the period of the order. Energy is the idle draw of active servers plus the draw of their
    work. Support and space count all installed servers. Migration counts retired servers.
    """
    q = question
    period = stock["period"].to_numpy()

    def total(counted: str, each: dict[str, float]) -> Floats:
        return _by_period(q, period, stock[counted].to_numpy(float) * _of(each, stock["sku"]))

    kwh = energy(q, stock, use)
    embodied = total("buy", {s: sku.embodied for s, sku in q.skus.items()})
    money = {
        "purchase": total("buy", {s: sku.price or 0.0 for s, sku in q.skus.items()}),
        "energy": sum((q.price_of_energy(k) * each for k, each in kwh.items()), np.zeros(len(q.periods))),
        "support": total("installed", {s: sku.support * q.years for s, sku in q.skus.items()}),
        "space": total("installed", {s: sku.space * q.years for s, sku in q.skus.items()}),
        "migration": total("retire", {s: sku.migration for s, sku in q.skus.items()}),
        "carbon": q.carbon_price / 1000 * (embodied + q.grid * sum(kwh.values())),
    }
    weight = np.array([q.weight(t) for t in range(len(q.periods))])
    table = np.array([money[kind] for kind in KINDS])
    return pd.DataFrame(
        {
            "period": np.repeat(np.arange(len(q.periods)), len(KINDS)),
            "kind": list(KINDS) * len(q.periods),
            "money": table.T.ravel(),
            "present": (table * weight).T.ravel(),
        }
    )


def energy(question: Question, stock: pd.DataFrame, use: pd.DataFrame) -> dict[str, Floats]:
    """Site to kWh at its meter, by period: the idle draw of active servers plus the draw of their work."""
    q = question
    rest = stock["active"].to_numpy(float) * _of({s: sku.idle_w for s, sku in q.skus.items()}, stock["sku"])
    work = use["servers"].to_numpy(float) * _of({s: sku.peak_w - sku.idle_w for s, sku in q.skus.items()}, use["sku"])
    work *= _of({w: load.utilisation for w, load in q.workloads.items()}, use["workload"])
    by_site = {}
    for k in q.sites:
        watts = np.zeros(len(q.periods))
        for table, each in ((stock, rest), (use, work)):
            here = (table["site"] == k).to_numpy()
            watts += _by_period(q, table["period"].to_numpy()[here], each[here])
        by_site[k] = watts * q.energy(k)
    return by_site


def carbon(question: Question, stock: pd.DataFrame, use: pd.DataFrame) -> float:
    """kg CO2e over the horizon: embodied in what is bought, and from the energy drawn."""
    embodied = stock["buy"].to_numpy(float) * _of({s: sku.embodied for s, sku in question.skus.items()}, stock["sku"])
    drawn = sum(float(kwh.sum()) for kwh in energy(question, stock, use).values())
    return float(embodied.sum()) + question.grid * drawn


def _of(each: dict[str, float], names: Iterable[str]) -> Floats:
    return np.array([each[name] for name in names], dtype=float)


def _by_period(q: Question, period: npt.NDArray[np.int64], values: Floats) -> Floats:
    return np.bincount(period, weights=values, minlength=len(q.periods)).astype(float)
