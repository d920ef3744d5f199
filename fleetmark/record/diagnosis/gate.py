"""Check a campaign against acceptance rules from YAML. Rule files never run as code."""

from __future__ import annotations

import difflib
import fnmatch
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator

from fleetmark.base import schema
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Better
from fleetmark.base.units import parse_quantity
from fleetmark.planner import peak
from fleetmark.planner.diagnosis import gate
from fleetmark.planner.diagnosis.cohorts import cohorts
from fleetmark.planner.diagnosis.outliers import LEAST
from fleetmark.planner.diagnosis.specification import FACTS, Scalar, Specification, memory_rate, states_memory
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import facts_gate, kind_at
from fleetmark.record.diagnosis.facts_gate import FactBounds, check_fact, scalar
from fleetmark.record.diagnosis.table import title
from fleetmark.record.figures.hosts import METRIC, per_host
from fleetmark.record.select import Machine, choose, parse, within
from fleetmark.record.values import PASSED, Values
from fleetmark.record.values.engine import one_of
from fleetmark.record.view import read_values
from fleetmark.workloads import declared
from fleetmark.workloads.manifest import HERE, read_model

Amount = str | int | float
SHIPPED = HERE / "rules"
_Key = tuple[str, ...]  # the KEY columns of a benchmark
OF_FACTS = ("above", "below", "equals", "one_of", "none_of")  # bounds for facts only


def shipped() -> list[str]:
    """Return the sorted names of the rules that come with Fleetmark."""
    return sorted(path.stem for path in SHIPPED.glob("*.yml"))


