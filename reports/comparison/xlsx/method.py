"""How the figures of a comparison are computed, in the same sentences as on the page."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import Message, message
from planner.comparison import Comparison
from planner.equivalence import Pairing


def method(comparison: Comparison) -> Sequence[tuple[Message, Message]]:
    """The name of each rule, and the rule."""
    interval = {
        Pairing.SAME_HOSTS: message("Student's t at 95% on each host's difference between before and after."),
        Pairing.PINNED: message(
            "Student's t at 95% over the candidate's hosts; the pinned reference is taken as it is."
        ),
        Pairing.APART: message(
            "Welch's t at 95% over hosts, of each host's weighted sum over the class. Repeats on one host do not "
            "make a fleet: with one host on a side they give an interval of these machines, and no verdict on "
            "their kinds."
        ),
    }
    return (
        (
            message("Figure of a host"),
            message(
                "The mean of the logarithms of its repeats that passed, their median for storage and network, turned "
                "so that more is better; then the mean over campaigns."
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
            message("Class"),
            message(
                "The weighted geometric mean of its benchmarks' ratios. Benchmarks that rank machines alike share one "
                "weight (correlation of 0.98 and above over at least 8 generations on record; below that only "
                "identical figures do). Classes are mixed only by weights that are given."
            ),
        ),
        (message("Interval"), interval[comparison.pairing]),
        (
            message("Verdict"),
            message(
                "better, worse: the interval lies on that side of 1. same: all of it lies within 1% of 1. cannot tell: "
                "neither."
            ),
        ),
        (
            message("Many benchmarks"),
            message(
                "p and verdict of a benchmark count all benchmarks of the candidate (Benjamini-Hochberg): of what is "
                "called better or worse, at most about 5% is not."
            ),
        ),
        (
            message("Coverage"),
            message(
                "A headline is over what both sides measured, or a panel that is named; what one side lacks is listed"
                " and takes nothing from it. Hosts that lack some of it stay: a mixed model (an intercept per host, "
                "REML) gives each side, the larger of its own and the cluster-robust variance (CR2) the interval, "
                "Satterthwaite the degrees of freedom. Nothing is imputed."
            ),
        ),
        (
            message("Degrees of freedom"),
            message(
                "Welch's are no whole number, which Excel's TINV and TDIST would cut off: BETAINV and BETADIST give "
                "the same distribution without."
            ),
        ),
    )
