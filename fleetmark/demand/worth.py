"""Find the worth of one server of a SKU for a workload, from the input or from recorded comparisons."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.kinds import successors
from fleetmark.base.measurement import Better, Kind
from fleetmark.base.text import message
from fleetmark.demand.amounts import Quantity
from fleetmark.demand.keys.workload import Workload
from fleetmark.demand.keys.worth import Chosen, Compared, Measured, Pinned, Profile, Speed, Worth
from fleetmark.planner.capacity import sku as capacity
from fleetmark.planner.comparison import WORK_MIX
from fleetmark.planner.equivalence import Equivalence
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Ratio
from fleetmark.planner.review.origin import Origin
from fleetmark.planner.review.posterior import Measurement
from fleetmark.record import compare as comparing
from fleetmark.record import profiles as profiling
from fleetmark.record import references as reference
from fleetmark.record import select as selection
from fleetmark.record.compare import Answer
from fleetmark.record.machines import machines
from fleetmark.record.sides import side as side_of
from fleetmark.record.sides import some

_SERVERS = re.compile(r"(.+?)\s+(?:servers?|machines?|hosts?|nodes?)")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_RATE = re.compile(r"([kMGTP]?)(B/s|bit/s|FLOP/s)")
_BINARY = {"KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30, "TiB/s": 2.0**40}
_EVENTS = re.compile(r"(?:([kMGTP]) )?([^/]*)/(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def in_servers(unit: str) -> bool:
    """Return whether a demand is given in servers of a known machine."""
    return _SERVERS.fullmatch(unit) is not None


def base(unit: str) -> tuple[str, float] | None:
    """Return the base unit of a rate and its factor: ``GB/s`` is ("B/s", 1e9). ``k jobs/min`` is converted to "1/s".

    Return None for a unit that is not a rate.
    """
    if unit in _BINARY:
        return "B/s", _BINARY[unit]
    if match := _RATE.fullmatch(unit):
        return ("B/s", _PREFIX[match[1]] / 8) if match[2] == "bit/s" else (match[2], _PREFIX[match[1]])
    match = _EVENTS.fullmatch(unit)
    return ("1/s", _PREFIX[match[1] or ""] / _SECONDS[match[3]]) if match else None


@dataclass(slots=True)
class Record:
    """The record under ``root``; each comparison is computed once.

    ``campaigns`` lists the sources of worths, and ``warnings`` the warnings of the comparisons.
    """

    root: Path
    campaigns: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    _comparisons: dict[Any, Answer] = field(default_factory=dict)
    _machines: list[selection.Machine] | None = None

    def worth(self, worth: Worth, workload: Workload) -> capacity.Worth:
        """Return ``worth`` in the unit of ``workload``.

        Raise FleetmarkError if the units differ, or if the record lacks the worth.
        """
        if worth.value is not None:
            return _stated(worth, worth.value, workload.unit)
        if worth.measured is not None:
            return self._measured(worth.measured, workload.unit, worth.error)
        if worth.profile is not None:
            return self._profiled(worth.profile, workload)
        chosen = worth.compare or worth.reference
        assert chosen is not None
        if not _SERVERS.fullmatch(workload.unit):
            raise FleetmarkError(
                f"a comparison gives a worth in servers, but the demand is in {workload.unit}; use a "
                "measured worth, or write the demand in servers of the baseline (unit: icelake servers)"
            )
        if isinstance(chosen, Pinned):
            return self._compared(chosen, None, self._pinned(chosen.name, workload), worth.error)
        assert isinstance(chosen, Compared)
        return self._compared(chosen, _baseline(chosen, workload), None, worth.error)

    def speed(self, speed: Speed, workload: Workload) -> float:
        """Return the speed of one slot relative to the reference, a ratio of responsiveness. Raise the errors of
        ``worth``.
        """
        if speed.value is not None:
            return speed.value
        assert speed.compare is not None
        chosen = speed.compare
        return _quickness(self._answer(chosen, _baseline(chosen, workload), None), chosen)

    def _answer(self, chosen: Chosen, baseline: str | None, pinned: str | None) -> Answer:
        """Return a comparison from the record; it is computed only once."""
        only = (chosen.benchmark,) if chosen.benchmark else ()
        key = (baseline, pinned, chosen.candidate, only, chosen.mix)
        if key not in self._comparisons:
            question = comparing.Question(
                root=self.root,
                baseline=baseline,
                candidates=[chosen.candidate],
                reference=pinned,
                mix=chosen.mix,
                only=only,
            )
            self._comparisons[key] = comparing.compare(question)
            self._noted(self._comparisons[key])
        return self._comparisons[key]

    def _compared(
        self, chosen: Chosen, baseline: str | None, pinned: str | None, error: float | None
    ) -> capacity.Worth:
        answer = self._answer(chosen, baseline, pinned)
        ratio, name = _headline(answer, chosen)
        against = baseline or pinned or ""
        source = message(
            "compared with {baseline}: {candidate}, {what}", baseline=against, candidate=chosen.candidate, what=name
        )
        worth = _of_ratio(ratio, error, source, _of_class(answer, chosen))
        origin = Origin(
            chosen.candidate,
            baseline or "",
            pinned or "",
            chosen.class_ or "",
            chosen.benchmark or "",
            mix=comparing.inline_mix(chosen.mix) if chosen.mix else "",
            se=worth.se if ratio.log_error is None or ratio.of_repeats else ratio.log_error,
            df=ratio.df or math.inf,
            hosts=(ratio.n[0], ratio.n[1]),
        )
        return replace(worth, hosts=f"{chosen.candidate} / {against}", origin=origin)

    def delivered(self, origin: Origin, campaign: str) -> Measurement:
        """Return the worth of the servers in a campaign, measured in the same way as ``origin``.

        Raise FleetmarkError if the campaign does not measure it.
        """
        terms = [term for term in selection.parse(origin.select) if term.key not in ("host", "campaign")]
        mine = [machine for machine in self._all() if machine.campaign == campaign]
        if not any(all(term.matches(machine) for term in terms) for machine in mine):
            raise FleetmarkError(f"none of its hosts is {origin.select}; the delivered servers need the same labels")
        select = ",".join([*(f"{term.key}{term.operator}{term.value}" for term in terms), f"campaign={campaign}"])
        if not (origin.baseline or origin.pinned):
            title, _, logs = self._logs(Measured(select=select, benchmark=origin.benchmark))
            if len(logs) < 2:
                raise FleetmarkError(f"{title} comes from one host, so its error is unknown; measure at least two")
            se = float(logs.std(ddof=1)) / math.sqrt(len(logs))
            return Measurement(math.exp(float(logs.mean())) / origin.unit, se, len(logs) - 1.0, (0, len(logs)))
        chosen = Compared.model_validate(
            {"candidate": select}
            | {k: v for k, v in (("class", origin.class_), ("benchmark", origin.benchmark), ("mix", origin.mix)) if v}
        )
        answer = self._answer(chosen, origin.baseline or None, origin.pinned or None)
        ratio, _ = _headline(answer, chosen)
        if ratio.log_error is None or ratio.of_repeats:
            raise FleetmarkError(
                "it has one host, or its baseline has, so the ratio has no error; measure at least two"
            )
        of_class, df = _of_class(answer, chosen), ratio.df or math.inf
        workload = None if of_class is None or len(of_class.weights) < 2 else of_class.workload
        if workload is None or workload.log_error is None:
            return Measurement(ratio.value, ratio.log_error, df, (ratio.n[0], ratio.n[1]))
        spread = math.sqrt(max(workload.log_error**2 - ratio.log_error**2, 0.0))
        hosts, spread_df = (ratio.n[0], ratio.n[1]), workload.df or math.inf
        return Measurement(ratio.value, ratio.log_error, df, hosts, spread=spread, spread_df=spread_df)

    def _noted(self, answer: Answer) -> None:
        self.campaigns |= {m.campaign for machines in answer.machines.values() for m in machines}
        self.warnings += [w for w in answer.comparison.warnings if w not in self.warnings]

    def _pinned(self, name: str, workload: Workload) -> str:
        pinned = reference.load(self.root, name)
        version = f"{pinned.name}@{pinned.version}"
        if workload.reference is not None:
            is_match = workload.reference in (pinned.name, version)
        else:
            is_match = _named(workload.unit, pinned.selector) or _name(workload.unit).lower() in pinned.name.lower()
        if not is_match:
            raise _apart(version, workload)
        return version

    def rate(self, measured: Measured | None) -> Quantity:
        """Return a stored rate in its base unit: its geometric mean over hosts, reduced by one standard error.

        Raise the errors of ``worth``.
        """
        assert measured is not None
        _, unit, logs = self._logs(measured)
        error = float(logs.std(ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
        return Quantity(math.exp(float(logs.mean()) - error), "" if unit in ("1", "1/s") else unit)

    def _logs(self, measured: Measured) -> tuple[str, str, pd.Series[float]]:
        """Return the title and unit of a measured rate of whole servers, and its logarithms by host."""
        chosen = selection.choose(self._all(), measured.select)
        side = side_of(self.root, measured.select, chosen, only=[measured.benchmark])
        if len(side.benchmarks) != 1:
            titles = some(map(str, side.means))
            raise FleetmarkError(
                f"{measured.benchmark} is {len(side.benchmarks)} benchmarks of {measured.select}: {titles}; "
                "narrow it to one (workload/case/metric)"
            )
        title, benchmark = next(iter(side.benchmarks.to_dict("index").items()))
        if benchmark["better"] != Better.HIGHER:
            raise FleetmarkError(f"{title} is not a rate ({benchmark['unit']}, {benchmark['better']} is better)")
        if benchmark["kind"] != Kind.CAPACITY:
            raise FleetmarkError(f"{title} is {benchmark['kind']}, not capacity: use a rate of whole servers")
        self.campaigns |= {m.campaign for m in chosen}
        return str(title), str(benchmark["unit"]), side.means[title].dropna()

    def _measured(self, measured: Measured, unit: str, error: float | None) -> capacity.Worth:
        title, given, logs = self._logs(measured)
        demanded = base(unit)
        if demanded is None or demanded[0] != given:
            raise FleetmarkError(f"{title} is in {given}, the demand is in {unit}: they do not match")
        value = math.exp(float(logs.mean())) / demanded[1]
        se = float(logs.std(ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else error
        if se is None:
            raise FleetmarkError(f"{title} comes from one host; give its standard error (error: 5%) or measure another")
        source = message(
            "measured: {benchmark} of {machines}, {n} hosts", benchmark=title, machines=measured.select, n=len(logs)
        )
        df = float(len(logs) - 1) if len(logs) > 1 else math.inf
        origin = Origin(
            measured.select, benchmark=measured.benchmark, unit=demanded[1], se=se, df=df, hosts=(0, len(logs))
        )
        return capacity.Worth(value, se, df, source, hosts=measured.select, origin=origin)

    def _profiled(self, profile: Profile, workload: Workload) -> capacity.Worth:
        if _SERVERS.fullmatch(workload.unit):
            return profiling.worth(self.root, profile.name, profile.select, _baseline(profile, workload))
        unit, demanded = profiling.load(self.root, profile.name).unit, base(workload.unit)
        if demanded is None or demanded[0] != unit:
            raise FleetmarkError(
                f"profile {profile.name} is in {unit}, the demand is in {workload.unit}: they do not match"
            )
        worth = profiling.worth(self.root, profile.name, profile.select)
        return replace(worth, value=worth.value / demanded[1])

    def _all(self) -> Sequence[selection.Machine]:
        if self._machines is None:
            self._machines = machines(self.root)
        return self._machines


def _stated(worth: Worth, value: Quantity, unit: str) -> capacity.Worth:
    factor = _factor(value.unit, unit) if value.unit else 1.0
    estimate = Estimate(value.value, worth.lo, worth.hi, df=worth.df)
    df, hosts = worth.df or math.inf, worth.hosts or ""
    if estimate.log_error is None:
        return capacity.Worth(value.value * factor, worth.error or 0.0, df, message("given"), hosts=hosts)
    source = message("given, 95% interval {lo} to {hi}", lo=f"{estimate.lo:g}", hi=f"{estimate.hi:g}")
    return capacity.Worth(value.value * factor, estimate.log_error, df, source, hosts=hosts)


def _factor(written: str, demanded: str) -> float:
    """Return the number of ``demanded`` units in one ``written`` unit."""
    if written == demanded:
        return 1.0
    a, b = base(written), base(demanded)
    # Requests and transactions are different units.
    counted = {m[2] for u in (written, demanded) if (m := _EVENTS.fullmatch(u))}
    if a is None or b is None or a[0] != b[0] or (a[0] == "1/s" and len(counted) > 1):
        raise FleetmarkError(f"the worth is in {written}, the demand in {demanded}: they do not match")
    return a[1] / b[1]


def _of_ratio(ratio: Ratio, error: float | None, source: str, of_class: Equivalence | None) -> capacity.Worth:
    """Return the worth of a server by ``ratio``.

    If the chosen class (``of_class``) has several benchmarks, the error is that of another workload of the class.
    """
    if ratio.log_error is None or ratio.of_repeats:
        if error is None:
            raise FleetmarkError(
                f"{source}: there is one host per side, so {ratio.value:.3g} has no error; measure another, or give "
                "its standard error (error: 5%)"
            )
        return capacity.Worth(ratio.value, error, math.inf, source)
    if error is not None:
        raise FleetmarkError(f"{source} has its own interval: remove error")
    hosts = message("{source}; {a}+{b} hosts", source=source, a=ratio.n[0], b=ratio.n[1])
    if of_class is None or len(of_class.weights) < 2:
        return capacity.Worth(ratio.value, ratio.log_error, ratio.df or math.inf, hosts)
    workload = of_class.workload
    if workload is None or workload.log_error is None:
        raise FleetmarkError(
            f"{source}: its {len(of_class.weights)} benchmarks cannot predict your workload's gain "
            f"({of_class.workload_why}); name the most similar one (benchmark: …), a mix of them (mix: …), or "
            "measure more of that class"
        )
    hosts = message("{source}, which covers a workload like its benchmarks", source=hosts)
    return capacity.Worth(ratio.value, workload.log_error, workload.df or math.inf, hosts)


def _of_class(answer: Answer, chosen: Chosen) -> Equivalence | None:
    """Return the chosen class, or None for a benchmark or a mix, which already describe the work."""
    return answer.comparison.candidates[0].classes[chosen.class_] if chosen.class_ else None


def _headline(answer: Answer, chosen: Chosen) -> tuple[Ratio, str]:
    """Return the chosen ratio and its name. Raise FleetmarkError if there is none, or if it is not a capacity ratio."""
    classes = answer.comparison.candidates[0].classes
    work = [n for n in classes if answer.comparison.kind(n) == Kind.CAPACITY]
    name = chosen.class_ or WORK_MIX
    if chosen.benchmark:
        measured = [n for n, e in classes.items() if e.each]
        if len(measured) > 1:
            raise FleetmarkError(f"{chosen.benchmark} matches several classes ({', '.join(measured)}); choose one")
        if not measured:
            raise FleetmarkError(f"{chosen.benchmark} is a guardrail, not capacity; choose a benchmark of capacity")
        name = measured[0]
    if name not in classes:
        raise FleetmarkError(
            successors(name)
            or f"no class {name!r}{suggest(name, work)} in common; there are {', '.join(work) or 'none of capacity'}"
        )
    if name not in work:
        choices = f"name one of capacity ({', '.join(work)})" if work else "measure one of capacity, such as cpu-int"
        raise FleetmarkError(
            f"{chosen.benchmark or name} is {answer.comparison.kind(name)}, which is not worth servers: {choices}"
        )
    ratio = classes[name].headline
    if ratio is None:
        raise FleetmarkError(f"{chosen.candidate}, {name}: no ratio: {classes[name].reason}")
    return ratio, chosen.benchmark or (f"mix {chosen.mix}" if chosen.mix else name)


def _quickness(answer: Answer, chosen: Chosen) -> float:
    """Return the chosen ratio of responsiveness. Raise FleetmarkError if there is none."""
    classes = answer.comparison.candidates[0].classes
    quick = [n for n in classes if answer.comparison.kind(n) == Kind.RESPONSIVENESS]
    names = [n for n in quick if n == chosen.class_ or (chosen.benchmark and classes[n].each)]
    if len(names) != 1:
        raise FleetmarkError(
            f"{chosen.class_ or chosen.benchmark or chosen.mix} does not measure the speed of one slot; choose a "
            f"class or benchmark of responsiveness; there are {', '.join(quick) or 'none'}"
        )
    ratio = classes[names[0]].headline
    if ratio is None:
        raise FleetmarkError(f"{chosen.candidate}, {names[0]}: no ratio: {classes[names[0]].reason}")
    return ratio.value


def _baseline(chosen: Compared | Profile, workload: Workload) -> str:
    baseline = chosen.baseline or workload.reference
    if baseline is None:
        raise FleetmarkError(
            f"the comparison has no baseline: the demand is in {workload.unit}, so set these machines as the "
            "reference of the workload (reference: gen=icelake)"
        )
    if workload.reference is not None and baseline != workload.reference:
        raise _apart(baseline, workload)
    if workload.reference is None and not _named(workload.unit, baseline):
        raise _apart(baseline, workload)
    return baseline


def _apart(baseline: str, workload: Workload) -> FleetmarkError:
    meant = f" ({workload.reference})" if workload.reference else ""
    hint = "" if workload.reference else "; if they are the same machines, set the workload's reference"
    return FleetmarkError(f"the worth is in servers of {baseline}, the demand in {workload.unit}{meant}{hint}")


def _name(unit: str) -> str:
    match = _SERVERS.fullmatch(unit)
    return match[1] if match else unit


def _named(unit: str, selector: str) -> bool:
    """Return whether a unit such as ``icelake servers`` names the machines that ``gen=icelake`` selects."""
    return any(
        term.operator == "=" and fnmatch.fnmatchcase(_name(unit).lower(), term.value.lower())
        for term in selection.parse(selector)
    )
