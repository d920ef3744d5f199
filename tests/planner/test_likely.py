"""Test which facts are named as the cause of a slow host: what differs, what costs something, and the expected loss."""

from __future__ import annotations

from typing import Any

import pytest

from fleetmark.base.facts import Cpu, Dimm, Facts, Gpu, Nic, PcieLink
from fleetmark.planner.diagnosis.likely import LikelyCause, likely_causes
from tests.schedules import facts

MEMORY, NETWORK, CPU = {"mem-bw"}, {"net"}, {"cpu-int"}


def dimms(n: int, slots: int = 16, rate: int = 4800) -> tuple[Dimm, ...]:
    """Return slots of which ``n`` have a module."""
    filled = [Dimm(slot=f"{k}", size=32 << 30, rated_mts=4800, configured_mts=rate) for k in range(n)]
    return (*filled, *(Dimm(slot=f"{k}", size=0) for k in range(n, slots)))


def causes_of(facts_of_host: dict[str, Any], peers: dict[str, Any], classes: set[str], n: int = 5) -> list[LikelyCause]:
    """Return the causes of a host with the facts ``facts_of_host`` among ``n`` peers."""
    return likely_causes(facts(**facts_of_host), [facts(**peers)] * n, classes)


def test_a_missing_module_costs_its_share_of_the_bandwidth() -> None:
    (cause,) = causes_of({"dimms": dimms(15)}, {"dimms": dimms(16)}, MEMORY)
    assert (cause.fact, cause.remedy) == ("15 of 16 DIMMs", "reseat or replace 1 missing DIMM")
    assert cause.loss == pytest.approx(1 / 16) and cause.resource == "memory bandwidth" and cause.is_likely


def test_an_extra_module_is_no_cause() -> None:
    assert causes_of({"dimms": dimms(16)}, {"dimms": dimms(15)}, MEMORY) == []


def test_memory_does_not_explain_a_slow_network() -> None:
    assert causes_of({"dimms": dimms(15)}, {"dimms": dimms(16)}, NETWORK) == []


def test_the_largest_expected_loss_comes_first() -> None:
    facts_of_host = {"dimms": dimms(15, rate=2400), "governor": "powersave", "bios": "1.0"}
    causes = causes_of(facts_of_host, {"dimms": dimms(16), "governor": "performance", "bios": "1.1"}, MEMORY)
    assert [c.fact for c in causes] == [
        "memory at 2400 MT/s",
        "15 of 16 DIMMs",
        "CPU governor powersave",
        "BIOS 1.0",
    ]
    assert causes[0].loss == 0.5 and [c.is_likely for c in causes] == [True, True, True, False]


@pytest.mark.parametrize(
    ("facts_of_host", "usual", "classes", "text"),
    [
        ({"boost": False}, {"boost": True}, CPU, "boost off"),
        ({"smt": False}, {"smt": True}, CPU, "SMT off"),
        ({"cpu": Cpu(cores=60)}, {"cpu": Cpu(cores=64)}, CPU, "60 cores"),
        ({"nics": (Nic(name="e", speed=1.25e9),)}, {"nics": (Nic(name="e", speed=12.5e9),)}, NETWORK, "10.0 Gbit/s"),
        (
            {"gpus": (Gpu(index=0, vendor="nvidia", name="g"),)},
            {"gpus": (Gpu(index=0, vendor="nvidia", name="g"),) * 8},
            {"gpu-compute"},
            "1 GPU",
        ),
        ({"edac_corrected": 12}, {"edac_corrected": 0}, MEMORY, "memory errors"),
        (
            {"pcie": (PcieLink(address="0", name="n", width=4, max_width=16),)},
            {"pcie": (PcieLink(address="0", name="n", width=16, max_width=16),)},
            NETWORK,
            "1 PCIe link narrower",
        ),
    ],
)
def test_facts_that_explain_a_loss(
    facts_of_host: dict[str, Any], usual: dict[str, Any], classes: set[str], text: str
) -> None:
    (cause,) = causes_of(facts_of_host, usual, classes)
    assert text in str(cause.fact)
    assert causes_of(usual, facts_of_host, classes) == [] or text.startswith("SMT")


def test_peers_that_disagree_show_nothing() -> None:
    peers: list[Facts] = [facts(bios=f"1.{n}") for n in range(6)]
    assert likely_causes(facts(bios="2"), peers, CPU) == []


def test_one_peer_is_too_few() -> None:
    assert causes_of({"boost": False}, {"boost": True}, CPU, n=1) == []


def test_unknown_facts_are_no_cause() -> None:
    assert causes_of({}, {"boost": True, "governor": "performance"}, CPU) == []
