"""Compare the hosts of a campaign with their peers, and return findings with their raw evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.facts import Facts, Identity
from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis import outliers, tails
from fleetmark.planner.diagnosis.cohorts import Cohort, cohorts, difference, kind_of
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record import figures, journal, store
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import pairs, shared, unjudged
from fleetmark.record.diagnosis.baselines import Baseline, since, titled
from fleetmark.record.diagnosis.table import BENCHMARK, Table
from fleetmark.record.figures import Figures
from fleetmark.record.sides.amounts import positive
from fleetmark.record.values.host import numbered

MOST_EVIDENCE = 3  # maximum raw files in a finding
_SAMPLE = 256  # sample size (hosts) for a test of distributions
_HEAVY = 2.0  # a host's distribution is tested from this multiple of the usual spread of runs


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The diagnosis of a campaign.

    ``root``: the value of ``--results`` for the campaign's folder. ``hosts``, ``benchmarks`` and ``judged``: numbers of
    hosts, benchmarks and compared values. ``findings``: the hosts with the largest deficits come first. ``notes``: the
    parts that could not be evaluated, with reasons. ``power``: the smallest losses that are found. ``uncompared``:
    whether the named baseline has no benchmark in common. ``classes``: those of the benchmarks. ``prices``: amount and
    unit by host, such as (15500.0, "EUR"), where labels give them.
    """

    campaign: str
    path: Path
    root: str
    created: str
    hosts: int
    _: KW_ONLY
    benchmarks: int
    judged: int
    cohorts: tuple[Cohort, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Message, ...]
    power: tuple[Message, ...] = ()
    uncompared: bool = False
    classes: tuple[str, ...] = ()
    prices: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def suspects(self) -> dict[str, list[Finding]]:
        """Return the findings of each host that no repeat cleared, with the worst host first."""
        findings_by_host: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.host and finding.kind is not Kind.LINK and not finding.cleared:
                findings_by_host.setdefault(finding.host, []).append(finding)
        return findings_by_host

    def links(self) -> list[Finding]:
        """Return the slow links that no repeat cleared, the worst first."""
        return [f for f in self.findings if f.kind is Kind.LINK and not f.cleared]

    def cleared(self) -> list[Finding]:
        """Return the findings that a repeat cleared."""
        return [f for f in self.findings if f.cleared]

    def groups(self) -> list[Finding]:
        """Return the groups of hosts that are slow together, the largest losses first."""
        return [f for f in self.findings if f.kind is Kind.GROUPS]

    def everywhere(self) -> list[Finding]:
        """Return the benchmarks in which most hosts became slower."""
        return [f for f in self.findings if f.kind is Kind.REGRESSION and f.members]

    def borders(self) -> list[Finding]:
        """Return the slow borders between places, and uplinks of places."""
        return [f for f in self.findings if f.kind is Kind.BORDER]

    @property
    def healthy(self) -> bool:
        """Return whether nothing is slower than expected, apart from findings that a repeat cleared."""
        return not self.uncompared and all(f.cleared for f in self.findings)


def read(archive: Archive, *, everything: bool = False) -> tuple[figures.Figures, list[str]]:
    """Return the figures of a campaign, its headlines or ``everything``, and the names of its hosts.

    Raise FleetmarkError if nothing was measured, or if a file is damaged.
    """
    file = archive.inside("measurements.parquet")
    if not file.exists():
        raise FleetmarkError(f"{archive.id}: {_why_nothing(archive)}")
    hosts = [str(h["name"]) for h in archive.campaign()["hosts"]]
    scope = figures.EVERYTHING if everything else figures.HEADLINES
    listed = numbered((archive.id, host) for host in hosts)
    return figures.read({archive.id: file}, listed, condition=scope, spread=True), hosts


def _why_nothing(archive: Archive) -> str:
    """Return why a campaign has no measurements."""
    events = journal.read(archive)[1]
    if events and not any(event["e"] == "ended" for event in events):
        resume = f"fleetmark run --resume {archive.id}"
        return f"nothing is measured yet: it is still running, or was interrupted (`{resume}` continues it)"
    return "no measurements, so no host can be diagnosed"


