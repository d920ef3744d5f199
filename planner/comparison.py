"""Compare candidates with a baseline class by class: the comparable figures, the reasons for omissions, and warnings.

All figures of a class are of one kind. Capacity answers "one machine replaces N"; only capacity can be divided by cores
or watts and mixed. Responsiveness answers "x times as fast". Guardrails are kept or broken, and are not part of any
headline.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.kinds import SPEED, kind_of_class
from fleetmark.base.measurement import Better, Kind
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.contrast import Pairing, Repeats
from fleetmark.planner.equivalence import Basis, Equivalence, compare
from fleetmark.planner.fieller import Fieller, fieller
from fleetmark.planner.guardrail import Groups, Guardrail, guardrail, judged_together
from fleetmark.planner.mix import shares_of
from fleetmark.planner.ratio import among
from fleetmark.planner.redundant import families
from fleetmark.planner.totals import totalled

CLASH = ("units clash", "directions clash")  # prefixes of reasons for figures that cannot be compared
APART = 4  # minimum size ratio of figures that measure different things, such as cache and memory
_OF_CLASSES = (Kind.CAPACITY, Kind.RESPONSIVENESS)
WORK_MIX = "work mix"  # the class of a comparison over the user's mix


@dataclass(frozen=True, slots=True)
class Side:
    """The machines of one side.

    - ``title``: the selector that chose the machines
    - ``means``: oriented natural logs, one row per machine and one column per benchmark title; NaN if not measured
    - ``benchmarks``: one row per title with workload, case, metric, unit, better, class, kind and standing; smallest
      and largest give the range of sizes if the title names no size; limit is the guardrail's limit (NaN if it has
      none); quantity is the same for redundant benchmarks
    - ``shared``: ``means`` with capacity divided by each machine's number of units (cores, watts); None for whole
      servers
    - ``inferred``: True if the record lacks kinds, so that they were inferred from class, unit and direction
    - ``traits``: facts about the origin of the figures (round, division, availability), each with its values
    - ``notes``: one sentence for each omission
    - ``failed``: the outcome by ``workload case``, for cases in which every run failed
    - ``limited``: the failed cases that missed a limit, such as a latency
    - ``groups``: one row per machine, with its batch, rack, bios and microcode as columns
    - ``count``: the number of values behind the means
    - ``values``: the individual values, if requested and few. Its columns are ``title``, ``host`` (the row in
      ``means``), ``part`` (a recorded host or a pair of hosts), ``centre`` (the average that the part belongs to),
      ``rule`` (how part and centre are averaged) and ``per`` (the log of the number of units). Each mean is the mean
      log of its centres
    - ``repeats``: the precision of each mean, estimated from its repeats
    - ``machines``: the row in ``means`` of each machine (``record``) that has a ``title``, and the amount by which
      its capacity is divided
    """

    title: str
    means: pd.DataFrame
    benchmarks: pd.DataFrame
    shared: pd.DataFrame | None = None
    traits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _: KW_ONLY
    notes: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    limited: Container[str] = ()
    count: int = 0
    values: pd.DataFrame | None = None
    inferred: bool = False
    repeats: Repeats | None = None
    groups: pd.DataFrame | None = None
    machines: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The comparison of one candidate with the baseline.

    It has the equivalence of each class, the reason for each title that is not compared, and the ``guardrails`` by
    title. ``standing`` gives, by compared title, the status of each side's figures, such as official or unofficial.
    """

    title: str
    classes: Mapping[str, Equivalence]
    excluded: Mapping[str, str]
    standing: Mapping[str, str]
    guardrails: Mapping[str, Guardrail] = field(default_factory=dict)
    arithmetic: Mapping[str, Fieller] = field(default_factory=dict)


@dataclass(kw_only=True, frozen=True, slots=True)
class Comparison:
    """The result of ``fleetmark compare``.

    - ``per``: the unit of comparison: server, core, gpu, ...
    - ``benchmarks``: the benchmarks of all sides, as in Side
    - ``figures``: by side and benchmark title, the geometric mean over machines, in base units per whole server
    - ``panel``: the benchmarks that headlines cover, if the user named them
    - ``grouped``: by side, a description of its members if they are not single machines (all machines of a vendor)
    - ``credits``: statements that publishers require next to their results
    - ``called``: by class, the display name of a class that contains only one micro-benchmark
    """

    baseline: str
    candidates: Sequence[Candidate]
    per: str
    pairing: Pairing
    benchmarks: pd.DataFrame
    figures: Mapping[str, Mapping[str, float]]
    warnings: Sequence[str]
    notes: Sequence[str]
    panel: Sequence[str] | None = None
    grouped: Mapping[str, str] = field(default_factory=dict)
    credits: Sequence[str] = ()
    called: Mapping[str, str] = field(default_factory=dict)

    def kind(self, class_: str) -> str:
        """Return the kind of the figures in a class; a mix is capacity."""
        kinds = zip(self.benchmarks["class"].tolist(), self.benchmarks["kind"].tolist(), strict=True)
        return next((str(kind) for name, kind in kinds if name == class_ and kind in _OF_CLASSES), Kind.CAPACITY.value)


