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
            "Welch's t at 95% over hosts, of each host's weighted sum over the class. Repeats on one host do not make "
            "a fleet: with one host on a side there is a ratio, and no interval."
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
                "Each ratio is judged by itself: of 100 benchmarks without a difference, about 5 will look better or "
                "worse."
            ),
        ),
        (
            message("Coverage"),
            message(
                "A benchmark that one side lacks costs its weight. Below 80% there is no headline; below 100% the "
                "interval is wider, by how far the known benchmarks lie apart. Nothing is imputed."
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
