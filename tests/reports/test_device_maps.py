"""Test the maps of links between devices, compared with the peaks that follow from the host's facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base import schema
from fleetmark.base.facts import Facts, Gpu
from fleetmark.record.values import Values
from fleetmark.reports.campaign import maps
from fleetmark.reports.campaign.view import view
from fleetmark.reports.kit.language import Language
from tests import corpus
from tests.parsers.reading import FIXTURES
from tests.records import row
from tests.reports import sample


def devices(tool: str, raw: bytes, gpus: Sequence[Gpu], *chosen: str) -> dict[str, Any]:
    """Return the maps of a host with ``gpus``, by case, for the cases ``chosen``."""
    parsed = parsers.parse(tool, raw)
    links = [
        row(workload=tool, case=m.case, metric=m.metric, host="h1", headline=False, value=m.value, unit=m.unit)
        | {"class": "collective", "labels": json.dumps(dict(m.labels), sort_keys=True, separators=(",", ":"))}
        for m in parsed.measurements
        if m.metric == "bandwidth" and m.case in chosen
    ]
    host_facts = {"time": 0.0, "hostname": "h1", "user": "u", "root": True, "python": "p", "python_version": "3.11"}
    results = replace(sample.tiny({"h1": [1.0]}), values=Values(schema.frame(links)))
    known = replace(results.hosts[0], facts=Facts(**host_facts, work_dir="/w", gpus=tuple(gpus)))
    drawn = maps.of_devices(view(replace(results, hosts=(known,))), Language())
    return {str(d.title).split(":")[0].split()[-1]: d for d in drawn}


@pytest.mark.parametrize(("path", "_row"), [r for r in corpus.rows("nvbandwidth") if "h100x8" in str(r.id)])
def test_each_link_stands_beside_its_peak(path: Path, _row: dict[str, Any]) -> None:
    gpus = [
        Gpu(index=n, name="NVIDIA H100 80GB HBM3", vendor="nvidia", nvlinks=18, max_pcie_gen=5, max_pcie_width=16)
        for n in range(8)
    ]
    host, device = "host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce"
    drawn = devices("nvbandwidth", path.read_bytes(), gpus, host, device)
    cells = {(c["a"], c["b"]): c for c in drawn[host].spec()["data"]["values"]}
    assert cells["cpu0", "gpu0"]["t"] == "27.7\n44%"  # 27.6659 of 32 GT/s x 16 lanes x 128 / 130 / 8 = 63.0 GB/s
    assert "cpu0 → gpu0: 27.7 GB/s, 44%" in cells["cpu0", "gpu0"]["d"]
    assert "From cpu to gpu: 44% of 63 GB/s one way, the slowest 44% (a PCIe link of 32 GT/s x16)." in drawn[host].note
    cells = {(c["a"], c["b"]): c["t"] for c in drawn[device].spec()["data"]["values"]}
    assert cells["gpu0", "gpu1"] == "371\n82%"  # 370.767 of 450
    basis = "18 NVLinks of 25 GB/s, if all lead from one GPU to the other"
    assert f"From gpu to gpu: 82% of 450 GB/s one way, the slowest 82% ({basis})." in drawn[device].note
    silent = [gpu.model_copy(update={"nvlinks": None}) for gpu in gpus]
    unknown = devices("nvbandwidth", path.read_bytes(), silent, device)[device]
    assert "one way" not in unknown.note and {c["t"] for c in unknown.spec()["data"]["values"]} >= {"371"}


def test_both_ways_at_once_count_half_a_link_each() -> None:
    gpus = [Gpu(index=n, name="AMD Instinct", vendor="amd", max_pcie_gen=4, max_pcie_width=16) for n in range(2)]
    raw = (FIXTURES / "rocm_bandwidth_test" / "2.6.0_form.txt").read_bytes()
    drawn = devices("rocm_bandwidth_test", raw, gpus, "one-way", "both-ways")
    one_way = {(c["a"], c["b"]): c["t"] for c in drawn["one-way"].spec()["data"]["values"]}
    assert one_way["cpu0", "gpu1"] == "14.2\n45%"  # 14.25 of 31.5 GB/s
    assert "\n" not in one_way["gpu1", "gpu2"], "the rate of XGMI is not among the facts"
    both = {(c["a"], c["b"]): c["t"] for c in drawn["both-ways"].spec()["data"]["values"]}
    assert both["cpu0", "gpu1"] == "25.9\n41%" and "From cpu to gpu: 41% of 31.5 GB/s" in drawn["both-ways"].note


def test_what_is_faster_than_its_link_has_no_share_of_it() -> None:
    """An integrated GPU copies within shared memory, so its PCIe registers give no peak."""
    apu = [Gpu(index=0, name="AMD Radeon Graphics", vendor="amd", max_pcie_gen=4, max_pcie_width=16)]
    raw = (FIXTURES / "rocm_bandwidth_test" / "2.6.0_form.txt").read_bytes().replace(b"14.", b"84.")
    drawn = devices("rocm_bandwidth_test", raw, apu, "one-way")["one-way"]
    cells = {(c["a"], c["b"]): c["t"] for c in drawn.spec()["data"]["values"]}
    assert cells["cpu0", "gpu1"] == "84.2" and "one way" not in drawn.note