INFERRED = message(
    "Some kinds of figures are inferred, because the record does not declare them. `fleetmark rebuild CAMPAIGN` "
    "declares the kinds of a campaign, a column kind those of a table, and a new import those of a published table."
)


def compare_sides(
    baseline: Side,
    candidates: Sequence[Side],
    *,
    per: str = "server",
    mix: Mapping[str, float] | None = None,
    machines: pd.DataFrame | None = None,
    weights: Mapping[str, float] | None = None,
    panel: Sequence[str] | None = None,
    pairing: Pairing = Pairing.APART,
    served: bool = False,
) -> Comparison:
    """Compare every candidate with ``baseline``.

    - ``panel``: the titles that headlines cover; by default, all titles measured on both sides
    - ``mix``: the share of server-hours by class, title or shell-style pattern of titles
    - ``machines``: as in equivalence.compare
    - ``weights``: pinned weights by title (from a reference), used instead of clustering
    - ``served``: True if capacity is also compared at equal service, so that it may be missing here

    Raise FleetmarkError if a mix entry matches nothing, if the mix does not sum to 1, or if the sides have no benchmark
    in common.
    """
    sides = [baseline, *candidates]
    benchmarks = pd.concat([s.benchmarks for s in sides])
    standings = benchmarks["standing"].groupby(level=0).agg(_words)
    benchmarks = benchmarks[~benchmarks.index.duplicated()].sort_index()
    benchmarks["standing"] = standings
    benchmarks["class"] = _of_one_kind(benchmarks)
    shared = {str(t) for t in baseline.means if all(t in c.means for c in candidates)}
    shares = shares_of(mix, benchmarks, shared) if mix else None
    results = [_candidate(baseline, c, benchmarks, shares, machines, weights, panel, pairing) for c in candidates]
    held = any(g.held is not None for c in results for g in c.guardrails.values())
    if not held and not any(e.each for c in results for e in c.classes.values()):
        raise FleetmarkError(_nothing_shared(baseline, candidates, results))
    if per != "server" and not served:
        _check_shared_out(per, benchmarks, results)
    warnings = [w for c in candidates for w in _warnings(baseline, c, pairing)]
    notes: list[str] = [message("{side}: {note}", side=s.title, note=n) for s in sides for n in s.notes] + [
        n for c in candidates for n in _sizes(baseline, c)[1]
    ]
    notes += [INFERRED] if any(s.inferred for s in sides) else []
    figures = {s.title: _figures(s) for s in sides}
    warnings = list(dict.fromkeys(warnings))
    return Comparison(
        baseline=baseline.title,
        candidates=results,
        per=per,
        pairing=pairing,
        benchmarks=benchmarks,
        figures=figures,
        warnings=warnings,
        notes=notes,
        panel=panel,
    )


def _figures(side: Side) -> dict[str, float]:
    """Return the geometric mean of each benchmark over the machines of a side."""
    lower = set(side.benchmarks.index[side.benchmarks["better"] == Better.LOWER])
    return {str(t): float(np.exp(-m if t in lower else m)) for t, m in side.means.mean().items()}


