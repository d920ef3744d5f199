"""Parse SPEC CPU 2017: CSV, text and raw (.rsf) reports, or runcpu's log if a run was interrupted before any report.

Case: the benchmark as printed (``500.perlbench_r``). Metrics, each for base and peak: ``base_ratio`` (1, higher) and
``base_time`` (s, lower) of the selected run; ``base_run_ratio`` and ``base_run_time`` of every iteration, by the label
``iteration``; ``base_copies``, ``base_threads`` (1, none); where power was measured ``base_energy`` (J, lower),
``base_avg_power``, ``base_max_power`` (W, lower) and ``base_energy_ratio`` (1, higher). For the suite as a whole the
case is ``SPECrate2017_int`` and the like, the metric ``base_score`` (1, higher). Times of the workloads test and train,
which have no ratios, carry the label ``size``: they compare with no others.

A score is held against the geometric mean of its rows, and left out where SPEC's tools made it of a part of the suite
because the rest was not run. A result that is not declared reportable is an estimate; one in which a benchmark failed
is invalid, and what finished is kept. The banner INVALID RUN alone does not make it so where all its reasons are
formal, as in every run without ``--reportable``: the standing says that. So is a report that is cut: without both of
its scores, a raw result without a run's status, a log that does not say it finished.

Source: SPEC CPU 2017 v1.0 to v1.1.9, its run rules (the median of 3 runs, the slower of 2) and its tools' reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.spec_cpu.checks import CPU2017, read


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the results in ``raw``. ``command`` is not needed, because SPEC's tools print what they ran.

    Raise ParseError if no benchmark finished, and for the results of another suite.
    """
    return read(CPU2017, raw)
