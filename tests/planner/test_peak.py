"""Peaks that facts give, by hand; and silence where they do not."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.facts import Dimm, Facts, Nic
from planner import peak


def facts(**own: Any) -> Facts:
    about = {"time": 0.0, "hostname": "h", "user": "u", "root": False, "python": "/usr/bin/python3"}
    return Facts(**{**about, "python_version": "3.11", "work_dir": "/w", **own})


def modules(*slots: str, mts: int | None = 4800, kind: str = "DDR5") -> tuple[Dimm, ...]:
    return tuple(Dimm(slot=s, size=64 << 30, type=kind, configured_mts=mts) for s in slots)


def test_channels_that_slots_name() -> None:
    two_each = [f"CPU{s} CH{c} D{d}" for s in (0, 1) for c in range(8) for d in (0, 1)]
    top = peak.memory(facts(dimms=modules(*two_each, mts=4400)))
    assert top is not None and top.rate == pytest.approx(16 * 4400e6 * 8)
    assert top.basis == "16 channels at 4,400 MT/s"
    joined = peak.memory(facts(dimms=modules(*(slot.replace(" ", "_") for slot in two_each), mts=4400)))
    assert joined == top  # CPU0_CH7_D1
    empty = Dimm(slot="P0 CHANNEL C DIMM 0", size=0)
    top = peak.memory(facts(dimms=(*modules("P0 CHANNEL A DIMM 0", "P0 CHANNEL A DIMM 1"), empty)))
    assert top is not None and top.rate == 38.4e9  # one channel of DDR5-4800
    assert top.basis == "1 channel at 4,800 MT/s"


def test_slots_that_do_not_name_channels_are_taken_for_one_each() -> None:
    top = peak.memory(facts(dimms=modules("A1", "A2", "B1", "B2", mts=3200, kind="DDR4")))
    assert top is not None and top.rate == 4 * 3200e6 * 8
    assert top.basis == "4 modules at 3,200 MT/s, if each has a channel of its own"


def test_the_slowest_module_sets_the_speed() -> None:
    top = peak.memory(facts(dimms=modules("CH0") + modules("CH1", mts=4400)))
    assert top is not None and top.rate == 2 * 4400e6 * 8


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"dimms": modules("CH0", mts=None)},
        {"dimms": modules("CH0") + modules("CH1", mts=None)},
        {"dimms": modules("CH0", mts=0)},
        {"dimms": modules("CH0", kind="HBM2")},
        {"dimms": modules("CH0", kind="LPDDR5")},
        {"dimms": modules("CH0"), "virtualisation": "kvm"},
        {"dimms": (Dimm(slot="CH0", size=0),)},
    ],
)
def test_what_facts_do_not_tell_is_not_guessed(own: dict[str, Any]) -> None:
    assert peak.memory(facts(**own)) is None


def test_only_who_can_do_something_is_told_what() -> None:
    assert "only root may read the modules" in str(peak.why_no_memory(facts()))
    assert peak.why_no_memory(facts(root=True)) is None
    assert peak.why_no_memory(facts(virtualisation="kvm")) is None
    assert peak.why_no_memory(facts(dimms=modules("A1"))) is None


def test_the_link_of_the_slower_end() -> None:
    fast = facts(nics=(Nic(name="a", speed=1.25e9, state="up"), Nic(name="b", speed=12.5e9, state="up")))
    slow = facts(nics=(Nic(name="a", speed=3.125e9, state="up"), Nic(name="b", speed=12.5e9, state="down")))
    top = peak.link(fast, slow)
    assert top is not None and (top.rate, top.basis) == (3.125e9, "a link of 25 Gbit/s")
    assert peak.link(fast, facts(nics=(Nic(name="a", state="up"),))) is None
    assert peak.link() is None