class RuleText(BaseModel, defer_build=True):
    """Validate one rule.

    ``metric``: shell-style patterns over workload/case/metric, or ``fact``: the name of a fact; ``hosts``: a selector.
    For a fact, ``one_of`` and ``none_of`` are the allowed and the forbidden values, ``equals`` is the only allowed
    value, and ``above`` and ``below`` are exclusive limits.
    """

    RENAMED: ClassVar = {"of": "reference"}
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    metric: str = ""
    fact: str | None = None
    one_of: tuple[Amount, ...] = Field(default=(), max_length=100)
    none_of: tuple[Amount, ...] = Field(default=(), max_length=100)
    equals: Amount | None = None
    above: Amount | None = None
    below: Amount | None = None
    hosts: str | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    reference: Literal["cohort", "peak"] | Amount | None = None  # the base of a share in at_least or at_most
    within: Amount | None = None  # maximum distance from the cohort's median in the worse direction
    repeats: int = Field(default=1, ge=1)
    severity: gate.Severity = gate.Severity.FAIL

    @field_validator("name")
    @classmethod
    def _named(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("is empty; name at least one")
        return text


class MachineText(BaseModel, defer_build=True):
    """Validate the required facts of one kind of machine. ``hosts``: the selector of its hosts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: str
    machine: dict[str, Amount] = Field(min_length=1, max_length=100)


class Rules(BaseModel, defer_build=True):
    """Validate a rule file."""

    RENAMED: ClassVar = {"about": "description"}
    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    machine: dict[str, Amount] = Field(default={}, max_length=100)  # minimum facts of hosts without their own entry
    machines: tuple[MachineText, ...] = Field(default=(), max_length=100)  # minimum facts, by kind of machine
    rules: tuple[RuleText, ...] = Field(default=(), max_length=1_000)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The results of checking a campaign against rules."""

    campaign: str
    rules: str  # the file's name
    results: tuple[gate.Result, ...]

    @property
    def accepted(self) -> bool:
        """Return whether the campaign meets every mandatory rule."""
        return gate.accepted(self.results)


def read_rules(path: Path) -> Rules:
    """Return the rules in a file, or the built-in rules with that name (``acceptance``).

    Raise FleetmarkError with the file, the rule and the problem if a rule is invalid.
    """
    rules = read_model(SHIPPED / f"{path}.yml" if str(path) in shipped() else path, Rules)
    check_rules(rules, path)
    return rules


def check_rules(rules: Rules, path: Path) -> None:
    """Raise FleetmarkError with the file, the rule and the problem if a rule is invalid."""
    if not rules.rules and not rules.machine and not rules.machines:
        raise FleetmarkError(f"{path}: rules: is empty; add at least one, or machine:")
    for place, facts in _titled(rules):
        try:
            _base_units(facts)
        except FleetmarkError as error:
            raise FleetmarkError(f"{path}: {place}: {error}") from error
    for entry in rules.machines:
        try:
            parse(entry.hosts)
        except FleetmarkError as error:
            raise FleetmarkError(f"{path}: machines: {error}") from error
    names = [r.name for r in rules.rules]
    for rule in rules.rules:
        if names.count(rule.name) > 1:
            raise FleetmarkError(f"{path}: two rules are named {rule.name!r}; rename one of them")
        try:
            _check(rule)
        except FleetmarkError as error:
            raise FleetmarkError(f"{path}: rule {rule.name!r}: {error}") from error


def _titled(rules: Rules) -> Iterator[tuple[str, Mapping[str, Amount]]]:
    """Yield the required facts of each kind of machine, with their place in the file."""
    yield "machine", rules.machine
    for entry in rules.machines:
        yield f"machines: {entry.hosts}", entry.machine


def _base_units(facts: Mapping[str, Amount]) -> dict[str, Scalar]:
    """Return the required facts in base units. Raise FleetmarkError for an unknown fact or unit."""
    return {name: scalar(name, amount) for name, amount in facts.items()}


def _specifications(rules: Rules, machines: Sequence[Machine], file: str) -> dict[str, Specification | None]:
    """Return the required facts of each host: those of its entry in ``machines``, or else those in ``machine``.

    None: there are entries, but none selects the host. Raise FleetmarkError if two entries select a host.
    """
    default = _base_units(rules.machine) if rules.machine or not rules.machines else None
    result: dict[str, Specification | None] = {m.host: default for m in machines}
    selected: dict[str, str] = {}
    for entry in rules.machines:
        terms = parse(entry.hosts)
        for machine in (m for m in machines if all(term.matches(m) for term in terms)):
            if (other := selected.setdefault(machine.host, entry.hosts)) is not entry.hosts:
                raise FleetmarkError(
                    f"{file}: machines: {other!r} and {entry.hosts!r} both select {machine.host}; narrow one of them"
                )
            result[machine.host] = _base_units(entry.machine)
    return result


def _check(rule: RuleText) -> None:
    """Raise FleetmarkError if a rule has neither a metric nor a fact, has both, or has no bound."""
    if bool(rule.metric.strip()) == bool(rule.fact):
        raise FleetmarkError("name either a metric or a fact")
    if rule.fact is None:
        if given := next((key for key in OF_FACTS if getattr(rule, key) not in (None, ())), None):
            raise FleetmarkError(f"{given}: is only valid for a fact")
        _bounds(rule, higher=True)
        return
    bounds = _fact_bounds(rule, check_fact(rule.fact))
    limits = (bounds.at_least, bounds.at_most, bounds.above, bounds.below)
    if not FACTS[rule.fact][0] and any(limit is not None for limit in limits):
        raise FleetmarkError(f"fact {rule.fact}: is text; use one_of, none_of or equals")
    if rule.within is not None or rule.reference is not None:
        raise FleetmarkError("within and reference: are only valid for a metric")
    if bounds == FactBounds():
        raise FleetmarkError(f"needs a bound: at_least, at_most, {', '.join(OF_FACTS[:-1])} or {OF_FACTS[-1]}")


def _fact_bounds(rule: RuleText, name: str) -> FactBounds:
    """Return the bounds of a rule on a fact, in its base unit. Raise FleetmarkError for another unit."""
    limits = {
        key: scalar(name, amount)
        for key in ("at_least", "at_most", "above", "below")
        if (amount := getattr(rule, key)) is not None
    }
    equal = () if rule.equals is None else (rule.equals,)
    one_of, none_of = (
        tuple(scalar(name, amount) for amount in amounts) for amounts in ((*rule.one_of, *equal), rule.none_of)
    )
    return FactBounds(**limits, one_of=one_of, none_of=none_of)


def _bounds(rule: RuleText, *, higher: bool) -> tuple[gate.Bound, ...]:
    """Return the bounds of a rule for a metric. ``higher``: whether higher values are better."""
    bounds = []
    if rule.within is not None:
        if rule.reference not in (None, "cohort") or rule.at_least is not None or rule.at_most is not None:
            raise FleetmarkError("within: refers to the cohort's median; remove the other bounds")
        share = _share(rule.within, "within")
        bounds.append(gate.Bound(1 - share if higher else 1 / (1 - share), "", higher, of_peers=True))
    for amount, least in ((rule.at_least, True), (rule.at_most, False)):
        if amount is None:
            continue
        if rule.reference is None:
            bounds.append(gate.Bound(*parse_quantity(amount), least=least))
        elif rule.reference == "peak":
            bounds.append(gate.Bound(_share(amount, "reference: peak"), "", least, of_peak=True))
        elif rule.reference == "cohort":
            bounds.append(gate.Bound(_share(amount, "reference: cohort"), "", least, of_peers=True))
        else:
            full, unit = parse_quantity(rule.reference)
            bounds.append(gate.Bound(_share(amount, "reference") * full, unit, least))
    if not bounds:
        raise FleetmarkError("needs a bound: at_least, at_most or within")
    return tuple(bounds)


def _share(amount: Amount, key: str) -> float:
    value, unit = parse_quantity(amount)
    if unit != "1" or not 0 < value < 10:
        raise FleetmarkError(f"{key}: {amount} is not a share; write 90% or 0.9")
    return value


def hold(archive: Archive, rules: Rules, file: str, only: str | None = None) -> Acceptance:
    """Check a campaign against ``rules``. ``only``: the hosts to check, in the form of ``--limit``.

    Raise FleetmarkError if the selector matches no host, or if the campaign's measurements are damaged.
    """
    listed = archive.campaign()["hosts"]
    machines = [
        Machine(archive.id, str(h["name"]), h.get("labels") or {}, cache(partial(_facts, archive, str(h["name"]))))
        for h in listed
    ]
    if only is not None:
        machines = within(machines, only)
    values = read_values(archive)
    measured = per_host(values).frame
    by_host: dict[str, pd.DataFrame] = {str(h): rows for h, rows in measured.groupby("host", observed=True)}
    peers = _peers(archive, listed)
    facts = {m.host: m.facts for m in machines}
    specifications = _specifications(rules, machines, file)
    results: list[gate.Result] = [r for m in machines for r in _machine(specifications[m.host], m.host, facts)]
    warnings: dict[str, gate.Result] = {}
    for rule in rules.rules:
        try:
            chosen = choose(machines, rule.hosts) if rule.hosts else machines
        except FleetmarkError as error:
            raise FleetmarkError(f"{file}: rule {rule.name!r}: {error}") from error
        if rule.fact is not None:
            bounds = _fact_bounds(rule, rule.fact)
            results += facts_gate.held(rule.name, rule.fact, rule.severity, [m.host for m in chosen], facts, bounds)
        else:
            hosts = [m.host for m in chosen]
            results += _held(rule, hosts, by_host, peers, facts, specifications)
            if rule.reference == "peak":
                results += _slow_ports(rule, hosts, by_host, facts, specifications)
                warnings = _unstated(rule, hosts, by_host, facts, specifications) | warnings
    return Acceptance(archive.id, file, tuple(_with_evidence([*results, *warnings.values()], values)))


def _unstated(
    rule: RuleText,
    hosts: Sequence[str],
    by_host: Mapping[str, pd.DataFrame],
    facts: Mapping[str, Callable[[], Facts | None]],
    specifications: Mapping[str, Specification | None],
) -> dict[str, gate.Result]:
    """Return a warning by host if the rule compares its memory with a peak and nothing states its full memory."""
    warnings: dict[str, gate.Result] = {}
    for host in hosts:
        known = facts[host]()
        if known is None or not known.dimms or states_memory(known, specifications[host] or {}) or host not in by_host:
            continue
        if key := _limited_by("memory", rule, by_host[host]):
            warnings[host] = gate.Result(
                "machine: memory.modules",
                gate.Severity.WARN,
                host,
                title(dict(zip(METRIC, key, strict=True))),
                gate.CheckVerdict.MISSING,
                reason=gate.SPECIFICATION,
            )
    return warnings


def _limited_by(part: str, rule: RuleText, rows: pd.DataFrame) -> _Key | None:
    """Return the first of a host's benchmarks that a rule names and that this part of the machine limits."""
    keys = _named(rule.metric, rows)
    return next((key for key in keys if (held := declared.peak(*key[:_TRIPLE])) and held.part == part), None)


def _slow_ports(
    rule: RuleText,
    hosts: Sequence[str],
    by_host: Mapping[str, pd.DataFrame],
    facts: Mapping[str, Callable[[], Facts | None]],
    specifications: Mapping[str, Specification | None],
) -> Iterator[gate.Result]:
    """Yield a failure for each host whose fastest port runs below the rule's share of the speed that it supports.

    Rates between two hosts are compared with the slower port, so the partners of such a host do not fail.
    """
    if rule.at_least is None:
        return
    share = _share(rule.at_least, "reference: peak")
    for host in hosts:
        known = facts[host]() if host in by_host and "port.rate" not in (specifications[host] or {}) else None
        port = next(iter(peak.top_ports(known)), None) if known else None
        if port is None or port.speed is None or port.max_speed is None or port.speed >= share * port.max_speed:
            continue
        if _limited_by("link", rule, by_host[host]):
            yield gate.Result(
                rule.name,
                rule.severity,
                host,
                f"port {port.name}",
                gate.CheckVerdict.FAILED,
                value=port.speed,
                limit=port.max_speed,
                unit="B/s",
                reason=gate.PORT,
                bits=True,
            )


def _machine(
    specification: Specification | None, host: str, facts: Mapping[str, Callable[[], Facts | None]]
) -> list[gate.Result]:
    """Check a host against its specification: numbers are minimums, and texts must be equal."""
    if specification is None:
        fail = gate.Severity.FAIL
        return [gate.Result("machines", fail, host, "", gate.CheckVerdict.MISSING, reason=gate.MACHINE)]
    results: list[gate.Result] = []
    for name, value in specification.items():
        if name == "memory.channels":  # describes the processor; used only for the peak
            continue
        title = f"machine: {name}"
        bounds = FactBounds(one_of=(value,)) if isinstance(value, str) else FactBounds(at_least=value)
        results += facts_gate.held(title, name, gate.Severity.FAIL, [host], facts, bounds)
    return results


def _with_evidence(results: Sequence[gate.Result], values: Values) -> Iterator[gate.Result]:
    """Yield the results. Add the raw file of the worst repeat to each violated rule."""
    hosts = {r.host for r in results if r.verdict is gate.CheckVerdict.FAILED}
    runs_by_host: dict[str, dict[str, list[tuple[float, str]]]] = {}
    passed = values.select(f"{PASSED} and {one_of('host', sorted(hosts))}") if hosts else schema.frame()
    for row in passed[[*METRIC, "host", "value", "raw"]].to_dict("records"):
        benchmark = title({name: str(row[name]) for name in METRIC})
        runs = runs_by_host.setdefault(str(row["host"]), {}).setdefault(benchmark, [])
        runs.append((float(row["value"]), str(row["raw"])))
    for r in results:
        runs = runs_by_host.get(r.host, {}).get(r.benchmark, []) if r.verdict is gate.CheckVerdict.FAILED else []
        worst = (min if r.least else max)(runs, default=(0.0, ""))
        yield replace(r, evidence=worst[1])


def _facts(archive: Archive, host: str) -> Facts | None:
    return archive.facts_of(host)


def _peers(archive: Archive, listed: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return the hosts of each host's cohort, including the host itself."""
    kinds = {str(h["name"]): kind_at(archive, str(h["name"]), (h.get("labels") or {}).get("gen") or "") for h in listed}
    return {host: cohort.peers for cohort in cohorts(kinds, LEAST) for host in cohort.hosts}


_PAIR = 2
_TRIPLE = 3  # workload, case, metric


def _held(
    rule: RuleText,
    hosts: Sequence[str],
    by_host: Mapping[str, pd.DataFrame],
    peers: Mapping[str, tuple[str, ...]],
    facts: Mapping[str, Callable[[], Facts | None]],
    specifications: Mapping[str, Specification | None],
) -> list[gate.Result]:
    """Apply a rule to ``hosts``. A host fails if it lacks a workload, case and metric that another one measured."""
    named = {host: _named(rule.metric, rows) for host, rows in by_host.items()}
    alike: dict[_Key, list[tuple[str, _Key, float]]] = {}
    for host, figures_of in named.items():
        for key, row in figures_of.items():
            alike.setdefault(_unpaired(key), []).append((host, key, float(row["value"])))
    near = "" if any(named.values()) else _near(rule.metric, by_host)
    expected = dict.fromkeys(key[:_TRIPLE] for host in hosts for key in named.get(host, {}))
    results = []
    for host in hosts:
        rows_of_host = named.get(host, {})
        if not rows_of_host:
            results.append(gate.missing(rule.name, rule.severity, host, rule.metric, near))
        by_side: dict[bool, list[gate.Value]] = {True: [], False: []}
        for key, row in rows_of_host.items():
            others = [v for h, k, v in alike[_unpaired(key)] if (h, k) != (host, key) and h in peers.get(host, ())]
            higher = row["better"] != Better.LOWER.value
            named_so = title(dict(zip(METRIC, key, strict=True)))
            value = gate.Value(
                named_so,
                float(row["value"]),
                str(row["unit"]),
                int(row["n"]),
                higher,
                peers=others,
                peak=_peak(row, host, facts, specifications[host] or {}) if rule.reference == "peak" else None,
                bits=bool(row["bits"]),
                percent=bool(row["percent"]),
            )
            by_side[higher].append(value)
        for higher, values in by_side.items():
            if values:
                ready = gate.Rule(rule.name, _bounds(rule, higher=higher), rule.severity, rule.repeats, LEAST)
                results += gate.judge(ready, {host: values})
        lacking = [key for key in expected if rows_of_host and key not in {k[:_TRIPLE] for k in rows_of_host}]
        results += [gate.missing(rule.name, rule.severity, host, " ".join(key)) for key in lacking]
    return results


def _near(pattern: str, by_host: Mapping[str, pd.DataFrame]) -> str:
    """Return a suggestion for a pattern that matches nothing: the measured benchmark with the nearest name."""
    names = {"/".join(key) for rows in by_host.values() for key in rows[[*METRIC[:_TRIPLE]]].itertuples(index=False)}
    return next(iter(difflib.get_close_matches(pattern, sorted(names), 1)), "")


def _peak(
    row: Mapping[Any, Any], host: str, facts: Mapping[str, Callable[[], Facts | None]], machine: Specification
) -> float | None:
    """Return the theoretical peak of the full ``machine``, or of a pair's link, for a metric; None if it is unknown.

    Memory is assumed to have a module in every channel, and a link to have the specified rate of a port.
    """
    held = declared.peak(str(row["workload"]), str(row["case"]), str(row["metric"]))
    if held is None:
        return None
    ends = str(row["subject"]).split(">") if held.part == "link" else [host]
    if held.part == "link" and "port.rate" in machine:
        return float(machine["port.rate"]) / held.traffic
    known = [facts_of_end for end in ends if end in facts and (facts_of_end := facts[end]()) is not None]
    if held.part == "memory":
        rate = memory_rate(known[0], machine) if known else None
        return rate / held.traffic if rate else None
    if held.part != "link":
        labels = json.loads(str(row["labels"])) if held.part == "ends" else {}
        component = peak.between(labels.get("from", ""), labels.get("to", "")) if held.part == "ends" else held.part
        top = peak.component_peak(known[0], component, held.peak_name(str(row["case"]))) if known else None
    else:
        top = peak.link(*known) if len(known) == len(ends) == _PAIR else None
    return top.rate / held.traffic if top else None


def _unpaired(key: _Key) -> _Key:
    """Return the key without the hosts of a pair, because pairs are compared with pairs."""
    subject = METRIC.index("subject")
    return (*key[:subject], "pairs", *key[subject + 1 :]) if ">" in key[subject] else key


def _named(pattern: str, rows: pd.DataFrame) -> dict[_Key, dict[Any, Any]]:
    """Return a host's rows that match ``pattern``, by their key."""
    return {
        tuple(str(row[name]) for name in METRIC): row
        for row in rows.to_dict("records")
        if fnmatch.fnmatchcase(f"{row['workload']}/{row['case']}/{row['metric']}", pattern)
    }
