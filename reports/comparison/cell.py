"""Lines of the first screen: a class of work, or a service, with a cell per candidate."""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.text import Message, joined, message
from planner.estimate import Estimate
from planner.ratio import Verdict

SERVERS = 100  # of the baseline, to be replaced
_BOUNDED = {
    "at least": message("at least {ratio}"),
    "at most": message("at most {ratio}"),
    "about": message("about {ratio}"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A candidate's figure of a class as text.

    ``ratio`` is empty where there is none, and ``why`` says why. ``interval``: of the average of the benchmarks;
    ``workload``: where a program of the reader's own lies, and ``workload_why``: why that is not known; ``spread``:
    the range of the benchmarks where they disagree; ``servers``: what SERVERS of the baseline become, with
    ``servers_range``. ``repeats``: the interval is of these machines alone. ``bound``: "at least", "at most" or
    "about"; ``remark``: what stands behind the figure: "2 of 4 hosts cannot". ``interval_why``: why
    there is no interval.
    """

    ratio: str = ""
    interval: str = ""
    workload: str = ""
    spread: str = ""
    servers: str = ""
    servers_range: str = ""
    verdict: str = ""
    why: str = ""
    repeats: bool = False
    estimate: Estimate | None = None
    bound: str = ""
    remark: str = ""
    workload_why: str = ""
    interval_why: str = ""

    @property
    def figure(self) -> str:
        """Return ``2.32``, ``at least 3.00``."""
        if not self.bound:
            return self.ratio
        return Message(_BOUNDED[self.bound].template, {"ratio": self.ratio})

    @property
    def amount(self) -> str:
        """Return ``2.32 (2.21–2.44)``, ``at least 3.00``."""
        return f"{self.ratio} ({self.interval})" if self.interval else self.figure

    @property
    def text(self) -> str:
        """Return ``2.32 (2.21–2.44)``, ``about 2.95, 2 of 4 hosts cannot``."""
        return joined([self.amount, self.remark])

    @property
    def needed(self) -> str:
        """Return ``44 (41–46)``."""
        return f"{self.servers} ({self.servers_range})" if self.servers_range else self.servers

    @property
    def worse(self) -> bool:
        """Return whether it gets worse, or would by its value."""
        return self.verdict == Verdict.WORSE


@dataclass(frozen=True, slots=True)
class Line:
    """A class of work with a cell per candidate. ``benchmarks``: how many are behind it; ``remark``: what its owners or
    gaps want said beside it: ``estimate, 1 of 2 benchmarks``. ``service``: it is work at equal service, not a class.
    """

    class_: str
    title: str
    kind: str
    benchmarks: int
    remark: str
    cells: tuple[Cell, ...]
    service: bool = False
