"""The planner's question from what a planner wrote: one YAML file, or a folder of CSV sheets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from fleetmark import __version__
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import message
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import periods
from fleetmark.demand import yaml as demand_yaml
from fleetmark.demand.document import Document, Slo, rank
from fleetmark.demand.document import Workload as Written
from fleetmark.demand.places import Input
from fleetmark.demand.series import demand, per_period
from fleetmark.demand.worth import Record
from planner.capacity.question import Cohort, Question, Site, Sku, Workload, Worth
from planner.capacity.queueing import utilisation_for

EXAMPLE = Path(__file__).parent / "example.yml"


def read(path: Path, root: Path) -> Question:
    """The question in ``path``, a YAML file or a folder of sheets; worths by name come from the record under ``root``.

    Raises FleetmarkError with all that is wrong, each with its file, line and key (or column).
    """
    found = demand_csv.read(path) if path.is_dir() else demand_yaml.read(path)
    return question(found, root)


def question(found: Input, root: Path) -> Question:
    """The question that an input asks; raises as ``read`` does."""
    try:
        doc = Document.model_validate(found.doc)
    except ValidationError as error:
        found.refused(error, Document)
        found.stop()
        raise
    names, years = doc.periods.resolved()
    _known_names(doc, found)
    record = Record(root)
    skus = {name: _sku(name, doc, years, found, record) for name in doc.skus}
    _somebody_runs_it(doc, found)
    budget = per_period(doc.budget, names, found, ("budget",), False) if doc.budget is not None else []
    workloads = {n: _workload(n, w, names, years, found) for n, w in doc.workloads.items()}
    found.stop()
    source = {**found.files, "fleetmark": __version__}
    if record.campaigns:
        source |= {"record": str(root), "campaigns": ", ".join(sorted(record.campaigns))}
    if record.warnings:
        source["warnings"] = "; ".join(record.warnings)
    carbon = doc.carbon
    return Question(
        currency=doc.currency,
        date=doc.date,
        periods=tuple(names),
        years=years,
        workloads=workloads,
        skus=skus,
        sites={
            n: Site(n, s.power, s.rack_units, s.ports, s.budget, s.domain or "", s.spares, s.energy_price, s.pue)
            for n, s in doc.sites.items()
        },
        fleet=tuple(Cohort(c.sku, c.site, c.count, periods.whole(c.age, years, up=True)) for c in doc.fleet),
        discount=doc.discount,
        energy_price=doc.energy_price,
        pue=doc.pue,
        carbon_price=carbon.price if carbon else 0.0,
        grid=carbon.grid if carbon else 0.0,
        survive=doc.survive,
        quantile=doc.quantile,
        budget=tuple(budget),
        source=source,
    )


def _known_names(doc: Document, found: Input) -> None:
    """Faults for every name that stands for nothing."""

    def known(name: str, among: Mapping[str, object], what: str, path: tuple[str | int, ...]) -> None:
        if name not in among:
            hint = suggest(name, list(among))
            found.fault(path, f"no {what} {name!r}{hint}; there are {', '.join(among)}")

    for n, workload in doc.workloads.items():
        for i, site in enumerate(workload.sites):
            known(site, doc.sites, "site", ("workloads", n, "sites", i))
        _may_survive(n, workload, doc, found)
    for n, sku in doc.skus.items():
        for workload_name in sku.worth:
            known(workload_name, doc.workloads, "workload", ("skus", n, "worth", workload_name))
        if not sku.worth:
            found.fault(("skus", n, "worth"), "is empty: no workload runs on this SKU")
    for i, cohort in enumerate(doc.fleet):
        known(cohort.sku, doc.skus, "SKU", ("fleet", i, "sku"))
        known(cohort.site, doc.sites, "site", ("fleet", i, "site"))
    domains = _domains(doc, doc.sites)
    if doc.survive and len(domains) < 2:
        found.fault(("survive",), f"there is one failure domain only ({next(iter(domains))}): none is left to serve")


def _domains(doc: Document, sites: Iterable[str]) -> set[str]:
    return {doc.sites[n].domain or n for n in sites if n in doc.sites}


def _may_survive(name: str, workload: Written, doc: Document, found: Input) -> None:
    domains = _domains(doc, workload.sites)
    if doc.survive and workload.sites and len(domains) == 1 and len(_domains(doc, doc.sites)) > 1:
        only = next(iter(domains))
        found.fault(
            ("workloads", name, "sites"), f"are all in one failure domain ({only}), whose loss shall be survived"
        )


def _somebody_runs_it(doc: Document, found: Input) -> None:
    for name, workload in doc.workloads.items():
        able = [n for n, s in doc.skus.items() if name in s.worth]
        there = {c.sku for c in doc.fleet if c.count and (not workload.sites or c.site in workload.sites)}
        if not able:
            found.fault(("workloads", name), "no SKU has a worth for it: nothing can run it")
        elif all(doc.skus[n].price is None and n not in there for n in able):
            where = f" at {', '.join(workload.sites)}, where it may run" if workload.sites else ""
            said_ = f"runs on {', '.join(able)} only, which is neither sold nor in the fleet{where}"
            found.fault(("workloads", name), said_)


def _sku(name: str, doc: Document, years: float, found: Input, record: Record) -> Sku:
    s = doc.skus[name]
    worth: dict[str, Worth] = {}
    for workload, given in s.worth.items():
        if workload in doc.workloads:
            try:
                worth[workload] = record.worth(given, doc.workloads[workload])
            except FleetmarkError as error:
                found.fault(("skus", name, "worth", workload), str(error))
    return Sku(
        name,
        worth,
        s.price,
        s.power.idle,
        s.power.peak,
        s.rack_units,
        s.gpus,
        s.ports,
        periods.whole(s.lead, years, up=True),
        s.support,
        s.space,
        s.migration,
        s.minimum_order,
        None if s.age_limit is None else periods.whole(s.age_limit, years, up=False),
        s.embodied,
    )


def _workload(name: str, w: Written, names: list[str], years: float, found: Input) -> Workload:
    path = ("workloads", name)
    point, sigma = demand(w.demand, w.unit, names, years, found, (*path, "demand"))
    utilisation = w.utilisation or 0.0
    why: str = message("given")
    if w.slo is not None:
        try:
            utilisation, why = _of_slo(w.slo)
        except FleetmarkError as error:
            found.fault((*path, "slo"), str(error))
    return Workload(name, w.unit, tuple(point), tuple(sigma), utilisation, why, frozenset(w.sites), w.dedicated)


def _of_slo(slo: Slo) -> tuple[float, str]:
    key, target = next(iter(slo.quantiles.items())) if slo.quantiles else ("", slo.mean)
    assert target is not None
    return utilisation_for(
        target,
        rank(key) if key else None,
        slo.service_time,
        slo.slots,
        slo.arrival_cv**2,
        slo.service_cv**2,
        wait=slo.wait,
    )
