"""A finished step: its status and reason, the power from the best source available, the energy of a unit of work."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleetmark.base.measurement import Better, Measurement, Status
from fleetmark.campaign.energy import Watched, drawn, of_work
from fleetmark.campaign.outcome import judge
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.record.archive import Archive
from fleetmark.record.replies import Accelerator, Accelerators, Extremes, StepTelemetry
from fleetmark.record.steps import Step
from fleetmark.workloads import Manifest
from tests.drives import save_step


def drew(watts: float) -> Extremes:
    return Extremes(min=watts, mean=watts, max=watts)


RAPL = {"power_w:package-0": drew(180.0), "power_w:package-1": drew(170.0), "power_w:package-0_dram": drew(20.0)}


@pytest.mark.parametrize(
    ("summary", "watts", "source"),
    [
        (RAPL, 370.0, "rapl"),
        ({**RAPL, "power_w:psys": drew(420.0)}, 420.0, "psys"),
        ({**RAPL, "power_w:psys": drew(420.0), "power_w:power_meter": drew(510.0)}, 510.0, "meter"),
    ],
)
def test_the_best_source_counts(summary: dict[str, Extremes], watts: float, source: str) -> None:
    (power,) = drawn([Watched(StepTelemetry(summary=summary))])
    assert (power.metric, power.value, power.unit, dict(power.labels)) == ("power", watts, "W", {"source": source})


def test_no_sensor_no_power() -> None:
    summary = {"cpu_busy": drew(0.5), "power_w:package-0": drew(0.0)}
    assert drawn([Watched(StepTelemetry(summary=summary))]) == []


MANIFEST = Manifest.model_validate(
    {
        "name": "trains", "title": "-", "class": "gpu-train", "kind": "capacity", "description": "-", "licence": "-",
        "citation": "-", "cases": [{"name": "c", "argv": ["x"], "expect": 1}],
        "metrics": {"tokens": {"unit": "1/s", "better": "higher", "description": "-", "energy": "token"}},
    }
)  # fmt: skip
WINDOW = (1002.0, 1005.0)
RATES = [Measurement("trains", "c", "tokens", 1000.0, "1/s", better=Better.HIGHER)]
DEVICES = Accelerators(
    source="nvml",
    samples={"t": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "gpu_power_w": [100.0, 700.0, 800.0, None, 900.0, 100.0]},
    devices=[Accelerator(index=0, name="x", energy_j=2000.0), Accelerator(index=1, name="x", energy_j=1000.0)],
)


def energies(window: tuple[float, float] | None = WINDOW, **more: Any) -> dict[tuple[str, str], float]:
    watched = Watched(StepTelemetry(**{"started": 1000.0, "gpus": DEVICES, **more}), window)
    rows = [*drawn([watched]), *of_work([watched], RATES, MANIFEST)]
    return {(m.metric, m.labels["source"]): m.value for m in rows}


def test_energy_of_a_token_is_the_power_while_it_was_timed_over_the_rate() -> None:
    seen = energies()
    assert seen["energy_per_token", "nvml"] == pytest.approx((700 + 800 + 900) / 3 / 1000), "not the start and the end"
    assert seen["accelerator_energy", "nvml"] == 3000.0
    assert seen["accelerator_power", "nvml"] == pytest.approx(800.0), "of what was timed"
    assert energies(window=None)["accelerator_power", "nvml"] == pytest.approx(520.0), "of the step"


def test_the_host_s_own_meter_stands_beside_it() -> None:
    seen = energies(samples={"t": [1.5, 2.5, 3.5], "power_w:power_meter": [400.0, 1000.0, 1200.0]})
    assert seen["energy_per_token", "meter"] == pytest.approx(1.1)
    assert seen["energy_per_token", "nvml"] == pytest.approx(0.8)


def test_no_energy_where_telemetry_does_not_cover_it() -> None:
    assert "energy_per_token" not in {name for name, _ in energies(window=None)}
    assert "energy_per_token" not in {name for name, _ in energies(started=None)}
    assert "energy_per_token" not in {name for name, _ in energies(started=2000.0)}
    alone = DEVICES.model_copy(update={"devices": [Accelerator(index=0, name="x")]})
    assert "accelerator_energy" not in {name for name, _ in energies(gpus=alone)}


def test_telemetry_of_a_hostile_host_has_no_energy() -> None:
    """Figures that are finite one by one, and not together; columns that are missing."""
    nothing = Accelerators(source="nvml", samples={"t": []})
    assert energies(gpus=Accelerators(source="nvml")) == energies(gpus=nothing) == {}
    huge = Accelerators(source="nvml", samples={"t": [3.0, 4.0], "gpu_power_w": [1.7e308, 1.7e308]})
    assert energies(gpus=huge) == {}
    below = Accelerators(source="nvml", samples={"t": [3.0, 4.0], "gpu_power_w": [-5.0, -5.0]})
    assert energies(gpus=below) == energies(gpus=None, summary={"power_w:psys": drew(-1.0)}) == {}


HEAD = {"tool": "torch_collectives", "backend": "gloo", "op": "all_reduce", "dtype": "float32", "ranks": 4, "nodes": 2}
SIZE = {"size": 1 << 20, "count": 1 << 18, "calls": 50, "time": 1e-3, "p50": 8e-4, "p99": 5e-3, "wrong": 0}
RANK = "a rank waited longer than 10 s for another: raise patience, or look at what the slow host does (rank 1 on h1)"
CUT = "the output is cut: its end line is missing"
WRONG = {**SIZE, "wrong": 7}


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        ((HEAD,), 1, (Status.FAILED, f"exit status 1: {RANK}")),  # nothing was timed
        ((HEAD, SIZE), 1, (Status.FAILED, f"exit status 1: {RANK}")),
        ((HEAD, SIZE), 0, (Status.INVALID, CUT)),
        ((HEAD, WRONG), 1, (Status.INVALID, f"wrong data: 7 elements at 1048576 bytes (exit status 1: {RANK})")),
    ],
)
def test_a_cut_output_is_no_reason_beside_the_tools_own(
    tmp_path: Path, output: tuple[dict[str, Any], ...], code: int, expected: tuple[Status, str]
) -> None:
    """A tool that ends with an error leaves its output incomplete: its own sentence is enough."""
    document = {"hosts": [{"name": "h1", "labels": {}}], "created": "2026-11-01T00:00:00Z"}
    archive = Archive.create(tmp_path, "c1", document).writable()
    words: dict[str, Any] = {"id": "00001", "workload": "torch_collectives", "case": "c", "repeat": 1, "argv": ("x",)}
    step = asdict(Step(**words, env={}, expect_s=1.0, timeout_s=5.0, output="out"))
    result = {"ended": "exit", "rc": code, "started": 1.7e9, "wall_s": 1.0}
    files = {
        "result.json": json.dumps(result).encode(),
        "out": "".join(json.dumps(line) + "\n" for line in output).encode(),
    }
    folder = save_step(archive, "h1", step, files | {"stderr": f"{RANK}\n".encode() if code else b""})
    outcome = judge(archive, folder)
    archive.close()
    assert (outcome.status, outcome.reason) == expected


def test_a_librarys_place_in_a_message_is_left_out() -> None:
    """What gloo says after its timeout; the first line of the program has no path."""
    spec = importlib.util.spec_from_file_location("torch_ranks", PLAYBOOKS / "roles/torch_python/files/torch_ranks.py")
    assert spec and spec.loader
    ranks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ranks)
    place = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81]"
    assert (
        ranks.first_line(f"{place} Connection closed by peer [127.0.0.1]:1")
        == "Connection closed by peer [127.0.0.1]:1"
    )
    group = SimpleNamespace(patience=10)
    assert ranks.sentence_of(RuntimeError(f"{place} Timed out waiting 10000ms for recv"), group) in RANK
