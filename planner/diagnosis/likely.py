"""Find facts in which a slow host differs from its peers, with the expected loss and the remedy for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, count, message
from fleetmark.base.units import human

_MEMORY = ("mem-", "core-bw", "cpu-fp", "app", "gpu", "cluster")  # prefixes of classes that need memory bandwidth
_NETWORK = ("net", "collective", "cluster")
_LINKS = (*_NETWORK, "disk", "gpu")  # classes of devices that are attached by PCIe
LEAST_PEERS = 2  # minimum number of peers with the same value


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """A fact in which a host differs from most of its peers.

    - ``fact``: the host's value, such as ``15 of 16 DIMMs``
    - ``usual``: the peers' value, or None if ``fact`` includes it
    - ``remedy``: the recommended action
    - ``loss``: the expected loss as a share of ``resource``; None if unknown
    - ``is_likely``: True if the fact is known to slow down such benchmarks; otherwise, it is only a possible cause
    """

    fact: Message
    usual: Message | str | None
    remedy: Message
    _: KW_ONLY
    loss: float | None = None
    resource: Message | None = None
    is_likely: bool = True


@dataclass(frozen=True, slots=True)
class _Trait:
    """A fact that may explain a loss.

    - ``read``: returns its value, or None if unknown
    - ``classes``: the prefixes of the classes that it slows down; empty for all classes
    - ``explain``: returns the cause from the values of the host and of its peers, or None if the host's value is no
      worse
    """

    read: Callable[[Facts], Any]
    classes: tuple[str, ...]
    explain: Callable[[Any, Any], LikelyCause | None]


def likely_causes(facts: Facts, peers: Sequence[Facts], classes: Collection[str]) -> list[LikelyCause]:
    """Return the facts that could explain why a host is slow in benchmarks of ``classes``, the most likely first.

    A fact counts if most ``peers``, and at least LEAST_PEERS of them, share one value and the host has a worse value.
    """
    causes = [cause for trait in _TRAITS if (cause := _cause(trait, facts, peers, classes))]
    return sorted(causes, key=lambda cause: (not cause.is_likely, cause.loss is None, -(cause.loss or 0.0)))


def _cause(trait: _Trait, facts: Facts, peers: Sequence[Facts], classes: Collection[str]) -> LikelyCause | None:
    if trait.classes and classes and not any(c.startswith(trait.classes) for c in classes):
        return None
    value = trait.read(facts)
    known = Counter(peer_value for peer_value in map(trait.read, peers) if peer_value is not None)
    if value is None or not known:
        return None
    usual, number = known.most_common(1)[0]
    if value == usual or number < LEAST_PEERS or 2 * number <= known.total():
        return None
    return trait.explain(value, usual)


# --- hardware ---------------------------------------------------------------------------------------------------------


def _modules(facts: Facts) -> int | None:
    return sum(d.size != 0 for d in facts.dimms) or None


def _fewer_modules(value: int, usual: int) -> LikelyCause | None:
    if value >= usual:
        return None
    return LikelyCause(
        message("{n} of {usual} DIMMs", n=value, usual=usual),
        None,
        message("reseat or replace {modules}", modules=count(usual - value, "missing DIMM")),
        loss=1 - value / usual,
        resource=message("memory bandwidth"),
    )


def _memory_rate(facts: Facts) -> int | None:
    return min((d.configured_mts for d in facts.dimms if d.size != 0 and d.configured_mts), default=None)


def _slower_memory(value: int, usual: int) -> LikelyCause | None:
    if value >= usual:
        return None
    return LikelyCause(
        message("memory at {rate} MT/s", rate=value),
        message("{rate} MT/s", rate=usual),
        message("set the memory speed in the BIOS, or replace the slow module"),
        loss=1 - value / usual,
        resource=message("memory bandwidth"),
    )


def _fewer(
    noun: Callable[[int], Message], remedy: Message, resource: Message
) -> Callable[[int, int], LikelyCause | None]:
    def explain(value: int, usual: int) -> LikelyCause | None:
        if value >= usual:
            return None
        return LikelyCause(noun(value), noun(usual), remedy, loss=1 - value / usual, resource=resource)

    return explain


def _fastest_link(facts: Facts) -> float | None:
    return max((n.speed for n in facts.nics if n.speed and n.state in (None, "up")), default=None)


def _slower_network(value: float, usual: float) -> LikelyCause | None:
    if value >= usual:
        return None
    rates = [human(rate, "B/s", bits=True) for rate in (value, usual)]
    return LikelyCause(
        message("a network link of {rate}", rate=rates[0]),
        rates[1],
        message("check the cable, the transceiver and the switch port"),
        loss=1 - value / usual,
        resource=message("network bandwidth"),
    )


def _slow_links(facts: Facts) -> int | None:
    if not facts.pcie:
        return None
    return sum(p.width is not None and p.max_width is not None and p.width < p.max_width for p in facts.pcie)


def _narrow_links(value: int, usual: int) -> LikelyCause | None:
    if value <= usual:
        return None
    return LikelyCause(
        count(value, "PCIe link narrower than its slot allows", "PCIe links narrower than their slots allow"),
        f"{usual}",
        message("reseat the card, and check the slot's lanes in the BIOS"),
    )


def _more_errors(value: bool, usual: bool) -> LikelyCause | None:
    if value <= usual:
        return None
    return LikelyCause(
        message("corrected memory errors since boot"),
        message("none"),
        message("replace the DIMM that reports errors (`edac-util -v`)"),
    )


# --- settings ---------------------------------------------------------------------------------------------------------


def _setting(
    fact: Callable[[Any], Message], remedy: Message, *, is_likely: bool = True, worse: Any = None
) -> Callable[[Any, Any], LikelyCause | None]:
    """Return the function that explains a setting.

    ``worse`` is the only harmful value; if it is None, any different value is harmful.
    """

    def explain(value: Any, usual: Any) -> LikelyCause | None:
        if worse is not None and value != worse:
            return None
        return LikelyCause(fact(value), fact(usual), remedy, is_likely=is_likely)

    return explain


def _on(value: bool) -> Message:
    return message("on") if value else message("off")


_SAME = message("bring it to the version of its peers")
_TRAITS = (
    _Trait(_modules, _MEMORY, _fewer_modules),
    _Trait(_memory_rate, _MEMORY, _slower_memory),
    _Trait(
        lambda f: f.cpu.cores,
        ("cpu", "app", "mem-", "cluster"),
        _fewer(
            lambda n: count(n, "core"), message("switch all cores on in the BIOS and the kernel"), message("CPU work")
        ),
    ),
    _Trait(
        lambda f: len(f.gpus) or None,
        ("gpu", "collective"),
        _fewer(
            lambda n: count(n, "GPU"), message("reseat the missing GPU, and read the kernel log"), message("GPU work")
        ),
    ),
    _Trait(_fastest_link, _NETWORK, _slower_network),
    _Trait(_slow_links, _LINKS, _narrow_links),
    _Trait(lambda f: None if f.edac_corrected is None else f.edac_corrected > 0, _MEMORY, _more_errors),
    _Trait(
        lambda f: f.governor,
        (),
        _setting(
            lambda v: message("CPU governor {value}", value=v),
            message("set the CPU governor of its peers (`cpupower`)"),
        ),
    ),
    _Trait(
        lambda f: f.boost,
        (),
        _setting(lambda v: message("boost {value}", value=_on(v)), message("switch boost on in the BIOS"), worse=False),
    ),
    _Trait(
        lambda f: f.smt,
        ("cpu", "app", "mem-", "cluster"),
        _setting(lambda v: message("SMT {value}", value=_on(v)), message("set SMT as on its peers")),
    ),
    _Trait(
        lambda f: f.thp,
        ("mem-", "cpu", "app", "os", "core-bw"),
        _setting(
            lambda v: message("transparent huge pages {value}", value=v),
            message("set transparent huge pages as on its peers"),
        ),
    ),
    _Trait(
        lambda f: f.clocksource,
        ("os", "app", "net"),
        _setting(lambda v: message("clock source {value}", value=v), message("set the clock source of its peers")),
    ),
    _Trait(lambda f: f.bios, (), _setting(lambda v: message("BIOS {value}", value=v), _SAME, is_likely=False)),
    _Trait(
        lambda f: f.cpu.microcode,
        (),
        _setting(lambda v: message("microcode {value}", value=v), _SAME, is_likely=False),
    ),
    _Trait(lambda f: f.kernel, (), _setting(lambda v: message("kernel {value}", value=v), _SAME, is_likely=False)),
    _Trait(
        lambda f: tuple(sorted(f.mitigations.items())) or None,
        (),
        lambda value, usual: LikelyCause(
            message("other mitigations of CPU vulnerabilities than its peers"),
            None,
            message("ask security before changing them"),
            is_likely=False,
        ),
    ),
)
