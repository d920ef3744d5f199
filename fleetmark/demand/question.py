"""The planner's question from its input: one YAML file, or a folder of CSV sheets."""

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

    Raises FleetmarkError with all faults, each with its file, line and key (or column).
    """
    source = demand_csv.read(path) if path.is_dir() else demand_yaml.read(path)
    return question(source, root)


def question(source: Input, root: Path) -> Question:
    """The question of an input; raises as ``read`` does."""
    try:
        doc = Document.model_validate(source.doc)
    except ValidationError as error:
        source.refused(error, Document, missing=not (source.sheets and source.faults))
        source.stop()
        raise
    names, years = doc.periods.resolved()
    _check_names(doc, source)
    record = Record(root)
    skus = {name: _sku(name, doc, years, source, record) for name in doc.skus}
    _somebody_runs_it(doc, source)
    budget = per_period(doc.budget, names, source, ("budget",), False) if doc.budget is not None else []
    workloads = {n: _workload(n, w, names, years, source) for n, w in doc.workloads.items()}
    source.stop()
    origin = {**source.files, "fleetmark": __version__}
    if record.campaigns:
        origin |= {"record": str(root), "campaigns": ", ".join(sorted(record.campaigns))}
    if record.warnings:
        origin["warnings"] = "; ".join(record.warnings)
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
        fleet=tuple(Cohort(c.sku, c.site, c.count, periods.in_periods(c.age, years, up=True)) for c in doc.fleet),
        discount=doc.discount,
        energy_price=doc.energy_price,
        pue=doc.pue,
        carbon_price=carbon.price if carbon else 0.0,
        grid=carbon.grid if carbon else 0.0,
        survive=doc.survive,
        quantile=doc.quantile,
        budget=tuple(budget),
        source=origin,
    )


def _check_names(doc: Document, source: Input) -> None:
    """Record a fault for every name that is not defined."""

    def check(name: str, among: Mapping[str, object], what: str, path: tuple[str | int, ...]) -> None:
        if name not in among:
            hint = suggest(name, list(among))
            source.fault(path, f"no {what} {name!r}{hint}; there are {', '.join(among)}")

    for n, workload in doc.workloads.items():
        for i, site in enumerate(workload.sites):
            check(site, doc.sites, "site", ("workloads", n, "sites", i))
        _may_survive(n, workload, doc, source)
    for n, sku in doc.skus.items():
        for workload_name in sku.worth:
            check(workload_name, doc.workloads, "workload", ("skus", n, "worth", workload_name))
        if not sku.worth:
            source.fault(("skus", n, "worth"), "is empty: no workload runs on this SKU")
    for i, cohort in enumerate(doc.fleet):
        check(cohort.sku, doc.skus, "SKU", ("fleet", i, "sku"))
        check(cohort.site, doc.sites, "site", ("fleet", i, "site"))
    domains = _domains(doc, doc.sites)
    if doc.survive and len(domains) < 2:
        source.fault(
            ("survive",), f"there is only one failure domain ({next(iter(domains))}): nothing remains if it fails"
        )


def _domains(doc: Document, sites: Iterable[str]) -> set[str]:
    return {doc.sites[n].domain or n for n in sites if n in doc.sites}


def _may_survive(name: str, workload: Written, doc: Document, source: Input) -> None:
    domains = _domains(doc, workload.sites)
    if doc.survive and workload.sites and len(domains) == 1 and len(_domains(doc, doc.sites)) > 1:
        only = next(iter(domains))
        source.fault(
            ("workloads", name, "sites"), f"are all in one failure domain ({only}), but its loss must be survived"
        )


def _somebody_runs_it(doc: Document, source: Input) -> None:
    for name, workload in doc.workloads.items():
        able = [n for n, s in doc.skus.items() if name in s.worth]
        in_place = {c.sku for c in doc.fleet if c.count and (not workload.sites or c.site in workload.sites)}
        if not able:
            source.fault(("workloads", name), "no SKU has a worth for it: nothing can run it")
        elif all(doc.skus[n].price is None and n not in in_place for n in able):
            where = f" at {', '.join(workload.sites)}, where it may run" if workload.sites else ""
            sentence = f"runs on {', '.join(able)} only, which is neither sold nor in the fleet{where}"
            source.fault(("workloads", name), sentence)


def _sku(name: str, doc: Document, years: float, source: Input, record: Record) -> Sku:
    s = doc.skus[name]
    worth: dict[str, Worth] = {}
    for workload, entry in s.worth.items():
        if workload in doc.workloads:
            try:
                worth[workload] = record.worth(entry, doc.workloads[workload])
            except FleetmarkError as error:
                source.fault(("skus", name, "worth", workload), str(error))
    return Sku(
        name,
        worth,
        s.price,
        s.power.idle,
        s.power.peak,
        s.rack_units,
        s.gpus,
        s.ports,
        periods.in_periods(s.lead, years, up=True),
        s.support,
        s.space,
        s.migration,
        s.minimum_order,
        None if s.age_limit is None else periods.in_periods(s.age_limit, years, up=False),
        s.embodied,
    )


def _workload(name: str, w: Written, names: list[str], years: float, source: Input) -> Workload:
    path = ("workloads", name)
    point, sigma = demand(w.demand, w.unit, names, years, source, (*path, "demand"))
    utilisation = w.utilisation or 0.0
    why: str = message("given")
    if w.slo is not None:
        try:
            utilisation, why = _of_slo(w.slo)
        except FleetmarkError as error:
            source.fault((*path, "slo"), str(error))
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
