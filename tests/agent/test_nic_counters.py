"""What network devices count of congestion: of recorded ``ethtool -S`` and hw_counters, and of this machine's own."""

from __future__ import annotations

import ctypes
import importlib
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fleetmark.base import kinds
from fleetmark.base.measurement import Kind
from fleetmark.campaign.congestion import counted
from fleetmark.record import replies

AGENT = Path(__file__).parents[2] / "playbooks" / "agent"
RECORDED = Path(__file__).parent / "counters"
MLX5 = {"np_cnp_sent": 5, "np_ecn_marked_roce_packets": 40, "rp_cnp_handled": 9, "rp_cnp_ignored": 1}
MLX5 |= {"out_of_sequence": 3, "packet_seq_err": 2, "local_ack_timeout_err": 0, "rx_icrc_encapsulated": 0}


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(AGENT))
    yield importlib.import_module("nic_counters")
    sys.modules.pop("nic_counters", None)


def recorded(name: str) -> dict[str, int]:
    lines = (RECORDED / name).read_text().splitlines()[1:]
    return {key.strip(): int(value) for key, _, value in (line.rpartition(":") for line in lines)}


def events(grown: dict[str, Any]) -> dict[str, float]:
    """The figures of a step's telemetry, checked by the model of the archive as a host's answer is."""
    telemetry = replies.read(replies.StepTelemetry, json.dumps({"counters": grown}))
    return {m.metric: m.value for m in counted(telemetry)}


def put_port(root: Path, device: str, counts: dict[str, int]) -> None:
    folder = root / "sys/class/infiniband" / device / "ports/1/hw_counters"
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in counts.items():
        (folder / name).write_text(f"{value}\n")


def put_nic(root: Path, nic: str) -> None:
    (root / "sys/class/net" / nic / "device").mkdir(parents=True)


def watched(agent: ModuleType, monkeypatch: pytest.MonkeyPatch, root: Path, nic: str, change: Any) -> dict[str, float]:
    """The events between two recordings of ``nic``, with ``change`` to the rest of the host between them."""
    put_nic(root, nic)
    monkeypatch.setattr(agent, "statistics", lambda _: recorded(f"{nic}.before"))
    before = agent.counters(str(root))
    change()
    monkeypatch.setattr(agent, "statistics", lambda _: recorded(f"{nic}.after"))
    return events(agent.grown(before, agent.counters(str(root))))


