"""Build the planner's question from its input: one YAML file, or a folder of CSV sheets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from fleetmark import __version__
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.text import message
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import periods
from fleetmark.demand import yaml as demand_yaml
from fleetmark.demand.correlation import resolved
from fleetmark.demand.document import Cohort as WrittenCohort
from fleetmark.demand.document import Document
from fleetmark.demand.document import Site as WrittenSite
from fleetmark.demand.history import Expected, expected
from fleetmark.demand.keys.sku import Sku as WrittenSku
from fleetmark.demand.keys.workload import Workload as Written
from fleetmark.demand.objective import of_objective, slots
from fleetmark.demand.places import Input, Path
from fleetmark.demand.resources import stocked
from fleetmark.demand.scenario import overlaid
from fleetmark.demand.series import demand, per_period, steps
from fleetmark.demand.terms import Terms
from fleetmark.demand.worth import Record
from fleetmark.planner.capacity.calendar import is_calendar
from fleetmark.planner.capacity.question import PREEMPTIBLE, SURVIVES, Cohort, Question, Shock, Site, Supply, Workload
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.planner.review.promise import LEAST, promise

LEAST_WATTS = 5.0  # minimum peak power; a smaller figure is probably in kW
MOST_WATTS_PER_UNIT = 20_000.0  # maximum peak power of a rack unit; a larger figure is probably in kW instead of W
EXAMPLE = File(__file__).parent / "example.yml"


def read(path: File, root: File, scenario: File | None = None) -> Question:
    """Return the question in ``path``, a YAML file or a folder of sheets, with the changes of a ``scenario``.

    Worths that are given by name are read from the record under ``root``. Raise FleetmarkError with all errors, each
    with its file, line and key (or column).
    """
    source = demand_csv.read(path) if path.is_dir() else demand_yaml.read(path)
    return question(source if scenario is None else overlaid(source, scenario), root)


def question(source: Input, root: File) -> Question:
    """Return the question of an input; raise the same errors as ``read``."""
    try:
        doc = Document.model_validate(source.doc)
    except ValidationError as error:
        source.refused(error, Document, missing=not (source.sheets and source.faults))
        source.stop()
        raise
    names, years = doc.periods.resolved()
    _check_names(doc, source)
    record = Record(root)
    terms = Terms(doc, source)
    skus = {name: _sku(name, doc, names, years, source, record, terms) for name in doc.skus}
    _somebody_runs_it(doc, skus, source)
    budget = per_period(doc.budget, names, source, ("budget",), False) if doc.budget is not None else []
    sites = {n: _site(n, s, names, source) for n, s in doc.sites.items()}
    energy_price = steps(doc.energy_price, names, source, ("energy_price",))
    histories: dict[str, Expected] = {}
    workloads = {n: _workload(n, w, names, years, source, skus, histories, terms) for n, w in doc.workloads.items()}
    correlation = resolved(doc.correlation, list(workloads), histories, source)
    carbon_by_year = _carbon_by_year(doc, names, source)
    source.stop()
    origin = {**source.files, "fleetmark": __version__}
    if record.campaigns:
        origin |= {"record": str(root), "campaigns": ", ".join(sorted(record.campaigns))}
    if record.warnings:
        origin["warnings"] = "; ".join(record.warnings)
    origin |= {f"forecast of {n}": w.forecast for n, w in workloads.items() if w.forecast}
    carbon = doc.carbon
    return Question(
        currency=doc.currency,
        date=doc.date,
        periods=tuple(names),
        years=years,
        workloads=workloads,
        skus=skus,
        sites=sites,
        fleet=tuple(_cohort(c, names, years) for c in doc.fleet),
        discount=doc.discount,
        energy_price=energy_price,
        pue=doc.pue,
        carbon_price=carbon.price if carbon else 0.0,
        grid=carbon.grid if carbon else 0.0,
        survive=doc.survive,
        quantile=doc.quantile,
        reviews=doc.reviews,
        budget=tuple(budget),
        source=origin,
        outage=doc.outage,
        supply=tuple(
            Supply(s.item, s.maximum, None if s.period is None else names.index(s.period)) for s in doc.supply
        ),
        domains_w=dict(doc.domain_power),
        rates=dict(doc.currencies),
        correlation=correlation,
        energy_price_change=doc.energy_price_change,
        carbon_limit=carbon.limit if carbon else None,
        carbon_by_year=carbon_by_year,
        depreciation=periods.in_periods(doc.depreciation, years, up=True) if doc.depreciation else 0,
        shock=None if doc.shock is None else Shock(doc.shock.chance, doc.shock.demand),
    )


def _carbon_by_year(doc: Document, names: list[str], source: Input) -> dict[str, float]:
    """Return the carbon limit of each year that has one."""
    written, path = doc.carbon.yearly_limit if doc.carbon else None, ("carbon", "yearly_limit")
    if written is None:
        return {}
    if not is_calendar(names):
        source.fault(path, f"needs periods of the calendar, such as 2027-Q1; there are {names[0]} to {names[-1]}")
        return {}
    every = list(dict.fromkeys(name[:4] for name in names))
    if isinstance(written, Mapping):
        for odd in [year for year in written if year not in every]:
            source.fault((*path, odd), f"{odd!r} is no year of the plan; there are {', '.join(every)}")
        return {year: written[year] for year in every if year in written}
    if isinstance(written, list):
        if len(written) != len(every):
            source.fault(path, f"has {len(written)} figures, but needs one for each of {', '.join(every)}")
        return dict(zip(every, written, strict=False))
    return dict.fromkeys(every, written)


def _check_names(doc: Document, source: Input) -> None:
    """Record an error for every name that is not defined."""

    def check(name: str, among: Mapping[str, object], noun: str, path: Path) -> None:
        if name not in among:
            hint = suggest(name, list(among))
            source.fault(path, f"no {noun} {name!r}{hint}; there are {', '.join(among)}")

    for n, workload in doc.workloads.items():
        for i, site in enumerate(workload.sites):
            check(site, doc.sites, "site", ("workloads", n, "sites", i))
        _may_survive(n, workload, doc, source)
        if workload.pool and workload.pool in doc.workloads and doc.workloads[workload.pool].dedicated:
            sentence = f"{workload.pool} is a workload with dedicated servers: choose another name for the pool"
            source.fault(("workloads", n, "pool"), sentence)
    for n, sku in doc.skus.items():
        for workload_name in sku.worth:
            check(workload_name, doc.workloads, "workload", ("skus", n, "worth", workload_name))
        if not sku.worth:
            source.fault(("skus", n, "worth"), "is empty: no workload runs on this SKU")
    _check_times(doc, check)
    _check_plausible(doc, source)
    for i, cohort in enumerate(doc.fleet):
        if cohort.arrives is not None and cohort.sku in doc.skus and not doc.skus[cohort.sku].is_sold:
            source.fault(("fleet", i, "sku"), f"{cohort.sku} is on order, but it is not sold: give it a price")
    domains = _domains(doc, doc.sites)
    for name in doc.domain_power:
        check(name, dict.fromkeys(sorted(domains)), "failure domain", ("domain_power", name))
    failing = max(doc.survive, 1)
    if len(domains) <= failing and any(_survives(doc, w) for w in doc.workloads.values()):
        path = ("survive",) if doc.survive else ("sites",)
        sentence = f"there is only one failure domain ({next(iter(domains))}), so nothing remains if it fails"
        if failing > 1:
            sentence = f"any two of {', '.join(sorted(domains))} may fail at once: nothing would remain"
        source.fault(path, sentence)


def _check_plausible(doc: Document, source: Input) -> None:
    """Record an error with its probable meaning for power in the wrong unit and for servers beyond their age limit."""
    _, years = doc.periods.resolved()
    if doc.reviews and 1 - promise(doc.quantile, doc.reviews) < LEAST:
        sentence = f"{doc.reviews} reviews leave too few futures that may fail: lower reviews or the quantile"
        source.fault(("reviews",), sentence)
    for name, sku in doc.skus.items():
        if 0 < sku.power.peak < LEAST_WATTS:
            sentence = f"is {sku.power.peak:g} W, less than any server: write {sku.power.peak:g} kW if you mean that"
            source.fault(("skus", name, "power", "peak"), sentence)
        if sku.rack_units and sku.power.peak > MOST_WATTS_PER_UNIT * sku.rack_units:
            watts = sku.power.peak
            sentence = f"is {watts:,.0f} W in {sku.rack_units:g} rack units, more than any server draws: "
            source.fault(("skus", name, "power", "peak"), sentence + f"write {watts / 1000:g} W if you mean that")
        age, term = (
            None if span is None else periods.in_periods(span, years, up=up)
            for span, up in ((sku.age_limit, False), (sku.term, True))
        )
        if age is not None and term is not None and term > age:
            source.fault(
                ("skus", name, "term"), f"is {term} periods, above the age limit ({age}): no server could serve it"
            )
    least = min((sku.power.peak for sku in doc.skus.values() if sku.power.peak), default=0.0)
    for name, site in doc.sites.items():
        for watts in _written(site.power):
            if 0 < watts < least:
                sentence = f"is {watts:g} W, less than one server draws: write {watts:g} kW if you mean that"
                source.fault(("sites", name, "power"), sentence)
        if site.spares.share + site.spare_share + max(_written(site.maintenance)) >= 1:
            source.fault(("sites", name, "maintenance"), "and spares take all servers: lower one of them")
    for i, cohort in enumerate(doc.fleet):
        kind = doc.skus.get(cohort.sku)
        if kind is None or kind.age_limit is None or not cohort.count:
            continue
        age = periods.in_periods(cohort.age, years, up=True)
        limit = periods.in_periods(kind.age_limit, years, up=False)
        if age > limit:
            sentence = f"is {age} periods, above the age limit of {cohort.sku} ({limit}): correct one of the two"
            source.fault(("fleet", i, "age"), sentence)


def _written(value: Any) -> list[float]:
    """Return the figures of a constant, a list, or a mapping by period."""
    figures = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    return [figure for figure in figures if figure is not None]


def _check_times(doc: Document, check: Callable[[str, Mapping[str, object], str, Path], None]) -> None:
    """Check the periods and names of the fleet, placed orders, windows and supply."""
    names, _ = doc.periods.resolved()
    for i, cohort in enumerate(doc.fleet):
        if cohort.arrives is not None:
            check(cohort.arrives, dict.fromkeys(names), "period", ("fleet", i, "arrives"))
        check(cohort.sku, doc.skus, "SKU", ("fleet", i, "sku"))
        check(cohort.site, doc.sites, "site", ("fleet", i, "site"))
    for n, site in doc.sites.items():
        for i, period in enumerate(site.windows or ()):
            check(period, dict.fromkeys(names), "period", ("sites", n, "windows", i))
    vendors = {sku.vendor for sku in doc.skus.values() if sku.vendor}
    for i, supply in enumerate(doc.supply):
        check(supply.item, dict.fromkeys([*doc.skus, *vendors]), "SKU or vendor", ("supply", i, "item"))
        if supply.period is not None:
            check(supply.period, dict.fromkeys(names), "period", ("supply", i, "period"))


def _site(name: str, s: WrittenSite, names: list[str], source: Input) -> Site:
    def series(key: str) -> Any:
        return steps(getattr(s, key), names, source, ("sites", name, key))

    return Site(
        name,
        series("power"),
        series("rack_units"),
        series("ports"),
        s.budget,
        domain=s.domain or "",
        spares=s.spares.count,
        energy_price=series("energy_price"),
        pue=s.pue,
        racks=series("racks"),
        liquid_racks=series("liquid_racks"),
        rack_w=s.rack_power,
        windows=None
        if s.windows is None
        else frozenset(names.index(period) for period in s.windows if period in names),
        maintenance=series("maintenance"),
        spare_share=s.spares.share or s.spare_share,
    )


def _cohort(cohort: WrittenCohort, names: list[str], years: float) -> Cohort:
    age = periods.in_periods(cohort.age, years, up=True)
    arrives = None if cohort.arrives is None else names.index(cohort.arrives)
    return Cohort(cohort.sku, cohort.site, cohort.count, age, arrives)


def _survives(doc: Document, workload: Written) -> bool:
    return (workload.availability or (SURVIVES if doc.survive else "")) == SURVIVES


def _domains(doc: Document, sites: Iterable[str]) -> set[str]:
    """Return the failure domains of sites.

    A site in several domains has all of them.
    """
    return {d.strip() for n in sites if n in doc.sites for d in (doc.sites[n].domain or n).split(",")}


def _may_survive(name: str, workload: Written, doc: Document, source: Input) -> None:
    domains = _domains(doc, workload.sites)
    failing = max(doc.survive, 1)
    if _survives(doc, workload) and workload.sites and len(domains) <= failing < len(_domains(doc, doc.sites)):
        only = ", ".join(sorted(domains))
        sentence = f"are all in one failure domain ({only}), but its loss must be survived"
        if len(domains) > 1:
            sentence = f"are in {only}, but the loss of any two failure domains must be survived"
        source.fault(("workloads", name, "sites"), sentence)


def _somebody_runs_it(doc: Document, skus: Mapping[str, Sku], source: Input) -> None:
    """Record an error for every workload that no server can run, and for pre-emptible ones without headroom."""
    for name, workload in doc.workloads.items():
        able = [n for n, s in skus.items() if name in s.worth]
        out = {n: s.out[name] for n, s in skus.items() if name in s.out}
        in_place = {c.sku for c in doc.fleet if c.count and (not workload.sites or c.site in workload.sites)}
        if not able and out:
            source.fault(("workloads", name, "slo" if workload.slo else "gpus"), f"no SKU can run it: {_reasons(out)}")
        elif not able and not any(name in s.worth for s in doc.skus.values()):
            source.fault(("workloads", name), "no SKU has a worth for it: nothing can run it")
        elif able and all(skus[n].price is None and n not in in_place for n in able):
            limitation = f" at {', '.join(workload.sites)}, where it may run" if workload.sites else ""
            sentence = f"runs on {', '.join(able)} only, which is neither sold nor in the fleet{limitation}"
            source.fault(("workloads", name), sentence)
        elif workload.availability == PREEMPTIBLE and not _hosts(name, doc, skus):
            sentence = (
                "may be pre-empted, but no workload that survives a failure shares its SKUs and sites"
                f"{f' in the pool {workload.pool}' if workload.pool else ''}: there is no headroom to run in"
            )
            source.fault(("workloads", name), sentence)


def _reasons(out: Mapping[str, str]) -> str:
    """Return the reasons why SKUs are excluded, each reason once."""
    skus = {reason: [sku for sku, other in out.items() if other == reason] for reason in out.values()}
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in skus.items())


def _hosts(name: str, doc: Document, skus: Mapping[str, Sku]) -> list[str]:
    """Return the workloads with failover headroom in which a workload may run."""
    sites = set(doc.workloads[name].sites or doc.sites)
    return [
        n
        for n, w in doc.workloads.items()
        if n != name
        and _survives(doc, w)
        and not w.dedicated
        and w.pool == doc.workloads[name].pool
        and sites & set(w.sites or doc.sites)
        and any(name in s.worth and n in s.worth for s in skus.values())
    ]


def _sku(name: str, doc: Document, names: list[str], years: float, source: Input, record: Record, terms: Terms) -> Sku:
    s = doc.skus[name]
    worth: dict[str, Worth] = {}
    out: dict[str, str] = {}
    for workload, entry in s.worth.items():
        written = doc.workloads.get(workload)
        if written is None:
            continue
        path = ("skus", name, "worth", workload)
        if lack := _lacks_gpus(s, written):
            out[workload] = lack
            continue
        try:
            value = record.worth(entry, written)
            limit = s.gpus // written.gpus if written.gpus else math.inf
            if value.value > limit:
                source.fault(path, f"is {value.value:g}, more than its {s.gpus} GPUs give ({limit:g})")
            speed = record.speed(entry.speed, written) if entry.speed else 1.0
        except FleetmarkError as error:
            source.fault(path, str(error))
            continue
        if entry.utilisation is not None:
            worth[workload] = replace(value, utilisation=entry.utilisation, reason=message("given"))
        elif written.slo is not None:
            try:
                used, reason = of_objective(written.slo, slots(entry, written, value.value, speed), speed)
                worth[workload] = replace(value, utilisation=used, reason=reason)
            except FleetmarkError as error:
                out[workload] = str(error)
        else:
            worth[workload] = value
    return Sku(
        name=name,
        worth=worth,
        out=out,
        has=stocked(name, doc, source, record),
        **terms.figures(name, names, years),
    )


def _lacks_gpus(sku: WrittenSku, workload: Written) -> str:
    """Return why the GPUs of a server do not suffice, or an empty string if they do."""
    if sku.gpus >= workload.gpus and (not workload.gpus or sku.gpu_memory >= workload.gpu_memory):
        return ""
    needed = f"{workload.gpus} GPUs of {workload.gpu_memory:g} GB" if workload.gpu_memory else f"{workload.gpus} GPUs"
    return f"it has {sku.gpus} GPUs of {sku.gpu_memory:g} GB, one unit needs {needed}"


def _workload(
    name: str,
    w: Written,
    names: list[str],
    years: float,
    source: Input,
    skus: Mapping[str, Sku],
    histories: dict[str, Expected],
    terms: Terms,
) -> Workload:
    """Return the workload; its forecast from a history is added to ``histories``."""
    path: Path = ("workloads", name, "demand")
    words: str = ""
    if w.demand.history is not None:
        past = expected(w.demand.history, name, names, source, (*path, "history"))
        point, sigma = (past.point, past.sigma) if past else ([0.0] * len(names), [0.0] * len(names))
        words = past.words if past else ""
        histories |= {name: past} if past else {}
    else:
        point, sigma = demand(w.demand, w.unit, names, years, source, path)
    least = min(
        (s.worth[name] for s in skus.values() if name in s.worth and s.worth[name].utilisation is not None),
        key=lambda worth: worth.utilisation or 0.0,
        default=None,
    )
    used, reason = (w.utilisation, message("given")) if least is None else (least.utilisation, least.reason)
    return Workload(
        name,
        w.unit,
        tuple(point),
        tuple(sigma),
        w.utilisation or used or 0.0,
        reason=message("given") if w.utilisation else reason,
        sites=frozenset(w.sites),
        dedicated=w.dedicated,
        availability=w.availability or "",
        gpus=w.gpus,
        gpu_memory=w.gpu_memory,
        forecast=words,
        pool=w.pool or "",
        needs={resource: need.value for resource, need in w.needs.items() if need.value},
        revenue=terms.money(w.revenue, ("workloads", name, "revenue")),
    )
