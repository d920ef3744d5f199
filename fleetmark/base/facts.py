"""The normalised facts of a host: the typed form of ``facts/HOST.json``.

Sizes are bytes, clocks Hz, link speeds B/s, transfer rates of memory MT/s. ``None`` means that the host does not report
a value; nothing is guessed. Values have upper bounds, since each NUMA node or GPU of a host becomes a case.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import to_json

MOST_CPUS = 65_536
MOST_NODES = 4096  # Linux knows 1024
MOST_GPUS = 4096
MOST_IRQS = 4096  # of an interface

Cpus = Annotated[int, Field(ge=0, le=MOST_CPUS)]
Number = Annotated[int, Field(ge=0, le=MOST_CPUS)]  # of a CPU, node or device
Distance = Annotated[int, Field(ge=0, le=1 << 16)]
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
Total = Annotated[int, Field(ge=0, lt=1 << 63)]  # what only counts; bytes of a file system that many hosts share
Rate = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]  # Hz, B/s, GT/s, W
Small = Annotated[int, Field(ge=0, le=1 << 31)]  # lanes, generations, MT/s, octets of a frame
Moment = Annotated[float, Field(ge=0, le=4e9, allow_inf_nan=False)]  # Unix seconds, until 2096


def printable(text: str) -> str:
    """``text`` as one line, without control characters and others that print nothing or reverse text."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return tuple([_cleaned(v) for v in value])
    if isinstance(value, dict):
        return {_cleaned(k): _cleaned(v) for k, v in value.items()}
    return value


_CLEAN = object()  # the context of what was cleaned already, with all its parts


class _Fact(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, value: Any, info: ValidationInfo) -> Any:
        return value if info.context is _CLEAN else _cleaned(value)


class Cache(_Fact):
    """All caches of one kind: ``size`` bytes each, ``instances`` of them."""

    level: Annotated[int, Field(ge=0, le=9)]
    type: str  # data, instruction, unified
    size: Bytes
    instances: Cpus


class Cpu(_Fact):
    model: str | None = None
    vendor: str | None = None
    arch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,32}$")] | None = None  # goes into names of files
    sockets: Cpus | None = None
    cores: Cpus | None = None  # physical, whole host
    threads: Cpus | None = None  # logical CPUs online, whole host
    max_hz: Rate | None = None
    microcode: str | None = None
    flags: tuple[str, ...] = ()
    caches: tuple[Cache, ...] = ()

    @property
    def llc_bytes(self) -> int | None:
        """The summed size of all last-level cache instances, which STREAM's rule is about."""
        return sum(c.size * c.instances for c in self._last) or None

    @property
    def llc_instance(self) -> int | None:
        """The size of one last-level cache, which a single thread can fill."""
        return max((c.size for c in self._last), default=None)

    @property
    def _last(self) -> list[Cache]:
        data = [c for c in self.caches if c.type != "instruction"]
        return [c for c in data if c.level == max(d.level for d in data)]


class IdleState(_Fact):
    """An idle state of the CPUs. ``latency_s``: what waking from it takes; ``share``: the part of the time since boot
    that CPUs were in it; ``disabled``: on every CPU."""

    number: Annotated[int, Field(ge=0, le=99)]
    name: str
    latency_s: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    share: Annotated[float, Field(ge=0, le=1)] | None = None
    disabled: bool = False


class NumaNode(_Fact):
    """``local_pages``: taken there by CPUs of the node since boot, ``remote_pages``: by others."""

    id: Annotated[int, Field(ge=0, le=MOST_CPUS)]
    cpus: tuple[Number, ...] = ()
    memory: Bytes | None = None
    distances: tuple[Distance, ...] = ()
    local_pages: Total | None = None
    remote_pages: Total | None = None


class Dimm(_Fact):
    """One memory slot; an empty one has size 0."""

    slot: str
    size: Bytes | None = None
    type: str | None = None
    rated_mts: Small | None = None
    configured_mts: Small | None = None
    manufacturer: str | None = None
    part: str | None = None


class PcieLink(_Fact):
    """A PCIe function that has a link: its limits (``max_*``) and its current state. Speeds in GT/s.

    A GPU that saves power while idle may show a lower ``speed`` than under load; ``width`` does not change.
    """

    address: str
    name: str
    kind: str | None = None  # its class in lspci's words: "PCI bridge", "3D controller"
    speed: Rate | None = None
    max_speed: Rate | None = None
    width: Small | None = None
    max_width: Small | None = None