def _candidate(
    a: Side,
    b: Side,
    benchmarks: pd.DataFrame,
    shares: Mapping[str, float] | None,
    machines: pd.DataFrame | None,
    weights: Mapping[str, float] | None,
    panel: Sequence[str] | None,
    pairing: Pairing,
) -> Candidate:
    excluded = _clashes(a, b)
    means_a, means_b = (
        (s.means if s.shared is None else s.shared).drop(columns=list(excluded), errors="ignore") for s in (a, b)
    )
    classes, repeats = {}, (a.repeats, b.repeats)
    quantity = {str(t): str(q) for t, q in benchmarks["quantity"].items() if q}
    family = families(benchmarks)
    groups = (a.groups, b.groups)
    scored = benchmarks[_in_classes(benchmarks)]
    for name in sorted(scored["class"].unique()):
        titles = scored.index[scored["class"] == name]
        x, y = (side[[t for t in titles if t in side]] for side in (means_a, means_b))
        if (x.empty and y.empty) or not (len(x.columns) or len(y.columns)):
            continue
        pinned = {t: w for t, w in (weights or {}).items() if t in titles} or None
        of_class = None if machines is None else machines.reindex(columns=[t for t in titles if t in machines])
        named = None if panel is None else [t for t in panel if t in titles]
        classes[name] = compare(
            x,
            y,
            weights=pinned,
            panel=named,
            machines=of_class,
            quantity=quantity,
            pairing=pairing,
            repeats=repeats,
            family=family,
            groups=groups,
        )
    if shares:
        work = benchmarks.index[benchmarks["kind"] == Kind.CAPACITY]
        x, y = (side[[t for t in work if t in side]] for side in (means_a, means_b))
        classes[WORK_MIX] = compare(x, y, mix=shares, pairing=pairing, repeats=repeats, groups=groups)
    if a.shared is None and b.shared is None:
        capacity = set(benchmarks.loc[benchmarks["kind"] == Kind.CAPACITY, "class"]) | {WORK_MIX}
        classes |= {name: totalled(e, means_a, means_b, pairing) for name, e in classes.items() if name in capacity}
    classes = among_many(classes)
    explained = {name: replace(e, left_out=_explained(e.left_out, benchmarks, a, b)) for name, e in classes.items()}
    standing = pd.concat([s.benchmarks["standing"] for s in (a, b)]).groupby(level=0).agg(_words)
    guards = _guardrails(benchmarks, means_a, means_b, pairing, groups)
    raw = {} if pairing is not Pairing.APART else _arithmetic(classes, benchmarks, means_a, means_b)
    return Candidate(
        title=b.title,
        classes=explained,
        excluded=excluded,
        standing={str(t): str(s) for t, s in standing.items()},
        guardrails=guards,
        arithmetic=raw,
    )


def _arithmetic(
    classes: Mapping[str, Equivalence], benchmarks: pd.DataFrame, a: pd.DataFrame, b: pd.DataFrame
) -> dict[str, Fieller]:
    """Return the ratio of arithmetic means for every compared benchmark."""
    ratios = {}
    for title in {title for e in classes.values() for title in e.each}:
        x, y = (side[title].dropna().to_numpy(float) for side in (a, b))
        lower = benchmarks.at[title, "better"] == Better.LOWER
        ratios[title] = fieller(np.exp(-x), np.exp(-y)) if lower else fieller(np.exp(y), np.exp(x))
    return ratios


def _in_classes(benchmarks: pd.DataFrame) -> pd.Series:
    """Return which benchmarks count in headlines: neither guardrails nor purely descriptive figures."""
    return benchmarks["kind"].isin(_OF_CLASSES)


def _of_one_kind(benchmarks: pd.DataFrame) -> pd.Series:
    """Return the class of each benchmark; a user's class with figures of two kinds is split in two."""
    classes = benchmarks["class"].copy()
    scored = benchmarks[_in_classes(benchmarks)]
    for name, group in scored.groupby("class"):
        if group["kind"].nunique() > 1:
            usual = kind_of_class(str(name)) or Kind.CAPACITY
            other = group.index[group["kind"] != usual]
            classes[other] = f"{name}{SPEED if usual is Kind.CAPACITY else '-capacity'}"
    return classes


def _guardrails(
    benchmarks: pd.DataFrame, a: pd.DataFrame, b: pd.DataFrame, pairing: Pairing, groups: Groups
) -> dict[str, Guardrail]:
    """Return the guardrails measured on at least one side."""
    guards = {}
    for title, benchmark in benchmarks[benchmarks["kind"] == Kind.GUARDRAIL].to_dict("index").items():
        x, y = (side[title].dropna() if title in side else pd.Series(dtype=float) for side in (a, b))
        if len(x) or len(y):
            limit = None if math.isnan(benchmark["limit"]) else float(benchmark["limit"])
            guards[str(title)] = guardrail(x, y, Better(benchmark["better"]), limit, pairing, groups)
    return judged_together(guards)


