"""SPEC CPU, 2017 and 2026: what was parsed held against a row of the corpus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fleetmark.base.measurement import Parsed, Standing
from tests.parsers.reading import value, values

SCORE = re.compile(r"(SPEC(?:rate|speed)20[0-9]{2}_(?:int|fp))_(base|peak)")
RATE = re.compile(r"([0-9]{3}\.\w+?_[rs])_(?:base_)?rate(?:_median)?")
NO_FIGURE = {"CPU", "headline_text", "n_benchmarks"}  # keys of the manifest that are no measurements


def score(parsed: Parsed, case: str, tune: str = "base") -> float | None:
    return value(parsed, f"{tune}_score", case=case)


def check_row(parsed: Parsed, expected: Mapping[str, Any]) -> None:
    """Holds what was parsed against a row of the corpus, key by key; a key that means nothing here fails."""
    metrics = {m.metric for m in parsed.measurements}
    for key, printed in expected.items():
        if match := SCORE.fullmatch(key):
            assert score(parsed, match[1], match[2]) == printed
        elif match := RATE.fullmatch(key):
            assert value(parsed, "base_ratio", case=match[1]) == printed
        elif key == "peak":
            assert printed == "Not Run" and not any(m.startswith("peak_") for m in metrics)
        elif key in ("valid", "reportable"):
            assert parsed.standing is (None if printed else Standing.ESTIMATE)
        elif key == "estimated":
            assert printed and parsed.standing is Standing.ESTIMATE
        elif key in ("copies", "threads"):
            assert set(values(parsed, f"base_{key}")) == {float(printed)}
        elif key == "geomean_of_selected_base":
            assert any(f"selected rows is {printed:.4g}" in note for note in parsed.notes)
        elif key == "consistent":
            assert any("but the geometric mean" in note for note in parsed.notes) is not printed
        elif key == "CE_benchmarks":
            assert parsed.invalid is not None and len(re.findall(r"[0-9]{3}\.\w+ base", parsed.invalid)) == printed
        else:
            assert key in NO_FIGURE