def diagnose(
    archive: Archive,
    *,
    everything: bool = False,
    against: Baseline | None = None,
    least: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Compare every host of a campaign with the others of its cohort, in headlines or in ``everything``.

    Groups of one kind that share a fact or label are compared first; hosts are then evaluated without their group's
    loss. With ``against``, also compare each host with its values in that baseline. ``least``: the smallest relevant
    deficit by class of metrics ("": every class), instead of the usual ones. Raise FleetmarkError if nothing was
    measured, or if a file is damaged.
    """
    document = archive.campaign()
    measured, hosts = read(archive, everything=everything)
    labels = {str(h["name"]): dict(h.get("labels") or {}) for h in document["hosts"]}
    known = shared.Known(labels, {host: identity_at(archive, host) for host in hosts}, cache(partial(_facts, archive)))
    kinds = {host: kind_of(known.identity[host], str(labels[host].get("gen") or "")) for host in hosts}
    groups = cohorts(kinds, outliers.LEAST)
    table = Table(measured, hosts, least)
    findings, notes, judged, uncompared = [], [*unjudged.small_cohorts(groups, least)], 0, False
    power: list[Message] = []
    levels = table.values.copy()  # corrected for the common loss of groups
    for kind in dict.fromkeys(cohort.kind for cohort in groups):
        members = [host for cohort in groups if cohort.kind == kind for host in cohort.hosts]
        candidates = known.traits(members) if len(members) >= outliers.FEW else []
        results, lost = shared.groups(table, kind, members, candidates)
        findings += results
        if lost is not None:
            levels[:, [table.place[host] for host in members]] += lost
        slow = []
        for cohort in (c for c in groups if c.kind == kind and len(c.peers) >= outliers.FEW):
            results, further_notes, values = _cohort(table, cohort, known.facts, levels)
            slow += [f for f in results if f.kind is Kind.SLOW]
            findings += [f for f in results if f.kind is not Kind.SLOW]
            notes += further_notes
            judged += values
            if not cohort.mixed:
                power += unjudged.power(table, cohort, levels[:, [table.place[host] for host in cohort.peers]])
        findings += shared.explained(slow, members, candidates)
    further, further_notes, values = pairs.judge(measured, hosts, groups, known, least)
    findings += further
    notes += further_notes
    judged += values
    if against is not None:
        further, further_notes, values = since(table, against)
        findings += further
        notes += further_notes
        judged += values
        uncompared = not values
        if uncompared:
            notes.append(message("No result could be compared with the reference {name}.", name=titled(against)))
    findings = _with_evidence(findings, measured, hosts)
    worst = {host: max(f.deficit for f in findings if f.host == host) for host in {f.host for f in findings}}
    findings.sort(key=lambda f: (f.kind not in _TOGETHER, *_rank(f, worst)))
    return Diagnosis(
        archive.id,
        archive.path.resolve(),
        store.name_of(archive.path.resolve().parent),
        str(document.get("created", "")),
        len(hosts),
        benchmarks=len(table.keys),
        judged=judged,
        cohorts=tuple(groups),
        findings=tuple(findings),
        notes=tuple(notes),
        power=tuple(power),
        uncompared=uncompared,
        classes=tuple(sorted(set(measured.keys["class"].astype(str)))),
        prices={host: price for host, given in labels.items() if (price := _price(given))},
    )


def _price(labels: Mapping[str, str]) -> tuple[float, str] | None:
    """Return the price of a host with its currency, and the term that it is for; None if labels give no amount."""
    amount = positive(labels.get("price"))
    unit = " per ".join(part for part in (labels.get("currency"), labels.get("term")) if part)
    return (amount, unit) if amount and unit else None


_TOGETHER = (Kind.GROUPS, Kind.BORDER)  # faults that belong to no single host


def _rank(finding: Finding, worst: Mapping[str, float]) -> tuple[float, str, float]:
    """Return the sort key of a finding: groups sort by loss and size, hosts by their largest loss."""
    if finding.kind in _TOGETHER:
        return (-finding.deficit * len(finding.members), finding.place, 0.0)
    return (-worst[finding.host], finding.host, -finding.deficit)


def identity_at(archive: Archive, host: str) -> Identity | None:
    """Return the identity of a recorded host. Skip damaged facts with a warning."""
    try:
        return archive.identity_of(host)
    except FleetmarkError as error:
        leave_out(f"the identity of {host}", error)
        return None


def kind_at(archive: Archive, host: str, label: str) -> tuple[str, str]:
    """Return the kind and firmware of a recorded host. Skip damaged facts with a warning."""
    return kind_of(identity_at(archive, host), label)


def _facts(archive: Archive, host: str) -> Facts | None:
    try:
        return archive.facts_of(host)
    except FleetmarkError:  # identity_at has warned about it
        return None


def _cohort(
    table: Table, cohort: Cohort, facts: Callable[[str], Facts | None], levels: np.ndarray
) -> tuple[list[Finding], list[Message], int]:
    """Return the findings, notes and number of evaluated values of a cohort.

    ``levels``: its values, corrected for the common losses of groups.
    """
    columns = np.array([table.place[host] for host in cohort.peers])
    values = levels[:, columns]
    few = len(cohort.peers) < outliers.LEAST
    if few:
        verdicts = outliers.judge_few(values, table.errors(columns), table.deficit)
        apart = [] if cohort.mixed else _groups(table, cohort, values, verdicts, facts)
        return [*_slow(table, cohort, verdicts.slow), *apart], [], verdicts.judged
    verdicts = outliers.judge(values, table.errors(columns), table.deficit, table.repeats(columns))
    slow = _slow(table, cohort, verdicts.slow)
    if cohort.mixed:  # its peers are evaluated separately
        return slow, [], 0
    return (
        [*slow, *_groups(table, cohort, values, verdicts, facts), *_tails(table, cohort, columns)],
        unjudged.benchmarks(table, cohort, values, verdicts),
        verdicts.judged,
    )


def _slow(table: Table, cohort: Cohort, judged: pd.DataFrame) -> list[Finding]:
    """Return findings for the slow hosts of the cohort."""
    members = set(cohort.hosts)
    findings = []
    for r in judged.to_dict("records"):
        row, host = int(r["row"]), cohort.peers[int(r["column"])]
        if host not in members:
            continue
        value = float(table.values[row, table.place[host]])
        findings.append(
            Finding(
                Kind.SLOW,
                host,
                table.benchmark(row),
                deficit=float(r["deficit"]),
                value=table.value(row, value),
                expected=table.value(row, value - float(np.log1p(-r["deficit"]))),
                n=int(r["n"]) - 1,
                z=float(r["z"]),
                q=float(r["q"]),
                sure=float(r["q"]) <= outliers.DISCOVERY,
                mixed=cohort.mixed,
                cohort=cohort.kind,
            )
        )
    return findings


def _groups(
    table: Table, cohort: Cohort, values: np.ndarray, verdicts: outliers.Verdicts, facts: Callable[[str], Facts | None]
) -> list[Finding]:
    """Return the benchmarks in which the cohort splits into groups, and the facts that mark the fastest group."""
    findings = []
    modes = verdicts.modes
    for row, group in zip(modes.rows, modes.group, strict=True):
        top = int(group.max())
        order = [int(column) for column in np.argsort(values[row])]
        slower = tuple(cohort.peers[column] for column in order if 0 <= group[column] < top)
        faster = [cohort.peers[column] for column in order if group[column] == top]
        low, high = (float(np.median(values[row, side])) for side in ((group >= 0) & (group < top), group == top))
        known = [[f for h in side if (f := facts(h))] for side in (slower, faster)]
        complete = len(known[0]) == len(slower) and len(known[1]) == len(faster)
        because = tuple(difference(*known)) if complete else ()
        findings.append(
            Finding(
                Kind.GROUPS,
                "",
                table.benchmark(int(row)),
                deficit=float(-np.expm1(low - high)),
                value=table.value(int(row), float(low)),
                expected=table.value(int(row), float(high)),
                n=len(faster),
                cohort=cohort.kind,
                members=slower,
                because=because,
                populations=top + 1,
            )
        )
    return findings


def _tails(table: Table, cohort: Cohort, columns: np.ndarray) -> list[Finding]:
    """Return the hosts of the cohort whose slow runs are slower than those of others.

    Single runs are read only for benchmarks with an unusual spread: those of such hosts and of a sample of the others.
    """
    enough = table.runs[:, columns] >= tails.LEAST_RUNS
    spread = np.where(enough, table.sd[:, columns], np.nan)
    rows = np.flatnonzero((enough.sum(axis=1) >= tails.LEAST_HOSTS) & ~np.isnan(spread).all(axis=1))
    if not len(rows):
        return []
    usual = np.nanmedian(spread[rows], axis=1)
    heavy = spread[rows] > np.maximum(_HEAVY * usual, tails.EFFECT)[:, None]
    parts = []
    for row, is_heavy in zip(rows[heavy.any(axis=1)], heavy[heavy.any(axis=1)], strict=True):
        others = np.flatnonzero(enough[row] & ~is_heavy)
        chosen = np.concatenate([np.flatnonzero(is_heavy), others[:: max(1, len(others) // _SAMPLE)]])
        parts.append(pd.DataFrame({"row": row, "record": columns[chosen], "key": table.keys[row]}))
    if not parts:
        return []
    wanted = pd.concat(parts, ignore_index=True)
    runs = figures.values(table.measured, wanted, columns=()).merge(wanted, on=["record", "key"])
    oriented = np.log(runs["value"].to_numpy(float)) * table.sign[runs["row"].to_numpy(int)]
    judged = tails.judge(pd.DataFrame({"row": runs["row"], "column": runs["record"], "value": oriented}))
    return [
        Finding(
            Kind.TAIL,
            table.hosts[int(r["column"])],
            table.benchmark(int(r["row"])),
            deficit=float(-np.expm1(-r["shortfall"])),
            value=table.value(int(r["row"]), float(table.values[int(r["row"]), int(r["column"])])),
            expected=table.value(int(r["row"]), float(np.nanmedian(table.values[int(r["row"]), columns]))),
            n=int(r["hosts"]) - 1,
            z=-float(r["normalised"]),
            q=float(r["q"]),
            cohort=cohort.kind,
            worst=float(-np.expm1(-r["worst"])),
            usual=float(-np.expm1(-r["usual"])),
        )
        for r in judged.to_dict("records")
        if table.hosts[int(r["column"])] in cohort.hosts
    ]


# --- evidence --------------------------------------------------------------------------------------------------------


def _with_evidence(findings: Sequence[Finding], measured: Figures, hosts: Sequence[str]) -> list[Finding]:
    """Return the findings with their raw files; files of the worst values come first."""
    keys = _by_benchmark(measured.keys)
    place = {host: n for n, host in enumerate(hosts)}
    wanted: list[tuple[int, int, int]] = []
    for number, finding in enumerate(findings):
        benchmark = finding.benchmark
        keyed = keys.get(tuple(benchmark[name] for name in _UNPAIRED), [])
        if benchmark["subject"] != "pairs":
            keyed = [(key, subject) for key, subject in keyed if subject == benchmark["subject"]]
        if finding.kind in (Kind.NODE, Kind.LINK):
            keyed = [(key, subject) for key, subject in keyed if _is_of(subject, finding)]
        record = place.get(finding.host or (finding.members or ("",))[0], -1)
        records = [record, place.get(finding.other, -1)] if finding.kind is Kind.LINK else [record]
        wanted += [(number, r, key) for r in records if r >= 0 for key, _ in keyed]
    if not wanted:
        return list(findings)
    parts = pd.DataFrame(wanted, columns=["number", "record", "key"])
    raw = figures.values(measured, parts[["record", "key"]].drop_duplicates())[["record", "key", "value", "raw"]]
    lower = (measured.keys["better"] == Better.LOWER.value).to_numpy(bool)[raw["key"].to_numpy(int)]
    raw = raw.assign(value=np.where(lower, -raw["value"], raw["value"])).sort_values("value", kind="stable")
    paths: dict[int, list[str]] = {}
    for number, path in raw.merge(parts, on=["record", "key"])[["number", "raw"]].itertuples(index=False):
        if path and path not in (listed := paths.setdefault(int(number), [])) and len(listed) < MOST_EVIDENCE:
            listed.append(str(path))
    return [replace(f, evidence=tuple(paths.get(number, ()))) for number, f in enumerate(findings)]


_UNPAIRED = tuple(name for name in BENCHMARK if name != "subject")


def _by_benchmark(keys: pd.DataFrame) -> dict[tuple[str, ...], list[tuple[int, str]]]:
    """Return the keys of each benchmark without its subject; each key with its subject."""
    keys_by_benchmark: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    benchmarks = zip(*(keys[name].astype(str) for name in _UNPAIRED), strict=True)
    for key, subject, benchmark in zip(keys.index, keys["subject"].astype(str), benchmarks, strict=True):
        keys_by_benchmark.setdefault(benchmark, []).append((int(key), subject))
    return keys_by_benchmark


def _is_of(subject: str, finding: Finding) -> bool:
    if finding.kind is Kind.LINK:
        return subject in (f"{finding.host}>{finding.other}", f"{finding.other}>{finding.host}")
    return subject.startswith(f"{finding.host}>") or subject.endswith(f">{finding.host}")


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as data for JSON output, with base units and with shares as fractions."""
    return {
        "campaign": diagnosis.campaign,
        "path": str(diagnosis.path),
        "hosts": diagnosis.hosts,
        "benchmarks": diagnosis.benchmarks,
        "judged": diagnosis.judged,
        "cohorts": [
            {"kind": c.kind, "firmware": c.firmware, "hosts": list(c.hosts), "judged_against": len(c.peers)}
            for c in diagnosis.cohorts
        ],
        "findings": [finding_as_json(f) for f in diagnosis.findings],
        "notes": list(diagnosis.notes),
        "power": list(diagnosis.power),
    }


def finding_as_json(f: Finding) -> dict[str, Any]:
    """Return a finding as data for JSON output."""
    always = {
        "kind": f.kind.value,
        "host": f.host,
        "benchmark": {k: v for k, v in f.benchmark.items() if k != "labels"}
        | {"labels": json.loads(f.benchmark["labels"])},
        "deficit": f.deficit,
        "value": f.value,
        "expected": f.expected,
        "peers": f.n,
        "z": f.z,
        "q": None if math.isnan(f.q) else f.q,
        "sure": f.sure,
        "firmware_differs": f.mixed,
        "cohort": f.cohort,
        "evidence": list(f.evidence),
        "settled": asdict(f.settled) if f.settled else None,
    }
    of_kind: dict[Kind, dict[str, Any]] = {
        Kind.LINK: {"other": f.other, "link_or_host": f.either},
        Kind.TAIL: {"worst_run": f.worst, "worst_run_of_peers": f.usual},
        Kind.REGRESSION: {"baseline": f.cohort, "members": list(f.members)},
        Kind.BORDER: {"members": list(f.members), "uplink": f.uplink},
        Kind.GROUPS: {
            "members": list(f.members),
            "interval": list(f.interval) if f.interval else None,
            "groups_compared": f.tried,
            "populations": f.populations,
        },
    }
    because = [{"fact": name, "slower": a, "faster": b} for name, a, b in f.because]
    return always | {"because": because} | of_kind.get(f.kind, {})