class Disk(_Fact):
    """A block device, not a partition. ``in_use`` lists its uses (mounted at, swap, part of md/lvm, holds ext4).

    ``in_use`` is empty only for a disk that is certainly blank and free. Where the host cannot tell, it says so.
    """

    name: str
    model: str | None = None
    size: Bytes | None = None
    rotational: bool | None = None
    transport: str | None = None
    scheduler: str | None = None
    in_use: tuple[str, ...] = ()


class Nic(_Fact):
    """A network interface other than loopback. ``speed`` in B/s where the driver reports it.

    Counts are since boot. ``missed``: packets that found no free buffer; ``ring``: entries of its receive ring;
    ``irqs_remote``: how many of its interrupts go to no CPU of its node. ``roce``: it carries RDMA over Ethernet; of
    such ones ``pauses`` (frames), ``pause_storms``, ``congestion_marks`` (ECN marks and notifications) and ``ecn``,
    whether both ends of congestion control are on.
    """

    name: str
    bus: str | None = None  # PCI address: 0000:3b:00.0
    driver: str | None = None
    speed: Rate | None = None
    mtu: Small | None = None
    state: str | None = None
    numa_node: Number | None = None
    addresses: tuple[str, ...] = ()
    missed: Total | None = None
    ring: Small | None = None
    ring_max: Small | None = None
    irqs: Annotated[tuple[Number, ...], Field(max_length=MOST_IRQS)] = ()
    irqs_remote: Number | None = None
    roce: bool = False
    pauses: Total | None = None
    pause_storms: Total | None = None
    congestion_marks: Total | None = None
    ecn: bool | None = None


class Gpu(_Fact):
    index: Number
    name: str
    vendor: str
    memory: Bytes | None = None
    driver: str | None = None
    pcie_gen: Small | None = None  # now: an idle GPU may have lowered it
    pcie_width: Small | None = None
    power_limit: Rate | None = None
    bus: str | None = None  # PCI address, as in PcieLink
    max_pcie_gen: Small | None = None
    max_pcie_width: Small | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    ecc_uncorrected: Total | None = None  # since the driver was loaded
    remap_pending: bool | None = None  # a row of memory waits for a reset to be replaced
    nvlinks: Number | None = None  # active ones
    nvlink_errors: Total | None = None  # of all its links, since the driver was loaded
    slowdown: tuple[str, ...] = ()  # active now: hw_thermal_slowdown, hw_power_brake_slowdown, health_warning, ...


class Torch(_Fact):
    """What a Python on the host says of its torch. ``error``: why it cannot be used, behind its name in a sentence.

    ``device``: torch's name of the kind of accelerator, ``cpu`` where it sees none; ``devices``: how many.
    """

    error: str | None = None
    python: str | None = None  # the interpreter's path, within its container
    python_version: str | None = None
    version: str | None = None  # of torch
    device: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")] = "cpu"
    devices: Annotated[int, Field(ge=0, le=MOST_GPUS)] = 0
    names: Annotated[tuple[str, ...], Field(max_length=MOST_GPUS)] = ()
    memory: Bytes | None = None  # of one device
    runtime: str | None = None  # what torch was built for: "CUDA 13.0", "ROCm 7.0", "CANN 8.2"
    isa: str | None = None  # the widest instructions that torch uses on the CPU: AVX512, AVX2, DEFAULT
    onednn_isa: str | None = None  # ONEDNN_MAX_CPU_ISA, where it is set
    threads: Cpus | None = None
    backends: tuple[str, ...] = ()  # of torch.distributed


class Container(_Fact):
    """An image that a user names, on the host. ``error``: why it cannot be used, behind its name in a sentence."""

    error: str | None = None
    engine: str | None = None  # docker or podman
    version: str | None = None  # of the engine, as it says it
    image: str | None = None  # the image's id


