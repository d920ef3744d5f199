"""Build the sides of a comparison from recorded machines, with host means under titles that all sides share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.measurement import Kind
from fleetmark.base.patterns import is_chosen
from fleetmark.base.text import count, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Side
from fleetmark.record import figures, imports
from fleetmark.record.archive import Archive
from fleetmark.record.select import Machine, distinct_names
from fleetmark.record.sides.amounts import PER, amounts
from fleetmark.record.sides.shared import groups
from fleetmark.record.sides.titles import titled
from fleetmark.record.values import DamagedFileError
from fleetmark.record.values.host import Host
from fleetmark.workloads.declared import declaration, declares, keeps_limit

__all__ = ["PER", "powered", "side", "sides", "some"]

# Labels of imported tables and prices, shown if the sides differ in them.
TRAITS = (*imports.TRAITS, "currency", "price_date", "term")
MOST_VALUES = 20_000  # maximum number of single values stored with the means of a side
MOST_SPREAD = 200  # read the spread of repeats for at most this many machines, unless a side is a single host


def side(
    root: Path,
    title: str,
    chosen: Sequence[Machine],
    *,
    only: Sequence[str] = (),
    host_label: str = "host",
    names: Mapping[tuple[str, str], str] | None = None,
) -> Side:
    """Return one side. The parameters are those of ``sides``."""
    return sides(root, {title: chosen}, only=only, host_label=host_label, names=names)[title]


def sides(
    root: Path,
    chosen: Mapping[str, Sequence[Machine]],
    *,
    only: Sequence[str] = (),
    per: str = "server",
    host_label: str | Mapping[str, str] = "host",
    best: bool = False,
    names: Mapping[tuple[str, str], str] | None = None,
    values: bool = False,
) -> dict[str, Side]:
    """Return a side for each title in ``chosen``. The record is read once for all sides.

    ``only``: shell-style patterns for ``workload/case/metric`` over all metrics; by default, only headlines count.
    ``host_label``: machines with the same value of this label count as one host (for all sides, or by title).
    ``best``: reduce a side to one host with the best figure of each benchmark. ``names``: host names over all sides,
    from ``distinct_names``. ``values``: add single values to a side if there are at most MOST_VALUES.

    A machine in several campaigns counts once, with its mean over them. Raise FleetmarkError if nothing is measured, if
    ``only`` matches nothing, or if no machine has a known amount of the unit ``per`` that divides capacity.
    """
    every = _recorded(chosen)
    campaigns = sorted({host.campaign for host in every})
    files = _files(root, campaigns)
    if not files:
        raise FleetmarkError(f"{', '.join(campaigns[:4])}: nothing measured; `fleetmark run --resume` continues one")
    names = names or distinct_names([m for machines in chosen.values() for m in machines])
    label = {title: host_label if isinstance(host_label, str) else host_label[title] for title in chosen}
    hosts = {title: _hosts(title, machines, label[title], names) for title, machines in chosen.items()}
    lone = [] if best else [title for title, names_of_side in hosts.items() if len(set(names_of_side)) == 1]
    spread = bool(lone) or (len(every) <= MOST_SPREAD and not best)
    record = _read(files, every, figures.EVERYTHING if only else figures.HEADLINES, spread)
    if only:
        _check_patterns(record.keys, only)
    return {
        title: _side(record, title, machines, hosts[title], only, per, best, names, values, spread)
        for title, machines in chosen.items()
    }


def powered(root: Path, chosen: Mapping[str, Sequence[Machine]]) -> frozenset[str]:
    """Return the titles of the sides with recorded power: measured during runs, or given as the label ``watts``."""
    labelled = {title for title, machines in chosen.items() if any(m.labels.get("watts") for m in machines)}
    every = _recorded(chosen)
    files = _files(root, sorted({host.campaign for host in every}))
    if not files:
        return frozenset(labelled)
    record = _read(files, every, figures.POWER, spread=False)
    if record.rows.empty:
        return frozenset(labelled)
    return frozenset(labelled | {title for title in chosen if len(figures.of_side(record, title).rows)})


def _recorded(chosen: Mapping[str, Sequence[Machine]]) -> list[Host]:
    """Return the hosts of all sides, side by side."""
    listed = [(title, machine) for title, machines in chosen.items() for machine in machines]
    return [Host(number, m.campaign, m.host, title) for number, (title, m) in enumerate(listed)]


def _side(
    record: figures.Figures,
    title: str,
    chosen: Sequence[Machine],
    hosts: Sequence[str],
    only: Sequence[str],
    per: str,
    best: bool,
    names: Mapping[tuple[str, str], str],
    values: bool,
    spread: bool,
) -> Side:
    figures_of_side = figures.of_side(record, title)
    benchmarks, rows = _demoted(figures_of_side.benchmarks), figures_of_side.rows
    selected = np.array(
        [is_chosen("/".join(b), only) for b in benchmarks[["workload", "case", "metric"]].to_numpy()], bool
    )
    rows = rows if selected.all() else rows[selected[rows["benchmark"].to_numpy(int)]]
    left_out = figures_of_side.left_out[selected[figures_of_side.left_out["benchmark"].to_numpy(int)]]
    described = left_out.merge(benchmarks[["workload", "case", "metric"]], left_on="benchmark", right_index=True)
    without = described.groupby(["workload", "case", "metric", "why"])["n"].sum()
    notes: list[str] = [
        message(
            "{workload} {case}: {values} of {metric} left out: {why}",
            workload=workload,
            case=case,
            values=count(int(number), "value"),
            metric=metric,
            why=word(reason),
        )
        for (workload, case, metric, reason), number in without.items()
    ]
    if rows.empty:
        raise FleetmarkError(f"{title}: {'; '.join(notes[:3]) or 'nothing is measured on the machines it selects'}")
    missing = sorted({m.campaign for m in chosen} - record.files.keys())
    notes += [message("{campaign}: no measurements", campaign=name) for name in missing]
    traits = _traits(chosen)
    rows = rows.assign(per=0.0)
    shares = (benchmarks["kind"] == Kind.CAPACITY).to_numpy()[rows["benchmark"].to_numpy(int)]
    if per != "server" and shares.any():  # divide capacity only: two sockets do not halve a latency
        amount, remarks, sources = amounts(rows[shares], benchmarks, chosen, per, record.files)
        rows.loc[shares, "per"] = amount
        notes, traits = notes + remarks, traits | ({"power source": sources} if sources else {})
    under = titled(rows, benchmarks, hosts)
    means = under.means(under.rows["log"])
    if best:
        means = pd.DataFrame(
            [means.max()], [f"best of {len(means)} of {title}"]
        )  # distinguishes the host from those of the other side
    shared = under.means(under.rows["log"] - under.rows["per"]) if per != "server" else None
    measured = set(zip(under.benchmarks["workload"], under.benchmarks["case"], strict=True))
    failed = {(w, c): reason for w, c, _, reason in without.index if (w, c) not in measured}
    count_of = int(under.rows["n"].sum())
    open_keys = np.flatnonzero(record.keys["inferred"])
    compared = (
        figures_of_side.parts["key"][selected[figures_of_side.parts["benchmark"].to_numpy(int)]]
        if len(open_keys)
        else []
    )
    return Side(
        title,
        means,
        _declared(under.benchmarks),
        shared,
        traits,
        notes=[*notes, *under.notes],
        failed={f"{w} {c}": reason for (w, c), reason in failed.items()},
        limited={f"{w} {c}" for w, c in failed if keeps_limit(w, c)},
        count=count_of,
        inferred=bool(np.isin(open_keys, compared).any()),
        repeats=under.repeats() if spread and not best else None,
        machines=under.rows.loc[under.rows["per"].notna(), ["record", "title"]],
        values=_values(record, title, figures_of_side, under.rows, names)
        if values and count_of <= MOST_VALUES
        else None,
        groups=None if best else groups(chosen, hosts),
    )


def _demoted(benchmarks: pd.DataFrame) -> pd.DataFrame:
    """Return ``benchmarks`` with recorded capacity changed to responsiveness if the manifest declares that kind.

    A record may classify the throughput of a closed loop at fixed concurrency as capacity.
    """
    known = np.array([declares(w, m) for w, m in zip(benchmarks["workload"], benchmarks["metric"], strict=True)], bool)
    work = benchmarks[(benchmarks["kind"] == Kind.CAPACITY) & known]
    columns = ["workload", "case", "metric", "class", "unit", "better"]
    described = [declaration(*values) for values in work[columns].itertuples(index=False, name=None)]
    slow = [(place, a) for place, a in zip(work.index, described, strict=True) if a.kind == Kind.RESPONSIVENESS]
    if not slow:
        return benchmarks
    changed, places = benchmarks.copy(), [place for place, _ in slow]
    changed.loc[places, "kind"] = [a.kind for _, a in slow]
    changed.loc[places, "class"] = [a.class_ for _, a in slow]
    return changed


def _declared(benchmarks: pd.DataFrame) -> pd.DataFrame:
    """Return ``benchmarks`` with the limit (NaN if none) and the quantity that manifests declare for each."""
    columns = ["workload", "case", "metric", "class", "unit", "better"]
    described = [declaration(*values) for values in benchmarks[columns].itertuples(index=False, name=None)]
    limits = [math.nan if a.limit is None else a.limit for a in described]
    return benchmarks.assign(limit=np.array(limits, float), quantity=[a.quantity for a in described])


def _values(
    record: figures.Figures,
    title: str,
    figures_of_side: figures.SideFigures,
    rows: pd.DataFrame,
    names: Mapping[tuple[str, str], str],
) -> pd.DataFrame:
    """Return every single value of ``rows`` with its part and the centre of its parts; see ``Side.values``."""
    parts = figures_of_side.parts[["record", "key", "benchmark"]].merge(
        rows[["record", "benchmark", "host", "title", "per"]], on=["record", "benchmark"]
    )
    first = next(host.id for host in record.hosts if host.side == title)
    parts = parts.assign(record=parts["record"] + first)
    values = figures.values(record, parts).merge(parts, on=["record", "key"])
    hosts = [record.hosts[number] for number in values["record"]]
    described_by = record.keys.loc[values["key"], ["subject", "rule"]].reset_index(drop=True)
    described = figures_of_side.benchmarks.loc[values["benchmark"]].reset_index(drop=True).drop(columns="subject")
    labelled = values.assign(
        campaign=[host.campaign for host in hosts],
        machine=[names[host.campaign, host.name] for host in hosts],
        subject=described_by["subject"],
        rule=described_by["rule"],
        centre=values.groupby(["record", "benchmark"], sort=False).ngroup(),
        part=values.groupby(["record", "key"], sort=False).ngroup(),
    )
    kept = labelled.drop(columns=["record", "key", "benchmark"])
    return pd.concat([kept, described], axis=1).astype({"host": object, "title": object, "rule": object})


def _files(root: Path, campaigns: Sequence[str]) -> dict[str, Path]:
    """Return the measurements file of each campaign that has one."""
    files = {}
    for name in campaigns:
        try:
            path = Archive(root / name).inside("measurements.parquet")
        except FleetmarkError as error:
            leave_out(name, error)
            continue
        if path.exists():
            files[name] = path
    return files


def _read(files: dict[str, Path], hosts: Sequence[Host], condition: str, spread: bool) -> figures.Figures:
    """Return the figures of ``hosts`` in ``files``. Damaged files are skipped and removed from ``files``."""
    while True:
        try:
            return figures.read(files, hosts, condition=condition, spread=spread)
        except DamagedFileError as error:
            if len(files) == 1:
                raise
            leave_out(error.campaign, error)
            del files[error.campaign]


def _check_patterns(keys: pd.DataFrame, only: Sequence[str]) -> None:
    titles = keys["workload"] + "/" + keys["case"] + "/" + keys["metric"]
    if not any(is_chosen(title, only) for title in titles.unique()):
        raise FleetmarkError(f"--only {','.join(only)} matches no benchmark; there are {some(titles)}")


def _hosts(title: str, chosen: Sequence[Machine], host_label: str, names: Mapping[tuple[str, str], str]) -> list[str]:
    """Return the host name that each machine of a side counts as."""
    if host_label == "host":
        return [names[m.campaign, m.host] for m in chosen]
    if host_label == imports.BY_TABLE:
        labels = [host_label if host_label in m.labels else imports.published_by(m) for m in chosen]
        return [
            f"{_host(m, label)} of {title}" if label else names[m.campaign, m.host]
            for m, label in zip(chosen, labels, strict=True)
        ]
    return [f"{_host(m, host_label)} of {title}" for m in chosen]  # so that it differs from the name on the other side


def _host(machine: Machine, host_label: str) -> str:
    values = machine.values(host_label)
    if len(values) != 1:
        says = f"has {', '.join(values)}" if values else "does not say"
        raise FleetmarkError(
            f"--by {host_label}: {machine.host} ({machine.campaign}) {says}; it needs one value for each machine"
        )
    return values[0]


def _traits(chosen: Sequence[Machine]) -> dict[str, list[str]]:
    values = {key: sorted({v for m in chosen if key in m.labels for v in m.labels[key].split("+")}) for key in TRAITS}
    return {key: listed for key, listed in values.items() if listed}


def some(titles: Iterable[str], limit: int = 6) -> str:
    """Return the first titles as text, and the number of further ones."""
    names = sorted(set(titles))
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
