"""Define the findings of a diagnosis as plain values, from which every document forms its sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

from fleetmark.planner.diagnosis.confirm import Settled, Verdict


class Kind(StrEnum):
    """The kind of a fault."""

    SLOW = "slow"  # a host in one benchmark
    TAIL = "tail"  # a host with slow runs that are slower than those of its peers
    NODE = "node"  # a host in its measurements with other hosts
    LINK = "link"  # a link between two hosts
    GROUPS = "groups"  # hosts that are slow together: they share a fact or label, or the cause is unknown
    BORDER = "border"  # pairs of hosts across the border of a place, or over its uplink
    REGRESSION = "regression"  # a change since an earlier campaign or reference


@dataclass(frozen=True, slots=True)
class Finding:
    """The fault of ``host`` (and ``other``, for a link) in one ``benchmark``.

    ``benchmark`` has its KEY columns, ``better`` and ``class``.

    - ``deficit``: the missing share of the ``expected`` value (base unit) of ``n`` peers; for a tail, the mean over its
      quantiles
    - ``value``: the value of the host
    - ``either``: True if the link or one of its ends is at fault, and the end has too few partners to decide
    - ``z``: the distance from the peers in units of their spread; ``q``: the false discovery rate at which the finding
      counts
    - ``sure``: True if chance is ruled out at 1%; otherwise, a repeat must confirm the finding
    - ``mixed``: True if the peers have other firmware
    - ``members``: the hosts of the slower group, slowest first
    - ``because``: the facts and labels that all slow hosts share and no other host has, each with its name, the value
      of the slow hosts and those of the other hosts
    - ``interval``: the 95% interval of a group's deficit; ``tried``: the number of groups that were compared
    - ``populations``: for a group without such a fact, the minimum number of groups
    - ``uplink``: True if the border is between one place and all others
    - ``evidence``: raw files, relative to the campaign
    - ``settled``: the result of a repeat, or None if there was none
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
    worst: float = 0.0  # for a tail: the distance of its slowest run below its median, as a share
    usual: float = 0.0  # the same for its peers
    settled: Settled | None = None
    interval: tuple[float, float] | None = None
    tried: int = 0
    populations: int = 0
    uplink: bool = False

    @property
    def place(self) -> str:
        """Return the facts and labels that a group shares, such as ``BIOS 2.1, rack r3``."""
        return ", ".join(f"{name} {value}" for name, value, _ in self.because)

    @property
    def cleared(self) -> bool:
        """Return whether a repeat cleared the host."""
        return self.settled is not None and self.settled.verdict is Verdict.CLEARED
