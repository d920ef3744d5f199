"""Every corpus file of lscpu, dmidecode, numactl and nvidia-smi gives what its manifest expects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts import parse
from tests import corpus

GIB, MIB = 1 << 30, 1 << 20


def _lscpu(facts: dict[str, Any], key: str) -> Any:
    if key == "l3_bytes":
        return sum(cache["total"] for cache in facts["caches"] if cache["level"] == 3)
    return facts[key]


def _dmidecode(facts: dict[str, Any], key: str) -> Any:
    first = facts["memory"][0]
    rated = first.get("rated_mts")
    return {
        "memory_devices": len(facts["memory"]),
        "dimm_size_GB": first["size"] / GIB,
        "speed_MTps": rated,
        "configured_MTps": first.get("configured_mts"),
        "type": first.get("type"),
        "dimm0_size_MB": first["size"] / MIB,
        "dimm1_size_MB": facts["memory"][1]["size"] / MIB,
        "speed": f"{rated} MT/s" if rated is not None else "Unknown",
    }[key]


def _numactl(facts: dict[str, Any], key: str) -> Any:
    nodes = facts["numa"]
    if key == "nodes":
        return facts["nodes"]
    return {"node0_size_MB": nodes[0]["memory"] / MIB, "distance_0_2": nodes[0]["distances"][2]}[key]


def _nvidia_smi(facts: dict[str, Any], key: str) -> Any:
    if "links" in facts:
        return facts["numa"][7] if key == "numa_gpu7" else facts["links"][key]
    gpus = facts["gpus"]
    return {
        "gpus": len(gpus),
        "driver": facts["driver"],
        "cuda": facts.get("cuda"),
        "product": gpus[0]["name"],
        "memory_total_MiB": gpus[0]["memory"] / MIB,
    }[key]


def _check(tool: str, read: Callable[[dict[str, Any], str], Any], path: Path, row: dict[str, Any]) -> None:
    assert row["expected"], "a row that expects nothing checks nothing"
    facts = parse(tool, path.read_bytes())
    assert {key: read(facts, key) for key in row["expected"]} == row["expected"]


@pytest.mark.parametrize(("path", "row"), corpus.rows("lscpu"))
def test_lscpu(path: Path, row: dict[str, Any]) -> None:
    _check("lscpu", _lscpu, path, row)


@pytest.mark.parametrize(("path", "row"), corpus.rows("dmidecode"))
def test_dmidecode(path: Path, row: dict[str, Any]) -> None:
    _check("dmidecode", _dmidecode, path, row)


@pytest.mark.parametrize(("path", "row"), corpus.rows("numactl"))
def test_numactl(path: Path, row: dict[str, Any]) -> None:
    _check("numactl", _numactl, path, row)


@pytest.mark.parametrize(("path", "row"), corpus.rows("nvidia_smi"))
def test_nvidia_smi(path: Path, row: dict[str, Any]) -> None:
    if "message" not in row["expected"]:
        _check("nvidia_smi", _nvidia_smi, path, row)
        return
    with pytest.raises(ParseError) as refused:  # without GPUs there are no facts, and the error says why
        parse("nvidia_smi", path.read_bytes())
    assert refused.value.got == row["expected"]["message"]
