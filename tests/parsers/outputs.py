"""Real outputs of the tools, and which of the tools are suites and collectives."""

from __future__ import annotations

from functools import cache

from tests import corpus
from tests.parsers.reading import FIXTURES

# SPEC CPU, MLPerf and the collectives.
SUITES = (
    *("spec_cpu2017", "spec_cpu2026", "mlperf_inference", "mlperf_training", "nccl_tests", "rccl_tests"),
    "nccl_variants",
)


@cache
def seeds(tool: str) -> tuple[bytes, ...]:
    """Real outputs of ``tool``: our fixtures, and the corpus where it is at hand."""
    ours = [p for p in sorted((FIXTURES / tool).glob("*")) if p.suffix != ".md"]
    more = [p.values[0] for p in corpus.rows(tool)] if (corpus.ROOT / "MANIFEST.jsonl").exists() else []
    return tuple(p.read_bytes() for p in [*ours, *more] if p.is_file()) or (b"",)
