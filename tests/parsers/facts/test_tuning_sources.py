"""The sources of tuning rules in a host's document: NVLinks, idle states, rings, interrupts, RoCE and pages."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import MOST_IRQS, Facts
from fleetmark.parsers.facts import normalise
from fleetmark.parsers.facts.nvidia_smi import active_links, link_errors

# As nvidia-smi prints them for one GPU with two inactive links, and one with errors.
LINKS = "GPU 0: Tesla V100-SXM2-32GB\n" + "".join(
    f"\t Link {n}: {'<inactive>' if n in (3, 5) else '25.781 GB/s'}\n" for n in range(6)
)
ERRORS = "GPU 0: Tesla V100-SXM2-32GB\n" + "".join(
    f"\t Link {n}: Replay Errors: 0\n\t Link {n}: Recovery Errors: 0\n\t Link {n}: CRC Errors: {n}\n" for n in range(6)
)
RINGS = """Ring parameters for ens1:
Pre-set maximums:
RX:\t\t8192
RX Mini:\tn/a
TX:\t\t8192
Current hardware settings:
RX:\t\t1024
RX Mini:\tn/a
TX:\t\t1024
"""
PAUSES = """     rx_prio3_pause: 40
     rx_prio3_pause_duration: 99999
     tx_prio3_pause: 2
     rx_prio3_pause_transition: 7
     tx_pause_storm_warning_events: 1
     tx_pause_storm_error_events: 0
"""
RDMA = "/sys/class/infiniband/mlx5_0/"


def answer(text: str, rc: int = 0) -> dict[str, Any]:
    return {"argv": ["x"], "rc": rc, "out": text, "err": ""}


def host() -> dict[str, Any]:
    doc: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "vm_root.json").read_bytes())
    doc["nics"] = ["lo", "ens1"]
    doc["idle_states"] = {
        "0": {"name": "POLL", "latency_us": 0, "us": 1, "cpus": 4, "disabled": 0},
        "3": {"name": "C6", "latency_us": 133, "us": 200_000_000, "cpus": 4, "disabled": 4},
    }
    doc["interrupts"] = {"ens1": {"31": "0-3", "32": "9", "x": "1"}}
    doc["ethtool"] = {"ens1": {"rings": answer(RINGS), "counters": answer(PAUSES)}}
    doc["links"][RDMA + "device/net/ens1"] = "ens1"
    doc["files"] |= {
        "/proc/uptime": "100.00 350.00\n",
        "/sys/class/net/ens1/device/numa_node": "0\n",
        "/sys/class/net/ens1/statistics/rx_missed_errors": "12\n",
        "/sys/class/net/ens1/ecn/roce_np/enable/3": "0\n",
        "/sys/class/net/ens1/ecn/roce_rp/enable/3": "0\n",
        RDMA + "node_type": "1: CA\n",
        RDMA + "ports/1/link_layer": "Ethernet\n",
        RDMA + "ports/1/hw_counters/np_ecn_marked_roce_packets": "5\n",
        RDMA + "ports/1/hw_counters/np_cnp_sent": "4\n",
        RDMA + "ports/1/hw_counters/rp_cnp_handled": "3\n",
        "/sys/devices/system/node/node0/numastat": "numa_hit 90\nlocal_node 80\nother_node 10\n",
    }
    return doc


def read(doc: dict[str, Any]) -> Facts:
    return normalise(doc, skew=None, root=True, work_dir="/srv/fleetmark")


def test_nvlinks_and_their_errors() -> None:
    assert active_links(LINKS + LINKS.replace("GPU 0", "GPU 3").replace("<inactive>", "25.781 GB/s")) == {0: 4, 3: 6}
    assert link_errors(ERRORS) == {0: 15}
    assert active_links("") == link_errors("Unable to retrieve NVLink information\n") == {}


def test_interfaces() -> None:
    (nic,) = read(host()).nics
    assert (nic.missed, nic.ring, nic.ring_max) == (12, 1024, 8192)
    assert (nic.irqs, nic.irqs_remote) == ((31, 32), 1)
    assert (nic.roce, nic.ecn, nic.congestion_marks, nic.pauses, nic.pause_storms) == (True, False, 12, 42, 1)


def test_hostile_interrupts_and_counters_cost_little() -> None:
    doc = host()
    doc["interrupts"]["ens1"] = {str(n): "8-65535" for n in range(20_000)} | {"7": "0-65535", "8": "", "9": "x"}
    doc["ethtool"]["ens1"]["counters"] = answer("\n" * 500_000 + "     rx_prio3_pause: 42\n")
    began = time.process_time()
    (nic,) = read(doc).nics
    assert (len(nic.irqs), nic.irqs_remote, nic.pauses) == (MOST_IRQS, MOST_IRQS - 3, 42)
    assert time.process_time() - began < 20, "each of them took minutes"


def test_infiniband_is_no_roce_and_an_ethtool_that_fails_tells_nothing() -> None:
    doc = host()
    doc["files"][RDMA + "ports/1/link_layer"] = "InfiniBand\n"
    doc["ethtool"]["ens1"]["rings"] = answer("netlink error: Operation not supported\n", 75)
    (nic,) = read(doc).nics
    assert (nic.roce, nic.ecn, nic.pauses, nic.ring) == (False, None, None, None)


def test_idle_states_and_pages() -> None:
    facts = read(host())
    assert [(s.number, s.name, s.share, s.disabled) for s in facts.idle_states] == [
        (0, "POLL", pytest.approx(2.5e-9), False),
        (3, "C6", 0.5, True),
    ]
    assert facts.idle_states[1].latency_s == pytest.approx(133e-6)
    node = facts.numa[0]
    assert (node.local_pages, node.remote_pages) == (80, 10)
    assert facts.numa[1].local_pages is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("idle_states", {"0": {"name": "C1", "latency_us": -1, "us": 0, "cpus": 1, "disabled": 0}}),
        ("idle_states", {"0": {"name": "C1"}}),
        ("interrupts", {"ens1": {"31": 7}}),
        ("ethtool", {"ens1": {"rings": "RX: 1024"}}),
        ("link_modes", {"ens1": "0x4"}),
    ],
)
def test_a_document_of_another_form_is_refused(field: str, value: Any) -> None:
    with pytest.raises(FleetmarkError, match=f"damaged at {field}"):
        read({**host(), field: value})
