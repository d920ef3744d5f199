"""Define the normalised facts of a host, the typed form of ``facts/HOST.json``.

Sizes are bytes, clocks Hz, link speeds B/s, transfer rates of memory MT/s. ``None`` means that the host does not report
a value. No value is guessed. Values have upper bounds, since each NUMA node or GPU of a host becomes a case.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import to_json

MOST_CPUS = 65_536
MOST_NODES = 4096  # Linux supports 1024
MOST_GPUS = 4096
MOST_IRQS = 4096  # per interface
MOST_PORTS = 1000

Cpus = Annotated[int, Field(ge=0, le=MOST_CPUS)]
Number = Annotated[int, Field(ge=0, le=MOST_CPUS)]  # number of a CPU, node or device
Distance = Annotated[int, Field(ge=0, le=1 << 16)]
Port = Annotated[int, Field(ge=1, le=65_535)]
Bytes = Annotated[int, Field(ge=0, le=1 << 60)]
Total = Annotated[int, Field(ge=0, lt=1 << 63)]  # counters, and bytes of a shared file system
Rate = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]  # Hz, B/s, GT/s, W
Small = Annotated[int, Field(ge=0, le=1 << 31)]  # lanes, generations, MT/s, bytes of a frame
Moment = Annotated[float, Field(ge=0, le=4e9, allow_inf_nan=False)]  # Unix seconds, until 2096


def printable(text: str) -> str:
    """Return ``text`` as one line, without control characters, invisible characters and text direction marks."""
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


_CLEAN = object()  # validation context for documents whose strings are already clean


class _Fact(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _clean(cls, value: Any, info: ValidationInfo) -> Any:
        return value if info.context is _CLEAN else _cleaned(value)


class Cache(_Fact):
    """All caches of one kind: ``instances`` caches of ``size`` bytes each."""

    level: Annotated[int, Field(ge=0, le=9)]
    type: str  # data, instruction, unified
    size: Bytes
    instances: Cpus


class Cpu(_Fact):
    model: str | None = None
    vendor: str | None = None
    arch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,32}$")] | None = None  # used in file names
    sockets: Cpus | None = None
    cores: Cpus | None = None  # physical cores of the host
    threads: Cpus | None = None  # online logical CPUs of the host
    max_hz: Rate | None = None
    microcode: str | None = None
    flags: tuple[str, ...] = ()
    caches: tuple[Cache, ...] = ()

    @property
    def llc_bytes(self) -> int | None:
        """Return the total size of all last-level caches, which STREAM's rule for array sizes uses."""
        return sum(c.size * c.instances for c in self._last) or None

    @property
    def llc_instance(self) -> int | None:
        """Return the size of one last-level cache, which a single thread can fill."""
        return max((c.size for c in self._last), default=None)

    @property
    def _last(self) -> list[Cache]:
        data = [c for c in self.caches if c.type != "instruction"]
        return [c for c in data if c.level == max(d.level for d in data)]


class IdleState(_Fact):
    """An idle state of the CPUs.

    ``latency_s``: the time to wake up from it; ``share``: the share of CPU time spent in it since boot; ``disabled``:
    whether it is disabled on every CPU.
    """

    number: Annotated[int, Field(ge=0, le=99)]
    name: str
    latency_s: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    share: Annotated[float, Field(ge=0, le=1)] | None = None
    disabled: bool = False


class NumaNode(_Fact):
    """A NUMA node.

    ``local_pages``: pages allocated on it by its own CPUs since boot; ``remote_pages``: by CPUs of other nodes.
    """

    id: Annotated[int, Field(ge=0, le=MOST_CPUS)]
    cpus: tuple[Number, ...] = ()
    memory: Bytes | None = None
    distances: tuple[Distance, ...] = ()
    local_pages: Total | None = None
    remote_pages: Total | None = None


class Dimm(_Fact):
    """A memory slot. An empty slot has size 0."""

    slot: str
    size: Bytes | None = None
    type: str | None = None
    rated_mts: Small | None = None
    configured_mts: Small | None = None
    manufacturer: str | None = None
    part: str | None = None


