"""Define the findings of a diagnosis: plain values, from which every document makes its sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

from fleetmark.planner.diagnosis.confirm import Settled, Verdict


class Kind(StrEnum):
    """Name the kind of a fault."""

    SLOW = "slow"  # a host, in one benchmark
    TAIL = "tail"  # a host whose slow runs are slower than others'
    NODE = "node"  # a host, in what it measured with others
    LINK = "link"  # between two hosts
    GROUPS = "groups"  # hosts that are slow together: by a fact or label that they share, or unexplained
    BORDER = "border"  # pairs across the border of a place, or over its uplink
    REGRESSION = "regression"  # against what was saved earlier


@dataclass(frozen=True, slots=True)
class Finding:
    """``host`` (and ``other``, of a link) in one ``benchmark`` (its KEY columns, ``better`` and ``class``).

    ``deficit``: the share that is missing against the ``expected`` value (base unit) of ``n`` peers; of a tail the mean
    over its quantiles. ``value``: the host's own. ``either``: the link, or one of its ends, which has too few partners
    to tell. ``z``: in spreads of the peers; ``q``: the false discovery rate at which it counts; ``sure``: chance is
    ruled out at 1%, else a repeat has to confirm it. ``mixed``: the peers' firmware differs. ``members``: the hosts of
    the slower group, slowest first; ``because``: facts and labels that all slow hosts share and no other host has (the
    name, the value of the slow, those of the others). ``interval``: 95% of the deficit of a group; ``tried``: the
    number of groups that were compared; ``populations``: of a group without such a fact, how many there are at least.
    ``uplink``: the border is between one place and all others.
    ``evidence``: raw files, relative to the campaign. ``settled``: what a repeat showed, None where nobody repeated it.
    """

    kind: Kind
    host: str
    benchmark: Mapping[str, str]
    _: KW_ONLY
    deficit: float
    value: float
    expected: float
    n: int
    z: float = 0.0
    q: float = 0.0
    sure: bool = True
    other: str = ""
    either: bool = False
    mixed: bool = False
    cohort: str = ""
    members: tuple[str, ...] = ()
    because: tuple[tuple[str, str, str], ...] = ()
    evidence: tuple[str, ...] = field(default=())
    worst: float = 0.0  # of a tail: how far its slowest run lies below its own median, a share
    usual: float = 0.0  # the same of its peers
    settled: Settled | None = None
    interval: tuple[float, float] | None = None
    tried: int = 0
    populations: int = 0
    uplink: bool = False

    @property
    def place(self) -> str:
        """Return the facts and labels that a group shares: ``BIOS 2.1, rack r3``."""
        return ", ".join(f"{name} {value}" for name, value, _ in self.because)

    @property
    def cleared(self) -> bool:
        """Return whether a repeat showed no sign of it."""
        return self.settled is not None and self.settled.verdict is Verdict.CLEARED
