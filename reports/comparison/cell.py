"""Define the lines of the first screen: one class of work or service, with one cell per candidate."""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Verdict

_BOUNDED = {
    "at least": message("at least {ratio}"),
    "at most": message("at most {ratio}"),
    "about": message("about {ratio}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A candidate's result for a class as text.

    - ``ratio``: the ratio, or empty if there is none; ``reason`` then gives the reason
    - ``interval``: the confidence interval of the average over benchmarks; if there is none, ``interval_why`` gives
      the reason
    - ``workload``: the prediction interval for another workload; if unknown, ``workload_why`` gives the reason
    - ``spread``: the range of the benchmark ratios, if they disagree
    - ``servers``, ``servers_range``, ``needed_servers``: how many servers replace those of the baseline, as text and as
      a number
    - ``repeats``: True if the interval applies to these machines only
    - ``bound``: "at least", "at most" or "about"
    - ``remark``: a note on the figure, such as "2 of 4 hosts miss the target"
    """

    ratio: str = ""
    interval: str = ""
    workload: str = ""
    spread: str = ""
    servers: str = ""
    servers_range: str = ""
    needed_servers: int | None = None
    verdict: str = ""
    reason: str = ""
    repeats: bool = False
    estimate: Estimate | None = None
    bound: str = ""
    remark: str = ""
    workload_why: str = ""
    interval_why: str = ""

    @property
    def figure(self) -> str:
        """Return the ratio with its bound, such as ``2.32`` or ``at least 3.00``."""
        if not self.bound:
            return self.ratio
        return Message(_BOUNDED[self.bound].template, {"ratio": self.ratio})

    @property
    def amount(self) -> str:
        """Return the ratio with its interval or bound, such as ``2.32 (2.21–2.44)`` or ``at least 3.00``."""
        return f"{self.ratio} ({self.interval})" if self.interval else self.figure

    @property
    def text(self) -> str:
        """Return the amount and its remark, such as ``about 2.95, 2 of 4 hosts miss the target``."""
        return joined([self.amount, self.remark])

    @property
    def needed(self) -> str:
        """Return the number of servers with its range, such as ``44 (41–46)``."""
        return f"{self.servers} ({self.servers_range})" if self.servers_range else self.servers

    @property
    def worse(self) -> bool:
        """Return whether the verdict is worse."""
        return self.verdict == Verdict.WORSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A class of work with one cell per candidate.

    - ``benchmarks``: the number of benchmarks in the class
    - ``remark``: required notes and gaps, such as ``estimate, 1 of 2 benchmarks``
    - ``service``: True for work at equal service instead of a class
    """

    class_: str
    title: str
    kind: str
    benchmarks: int
    remark: str
    cells: tuple[Cell, ...]
    service: bool = False
