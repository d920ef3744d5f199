"""InferenceX's ``agg_*.json``: one point of a sweep a document, in seconds and per GPU.

Case: ``p1024-o128-c48``. ``tput_per_gpu`` counts tokens of prompts and answers, ``output_tput_per_gpu`` those of
answers: ours is the latter, over all GPUs. ``median_intvty`` is the median over requests of 1 / TPOT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Measurement, Parsed
from parsers.kit.cut import cut, cut_in_json
from parsers.kit.text import decode, find_json, number, numbered
from parsers.serving import measurements

_TOOL = "inferencex"
_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
_SHARES = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999"}
LABELS = ("hw", "model", "framework", "precision")
_MOST = 20_000


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """The points in ``raw``. Raises ParseError where there is none."""
    text = decode(raw)
    scan = find_json(text)
    points = [d.value for d in scan.documents[:_MOST] if is_point(d.value)]
    rows = [m for point in points for m in of_point(point)]
    if not rows:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "a point of InferenceX (agg_*.json)", line=1, got=got)
    listed = text.lstrip().startswith("[") and not text.rstrip().endswith("]")
    ends = cut("the bracket that ends the list is missing") if listed else None
    return Parsed(_TOOL, tuple(rows), invalid=cut_in_json(scan) or ends)


def is_point(doc: Mapping[str, Any]) -> bool:
    """Whether a JSON object is one."""
    return "tput_per_gpu" in doc and "hw" in doc


def gpus(point: Mapping[str, Any]) -> float | None:
    """How many GPUs a point took: those of both halves where prefill and decode are apart; None where not said."""
    halves = [number(point.get(k)) for k in ("num_prefill_gpu", "num_decode_gpu")]
    if all(n is not None and n >= 0 for n in halves) and sum(n or 0.0 for n in halves) > 0:
        return sum(n or 0.0 for n in halves)
    return number(point.get("num_gpus")) or number(point.get("tp"))


def case(point: Mapping[str, Any]) -> str:
    """Its lengths and requests at once as a case's name."""
    lengths = [number(point.get(k)) for k in ("isl", "osl", "conc")]
    return "-".join(f"{word}{n:g}" for word, n in zip("poc", lengths, strict=True) if n is not None) or "point"


def figures(point: Mapping[str, Any]) -> dict[str, object]:
    """A point's figures by our names, of all its GPUs together."""
    count = gpus(point)
    rate = number(point.get("output_tput_per_gpu"))
    values: dict[str, object] = {"accelerators": count, "interactivity": point.get("median_intvty")}
    values["output_tokens_per_second"] = rate * count if rate is not None and count else None
    for theirs, ours in _TIMES.items():
        values |= {f"{ours}_{share}": point.get(f"{word}_{theirs}") for word, share in _SHARES.items()}
    return values


def of_point(point: Mapping[str, Any]) -> Iterator[Measurement]:
    """Its measurements."""
    labels = {k: str(point[k])[:120] for k in LABELS if isinstance(point.get(k), str) and point[k]}
    yield from measurements(_TOOL, case(point), figures(point), labels)