class PcieLink(_Fact):
    """The link of a PCIe function: its limits (``max_*``) and its current state. Speeds are in GT/s.

    An idle GPU may report a lower ``speed`` than under load. Its ``width`` does not change.
    """

    address: str
    name: str
    kind: str | None = None  # the device class as lspci prints it: "PCI bridge", "3D controller"
    speed: Rate | None = None
    max_speed: Rate | None = None
    width: Small | None = None
    max_width: Small | None = None


class Disk(_Fact):
    """A block device, not a partition. ``in_use``: its uses (mounted at, swap, part of md/lvm, holds ext4).

    ``in_use`` is empty only for a disk that is certainly blank and free. If the state is unknown, ``in_use`` contains a
    phrase that says so.
    """

    name: str
    model: str | None = None
    size: Bytes | None = None
    rotational: bool | None = None
    transport: str | None = None
    scheduler: str | None = None
    in_use: tuple[str, ...] = ()


class Nic(_Fact):
    """A network interface other than loopback. ``speed`` is in B/s if the driver reports it.

    ``max_speed``: the highest speed in B/s that the port supports, with its transceiver for some drivers.

    Counters start at boot. ``missed``: packets dropped for lack of a buffer; ``ring``: entries of the receive ring;
    ``irqs_remote``: the number of interrupts that no CPU of its NUMA node handles; ``roce``: whether it carries RDMA
    over Ethernet. Only RoCE interfaces have ``pauses`` (frames), ``pause_storms``, ``congestion_marks`` (ECN marks and
    notifications) and ``ecn`` (whether both ends of congestion control are enabled).
    """

    name: str
    bus: str | None = None  # PCI address: 0000:3b:00.0
    driver: str | None = None
    speed: Rate | None = None
    max_speed: Rate | None = None
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
    pcie_gen: Small | None = None  # the current generation, which an idle GPU may lower
    pcie_width: Small | None = None
    power_limit: Rate | None = None
    bus: str | None = None  # PCI address, as in PcieLink
    max_pcie_gen: Small | None = None
    max_pcie_width: Small | None = None
    persistence: bool | None = None
    ecc: bool | None = None
    ecc_uncorrected: Total | None = None  # errors since the driver was loaded
    remap_pending: bool | None = None  # whether the next reset replaces a memory row
    nvlinks: Number | None = None  # number of active links
    nvlink_errors: Total | None = None  # errors of all links since the driver was loaded
    slowdown: tuple[str, ...] = ()  # active now: hw_thermal_slowdown, hw_power_brake_slowdown, health_warning, ...


class Torch(_Fact):
    """The torch of a Python on the host. ``error``: why it cannot be used, as a phrase to follow its name.

    ``device``: torch's name for the type of accelerator, or ``cpu`` if it finds none; ``devices``: their number.
    """

    error: str | None = None
    python: str | None = None  # the interpreter's path, within its container
    python_version: str | None = None
    version: str | None = None  # the version of torch
    device: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")] = "cpu"
    devices: Annotated[int, Field(ge=0, le=MOST_GPUS)] = 0
    names: Annotated[tuple[str, ...], Field(max_length=MOST_GPUS)] = ()
    memory: Bytes | None = None  # the memory of one device
    runtime: str | None = None  # the runtime that torch was built for: "CUDA 13.0", "ROCm 7.0", "CANN 8.2"
    isa: str | None = None  # the widest instruction set that torch uses on the CPU: AVX512, AVX2, DEFAULT
    onednn_isa: str | None = None  # ONEDNN_MAX_CPU_ISA, if set
    threads: Cpus | None = None
    backends: tuple[str, ...] = ()  # the backends of torch.distributed


class Container(_Fact):
    """A container image on the host. ``error``: why it cannot be used, as a phrase to follow its name."""

    error: str | None = None
    engine: str | None = None  # docker or podman
    version: str | None = None  # the version that the engine reports
    image: str | None = None  # the image id


