"""Convert InferenceX's points (``agg_*.json``) to machines: an accelerator with a framework, model and precision.

A machine is ``hw framework precision``, and each point is one of its loads. Points have the same names as the figures
of Fleetmark's client, so both can be shown on one frontier. Each point is a single run, so the differences between
hosts are unknown. The number of accelerators differs from point to point, so a machine's price and power refer to one
accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.kinds import kind_of_class
from fleetmark.base.measurement import Better, Kind
from fleetmark.parsers.inferencex import case, failed, figures, gpus, point_of, power
from fleetmark.parsers.kit.text import decode, find_json, number
from fleetmark.parsers.published import Collector, Row, Table
from fleetmark.parsers.published.clients import closed_loop
from fleetmark.parsers.published.files import unpacked, words
from fleetmark.parsers.serving import measurements

TRAITS: tuple[str, ...] = ("precision",)
MODEL: tuple[str, ...] = ()
KIND: tuple[str, ...] = ("hw",)
COUNTS: Mapping[str, str] = {}
UNIFORM: Mapping[str, str] = {"hw": "accelerator", "precision": "precision"}
PUBLISHER = ""
_WORKLOAD = "llm_serve"
_MOST = 200_000


def read(raw: bytes, name: str = "") -> Table:
    """Return the points in ``raw``; ``name`` is not needed.

    Raise FleetmarkError if there are no points or the file is damaged.
    """
    scan = find_json(decode(unpacked(raw, parsers.MAX_BYTES)))
    if scan.broken:
        problem = scan.broken[0]
        raise FleetmarkError(
            f"the JSON is damaged or incomplete (line {problem.error_line}: {problem.reason}); fetch the file again"
        )
    points = [(point, d.line) for d in scan.documents[:_MOST] if (point := point_of(d.value))]
    if not points:
        raise FleetmarkError("no point of InferenceX (agg_*.json, with hw and tput_per_gpu) in it")
    collector = Collector()
    for point, line in points:
        if failed(point):
            collector.leave("whose run failed")
            continue
        machine = " ".join(filter(None, (words(point.get(k)) for k in ("hw", "framework", "precision"))))
        count = gpus(point)
        if not machine or not count:
            collector.leave("without hw, or the number of GPUs")
            continue
        labels = {k: words(point.get(k)) for k in ("hw", "framework", "precision")} | {"gpus": "1"}
        for row in _rows(point, machine, f"line {line}"):
            collector.add(machine, {}, labels, row)
    return collector.table(len(points))


def _rows(point: Mapping[str, Any], machine: str, place: str) -> Iterator[Row]:
    labels = {"model": words(point.get("model"))}
    several = [k for k in ("pp", "pcp_size") if (number(point.get(k)) or 0) > 1]
    layout = [f"{k}{words(point.get(k))}" for k in ("tp", *several, "ep") if words(point.get(k))]
    name = "-".join([case(point), *layout])
    for m in (*measurements(_WORKLOAD, name, figures(point), labels), *power(_WORKLOAD, name, point)):
        work = m.metric.startswith("output_tokens_per") and not closed_loop(m.case)
        class_ = "gpu-server" if work else "gpu-latency"
        kind: Kind | None = None if m.better == Better.NONE else kind_of_class(class_)
        yield Row(machine, m, class_, kind, place, headline=m.better == Better.HIGHER)