class Facts(_Fact):
    """One host at one moment. ``tools`` maps each probed command to its path, or None where it is absent."""

    schema_version: int = 1
    time: Moment  # the host's clock, Unix seconds
    skew: Annotated[float, Field(ge=-1e10, le=1e10, allow_inf_nan=False)] | None = (
        None  # host minus controller, seconds, half the round trip taken off
    )
    hostname: str
    slurm_node: str | None = None  # its name in Slurm, where a job of Slurm lends it
    machine_id: str | None = None
    user: str
    root: bool  # jobs run as root there (directly or by sudo)
    sudo: bool | None = None  # sudo without a password works
    python: str  # the interpreter's path
    python_version: Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+_-]{0,31}$")]  # goes into names of files
    os: str | None = None
    os_family: str | None = None  # debian, rhel, suse, alpine, arch
    kernel: str | None = None
    cmdline: str | None = None
    virtualisation: str | None = None  # none, kvm, docker, ...
    vendor: str | None = None
    product: str | None = None
    bios: str | None = None
    cpu: Cpu = Cpu()
    numa: Annotated[tuple[NumaNode, ...], Field(max_length=MOST_NODES)] = ()
    memory: Bytes | None = None
    memory_available: Bytes | None = None
    swap: Bytes | None = None
    dimms: tuple[Dimm, ...] = ()
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    rdma: tuple[str, ...] = ()  # devices for RDMA: mlx5_0, irdma0, rxe0
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=MOST_GPUS)] = ()
    pcie: tuple[PcieLink, ...] = ()
    governor: str | None = None  # one word; "performance (64), powersave (2)" where CPUs differ
    epp: str | None = None  # energy_performance_preference, likewise
    boost: bool | None = None
    smt: bool | None = None
    thp: str | None = None
    idle_states: Annotated[tuple[IdleState, ...], Field(max_length=100)] = ()
    clocksource: str | None = None
    numa_balancing: bool | None = None
    iommu: str | None = None  # domain types of its groups: identity (passthrough), DMA, DMA-FQ
    acs_redirect: tuple[str, ...] = ()  # bridges that send peer-to-peer traffic up to the root (ACS)
    edac_corrected: Total | None = None  # memory errors since boot
    edac_uncorrected: Total | None = None
    software: dict[str, str] = {}  # versions of cuda, nccl, rocm, rccl, cann, mpi, where they are there
    compiler: str | None = None  # first line of gcc --version
    mitigations: dict[str, str] = {}
    load1: Rate | None = None
    work_dir: str
    work_free: Total | None = None  # bytes a user may fill at work_dir
    work_total: Total | None = None
    work_fs: str | None = None
    tools: dict[str, str | None] = {}
    torch: dict[str, Torch] = {}  # by the Python that the user names
    containers: dict[str, Container] = {}  # by the image that the user names
    cached: tuple[str, ...] = ()  # files under work_dir/tools, relative: what earlier deployments built
    notes: tuple[str, ...] = ()  # sources that could not be read, one sentence each

    def owns(self, address: str) -> bool:
        """Whether ``address`` is one of this host's own, or its loopback: a server there can listen on it alone.

        False for names, which may mean another address on the host itself, and for addresses that are translated on the
        way to it.
        """
        try:
            wanted = ipaddress.ip_address(address)
            addresses = {ipaddress.ip_interface(a).ip for nic in self.nics for a in nic.addresses}
        except ValueError:
            return False
        return wanted.is_loopback or wanted in addresses


Known = dict[tuple[str, bytes], Any]  # a fact's name and its JSON to what it was read as


def once(document: Any, known: Known) -> Facts:
    """The facts that ``document`` holds; what other hosts had alike (``known``) is neither checked nor held again.

    Raises ValueError for what is no facts.
    """
    if not isinstance(document, dict):
        return Facts.model_validate(document)
    keys = {name: (name, to_json(value)) for name, value in document.items() if isinstance(value, dict | list)}
    shared = {name: known[key] for name, key in keys.items() if key in known}
    cleaned = _cleaned({name: value for name, value in document.items() if name not in shared})
    facts = Facts.model_validate(cleaned, context=_CLEAN)
    for name in keys.keys() - shared.keys():
        known[keys[name]] = getattr(facts, name)
    return facts.model_copy(update=shared)


class _Named(BaseModel, defer_build=True):
    name: str = ""


class _Processor(BaseModel, defer_build=True):
    model: str | None = None
    sockets: int | None = None
    threads: int | None = None
    microcode: str | None = None


class Identity(BaseModel, defer_build=True):
    """The few facts that say what kind of host it is, for readers of many hosts: a tenth of the time of all facts."""

    product: str | None = None
    vendor: str | None = None
    bios: str | None = None
    cpu: _Processor = _Processor()
    gpus: tuple[_Named, ...] = ()
