"""Group figures that are points of one curve over size."""

from __future__ import annotations

import json
import re

CURVE = 4  # minimum number of sizes that make a metric a curve


def curve_point(label_text: str) -> tuple[str, float] | None:
    """Return the labels without ``size`` as canonical JSON, and the size in bytes; None if there is no size."""
    labels = json.loads(label_text)
    value = str(labels.pop("size", ""))
    if not re.fullmatch(r"\d+(\.\d+)?", value) or float(value) <= 0:
        return None
    return json.dumps(labels, sort_keys=True, separators=(",", ":")), float(value)
