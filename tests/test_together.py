"""What several hosts drew for one step: the sums of their recorded telemetry, and never that of a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fleetmark.campaign.rebuild import rebuild
from fleetmark.record.archive import Archive
from fleetmark.record.steps import Step
from tests.drives import save_step
from tests.schedules import facts

TRAINED = [
    {"tool": "torch_train", "torch": "2.13.0", "backend": "nccl", "device": "cuda", "model": "gpt-125m", "mode": "ddp",
     "precision": "bf16", "parameters": 124_000_000, "ranks": 16, "nodes": 2},
    {"check": 5.50, "must": 5.51, "tolerance": 0.02},
    {"steps": 40, "step": 0.25, "p50": 0.24, "p90": 0.3, "units": 1000, "unit": "tokens", "flops": 5.6e13,
     "matrix_peak": 7e14, "peak": 0, "memory": 3e10, "alone": 0.23, "first_loss": 10.9, "last_loss": 9.0,
     "window": [1010.0, 1020.0]},
    {"end": True},
]  # fmt: skip
SPREAD = {"p50": 0.02, "p90": 0.02, "p99": 0.02, "mean": 0.02}
RUN = {
    "run": "closed", "concurrency": 4, "requests": 200, "answered": 200, "failures": {}, "seconds": 10.0, "late": 0.0,
    "ttft": SPREAD, "tpot": SPREAD, "gap": SPREAD, "e2e": SPREAD, "requests_per_second": 20.0, "tokens_a_piece": 1.0,
    "output_tokens_per_second": 500.0, "input_tokens_per_second": 900.0, "prompt_tokens": 45.0, "output_tokens": 25.0,
    "busy": 0.01, "details": {}, "window": [1010.0, 1020.0],
}  # fmt: skip


def served(here: bool) -> list[dict[str, Any]]:
    return [{"llm_serve": 1, "model": "m", "gpus": 8, "targets": [0, 0], "here": here}, RUN, {"end": True}]


def telemetry(meter: float | None, boards: float | None = None, started: float = 1000.0) -> dict[str, Any]:
    """30 s at so many W while the tool timed (10 to 20 s), and at 100 W before and after."""
    t = [float(n) for n in range(1, 31)]
    busy = [10 <= n <= 20 for n in t]
    doc: dict[str, Any] = {"started": started, "samples": {"t": t}, "summary": {}}
    if meter is not None:
        doc["samples"]["power_w:power_meter"] = [meter if b else 100.0 for b in busy]
        doc["summary"]["power_w:power_meter"] = {"min": 100.0, "mean": (11 * meter + 1900) / 30, "max": meter}
    if boards is not None:
        samples = {"t": t, "gpu_power_w": [boards if b else 50.0 for b in busy]}
        doc["gpus"] = {"source": "nvml", "samples": samples, "devices": [{"index": 0, "name": "x", "energy_j": 7000.0}]}
    return doc


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    hosts = [{"name": name, "labels": {}} for name in ("h1", "h2")]
    opened = Archive.create(tmp_path, "c1", {"hosts": hosts, "created": "2026-11-01T00:00:00Z"}).writable()
    yield opened
    opened.close()


def keep(
    archive: Archive, host: str, seen: dict[str, Any] | None, output: list[Any] | None = None, **more: Any
) -> None:
    step = asdict(Step(id="00000", case="c", repeat=0, argv=("x",), env={}, expect_s=1.0, timeout_s=5.0, **more))
    result = {"ended": "exit", "rc": 0, "started": 1000.0, "wall_s": 30.0, "telemetry": seen}
    files = {"result.json": json.dumps(result).encode()}
    if output is not None:
        files["stdout"] = "".join(json.dumps(doc) + "\n" for doc in output).encode()
    save_step(archive, host, step, files)


def gang(archive: Archive, first: dict[str, Any] | None, second: dict[str, Any] | None) -> None:
    keys = {"workload": "torch_train", "class_": "gpu-train"}
    keep(archive, "h1", first, TRAINED, subject="2 nodes", members=("h1", "h2"), **keys)
    keep(archive, "h2", second, subject="2 nodes of h1", serves=True, **keys)


def pair(archive: Archive, client: dict[str, Any] | None, server: dict[str, Any] | None) -> None:
    keys = {"workload": "llm_serve", "class_": "gpu", "subject": "h1>h2"}
    keep(archive, "h1", client, served(here=False), **keys)
    keep(archive, "h2", server, serves=True, **keys)


def figures(archive: Archive) -> dict[tuple[str, str], float]:
    """Metric and source to the value, of the rows of power and energy."""
    rows = [row for row in rebuild(archive) if "power" in row["metric"] or "energy" in row["metric"]]
    assert {row["host"] for row in rows} <= {"h1"} and {row["status"] for row in rows} <= {"passed"}
    assert all(row["kind"] == "guardrail" for row in rows if row["metric"].startswith("energy_per"))
    return {(row["metric"], json.loads(row["labels"])["source"]): row["value"] for row in rows}


def test_hosts_that_train_together_draw_the_sum(archive: Archive) -> None:
    gang(archive, telemetry(900.0, 500.0), telemetry(1100.0, 700.0))
    assert figures(archive) == {
        ("power", "meter"): 2000.0,
        ("accelerator_power", "nvml"): 1200.0,
        ("accelerator_energy", "nvml"): 14000.0,
        ("energy_per_token", "meter"): 2000.0 / 4000,  # 1,000 tokens in 0.25 s
        ("energy_per_token", "nvml"): 1200.0 / 4000,
        ("energy_per_step", "meter"): 500.0,
        ("energy_per_step", "nvml"): 300.0,
    }


@pytest.mark.parametrize("second", [None, telemetry(None), telemetry(1100.0, started=5000.0)])
def test_without_the_power_of_every_host_there_is_no_energy(archive: Archive, second: dict[str, Any] | None) -> None:
    gang(archive, telemetry(900.0, 500.0), second)
    assert not [name for name, _ in figures(archive) if name.startswith("energy_per")]


def test_a_clock_that_is_ahead_is_put_back(archive: Archive) -> None:
    """The second host's clock is 600 s ahead, as its facts say."""
    archive.save_facts("h1", facts(skew=-0.1), {})
    archive.save_facts("h2", facts(skew=600.0), {})
    gang(archive, telemetry(900.0), telemetry(1100.0, started=1600.1))
    assert figures(archive)["energy_per_token", "meter"] == pytest.approx(0.5)


