"""Parse SPEC CPU 2017: CSV, text and raw (.rsf) reports, or runcpu's log if a run was interrupted before any report.

Case: the benchmark as printed (``500.perlbench_r``). Metrics, each for base and peak: ``base_ratio`` (1, higher) and
``base_time`` (s, lower) of the selected run; ``base_run_ratio`` and ``base_run_time`` of every iteration, by the label
``iteration``; ``base_copies``, ``base_threads`` (1, none); where power was measured ``base_energy`` (J, lower),
``base_avg_power``, ``base_max_power`` (W, lower) and ``base_energy_ratio`` (1, higher). For the whole suite, the case
is, for example, ``SPECrate2017_int``, and the metric is ``base_score`` (1, higher). Times of the workloads test and
train, which have no ratios, have the label ``size``, because they are not comparable.

A score is checked against the geometric mean of its rows. It is omitted if only a part of the suite was run. A result
that is not declared reportable is an estimate. A result with a failed benchmark is invalid, but finished benchmarks are
kept. INVALID RUN with only formal reasons, as in every run without ``--reportable``, affects the standing but does not
make the result invalid. Truncated reports are invalid: those without both scores, raw results that lack a run's status,
and logs that do not say that runcpu finished.

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
