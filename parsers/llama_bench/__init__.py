"""Parse llama.cpp's ``llama-bench`` (``-o json``, ``-o jsonl``): one sequence, without a server.

Case: ``pp512`` (a prompt of 512 tokens), ``tg128`` (128 tokens generated), ``pp512+tg128``; the suffix ``@d4096`` is
the number of tokens in the context before the test. Metric: ``tokens_per_second`` in 1/s, the tool's mean over its
repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_json
from fleetmark.parsers.kit.text import decode, find_json, number, numbered

_TOOL = "llama_bench"
_MOST = 10_000


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the tests in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    tests = [d.value for d in scan.documents[:_MOST]]
    rows = [m for test in tests for m in _row(test)]
    if not rows:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "a test of llama-bench -o json or jsonl", line=1, got=got)
    listed = text.lstrip().startswith("[")
    ends = cut("the bracket that ends the list is missing") if listed and not text.rstrip().endswith("]") else None
    build = tests[0].get("build_commit")
    version = f"{build} ({tests[0].get('build_number')})" if isinstance(build, str) else None
    return Parsed(_TOOL, tuple(rows), version=version, invalid=cut_in_json(scan) or ends)


def _row(row: Mapping[str, Any]) -> Iterator[Measurement]:
    rate = number(row.get("avg_ts"))
    prompt, generated, depth = (number(row.get(k)) or 0.0 for k in ("n_prompt", "n_gen", "n_depth"))
    if not rate or rate < 0 or not (prompt or generated):
        return
    parts = [f"pp{prompt:g}"] * bool(prompt) + [f"tg{generated:g}"] * bool(generated)
    case = "+".join(parts) + (f"@d{depth:g}" if depth else "")
    model = row.get("model_filename")
    labels = {"model": model.rpartition("/")[2][:200]} if isinstance(model, str) and model else {}
    for key in ("n_threads", "n_gpu_layers"):
        if (count := number(row.get(key))) is not None:
            labels[key] = f"{count:g}"
    yield Measurement(_TOOL, case, "tokens_per_second", rate, "1/s", better=Better.HIGHER, labels=labels)
