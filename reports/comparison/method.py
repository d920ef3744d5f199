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
                "The mean of the logarithms of its repeats that passed, their median for storage and network, "
                "inverted where lower is better; then the mean over campaigns."
            ),
        ),
        (
            message("Ratio"),
            message(
                "The exponential of the difference of two sides' means over hosts: 1.83 says that one candidate does "
                "the work of 1.83 of the baseline."
            ),
        ),
        (
            message("Kind"),
            message(
                "Capacity is work that a whole machine gets done in a time: two do twice as much, so one is worth so "
                "many of another. Responsiveness is how fast one job, request or flow goes: so many times as fast. It "
                "is never shared out, and in no headline of capacity. A guardrail is a condition: kept or broken, "
                "against its limit, or else against the baseline. Settings are labels."
            ),
        ),
        (
            message("Class"),
            message(
                "The weighted geometric mean of its benchmarks' ratios. Benchmarks that rank machines alike share one "
                "weight (correlation of at least 0.98 over at least 8 compared generations; with fewer generations "
                "only identical figures do), and so do those that measure the same, such as memory bandwidth over all "
                "cores by several tools. Classes are mixed only by weights that are given."
            ),
        ),
        (
            message("Interval"),
            joined(
                [
                    interval[comparison.pairing],
                    message(
                        "± is half of it, in per cent of the ratio; p is how likely a ratio so far from 1 is if "
                        "there is no difference; n counts hosts."
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
                "A headline is over what both sides measured, or a panel that is named; unmatched benchmarks "
                "are listed, not penalised. Hosts that lack some of it stay: a mixed model (an intercept per host, "
                "REML) gives each side, the larger of its own and the cluster-robust variance (CR2; with two "
                "hosts only this) the interval, Satterthwaite the degrees of freedom. Nothing is imputed."
            ),
        ),
        (
            message("Never compared"),
            message(
                "Runs that did not pass, units that differ, values that are zero or negative, benchmarks of one side "
                "only."
            ),
        ),
        *_per(comparison.per),
    )


def _per(per: str) -> Sequence[tuple[Message, str]]:
    if per == "server":
        return ()
    text = message(
        "Each figure of capacity is divided by what its host had of it. Responsiveness and guardrails stay as they "
        "are: half the cores do not halve a latency."
    )
    return ((message("Per {per}", per=word(per)), text),)
