"""Explain the rules by which the figures of a comparison are computed, as text that all documents share."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Comparison
from fleetmark.planner.contrast import Pairing

DEGREES = (
    message("Degrees of freedom"),
    message(
        "Welch's degrees of freedom are not whole numbers, and Excel's TINV and TDIST would truncate them. BETAINV and "
        "BETADIST give the same distribution without truncation."
    ),
)  # rules about the formulas of a workbook


def method(comparison: Comparison) -> Sequence[tuple[Message, str]]:
    """Return the name of each rule, and its text."""
    interval = {
        Pairing.SAME_HOSTS: message("Student's t at 95% on each host's difference between before and after."),
        Pairing.PINNED: message(
            "Student's t at 95% over the candidate's hosts; the pinned reference is one figure without an error."
        ),
        Pairing.APART: message(
            "Welch's t interval at 95% over hosts, computed from each host's weighted sum over the class. Repeats on "
            "one host do not represent a fleet. With one host on a side, the interval describes these machines only, "
            "and there is no verdict on their types. If n hosts are compared with N, the degrees of freedom are at "
            "most (n - 1)² (1 + n / N)."
        ),
    }
    return (
        (
            message("Figure of a host"),
            message(
                "The mean of the logarithms of its passed repeats (the median for storage and network), "
                "inverted if lower is better; then the mean over campaigns."
            ),
        ),
        (
            message("Ratio"),
            message(
                "The exponential of the difference of two sides' means over hosts: 1.83 means that one candidate "
                "does the work of 1.83 baseline machines."
            ),
        ),
        (
            message("Kind"),
            message(
                "Capacity is the work that a whole machine does per unit of time. Two machines do twice as much, so "
                "one machine replaces a number of others. Responsiveness is the speed of one job, request or flow. It "
                "is never divided, and never part of a capacity headline. A guardrail is kept or broken, compared "
                "with its limit or else with the baseline. Settings are labels."
            ),
        ),
        (
            message("Class"),
            message(
                "The weighted geometric mean of its benchmarks' ratios. Highly correlated benchmarks share one weight "
                "(correlation of at least 0.98 over at least 8 compared generations; with fewer generations "
                "only identical figures do), and so do benchmarks of the same quantity, such as the memory bandwidth "
                "of all cores measured by several tools. Classes are combined only with given weights."
            ),
        ),
        (
            message("Interval"),
            joined(
                [
                    interval[comparison.pairing],
                    message(
                        "± is half of the interval, in per cent of the ratio; p is the probability of a ratio "
                        "this far from 1 if there is no difference; n is the number of hosts."
                    ),
                    message("Above ±50%, ×÷ is the factor to multiply and divide by."),
                ],
                " ",
            ),
        ),
        (
            message("Your workload"),
            message(
                "The 95% prediction interval for another workload of the class: Student's t on the spread of the "
                "benchmark ratios, plus the variance of the fleet. Redundant benchmarks and benchmarks of one family "
                "count once. The interval requires three families and two hosts per side. It is not given beyond a "
                "factor of 3 either way."
            ),
        ),
        (
            message("Verdict"),
            message(
                "better, worse: the interval lies on that side of 1. same: all of it lies within 1% of 1. cannot tell: "
                "neither."
            ),
        ),
        (
            message("Many verdicts"),
            message(
                "The p value and verdict of a benchmark are adjusted for all benchmarks of the candidate, and those "
                "of a class for all its classes (Benjamini-Hochberg). At most about 5% of the results called better "
                "or worse are false. A class with one benchmark has the verdict of that benchmark, unless it is based "
                "on totals or strata. A mix is a single test and is not adjusted. Guardrails without a limit are "
                "tested together. If n hosts are compared with N, these tests have at most (n - 1) (1 + n / N) "
                "degrees of freedom."
            ),
        ),
        (
            message("Lowest and highest"),
            message(
                "The lowest and highest benchmarks of a class are selected by value, so both are extreme partly by "
                "chance. With m benchmarks, their intervals have the level 1 - 0.05 × 2 / m (Benjamini and "
                "Yekutieli)."
            ),
        ),
        (
            message("Clusters"),
            message(
                "If hosts with the same batch, rack, BIOS or microcode are similar (intraclass correlation above "
                "0.2), the interval counts these clusters instead of hosts and uses the cluster-robust variance CR2."
            ),
        ),
        (
            message("Totals"),
            message(
                "If the ratio of arithmetic means of the hosts' scores differs from the class by more than 2%, it is "
                "the headline of capacity, with Fieller's interval. There is none if the baseline's mean may be 0."
            ),
        ),
        (
            message("Strata"),
            message(
                "Sides that mix sizes are compared within each size. The logarithms are averaged by the baseline's "
                "shares; their variances add, with Satterthwaite's degrees of freedom."
            ),
        ),
        (
            message("Coverage"),
            message(
                "A headline covers the benchmarks that both sides measured, or the named panel. Unmatched "
                "benchmarks are listed, not penalised. Hosts with missing figures are kept: a mixed model (an "
                "intercept per host, REML) estimates each side. The variance is the larger of the model's "
                "and the cluster-robust variance (CR2; with two hosts only CR2), with Satterthwaite's degrees of "
                "freedom. Nothing is imputed."
            ),
        ),
        (
            message("Never compared"),
            message(
                "Runs that did not pass, different units, zero or negative values, and benchmarks of one side only."
            ),
        ),
        *_per(comparison.per),
    )


def _per(per: str) -> Sequence[tuple[Message, str]]:
    if per == "server":
        return ()
    text = message(
        "Each capacity figure is divided by the number of these units in its host. Responsiveness and guardrails "
        "are not divided, because half the cores do not halve a latency."
    )
    return ((message("Per {per}", per=word(per)), text),)
