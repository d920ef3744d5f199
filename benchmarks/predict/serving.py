"""Hold predictions of LLM serving to InferenceX's public points, leaving one chip out at a time.

``python -m benchmarks.predict.serving FILES [--write]``: InferenceX's ``agg_*.json``. Repeats of a setting count once,
by their medians. Points of several nodes, with separate prefill, or with speculative decoding are left out. ``--write``
also fits all points and writes ``efficiencies.yml``, which ``fleetmark predict serve`` uses.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fleetmark.base.errors import FleetmarkError
from fleetmark.parsers.inferencex import failed, point_of
from fleetmark.parsers.kit.text import find_json, number
from fleetmark.planner.predict.serving.architecture import known
from fleetmark.planner.predict.serving.calibration import FILE, LEVEL, METRICS, Calibration
from fleetmark.planner.predict.serving.chips import from_sheet
from fleetmark.planner.predict.serving.fit import Errors, Point, covered, errors_of, fit, left_out, widths
from fleetmark.planner.predict.serving.roofline import SIZES, Layout

_MODELS = {"dsr1": "deepseek-r1", "gptoss": "gpt-oss-120b", "70b": "llama-3.3-70b"}  # by InferenceX's prefix
_TRUE = ("true", "1")
# InferenceX draws lengths evenly from 0.8 to 1 times the nominal one (RANDOM_RANGE_RATIO of its scripts).
_MEAN_LENGTH = 0.9
HEAD = (
    "chip left out",
    "points",
    "engine known on its generation",
    *(f"median error of {m}" for m in ("TTFT", "TPOT", "tokens/s")),
    *(f"{m} in the interval" for m in ("TTFT", "TPOT", "tokens/s")),
)


def points_of(documents: Iterable[Mapping[str, Any]]) -> list[Point]:
    """Return a point for each setting, with the medians of its repeats."""
    repeats: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for document in documents:
        point = point_of(document)
        if point and (setting := _setting(point)):
            repeats[setting].append(point)
    return [_point(setting, group) for setting, group in repeats.items()]


def _setting(point: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return what makes a setting; None for a point that is not predicted."""
    model = _MODELS.get(str(point.get("infmax_model_prefix")))
    apart = any(str(point.get(k)).lower() in _TRUE for k in ("disagg", "is_multinode"))
    sizes = tuple(number(point.get(k)) for k in ("isl", "osl", "conc", "tp", "ep"))
    times = [number(point.get(k)) for k in ("median_ttft", "median_tpot", "output_tput_per_gpu")]
    if failed(point) or apart or model is None or str(point.get("spec_decoding", "none")) != "none":
        return None
    if point.get("precision") not in SIZES or not all(v and v > 0 for v in (*sizes[:4], *times)):
        return None
    replicated = str(point.get("dp_attention")).lower() in _TRUE
    chip = str(point["hw"]).partition("-")[0].upper()
    return (chip, model, str(point["precision"]), str(point.get("framework")), *sizes, replicated)


def _point(setting: tuple[Any, ...], repeats: Sequence[Mapping[str, Any]]) -> Point:
    chip, model, precision, software, prompt, answer, streams, gpus, experts, replicated = setting
    layout = Layout(1, int(gpus), int(experts or 1)) if replicated else Layout(int(gpus), 1, int(experts or 1))
    figures = {
        k: statistics.median(float(p[k]) for p in repeats)
        for k in ("median_ttft", "median_tpot", "output_tput_per_gpu")
    }
    return Point(
        chip=from_sheet(chip),
        model=known()[model],
        precision=precision,
        layout=layout,
        software=software,
        prompt=_MEAN_LENGTH * prompt,
        answer=_MEAN_LENGTH * answer,
        streams=streams,
        ttft=figures["median_ttft"],
        tpot=figures["median_tpot"],
        rate=figures["output_tput_per_gpu"],
    )


def typical(logs: Any) -> float:
    """Return the median error of predictions as a fraction, from logarithms of predicted by measured."""
    return math.expm1(float(np.median(np.abs(logs))))


def table(points: Sequence[Point], errors: Errors, inside: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each chip that was left out and one for all: points, median errors, coverage.

    The last row has the errors of a fit to all points.
    """
    chips = np.array(errors.chips)
    rows = []
    for name in [*dict.fromkeys(errors.chips), "all"]:
        here = np.ones(len(chips), bool) if name == "all" else chips == name
        misses = [f"{typical(errors.logs[m][here]):.0%}" for m in METRICS]
        hits = [f"{inside[m][here].mean():.0%}" for m in METRICS]
        rows.append([name, str(int(here.sum())), f"{errors.is_known[here].mean():.0%}", *misses, *hits])
    fitted = errors_of(fit(points), points)
    rows.append(["none", str(len(points)), "100%", *(f"{typical(fitted[m]):.0%}" for m in METRICS), "-", "-", "-"])
    return rows


def write(calibration: Calibration, evidence: str) -> None:
    """Write the calibration that Fleetmark ships."""
    document = {
        "efficiencies": {k: float(f"{v:.4g}") for k, v in calibration.efficiencies.items()},
        "paces": {g: {k: float(f"{v:.4g}") for k, v in pace.items()} for g, pace in calibration.paces.items()},
        "widths": {k: {m: float(f"{v:.3g}") for m, v in row.items()} for k, row in calibration.widths.items()},
        "errors": {k: float(f"{v:.3g}") for k, v in calibration.errors.items()},
        "coverage": {k: float(f"{v:.3g}") for k, v in calibration.coverage.items()},
    }
    head = f"# Written by python -m benchmarks.predict.serving --write. {evidence}\n"
    FILE.write_text(head + yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def main() -> None:
    """Print the errors and the coverage on chips that were left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="InferenceX's agg_*.json")
    parser.add_argument("--write", action="store_true", help="write efficiencies.yml from all points")
    options = parser.parse_args()
    documents = [d.value for f in options.files for d in find_json(f.read_text("utf-8")).documents]
    points = points_of(documents)
    if len({p.chip.name for p in points}) < 3:
        raise FleetmarkError("fewer than 3 chips have points; name more of InferenceX's agg_*.json")
    errors, inside = left_out(points), covered(points, LEVEL)
    print(json.dumps({"columns": HEAD, "rows": table(points, errors, inside)}, indent=1))
    if options.write:
        calibration = replace(
            fit(points),
            widths=widths(errors, LEVEL),
            errors={m: typical(errors.logs[m]) for m in METRICS},
            coverage={m: float(inside[m].mean()) for m in METRICS},
        )
        write(calibration, f"{len(points)} settings of {len(set(errors.chips))} chips.")


if __name__ == "__main__":
    main()
