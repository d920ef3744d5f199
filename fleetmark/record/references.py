"""Save the figures of reference machines by name and version, to compare and diagnose others against them.

The files are ``references/NAME.VERSION.json`` below the results root. A new version never changes an old one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, message
from fleetmark.planner import mixed
from fleetmark.planner.comparison import Side
from fleetmark.planner.redundant import pinned_weights
from fleetmark.record.pinned import BASELINES, REFERENCES
from fleetmark.record.select import Machine
from fleetmark.workloads.declared import declaration

_SIZES = ["smallest", "largest"]  # older files lack these columns, and traits
_ABOUT = ["workload", "case", "metric", "unit", "better", "class", "kind", "standing"]
_DECLARED = ["limit", "quantity"]  # declared by manifests, so not saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A pinned reference.

    ``side`` has a row per host, so that the reference has its own error. It has one row if the reference is a single
    host, or was saved by an earlier version. ``weights``: the share of each benchmark within its class; ``campaigns``:
    the source campaigns; ``host_label``: what counts as one host, for example a publisher; ``is_measured``: whether it
    has the runs of single hosts, which ``diagnose`` needs.
    """

    name: str
    version: int
    created: str
    selector: str
    hosts: int
    campaigns: frozenset[str]
    side: Side
    weights: Mapping[str, float]
    host_label: str = "host"
    records: tuple[tuple[str, str], ...] = ()  # the campaign and host of each machine
    is_measured: bool = False

    @property
    def error(self) -> Message:
        """Return a sentence on how the comparison treats the reference's own error."""
        if len(self.side.means) > 1:
            return message("intervals include the spread of the hosts of {reference}", reference=self.side.title)
        if self.hosts > 1:
            return message(
                "{reference} is treated as exact, because it was pinned without the figures of single hosts; pin it "
                "again to include their spread",
                reference=self.side.title,
            )
        return message(
            "{reference} is one figure without an error, so intervals include only the candidate's hosts",
            reference=self.side.title,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the reference as an entry of the list of references."""
        return {
            "name": self.name,
            "version": self.version,
            "created": self.created,
            "from": self.selector,
            "hosts": self.hosts,
            "benchmarks": len(self.side.benchmarks),
            "compare": True,
            "diagnose": self.is_measured,
        }


def save(
    root: Path,
    name: str,
    side: Side,
    records: Sequence[Machine],
    kinds: pd.DataFrame | None = None,
    host_label: str = "host",
    measured: Mapping[str, Any] | None = None,
) -> Reference:
    """Save the machines of ``side`` as the next version of ``name``. Raise FleetmarkError if the name is invalid.

    ``kinds``: one row per kind of machine in the reference, to find redundant benchmarks; ``host_label``: see
    Reference; ``measured``: the runs of its hosts, as ``diagnosis.baselines`` reads them.
    """
    weights, means = _weights(side, kinds), _means(side)
    rows = [
        {"title": title, "mean": float(means[str(title)]), "hosts": int(side.means[title].count())}
        | {key: benchmark[key] for key in _ABOUT}
        | {key: None if math.isnan(benchmark[key]) else benchmark[key] for key in _SIZES}
        | {"weight": weights[str(title)], "of_hosts": _of_hosts(side.means[title])}
        for title, benchmark in side.benchmarks.to_dict("index").items()
    ]
    content = {
        "selector": side.title,
        "records": [{"campaign": m.campaign, "host": m.host} for m in records],
        "hosts": len(side.means),
        "names": [str(host).removesuffix(f" of {side.title}") for host in side.means.index],
        "by": host_label,
        "traits": {key: list(values) for key, values in side.traits.items()},
        "benchmarks": rows,
        "measured": measured,
    }
    older = max((v for n, v in BASELINES.versions(root) if n == name), default=0)
    return _reference(REFERENCES.save(root, name, content, after=older))


def _of_hosts(logs: pd.Series) -> list[float | None]:
    """Return the figure of each host in the side's order. A single host has its figure in ``mean`` instead."""
    return [None if math.isnan(value) else float(value) for value in logs] if len(logs) > 1 else []


def _means(side: Side) -> pd.Series:
    """Return the mean of the side's hosts by title. If hosts lack benchmarks, use the model of comparisons."""
    means = side.means.mean()
    scored = side.benchmarks[side.benchmarks["kind"] != Kind.GUARDRAIL]
    for _, benchmarks in scored.groupby("class"):
        titles = [str(title) for title in benchmarks.index]
        with contextlib.suppress(mixed.TooFewError):
            means.update(pd.Series(mixed.fit(side.means.reindex(columns=titles).to_numpy(float)).means, titles))
    return means


def _weights(side: Side, kinds: pd.DataFrame | None) -> dict[str, float]:
    """Return the weight of each title within its class. Guardrails have no weight."""
    scored = side.benchmarks[side.benchmarks["kind"] != Kind.GUARDRAIL]
    quantity = {str(t): str(q) for t, q in scored["quantity"].items() if q}
    weights = pinned_weights(side.means, scored["class"], kinds, quantity)
    return dict.fromkeys(map(str, side.benchmarks.index), 0.0) | weights


def load(root: Path, name: str) -> Reference:
    """Return the latest version of the reference ``name``, or version 2 for ``name@2``.

    Raise FleetmarkError if it does not exist.
    """
    base = name.partition("@")[0]
    if base in {n for n, _ in BASELINES.versions(root)} - {n for n, _ in REFERENCES.versions(root)}:
        raise FleetmarkError(
            f"reference {name!r} was saved only for `diagnose`, by an earlier version; save it again: fleetmark "
            f"reference save {base} --from last"
        )
    return REFERENCES.read(REFERENCES.find(root, name), _reference)


def references(root: Path) -> list[Reference]:
    """Return all versions of all references, sorted by name."""
    return [REFERENCES.read(REFERENCES.path(root, n, v), _reference) for n, v in sorted(REFERENCES.versions(root))]


def _reference(doc: Mapping[str, Any]) -> Reference:
    rows = pd.DataFrame(doc["benchmarks"]).set_index("title")
    older = "kind" not in rows  # saved by a version whose classes mixed several kinds
    described = [
        declaration(*v) for v in rows[["workload", "case", "metric", "class", "unit", "better"]].to_numpy().tolist()
    ]
    if older:
        rows["class"], rows["kind"] = [a.class_ for a in described], [a.kind for a in described]
    rows["limit"] = np.array([math.nan if a.limit is None else a.limit for a in described], float)
    rows["quantity"] = [a.quantity for a in described]
    sizes = rows.reindex(columns=_SIZES).astype(float)
    title = f"{doc['name']}@{doc['version']}"
    means = _logs(title, rows, doc.get("names", ()))
    return Reference(
        name=doc["name"],
        version=doc["version"],
        created=doc["created"],
        selector=doc["selector"],
        hosts=doc["hosts"],
        campaigns=frozenset(str(r["campaign"]) for r in doc.get("records", ())),
        side=Side(title, means, rows[[*_ABOUT, *_DECLARED]].join(sizes), traits=doc.get("traits", {}), inferred=older),
        weights={str(t): float(w) for t, w in rows["weight"].items()},
        host_label=str(doc.get("by", "host")),
        records=tuple((str(r["campaign"]), str(r["host"])) for r in doc.get("records", ())),
        is_measured=doc.get("measured") is not None,
    )


def _logs(title: str, rows: pd.DataFrame, hosts: Sequence[str]) -> pd.DataFrame:
    """Return one row per host if the file has their figures, else one row of means.

    Raise ValueError if the file is damaged.
    """
    columns = rows["of_hosts"].to_dict() if "of_hosts" in rows else {}
    if not any(columns.values()):
        return pd.DataFrame([rows["mean"].to_dict()], index=[title])
    if {len(column) for column in columns.values()} != {len(hosts)}:
        raise ValueError("the number of hosts of a benchmark differs from the number of listed hosts")
    names = [f"{host} of {title}" for host in hosts]  # the candidate may have a host with the same name
    return pd.DataFrame({t: np.array(column, float) for t, column in columns.items()}, index=names)
