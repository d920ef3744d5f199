"""Short constructors of capacity questions for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.planner.capacity.question import Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth


def sku(name: str, worth: Mapping[str, float], price: float | None = None, **more: Any) -> Sku:
    """A SKU that costs nothing to run."""
    bare: dict[str, Any] = {"idle_w": 0.0, "peak_w": 0.0, "rack_units": 0.0, "ports": 0}
    return Sku(name=name, worth={w: Worth(v) for w, v in worth.items()}, price=price, **(bare | more))


def work(name: str, *point: float, utilisation: float = 1.0, **more: Any) -> Workload:
    """A workload with that demand by period."""
    return Workload(name, "units", point, (0.0,) * len(point), utilisation, **more)


def ask(workloads: Sequence[Workload], skus: Sequence[Sku], sites: Sequence[Site], **more: Any) -> Question:
    """A question of years as periods, money undiscounted."""
    periods = [f"{2027 + t}" for t in range(len(workloads[0].point))]
    return Question(
        currency="EUR",
        date="2027-01-01",
        periods=periods,
        years=1.0,
        workloads={w.name: w for w in workloads},
        skus={s.name: s for s in skus},
        sites={k.name: k for k in sites},
        **more,
    )
