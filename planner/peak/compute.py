"""Compute the peak rate of a machine's cores in double precision, from their instructions and highest clock.

The rate per core and clock cycle is the product of three numbers: the doubles in the widest fused multiply-add that the
flags list, the multiply-add units of such a core, and two operations per double. If flags, clock or model are unknown,
there is no peak.
"""

from __future__ import annotations

import re

from fleetmark.base.facts import Cpu, Facts
from fleetmark.base.text import Message, count, message

SOURCE = "the maker's guides to its cores (AMD: Software Optimization Guides; Intel: Optimization Reference Manual)"
_DOUBLE = 64  # bits
_SLOWEST = 1e9  # Hz; a lower highest clock in the firmware is wrong
_BARE = ("none", "")  # values for a physical machine; cores of a virtual machine may be threads and may lack flags
# Xeons with one 512-bit unit per core, by Intel's product list ("# of AVX-512 FMA Units"): Bronze, Silver and most of
# Gold 5100 and 5200 of the first two generations, D-2100, E-2300.
_ONE_UNIT = re.compile(r"(?:Bronze|Silver) [34][12]\d\d|Gold 5[12](?!22\b)\d\d|\bD-21\d\d|\bE-23\d\d")


def doubles(facts: Facts) -> tuple[float, Message] | None:
    """Return the FLOP/s of all cores together, and a description of the calculation."""
    cpu = facts.cpu
    units = _units(cpu)
    if not (units and cpu.cores and cpu.max_hz) or (facts.virtualisation or "") not in _BARE:
        return None
    if cpu.max_hz < _SLOWEST:
        return None
    number, bits = units
    basis = message(
        "{cores} at {clock} GHz, the highest clock of one, each with {units} of {bits} bits for a x b + c of doubles",
        cores=count(cpu.cores, "core"),
        clock=f"{cpu.max_hz * 1e-9:.3g}",
        units=count(number, "unit"),
        bits=bits,
    )
    return cpu.cores * cpu.max_hz * number * (bits // _DOUBLE) * 2, basis


def _units(cpu: Cpu) -> tuple[int, int] | None:
    """Return the number of fused multiply-add units of a core and their width in bits; None if unknown.

    Source for AMD: Software Optimization Guides of Zen to Zen 5. Zen 4 splits 512-bit instructions into two halves. Zen
    5, the first with AVX-VNNI, does not. The first Zen, which lacks CLWB, splits 256-bit instructions. Source for
    Intel: Optimization Reference Manual.
    """
    flags, model = set(cpu.flags), cpu.model or ""
    if not {"avx2", "fma"} <= flags:
        return None
    if cpu.vendor in ("AuthenticAMD", "HygonGenuine"):
        if "avx512f" in flags:
            return (2, 512) if "avx_vnni" in flags else (2, 256)
        return (2, 256) if "clwb" in flags else (2, 128)
    if cpu.vendor != "GenuineIntel":
        return None
    if "avx512f" not in flags:
        return 2, 256
    return ((1 if _ONE_UNIT.search(model) else 2), 512) if "Xeon" in model else None