def test_of_a_pair_the_power_is_that_of_the_server(archive: Archive) -> None:
    pair(archive, telemetry(5000.0, 4000.0), telemetry(1500.0, 1000.0))
    assert figures(archive) == {
        ("power", "meter"): 1500.0,
        ("accelerator_power", "nvml"): 1000.0,
        ("accelerator_energy", "nvml"): 7000.0,
        ("energy_per_token", "meter"): 3.0,
        ("energy_per_token", "nvml"): 2.0,
    }
    ((subject, model),) = {
        (row["subject"], json.loads(row["labels"])["model"])
        for row in rebuild(archive)
        if row["metric"] == "energy_per_token"
    }
    assert (subject, model) == ("h1>h2", "m")


def test_a_client_s_own_power_never_counts(archive: Archive) -> None:
    pair(archive, telemetry(5000.0, 4000.0), None)
    keep(archive, "h2", telemetry(5000.0, 4000.0), served(here=False), workload="llm_serve", class_="gpu")
    assert figures(archive) == {}


def test_a_server_on_the_client_s_own_host_has_that_host_s_power(archive: Archive) -> None:
    keep(archive, "h1", telemetry(1500.0), served(here=True), workload="llm_serve", class_="gpu")
    assert figures(archive) == {("power", "meter"): 1500.0, ("energy_per_token", "meter"): 3.0}