def test_mlx5_counts_each_event_once(agent: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_port(tmp_path, "mlx5_0", dict.fromkeys(MLX5, 100))
    later = {name: 100 + grown for name, grown in MLX5.items()}
    seen = watched(agent, monkeypatch, tmp_path, "mlx5", lambda: put_port(tmp_path, "mlx5_0", later))
    assert seen == {
        "pause_storms": 0.0,
        "pause_received": 1004.0,  # by priority 4 and 1000, and 1004 in all
        "pause_sent": 0.0,
        "ecn_marked": 40.0,
        "cnp_received": 9.0,
        "cnp_sent": 5.0,
        "nic_discards": 48.0,
        "rdma_retries": 3.0,
    }


def test_bnxt_adds_priorities_and_leaves_out_what_was_reset(
    agent: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = watched(agent, monkeypatch, tmp_path, "bnxt", lambda: None)
    assert seen == {"pause_received": 11.0, "nic_discards": 0.0}


def test_irdma_and_bnxt_re_have_names_of_their_own() -> None:
    irdma = {"cnpHandled": 4, "cnpIgnored": 50, "cnpSent": 6, "RxECNMrkd": 7, "ip4InDiscards": 1, "tcpRetransSegs": 2}
    assert events({"rdma:irdma0/1": irdma}) == {
        "ecn_marked": 7, "cnp_received": 4, "cnp_sent": 6, "nic_discards": 1, "rdma_retries": 2
    }  # fmt: skip
    bnxt = {"rx_cnp_pkts": 3, "tx_cnp_pkts": 8, "rx_ecn_marked_pkts": 2, "to_retransmits": 5}
    assert events({"rdma:bnxt_re0/1": bnxt, "rdma:bnxt_re1/1": bnxt}) == {
        "ecn_marked": 4, "cnp_received": 6, "cnp_sent": 16, "rdma_retries": 10
    }  # fmt: skip


def test_no_counter_is_no_figure_and_a_device_that_comes_later_is_none(agent: ModuleType, tmp_path: Path) -> None:
    assert counted(None) == counted(replies.StepTelemetry()) == []
    put_port(tmp_path, "mlx5_0", {"np_cnp_sent": 5, "lifespan": 10})
    assert agent.counters(str(tmp_path)) == {"rdma:mlx5_0/1": {"np_cnp_sent": 5}}
    assert agent.grown({}, agent.counters(str(tmp_path))) == {}


def test_hostile_counters_are_refused(agent: ModuleType, tmp_path: Path) -> None:
    put_port(tmp_path, "mlx5_0", {"cnp_\x1b[31m": 1})
    assert agent.counters(str(tmp_path)) == {}
    for bad in ({"rdma:x": {"np_cnp_sent": -1}}, {"rdma:x": {"n" * 101: 1}}, {f"net:{n}": {} for n in range(33)}):
        with pytest.raises(replies.NoReply):
            events(bad)


def test_what_is_no_count_is_left_out(agent: ModuleType) -> None:
    before = {"net:a": {"rx_discards": 0, "tx_discards": 1, "rx_pause": 2**64 - 9}}
    grown = agent.grown(before, {"net:a": {"rx_discards": 2**64 - 1, "tx_discards": 3, "rx_pause": 2**64 - 1}})
    assert grown == {"net:a": {"tx_discards": 2}}
    assert events(grown) == {"nic_discards": 2.0}


def test_a_device_whose_name_is_no_text_costs_no_other(
    agent: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert agent.statistics("x\udcff") == {}
    for nic in ("x\udcff", "y"):
        put_nic(tmp_path, nic)
    monkeypatch.setattr(agent, "statistics", lambda _: {"rx_discards": 1})
    devices = agent.counters(str(tmp_path))
    assert sorted(devices) == ["net:x\ufffd", "net:y"]
    assert events(devices) == {"nic_discards": 2.0}


def test_a_number_of_statistics_that_changes_is_no_figure(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel whose driver has 2 statistics when asked how many, and 5000 when asked for them."""
    now = 2

    def ioctl(_: object, __: int, request: bytes) -> None:
        pointer = struct.unpack("16sP16x", request)[1]
        command = ctypes.c_uint32.from_address(pointer).value
        if command == agent.GSSET_INFO:
            ctypes.c_uint32.from_address(pointer + 16).value = 2
            return
        head, width = (12, agent.WORD) if command == agent.GSTRINGS else (8, 8)
        ctypes.c_uint32.from_address(pointer + head - 4).value = now
        ctypes.memset(pointer + head, ord("n"), now * width)

    monkeypatch.setattr(agent.fcntl, "ioctl", ioctl)
    assert agent.statistics("x") == {"n" * agent.WORD: int.from_bytes(b"n" * 8, sys.byteorder)}
    now = 5000
    assert agent.statistics("x") == {}


@pytest.mark.parametrize("class_", ["net", "net-flow", "collective"])
def test_they_are_guardrails_in_every_class(class_: str) -> None:
    assert kinds.inferred(class_, "1", "lower") == (class_, Kind.GUARDRAIL)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's ethtool interface")
def test_this_machine_s_own_are_those_that_ethtool_prints(agent: ModuleType) -> None:
    nics = [p.parent.name for p in Path("/sys/class/net").glob("*/device")]
    if not nics or not shutil.which("ethtool"):
        pytest.skip("no network device with a driver, or no ethtool, on this machine")
    ran = subprocess.run(["ethtool", "-S", nics[0]], capture_output=True, text=True, check=False)
    names = [line.rpartition(":")[0].strip() for line in ran.stdout.splitlines()[1:]]
    assert list(agent.statistics(nics[0])) == names
