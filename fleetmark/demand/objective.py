"""Compute the highest utilisation of a SKU's servers that meets the objective of a workload."""

from __future__ import annotations

from fleetmark.demand.keys.part import rank
from fleetmark.demand.keys.workload import Slo, Workload
from fleetmark.demand.keys.worth import Worth
from fleetmark.demand.worth import in_servers
from fleetmark.planner.capacity.queueing import utilisation_for


def slots(entry: Worth, workload: Workload, worth: float, speed: float) -> int:
    """Return the slots of a SKU as given, or else those of the objective.

    If the demand is in servers of the machine that the objective's slots describe, derive the SKU's slots instead.
    Slots times speed then give the SKU's worth.
    """
    assert workload.slo is not None
    if entry.slots is not None:
        return entry.slots
    if not in_servers(workload.unit):
        return workload.slo.slots
    return max(round(workload.slo.slots * worth / speed), 1)


def of_objective(slo: Slo, slots: int, speed: float) -> tuple[float, str]:
    """Return the utilisation and its reason. Raise FleetmarkError if no useful load meets the objective."""
    key, target = next(iter(slo.quantiles.items())) if slo.quantiles else ("", slo.mean)
    assert target is not None
    return utilisation_for(
        target,
        rank(key) if key else None,
        slo.service_time / speed,
        slots,
        slo.arrival_cv**2,
        slo.service_cv**2,
        wait=slo.wait,
    )
