"""Implement ``fleetmark predict serve``: predict how fast chips serve a language model, without running a server."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.yaml import read_yaml
from fleetmark.planner.predict.serving.architecture import Architecture, known, read
from fleetmark.planner.predict.serving.calibration import Calibration, shipped
from fleetmark.planner.predict.serving.chips import GIVEN, from_sheet, measured
from fleetmark.planner.predict.serving.frontier import Question, loads
from fleetmark.planner.predict.serving.roofline import SIZES, Chip, Layout, memory_needed
from fleetmark.record.machines import machines
from fleetmark.record.roofs import part_of
from fleetmark.record.select import choose
from fleetmark.record.sides import side
from fleetmark.reports.frontier.predicted import Predicted, document
from fleetmark.reports.kit.document import Document

_LARGEST = 4 << 20  # maximum bytes of a config.json
_MOST_GPUS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's options: names as typed, lengths in tokens, and ``speed`` in tokens per second for one user."""

    model: str
    chips: Sequence[str]
    precision: str
    tensor: Sequence[int]
    experts: Sequence[int]
    replicas: Sequence[int]
    streams: Sequence[int]
    prompt: int
    answer: int
    engine: str
    speed: float
    watts: float | None


def serve(options: Options, root: Path | None, machine: str | None) -> Document:
    """Return the prediction as a document.

    ``machine``: a selector of recorded machines in ``root``. Their measured rates replace those of the accelerator's
    data sheet. Raise FleetmarkError if a name is unknown, or if the model fits on no chip.
    """
    calibration = shipped()
    question = Question(
        model=_model(options.model),
        precision=_precision(options.precision),
        prompt=options.prompt,
        answer=options.answer,
        software=_engine(options.engine, calibration),
    )
    chips = [from_sheet(name) for name in options.chips]
    if machine and root:
        chips.append(recorded(root, machine))
    if not chips:
        raise FleetmarkError("predict serve: no chip; give --chip, such as --chip H200, or --machine")
    if len({c.name for c in chips}) < len(chips):
        raise FleetmarkError("predict serve: a chip is given twice; give each --chip once")
    if options.watts:
        chips = [replace(c, watts=options.watts, source={**c.source, "power": GIVEN}) for c in chips]
    layouts = _layouts(options, question.model)
    predicted = [
        Predicted(chip, list(loads(question, chip, _linked(chip, layouts), calibration, options.streams)))
        for chip in chips
    ]
    if empty := [p.chip for p in predicted if not p.loads]:
        raise FleetmarkError(_why_none(question, empty[0], layouts))
    return document(question, predicted, options.speed, calibration)


def _linked(chip: Chip, layouts: Sequence[Layout]) -> list[Layout]:
    """Return the layouts that can be predicted with the known data of a chip's link."""
    return [layout for layout in layouts if layout.gpus == 1 or chip.link]


def _why_none(question: Question, chip: Chip, layouts: Sequence[Layout]) -> str:
    """Return why no load of a chip can be predicted, with advice."""
    if not chip.link and min(layout.gpus for layout in layouts) > 1:
        return (
            f"{chip.name}: the link between its GPUs is not known; give --tp 1 --dp 1, or --machine with a measured "
            "all-reduce"
        )
    largest = max(_linked(chip, layouts), key=lambda layout: layout.gpus)
    needed = memory_needed(question.model, question.precision, largest)
    return (
        f"{question.model.name} in {question.precision} needs {needed / 1e9:,.0f} GB of weights on each GPU with "
        f"{largest}, and {chip.name} has {chip.size / 1e9:,.0f} GB, of which caches take a part; "
        "give more GPUs (--tp), shorter prompts, or a smaller --precision"
    )


def _layouts(options: Options, model: Architecture) -> list[Layout]:
    """Return all parallel layouts that the model's numbers of heads and experts allow."""
    every = [Layout(t, d, e) for t in options.tensor for d in options.replicas for e in options.experts]
    fitting = [
        layout
        for layout in dict.fromkeys(every)
        if model.heads % layout.tensor == 0
        and layout.gpus % layout.experts == 0
        and layout.gpus <= _MOST_GPUS
        and (layout.experts == 1 or (model.experts and model.experts % layout.experts == 0))
    ]
    if not fitting:
        raise FleetmarkError(
            f"no layout is possible: --tp must divide the {model.heads} heads of {model.name}, and --ep its "
            f"{model.experts} experts and the number of GPUs (tp x dp)"
        )
    return fitting


def _model(name: str) -> Architecture:
    """Return a known model architecture, or the architecture in a config file."""
    path = Path(name)
    if name in known():
        return known()[name]
    if path.suffix == ".json" and path.is_file():
        try:
            content = json.loads(read_bytes(path, _LARGEST, "give a model's config.json"))
        except ValueError as error:
            raise FleetmarkError(f"{path}: not JSON ({error}); give a model's config.json") from None
    elif path.is_file():
        content = read_yaml(path)
    else:
        hint = suggest(name, known())
        raise FleetmarkError(
            f"--model {name!r}: no such file or model{hint}; use a file or one of {', '.join(known())}"
        )
    if not isinstance(content, Mapping):
        raise FleetmarkError(f"{path}: not a mapping of dimensions; see docs/how-to/predict-serving.md")
    return read(content, str(path))


def _precision(name: str) -> str:
    if name not in SIZES:
        raise FleetmarkError(f"--precision {name!r}: allowed are {', '.join(SIZES)}")
    return name


def _engine(name: str, calibration: Calibration) -> str:
    if name and name not in calibration.engines():
        raise FleetmarkError(f"--engine {name!r}: no calibration points; use one of {', '.join(calibration.engines())}")
    return name


def recorded(root: Path, selector: str) -> Chip:
    """Return the accelerator of recorded machines, with their measured rates if available.

    Raise FleetmarkError if the machines do not share one kind of accelerator, or if its data sheet is unknown.
    """
    chosen = choose(machines(root), selector)
    names = {gpu.name for m in chosen if (facts := m.facts()) for gpu in facts.gpus}
    if len(names) != 1:
        listed = ", ".join(sorted(names)) or "none"
        raise FleetmarkError(
            f"--machine {selector}: its facts must name one kind of accelerator, and they name {listed}; use --chip"
        )
    return measured(from_sheet(names.pop()), _rates(side(root, selector, chosen)))


def _rates(measured_side: Any) -> dict[str, float]:
    """Return the best measured rate of each part, by the parameter names of ``chips.measured``."""
    means = measured_side.means.mean().dropna()
    rates: dict[str, float] = {}
    for title, row in measured_side.benchmarks.iterrows():
        if row["class"] == "collective":
            name = "bus" if row["unit"] == "B/s" and str(row["case"]).startswith("all_reduce") else ""
        else:
            name = _part(str(row["workload"]), str(row["case"]), str(row["metric"]), str(row["unit"]))
        if name and title in means.index:
            rates[name] = max(rates.get(name, 0.0), math.exp(float(means[title])))
    return rates


def _part(workload: str, case: str, metric: str, unit: str) -> str:
    """Return the part of a chip that a benchmark measured; empty if serving does not depend on the part."""
    held = part_of(workload, case, metric, unit)
    if held is None:
        return ""
    if held.part == "device_compute":
        return held.peak_name(case)
    return {"device_memory": "memory", "gpu_link": "pair"}.get(held.part, "")
