"""Resolve the resources that demand needs and that servers have, from the input or from recorded measurements."""

from __future__ import annotations

from collections.abc import Mapping

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.demand.amounts import Quantity
from fleetmark.demand.document import Document
from fleetmark.demand.places import Input, Path
from fleetmark.demand.worth import Record


def stocked(sku: str, doc: Document, source: Input, record: Record) -> dict[str, float]:
    """Return the resources of one server in base units.

    Record an error if the server lacks a resource that one of its workloads needs, or has it in another unit.
    """
    amounts: dict[str, Quantity] = {}
    for name, given in doc.skus[sku].has.items():
        path: Path = ("skus", sku, "has", name)
        try:
            amounts[name] = given.value or record.rate(given.measured)
        except FleetmarkError as error:
            source.fault(path, str(error))
            amounts[name] = Quantity(0.0)
    for workload in doc.skus[sku].worth:
        written = doc.workloads.get(workload)
        for name, need in written.needs.items() if written else ():
            _check(sku, amounts, workload, name, need, source)
    return {name: amount.value for name, amount in amounts.items()}


def _check(sku: str, amounts: Mapping[str, Quantity], workload: str, name: str, need: Quantity, source: Input) -> None:
    has = amounts.get(name)
    if has is None:
        hint = suggest(name, list(amounts))
        sentence = f"has no {name}{hint}, which {workload} needs: write the amount of one server, or remove its worth"
        source.fault(("skus", sku, "has") if amounts else ("skus", sku), f"{sentence} for {workload}")
    elif has.unit != need.unit and has.value:
        units = f"{has.unit or 'a plain number'}, {workload} needs {need.unit or 'a plain number'}"
        source.fault(("skus", sku, "has", name), f"is in {units}: give both in one unit")
    elif need.value and not has.value:
        source.fault(("skus", sku, "has", name), f"is 0, but {workload} needs it: remove its worth for {workload}")
