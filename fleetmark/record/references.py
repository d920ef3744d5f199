"""Pinned reference machines: figures and weights saved by name and version, so that scores do not drift.

``references/NAME.VERSION.json`` under the results root. A new version never touches an old one.
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

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, message
from fleetmark.record.pinned import REFERENCES
from fleetmark.record.select import Machine
from planner import mixed
from planner.comparison import Side
from planner.redundant import pinned_weights
from workloads.declared import about

_SIZES = ["smallest", "largest"]  # older files lack these, and traits
_ABOUT = ["workload", "case", "metric", "unit", "better", "class", "kind", "standing"]
_DECLARED = ["limit", "quantity"]  # by manifests, and not saved


@dataclass(frozen=True, slots=True)
class Reference:
    """A pinned machine. ``side`` has a row per host, so that its own error counts; one row where it is one host, or of
    an earlier version. ``weights``: the share of each benchmark within its class; ``campaigns``: where its figures are
    from; ``by``: what its hosts are, where they are no machines but publishers.
    """

    name: str
    version: int
    created: str
    selector: str
    hosts: int
    campaigns: frozenset[str]
    side: Side
    weights: Mapping[str, float]
    by: str = "host"
    records: tuple[tuple[str, str], ...] = ()  # campaign and host of each of its machines

    @property
    def error(self) -> Message:
        """What is known of how sure its own figures are, in words."""
        if len(self.side.means) > 1:
            return message("{reference} counts with the spread of its hosts", reference=self.side.title)
        if self.hosts > 1:
            return message(
                "{reference} is taken as exact, since it was pinned without the figures of its single hosts: pin it "
                "again to count their spread",
                reference=self.side.title,
            )
        return message(
            "{reference} is one figure without an error: intervals count the candidate's hosts alone",
            reference=self.side.title,
        )

    def as_json(self) -> dict[str, Any]:
        """What the list of references shows of it."""
        return {
            "name": self.name,
            "version": self.version,
            "created": self.created,
            "from": self.selector,
            "hosts": self.hosts,
            "benchmarks": len(self.side.benchmarks),
        }


def save(
    root: Path,
    name: str,
    side: Side,
    records: Sequence[Machine],
    kinds: pd.DataFrame | None = None,
    by: str = "host",
) -> Reference:
    """Pin ``side``'s machines under ``name``, as its next version. Raises FleetmarkError for a bad name.

    ``kinds``: one row per kind of machine in the reference, which shows what benchmarks are redundant; ``by`` as in
    Reference.
    """
    weights, means = _weights(side, kinds), _means(side)
    rows = [
        {"title": title, "mean": float(means[str(title)]), "hosts": int(side.means[title].count())}
        | {key: about[key] for key in _ABOUT}
        | {key: None if math.isnan(about[key]) else about[key] for key in _SIZES}
        | {"weight": weights[str(title)], "of_hosts": _of_hosts(side.means[title])}
        for title, about in side.benchmarks.to_dict("index").items()
    ]
    content = {
        "selector": side.title,
        "records": [{"campaign": m.campaign, "host": m.host} for m in records],
        "hosts": len(side.means),
        "names": [str(host).removesuffix(f" of {side.title}") for host in side.means.index],
        "by": by,
        "traits": {key: list(values) for key, values in side.traits.items()},
        "benchmarks": rows,
    }
    return _reference(REFERENCES.save(root, name, content))


def _of_hosts(logs: pd.Series) -> list[float | None]:
    """The figure of each host, in the order of the side; of a single one ``mean`` has it."""
    return [None if math.isnan(value) else float(value) for value in logs] if len(logs) > 1 else []


def _means(side: Side) -> pd.Series:
    """The mean of the side's hosts, by title: where hosts lack some of a class, by the model that a comparison has."""
    means = side.means.mean()
    scored = side.benchmarks[side.benchmarks["kind"] != Kind.GUARDRAIL]
    for _, of in scored.groupby("class"):
        titles = [str(title) for title in of.index]
        with contextlib.suppress(mixed.TooFewError):
            means.update(pd.Series(mixed.fit(side.means.reindex(columns=titles).to_numpy(float)).means, titles))
    return means


def _weights(side: Side, kinds: pd.DataFrame | None) -> dict[str, float]:
    """The weight of each title within its class; guardrails have none."""
    scored = side.benchmarks[side.benchmarks["kind"] != Kind.GUARDRAIL]
    quantity = {str(t): str(q) for t, q in scored["quantity"].items() if q}
    weights = pinned_weights(side.means, scored["class"], kinds, quantity)
    return dict.fromkeys(map(str, side.benchmarks.index), 0.0) | weights


def load(root: Path, name: str) -> Reference:
    """The reference ``name`` (its latest version) or ``name@2``. Raises FleetmarkError where there is none."""
    return REFERENCES.read(REFERENCES.find(root, name), _reference)


def references(root: Path) -> list[Reference]:
    """Every version of every reference, by name."""
    return [REFERENCES.read(REFERENCES.path(root, n, v), _reference) for n, v in sorted(REFERENCES.versions(root))]


def _reference(doc: Mapping[str, Any]) -> Reference:
    rows = pd.DataFrame(doc["benchmarks"]).set_index("title")
    older = "kind" not in rows  # of a version whose classes held several kinds
    described = [about(*v) for v in rows[["workload", "case", "metric", "class", "unit", "better"]].to_numpy().tolist()]
    if older:
        rows["class"], rows["kind"] = [a.class_ for a in described], [a.kind for a in described]
    rows["limit"] = np.array([math.nan if a.limit is None else a.limit for a in described], float)
    rows["quantity"] = [a.quantity for a in described]
    sizes = rows.reindex(columns=_SIZES).astype(float)
    title = f"{doc['name']}@{doc['version']}"
    means = _logs(title, rows, doc.get("names", ()))
    return Reference(
        doc["name"],
        doc["version"],
        doc["created"],
        doc["selector"],
        doc["hosts"],
        frozenset(str(r["campaign"]) for r in doc.get("records", ())),
        Side(title, means, rows[[*_ABOUT, *_DECLARED]].join(sizes), traits=doc.get("traits", {}), inferred=older),
        {str(t): float(w) for t, w in rows["weight"].items()},
        str(doc.get("by", "host")),
        tuple((str(r["campaign"]), str(r["host"])) for r in doc.get("records", ())),
    )


def _logs(title: str, rows: pd.DataFrame, hosts: Sequence[str]) -> pd.DataFrame:
    """A row per host, where the file has their figures; else one of means. Raises ValueError for a damaged file."""
    columns = rows["of_hosts"].to_dict() if "of_hosts" in rows else {}
    if not any(columns.values()):
        return pd.DataFrame([rows["mean"].to_dict()], index=[title])
    if {len(column) for column in columns.values()} != {len(hosts)}:
        raise ValueError("benchmarks have other numbers of hosts than there are")
    names = [f"{host} of {title}" for host in hosts]  # the candidate may have a host of that name
    return pd.DataFrame({t: np.array(column, float) for t, column in columns.items()}, index=names)