def among_many(classes: Mapping[str, Equivalence]) -> dict[str, Equivalence]:
    """Return the classes with every p adjusted for multiple tests.

    The p value of a benchmark is adjusted among the benchmarks of all classes; the p value of a headline, among all
    headlines. The headline of a single benchmark has the adjusted p of that benchmark, unless it is based on totals or
    strata. A mix is a single test and is not adjusted.
    """
    benchmarks = among({title: r for e in classes.values() for title, r in e.each.items()})
    heads = among({name: e.ratio for name, e in classes.items() if e.ratio is not None and name != WORK_MIX})

    def of_class(name: str, e: Equivalence) -> Equivalence:
        each = {title: replace(r, p_adjusted=benchmarks.get(title)) for title, r in e.each.items()}
        if e.ratio is None:
            return replace(e, each=each)
        alone = len(e.weights) == 1 and e.basis is Basis.MEAN
        p = benchmarks.get(next(iter(e.weights))) if alone else heads.get(name)
        work = e.work if e.work is None or not alone else replace(e.work, p_adjusted=p)
        return replace(e, each=each, ratio=replace(e.ratio, p_adjusted=p), work=work)

    return {name: of_class(name, e) for name, e in classes.items()}


def _words(standings: pd.Series) -> str:
    return ", ".join(sorted({word for text in standings for word in str(text).split(", ") if word}))


def _explained(left_out: Mapping[str, str], benchmarks: pd.DataFrame, a: Side, b: Side) -> dict[str, str]:
    """Return why a benchmark is on one side only. If all its runs on the other side failed, the sides are not
    equivalent.
    """
    reasons = {}
    for title, reason in left_out.items():
        run = " ".join(str(benchmarks.loc[title, key]) for key in ("workload", "case"))
        failures = []
        for s in (a, b):
            if run in s.failed and run in s.limited:
                status = word(s.failed[run])
                failures.append(message("not equivalent: on {side} every run was {how}", side=s.title, how=status))
            elif run in s.failed:
                failures.append(message("on {side} every run was {how}", side=s.title, how=word(s.failed[run])))
        reasons[title] = joined(failures, "; ") or _not_measured(title, a, b) or reason
    return reasons


def _not_measured(title: str, a: Side, b: Side) -> Message | None:
    """Return which side lacks a benchmark that the other side has."""
    lacking = [side.title for side in (a, b) if title not in side.means]
    return message("not measured on {side}", side=lacking[0]) if len(lacking) == 1 else None


def at_odds(units: Sequence[str], directions: Sequence[str]) -> str:
    """Return why the figures of a benchmark cannot be compared: ``units``, ``directions`` or an empty string.

    If the figures of one side differ, its string lists several units, separated by commas.
    """
    if len(set(units)) > 1 or ", " in units[0]:
        return "units"
    return "directions" if len(set(directions)) > 1 else ""


def _clashes(a: Side, b: Side) -> dict[str, str]:
    """Return the benchmarks with different units or directions, within a side or between the sides."""
    clashes: dict[str, str] = {}
    for title, both in _about_both(a, b).items():
        units, directions = ([str(benchmark[key]) for benchmark in both] for key in ("unit", "better"))
        match at_odds(units, directions):
            case "units":
                clashes[str(title)] = message(
                    "units clash: {one} on the baseline, {other} on the candidate", one=units[0], other=units[1]
                )
            case "directions":
                one, other = (Better(direction).phrase or direction for direction in directions)
                clashes[str(title)] = message(
                    "directions clash: {one} on the baseline, {other} on the candidate", one=one, other=other
                )
        one, other = (str(benchmark["kind"]) for benchmark in both)
        if one != other:
            clashes.setdefault(
                str(title),
                message(
                    "kinds clash: {one} on the baseline, {other} on the candidate", one=word(one), other=word(other)
                ),
            )
    return clashes


def _about_both(a: Side, b: Side) -> dict[str, tuple[dict[Any, Any], dict[Any, Any]]]:
    """Return the metadata of each title that both sides have; they may come from either side."""
    first, second = (s.benchmarks[["unit", "better", "kind", "standing"]].to_dict("index") for s in (a, b))
    return {str(t): (first[t], second[t]) for t in a.benchmarks.index.intersection(b.benchmarks.index)}


