"""Parse SPEC CPU 2026: the reports of SPEC CPU 2017, with other benchmarks (7nn rate, 8nn speed) on another scale.

Cases and metrics are those of ``spec_cpu2017``: ``base_ratio``, ``base_time``, ``base_run_time``, ``base_copies`` and
so on with the case ``706.stockfish_r``, and ``base_score`` with the case ``SPECrate2026_int``. Results of the two
suites are never mixed: each parser refuses the results of the other suite, and names its parser.

Source: SPEC CPU 2026 v1.0, its run rules and its tools' reports. Rolling round-robin runs (``--rrrrate``) have no
ratios, no score and different tables, and are not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.spec_cpu.checks import CPU2026, read


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the results in ``raw``. ``command`` is not needed, because SPEC's tools print what they ran.

    Raise ParseError if no benchmark finished, and for the results of another suite.
    """
    return read(CPU2026, raw)
