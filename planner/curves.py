"""Decide which figures are points of one curve over size."""

from __future__ import annotations

import json
import re

CURVE = 4  # sizes from which on a metric is a curve


def curve_point(label_text: str) -> tuple[str, float] | None:
    """Labels without their ``size``, as canonical JSON, and that size in bytes; None if there is none."""
    labels = json.loads(label_text)
    value = str(labels.pop("size", ""))
    if not re.fullmatch(r"\d+(\.\d+)?", value) or float(value) <= 0:
        return None
    return json.dumps(labels, sort_keys=True, separators=(",", ":")), float(value)