def _warnings(a: Side, b: Side, pairing: Pairing) -> list[str]:
    """Return the warnings that users need before they rely on a ratio of these sides."""
    warnings: list[str] = []
    for key in sorted({*a.traits, *b.traits}):
        values_a, values_b = (sorted(set(s.traits.get(key, ()))) for s in (a, b))
        if values_a != values_b or len(values_a) > 1:
            text_a, text_b = (", ".join(values) or message("none") for values in (values_a, values_b))
            warnings.append(
                message(
                    "{key} differs: {left} ({a}) against {right} ({b})",
                    key=key,
                    left=text_a,
                    right=text_b,
                    a=a.title,
                    b=b.title,
                )
            )
    for title, both in _about_both(a, b).items():
        standing = [str(benchmark["standing"]) for benchmark in both]
        if standing[0] != standing[1]:
            text_a, text_b = (word(s) or message("an official result") for s in standing)
            warnings.append(
                message(
                    "{title}: {left} ({a}) is compared with {right} ({b})",
                    title=title,
                    left=text_a,
                    right=text_b,
                    a=a.title,
                    b=b.title,
                )
            )
    common = a.means.index.intersection(b.means.index)
    warnings += _sizes(a, b)[0]
    if len(common) and pairing is not Pairing.SAME_HOSTS:
        hosts, some = count(len(common), "host"), ", ".join(common[:3])
        warnings.append(
            message("{hosts} is on both sides ({some}): compare it with --paired", hosts=hosts, some=some)
            if len(common) == 1
            else message("{hosts} are on both sides ({some}): compare them with --paired", hosts=hosts, some=some)
        )
    return warnings


def _check_shared_out(per: str, benchmarks: pd.DataFrame, results: Sequence[Candidate]) -> None:
    """Raise FleetmarkError if no capacity is compared, because ``per`` can divide only capacity."""
    work = set(benchmarks.index[benchmarks["kind"] == Kind.CAPACITY])
    if any(title in work for c in results for e in c.classes.values() for title in e.each):
        return
    rest = sorted({f"{t} is {k}" for t, k in benchmarks["kind"].items() if t not in work and k})
    if work:
        rest = sorted(f"{t}: {w}" for c in results for t, w in _left_out(c).items() if t in work)
    raise FleetmarkError(
        f"--per {per}: no benchmark of both sides can be divided per {per}, because only capacity can be divided "
        f"({'; '.join(rest[:3])}{', …' if len(rest) > 3 else ''}): remove --per"
    )


def _left_out(candidate: Candidate) -> dict[str, str]:
    return {**candidate.excluded, **{t: w for e in candidate.classes.values() for t, w in e.left_out.items()}}


def _sizes(a: Side, b: Side) -> tuple[list[str], list[str]]:
    """Return warnings for benchmarks with very different sizes on the two sides, and notes for smaller differences."""
    differing: dict[tuple[bool, str, str], list[str]] = {}
    of_a, of_b = (
        dict(zip(s.benchmarks.index, s.benchmarks[["smallest", "largest"]].to_numpy(float).tolist(), strict=True))
        for s in (a, b)
    )
    for title in a.benchmarks.index.intersection(b.benchmarks.index):
        x, y = of_a[title], of_b[title]
        if x == y or any(map(math.isnan, (*x, *y))):
            continue
        size_a, size_b = ("–".join(f"{size:,.0f}" for size in dict.fromkeys(s)) for s in (x, y))
        far = max(x[1], y[1]) >= APART * min(x[0], y[0])
        differing.setdefault((far, size_a, size_b), []).append(str(title))
    sentences: dict[bool, list[str]] = {True: [], False: []}
    for (far, size_a, size_b), titles in differing.items():
        some = "; ".join(titles[:3])
        sentences[far].append(
            message(
                "{titles}: size {mine} ({a}) against {theirs} ({b})",
                titles=message("{some} and {n} more", some=some, n=len(titles) - 3) if len(titles) > 3 else some,
                mine=size_a,
                theirs=size_b,
                a=a.title,
                b=b.title,
            )
        )
    return sorted(sentences[True]), sorted(sentences[False])


def _nothing_shared(a: Side, candidates: Sequence[Side], results: Sequence[Candidate]) -> str:
    for title, reason in (item for c in results for item in c.excluded.items()):
        return f"{a.title} and {candidates[0].title} share no benchmark that can be compared; {title}: {reason}"
    b = candidates[0]
    mine, theirs = (str(s.benchmarks.sort_values("kind", kind="stable").index[0]) for s in (a, b))  # capacity first
    hint = f"run {mine} on {b.title}, or {theirs} on {a.title}"
    return f"{a.title} and {b.title} share no benchmark: {hint}"