class Facts(_Fact):
    """A host at one moment. ``tools`` maps each probed command to its path, or None if it is missing."""

    schema_version: int = 1
    time: Moment  # the host's clock, Unix seconds
    skew: Annotated[float, Field(ge=-1e10, le=1e10, allow_inf_nan=False)] | None = (
        None  # host clock minus controller clock in seconds, less half the round trip
    )
    hostname: str
    slurm_node: str | None = None  # its name in Slurm, if it belongs to a Slurm job
    machine_id: str | None = None
    user: str
    root: bool  # whether jobs run as root (directly or with sudo)
    sudo: bool | None = None  # whether sudo works without a password
    python: str  # the path of the interpreter
    python_version: Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.+_-]{0,31}$")]  # used in file names
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
    rdma: tuple[str, ...] = ()  # RDMA devices: mlx5_0, irdma0, rxe0
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=MOST_GPUS)] = ()
    pcie: tuple[PcieLink, ...] = ()
    governor: str | None = None  # one word, or "performance (64), powersave (2)" if CPUs differ
    epp: str | None = None  # energy_performance_preference, in the same form
    boost: bool | None = None
    smt: bool | None = None
    thp: str | None = None
    idle_states: Annotated[tuple[IdleState, ...], Field(max_length=100)] = ()
    clocksource: str | None = None
    numa_balancing: bool | None = None
    iommu: str | None = None  # domain types of its groups: identity (passthrough), DMA, DMA-FQ
    acs_redirect: tuple[str, ...] = ()  # bridges that redirect peer-to-peer traffic to the root complex (ACS)
    edac_corrected: Total | None = None  # memory errors since boot
    edac_uncorrected: Total | None = None
    xids: dict[str, Total] | None = None  # NVIDIA Xid messages since boot by code; None if the kernel log is unreadable
    software: dict[str, str] = {}  # versions of cuda, nccl, rocm, rccl, cann, mpi, if installed
    compiler: str | None = None  # first line of gcc --version
    mitigations: dict[str, str] = {}
    load1: Rate | None = None
    running: Total | None = None  # runnable threads besides Fleetmark's own; None in a container
    sessions: Total | None = None  # terminals of other users
    ports: Annotated[tuple[Port, ...], Field(max_length=MOST_PORTS)] = ()  # TCP ports that other machines can reach
    work_dir: str
    work_free: Total | None = None  # free bytes at work_dir for a user
    work_total: Total | None = None
    work_fs: str | None = None
    tools: dict[str, str | None] = {}
    torch: dict[str, Torch] = {}  # by the user's name for the Python
    containers: dict[str, Container] = {}  # by the user's name for the image
    cached: tuple[str, ...] = ()  # files built by earlier deployments, relative to work_dir/tools
    notes: tuple[str, ...] = ()  # one sentence for each source that could not be read

    def owns(self, address: str) -> bool:
        """Return whether ``address`` belongs to this host or its loopback, so that a server can bind to it.

        Return False for names, which may resolve to another address on the host, and for translated (NAT) addresses.
        """
        try:
            wanted = ipaddress.ip_address(address)
            addresses = {ipaddress.ip_interface(a).ip for nic in self.nics for a in nic.addresses}
        except ValueError:
            return False
        return wanted.is_loopback or wanted in addresses


Known = dict[tuple[str, bytes], Any]  # parsed value by a fact's name and its JSON


def once(document: Any, known: Known) -> Facts:
    """Return the facts in ``document``. Parts that equal those of other hosts (``known``) are reused without a check.

    Raise ValueError if the document does not contain facts.
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
    driver: str | None = None


class _Processor(BaseModel, defer_build=True):
    model: str | None = None
    sockets: int | None = None
    threads: int | None = None
    microcode: str | None = None


class Identity(BaseModel, defer_build=True):
    """The few facts that identify the kind of a host.

    Reading these facts takes a tenth of the time for all facts.
    """

    product: str | None = None
    vendor: str | None = None
    bios: str | None = None
    kernel: str | None = None
    cpu: _Processor = _Processor()
    gpus: tuple[_Named, ...] = ()
