"""Parse the output of Fleetmark's program of training steps.

Case: the model. Metrics:

- ``step_time``, ``step_time_p50``, ``step_time_p90``: s, lower is better, of the slowest rank
- ``tokens_per_second`` or ``images_per_second``, ``steps_per_second``: 1/s, higher is better, of all devices together
- ``tokens_per_second_device`` or ``images_per_second_device``: 1/s
- ``step_time_nchw``, ``step_time_channels_last``: s, for images in each layout; the faster layout is measured
- ``mfu``, ``mfu_measured``: model operations over the declared and the measured peak
- ``communication_time`` and ``communication_exposed`` (s per step, by torch.profiler), ``communication_overlap``
- ``model_flops`` and ``matrix_peak`` (FLOP/s), ``scaling_efficiency``, ``peak_memory`` (B), ``parameters``, ``ranks``,
  ``nodes``, ``device_power_cap`` (W), ``loss`` and ``check_loss``

The run is ``invalid`` if a small model's loss differs from the loss in fp64, or if the model's loss does not decrease
or is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit import json_lines as lines
from fleetmark.parsers.kit.text import number

_TOOL = "torch_train"
_UNITS = ("tokens", "images")
_LAYOUTS = ("nchw", "channels_last")
_LATEST = 4e9  # latest valid time, in Unix seconds


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one run. Raise ParseError if there are none."""
    report = lines.read(_TOOL, raw)
    model, ranks = lines.word(report.head, "model"), lines.integer(report.head, "ranks", 1)
    timed = next((row for _, row in report.rows if lines.positive(row, "step")), None)
    checked = next((row for _, row in report.rows if "check" in row), {})
    profiled = next((row for _, row in report.rows if "communication" in row), {})
    if not model or ranks is None or timed is None or timed.get("unit") not in _UNITS:
        raise ParseError(_TOOL, "timed steps of a model", got=report.cut or str(report.head)[:120])
    measurements = [
        Measurement(_TOOL, model, name, value, unit, better=better)
        for name, value, unit, better in (
            *_rates(timed, ranks),
            *((f"step_time_{layout}", seconds, "s", Better.NONE) for layout, seconds in _layouts(timed).items()),
            *_communication(profiled),
            *_described(report.head, timed, checked),
        )
        if math.isfinite(value)
    ]
    invalid = _wrong(checked, timed) or report.cut
    version = " ".join(filter(None, [lines.word(report.head, "torch"), lines.word(report.head, "precision")]))
    alone = "the model does not fit one device: no scaling efficiency"
    notes = [alone] if ranks > 1 and not lines.positive(timed, "alone") else []
    if layouts := _layouts(timed):
        notes.append(f"the layout {min(layouts, key=lambda name: layouts[name])} of images is the faster one")
    return Parsed(_TOOL, tuple(measurements), version or None, invalid, tuple(notes), window=_window(timed))


def _rates(timed: dict[str, Any], ranks: int) -> Iterator[tuple[str, float, str, Better]]:
    step, units = lines.positive(timed, "step"), lines.positive(timed, "units")
    if step is None:
        return
    yield "step_time", step, "s", Better.LOWER
    for name in ("p50", "p90"):
        if value := lines.positive(timed, name):
            yield f"step_time_{name}", value, "s", Better.LOWER
    yield "steps_per_second", 1 / step, "1/s", Better.HIGHER
    if units:
        yield f"{timed['unit']}_per_second", units / step, "1/s", Better.HIGHER
        yield f"{timed['unit']}_per_second_device", units / step / ranks, "1/s", Better.NONE
    if flops := lines.positive(timed, "flops"):
        yield "model_flops", flops / step, "FLOP/s", Better.NONE
        for name, peak_name in (("mfu", "peak"), ("mfu_measured", "matrix_peak")):
            if peak := lines.positive(timed, peak_name):
                yield name, flops / step / ranks / peak, "1", Better.NONE
    if single := lines.positive(timed, "alone"):
        yield "scaling_efficiency", single / step, "1", Better.NONE  # equal samples per device


def _layouts(timed: dict[str, Any]) -> dict[str, float]:
    """Return the seconds of a step for each layout of images; empty for models of tokens."""
    seconds = timed.get("layouts")
    measured = {name: lines.positive(seconds, name) for name in _LAYOUTS} if isinstance(seconds, dict) else {}
    return {name: value for name, value in measured.items() if value is not None}


def _communication(row: dict[str, Any]) -> Iterator[tuple[str, float, str, Better]]:
    total, exposed = lines.positive(row, "communication"), number(row.get("exposed"))
    if total is None or exposed is None or not 0 <= exposed <= total:
        return
    yield "communication_time", total, "s", Better.NONE
    if exposed > 0:
        yield "communication_exposed", exposed, "s", Better.NONE
    yield "communication_overlap", 1 - exposed / total, "1", Better.NONE


def _described(
    head: dict[str, Any], timed: dict[str, Any], checked: dict[str, Any]
) -> Iterator[tuple[str, float, str, Better]]:
    for name, row, key, unit in (
        ("matrix_peak", timed, "matrix_peak", "FLOP/s"),
        ("peak_memory", timed, "memory", "B"),
        ("device_power_cap", head, "power_cap", "W"),
        ("parameters", head, "parameters", "1"),
        ("ranks", head, "ranks", "1"),
        ("nodes", head, "nodes", "1"),
        ("loss", timed, "last_loss", "1"),
        ("check_loss", checked, "check", "1"),
    ):
        if value := lines.positive(row, key):
            yield name, value, unit, Better.NONE


def _wrong(checked: dict[str, Any], timed: dict[str, Any]) -> str | None:
    """Return why the figures do not come from correct training; None if they do."""
    loss, must, tolerance = (number(checked.get(name)) for name in ("check", "must", "tolerance"))
    if loss is None or must is None or tolerance is None:
        return "the loss of the small model was not checked, or is not a number"
    if not abs(loss - must) <= tolerance * abs(must):
        return f"wrong loss: {loss:.6g} after the steps of the small model, but fp64 gives {must:.6g}"
    first, last = number(timed.get("first_loss")), number(timed.get("last_loss"))
    if first is None or last is None or not last < first:
        return f"wrong loss: it did not fall ({first} at the first step, {last} at the last)"
    return None


def _window(timed: dict[str, Any]) -> tuple[float, float] | None:
    ends = timed.get("window")
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    begin, end = number(ends[0]), number(ends[1])
    if begin is None or end is None:
        return None
    return (begin, end) if 0 < begin < end < _LATEST else None
