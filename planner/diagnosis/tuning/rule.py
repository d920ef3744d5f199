"""Define tuning rules and the view of a host that they evaluate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis.trial import TrialChange
from fleetmark.planner.diagnosis.tuning.setting import Setting

KERNEL = "https://docs.kernel.org/admin-guide"
AGAIN = message("the same suite before and after, alternately")
MEMORY_AGAIN = message("the memory suite again")
NETWORK_AGAIN = message("the network suite again")
STORAGE_AGAIN = message("the storage suite again")
OF_MEMORY = ("mem-bw", "mem-latency", "core-bw")  # classes of metrics
OF_NETWORK = ("net", "net-flow")
OF_STORAGE = ("disk-iops", "disk-bw", "disk-latency")


@dataclass(frozen=True, slots=True)
class Share:
    """A host's figure and the median of ``peers`` hosts of its kind, both in the base unit."""

    title: str
    value: float
    usual: float
    peers: int


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts and measurements of a host that rules evaluate.

    - ``memory_bandwidth``: the highest bandwidth with all cores, in B/s
    - ``remote_bandwidth``: the lowest bandwidth to another node's memory, relative to the bandwidth to the local node's
      memory
    - ``mtus``: the frame sizes of active interfaces of all hosts of its kind, by link speed
    - ``responsive``: whether a latency was measured
    - ``stolen``: the share of CPU time that the hypervisor took, in the worst run
    - ``waited``: the share of time in which a task waited for a CPU, in the worst run
    - ``clock``: the highest mean clock of a run that kept the CPUs busy, in Hz
    - ``slowed``: by reason, the highest share of a run's samples in which this reason slowed down an accelerator
    - ``collective``: the lowest bandwidth of a collective relative to its peers
    - ``gpu_direct``: whether the logs of collectives show GPU-direct RDMA
    - ``trials``: by rule name, the effect of a setting
    """

    facts: Facts
    _: KW_ONLY
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
    trials: Mapping[str, Sequence[TrialChange]] = field(default_factory=dict)

    @property
    def physical(self) -> bool:
        """Return whether nothing indicates a virtual machine or a container."""
        return self.facts.virtualisation in (None, "none")


@dataclass(frozen=True, slots=True)
class Rule:
    """A tuning rule.

    - ``inputs``: the data that the rule needs
    - ``evidence``: returns its finding about a host, or None
    - ``retest``: how to check whether the change helped
    - ``classes``: the metrics that show the effect; empty for all headlines
    - ``setting``: the setting for a trial, or None if it cannot be changed and restored at run time
    - ``measured``: whether its evidence is a measured loss and not only a fact
    """

    number: int
    name: str
    inputs: str
    evidence: Callable[[Subject], Message | None]
    suggestion: Message
    _: KW_ONLY
    retest: Message
    source: str
    measured: bool = False
    classes: tuple[str, ...] = ()
    setting: Callable[[Subject], Setting | None] | None = None

    @property
    def reversible(self) -> bool:
        """Return whether the setting can be tried: applied, measured and restored."""
        return self.setting is not None
