"""How the figures of a comparison are computed: the one text of every document."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from planner.comparison import Comparison
from planner.equivalence import Pairing

DEGREES = (
    message("Degrees of freedom"),
    message(
        "Welch's are no whole number, which Excel's TINV and TDIST would cut off: BETAINV and BETADIST give the same "
        "distribution without."
    ),
)  # of a workbook's formulas


def method(comparison: Comparison) -> Sequence[tuple[Message, str]]:
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
        (
            message("Interval"),
            joined(
                [
                    interval[comparison.pairing],
                    message(
                        "± is half of it, in per cent of the ratio; p is how likely a ratio so far from 1 is where "
                        "there is no difference; n counts hosts."
                    ),
                    message("Beyond ±50% it is not even any more: ×÷ is the factor that it reaches either way."),
                ],
                " ",
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
            message("Many benchmarks"),
            message(
                "Each ratio is judged by itself: of 100 benchmarks without a difference, about 5 will look better or "
                "worse."
            ),
        ),
        (
            message("Coverage"),
            joined(
                [
                    message(
                        "A benchmark that one side lacks costs its weight. Below 80% there is no headline; below 100% "
                        "the interval is wider, by how far the known benchmarks lie apart. Nothing is imputed."
                    ),
                    message(
                        "A host that lacks one of a class's benchmarks is not in the class's headline, nor in the "
                        "range beside it, but in the ratios of the others."
                    ),
                ],
                " ",
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
        "Each figure is divided by what its host had of it. What cannot be shared out, a latency say, is left out."
    )
    return ((message("Per {per}", per=word(per)), text),)
