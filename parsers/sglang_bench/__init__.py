"""Parse the JSON lines and table of ``python -m sglang.bench_serving``, which uses vLLM's names and definitions.

Case and metrics as in ``parsers/vllm_bench``. ITL is the time between pieces of the stream; with SGLang's own
interface, it is divided by the tokens in a piece. The number of failed requests is only in the details
(``--output-details``: ``errors``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers import vllm_bench

_TOOL = "sglang_bench"
_UNKNOWN = "the number of failed requests is missing: run it with --output-details"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the runs in ``raw``. Raise ParseError if there is none."""
    try:
        parsed = vllm_bench.parse(raw, command)
    except ParseError as error:
        raise ParseError(_TOOL, "the result of sglang.bench_serving", line=error.line, got=error.got) from None
    rows = tuple(replace(m, workload=_TOOL) for m in parsed.measurements)
    known = any(m.metric == "failures" for m in rows)
    notes = parsed.notes if known else (*parsed.notes, _UNKNOWN)
    return replace(parsed, tool=_TOOL, measurements=rows, notes=notes)
