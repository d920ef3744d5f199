"""What a rule is, and what it sees of a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, message
from planner.diagnosis.trial import Change
from planner.diagnosis.tuning.setting import Setting

KERNEL = "https://docs.kernel.org/admin-guide"
AGAIN = message("the same suite before and after, in turns")
MEMORY_AGAIN = message("the memory suite again")
NETWORK_AGAIN = message("the network suite again")
STORAGE_AGAIN = message("the storage suite again")
OF_MEMORY = ("mem-bw", "mem-latency", "core-bw")  # classes of metrics
OF_NETWORK = ("net", "net-flow")
OF_STORAGE = ("disk-iops", "disk-bw", "disk-latency")


@dataclass(frozen=True, slots=True)
class Share:
    """A figure of a host beside the median of ``peers`` hosts of its kind, both in the base unit."""

    title: str
    value: float
    usual: float
    peers: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A host as rules see it: its facts, and what its campaign measured.

    ``memory_bandwidth``: the best with all cores, B/s. ``remote_bandwidth``: the lowest share of its own node's
    bandwidth that a node reaches in another's memory. ``mtus``: frame sizes of active interfaces, by link speed, over
    all hosts of its kind. ``responsive``: a latency was measured. ``stolen``, ``waited``: shares of the CPU time that
    the hypervisor took, and of the time in which something waited for a CPU, of the worst run. ``clock``: the highest
    mean clock of a run that kept the CPUs busy, Hz. ``slowed``: reason to the highest share of a run's samples in which
    an accelerator was slowed down by it. ``collective``: its
    lowest share of its peers' bandwidth. ``gpu_direct``: whether collectives' logs show GPU-direct RDMA. ``trials``:
    what a setting changed, by the name of the rule.
    """

    facts: Facts
    memory_bandwidth: float | None = None
    remote_bandwidth: float | None = None
    mtus: Mapping[float, Counter[int]] = field(default_factory=dict)
    responsive: bool = False
    stolen: float | None = None
    waited: float | None = None
    clock: float | None = None
    slowed: Mapping[str, float] = field(default_factory=dict)
    collective: Share | None = None
    gpu_direct: bool | None = None
    trials: Mapping[str, Sequence[Change]] = field(default_factory=dict)

    @property
    def physical(self) -> bool:
        """Whether nothing says that it is a virtual machine or a container."""
        return self.facts.virtualisation in (None, "none")


@dataclass(frozen=True, slots=True)
class Rule:
    """``inputs``: what it needs; ``evidence``: what it says of a host, None where it has nothing to say. ``retest``:
    how to see whether it helped; ``classes``: of the metrics that show it, all headlines where there are none.
    ``setting``: what to set for a trial, None where nothing can be set and put back at run time. ``measured``: whether
    its evidence is a measured loss, else it is a fact only.
    """

    number: int
    name: str
    inputs: str
    evidence: Callable[[Subject], Message | None]
    suggestion: Message
    retest: Message
    source: str
    measured: bool = False
    classes: tuple[str, ...] = ()
    setting: Callable[[Subject], Setting | None] | None = None

    @property
    def reversible(self) -> bool:
        """Whether it can be tried: set, measured and put back."""
        return self.setting is not None
