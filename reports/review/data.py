"""Export the review of a plan for programs: figures with full precision, periods by name, money in its currency."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.review.review import Finding, Review
from fleetmark.reports.review.purchases import purchases

SCHEMA = 1


def as_json(review: Review, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the review. ``details``: further keys at the top (command, time)."""
    q = review.question
    return {
        "schema": SCHEMA,
        **details,
        "currency": q.currency,
        "periods": list(q.periods),
        "quantile": q.promise,
        "is_sound": review.is_sound,
        "deliveries": [_delivery(review, finding) for finding in review.findings],
        "worth": [
            {"sku": u.sku, "workload": u.workload, "lots": list(u.lots), "before": _worth(u.before)}
            | {"after": _worth(u.after)}
            for u in review.updates
        ],
        "purchases": [
            {
                "period": q.periods[b.period],
                "site": b.site,
                "sku": b.sku,
                "planned": b.planned,
                "now": b.now,
                "arrives": q.periods[b.arrives] if b.arrives < len(q.periods) else None,
                "money": b.money,
            }
            for b in purchases(review)
        ],
        "costs": {
            "planned": review.kept.objective,
            "now": None if review.plan is None else review.plan.objective,
        },
        "shortfall": {
            "planned": _share(review.kept_futures.shortfall),
            "now": None if review.futures is None else _share(review.futures.shortfall),
        },
        "late": list(review.late),
        "conflict": None if review.conflict is None else [limit.name for limit in review.conflict.limits],
    }


def _delivery(review: Review, f: Finding) -> dict[str, Any]:
    lot, periods = f.delivery.lot, review.question.periods
    return {
        "lot": lot.name,
        "sku": lot.sku,
        "site": lot.site or None,
        "arrives": periods[lot.arrives - review.now] if lot.arrives >= review.now else None,
        "servers": lot.count,
        "price": lot.price,
        "campaign": f.delivery.campaign,
        "measured_as": f.delivery.like or None,
        "workload": f.workload,
        "unit": review.question.workloads[f.workload].unit,
        "promised": f.promised,
        "measured": _share(f.measured.estimate),
        "verdict": str(f.verdict),
        "probability_below": f.below,
        "probability_same": f.disagreement,
        "owed": {**_share(f.owed), "servers": f.servers, "money": f.money},
    }


def _worth(worth: Worth) -> dict[str, float | None]:
    df = None if math.isinf(worth.df) else worth.df
    return {**_share(worth.estimate), "error": worth.se, "df": df}


def _share(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "lo": estimate.lo, "hi": estimate.hi}
