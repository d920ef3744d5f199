"""What a review of torch_ops found: copies, layouts, memory, launches, scales, clocks. Each by a real torch on the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.facts import Gpu, Torch
from tests.schedules import schedule, suite
from tests.torches import PYTHON, needs_torch
from tests.workloads.torch_bench import FILES, bench, torch_python

pytestmark = pytest.mark.skipif(not PYTHON, reason=str(needs_torch.kwargs["reason"]))


def in_torch(program: str) -> Any:
    """Run ``program`` beside the files of torch_ops and return the JSON that it prints."""
    start = f"import json, sys; sys.path.insert(0, {str(FILES)!r})\nimport torch, basic, cases, operators\nbasic.use(torch)\n"
    ran = subprocess.run([torch_python(), "-c", start + program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_queries_that_share_keys_do_not_copy_them() -> None:
    seen = in_torch("""
from torch.utils._python_dispatch import TorchDispatchMode
class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple) else (result,):
            if isinstance(one, torch.Tensor) and one.untyped_storage().data_ptr() not in known:
                made.append([str(function), list(one.shape)])
        return result
dims = {"b": 2, "h": 8, "kv": 2, "s": 1, "t": 64, "d": 16}
inputs = operators.TABLE["attention"].make(operators.Maker(torch, "cpu", "fp32"), dims)
known, made = {x.untyped_storage().data_ptr() for x in inputs}, []
with Seen():
    operators.TABLE["attention"].run(*inputs)
print(json.dumps(made))
""")
    assert seen and all(shape[-2:] != [64, 16] for _, shape in seen), seen  # nothing as large as the keys is made


def test_scales_of_fp8_are_made_once_and_the_fast_path_is_asked_for() -> None:
    calls = in_torch("""
from torch.utils._python_dispatch import TorchDispatchMode
class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        calls.append([str(function), [a for a in args if isinstance(a, bool)] + list((kwargs or {}).values())[-1:]])
        return function(*args, **(kwargs or {}))
inputs = operators.TABLE["mm"].make(operators.Maker(torch, "cpu", "fp8"), {"m": 32, "k": 32, "n": 32})
operators.TABLE["mm"].run(*inputs)
calls = []
with Seen():
    operators.TABLE["mm"].run(*inputs)
print(json.dumps([[name, [x for x in flags if isinstance(x, bool)]] for name, flags in calls]))
""")
    assert calls == [["aten._scaled_mm.default", [True]]]


@pytest.mark.parametrize(("arch", "name"), [("gfx942:sramecc+", "float8_e4m3fnuz"), ("gfx950", "float8_e4m3fn")])
def test_an_mi300_computes_in_its_own_fp8(arch: str, name: str) -> None:
    program = f"""
from types import SimpleNamespace as N
cuda = N(current_device=lambda: 0, get_device_properties=lambda index: N(gcnArchName={arch!r}))
print(json.dumps(operators.fp8_name(N(version=N(hip="6.4"), cuda=cuda), "cuda")))
"""
    assert in_torch(program) == name


SHAPES = {"attention": {"long": {"b": 32, "h": 12, "kv": 12, "s": 4096, "t": 4096, "d": 64}}}


@pytest.mark.parametrize(("precision", "fits"), [("fp64", False), ("bf16", True)])
def test_attention_in_fp64_needs_its_scores_twice(precision: str, fits: bool) -> None:
    needed = in_torch(f"""
import memory
maker = operators.Maker(torch, "meta", {precision!r})
print(json.dumps(memory.needed(torch, operators.TABLE["attention"], {SHAPES["attention"]["long"]!r}, maker)))
""")
    assert (needed < 79e9) is fits  # of an H100
    assert needed > 2 * (48 << 30) or fits


def test_a_case_larger_than_the_host_is_skipped_before_anything_is_allocated(tmp_path: Path) -> None:
    shapes = {"rows": {"huge": {"rows": 1 << 24, "cols": 1 << 16}, "tiny": {"rows": 2, "cols": 2}}}
    raw = bench(tmp_path, shapes, "--grade", "basic", "--operators", "copy,sum_columns", "--precisions", "fp32")
    output = parsers.parse("torch_ops", raw.encode())
    assert output.invalid is None
    (note,) = [n for n in output.notes if "/huge" in n and "copy" in n]
    assert note.startswith("skipped copy/fp32/huge: it needs at least 12288.0 GiB, and ")
    assert note.endswith(" GiB are free: set tokens or batch lower")
    assert {m.case for m in output.measurements if m.metric == "time"} == {"copy/fp32/tiny", "sum_columns/fp32/tiny"}


def test_a_convolution_runs_in_both_layouts_and_names_the_faster(tmp_path: Path) -> None:
    conv = {"n": 1, "c": 8, "h": 16, "w": 16, "o": 8, "r": 3, "stride": 1}
    raw = bench(tmp_path, {"conv": {"x": conv}}, "--grade", "basic", "--operators", "conv2d", "--precisions", "fp32")
    output = parsers.parse("torch_ops", raw.encode())
    value = {m.metric: m.value for m in output.measurements if m.case == "conv2d/fp32/x"}
    assert value["time"] == min(value["time_nchw"], value["time_channels_last"])
    assert any(note.endswith("is the faster one for conv2d/fp32/x") for note in output.notes)


def test_sustained_products_and_the_power_cap_stand_beside_the_peak(tmp_path: Path) -> None:
    shapes = {"mm": {"x": {"m": 8, "k": 8, "n": 8}}}
    words = (
        "--grade",
        "basic",
        "--operators",
        "mm",
        "--precisions",
        "fp32",
        "--sustained",
        "0.3",
        "--power-cap",
        "700",
    )
    raw = bench(tmp_path, shapes, *words)
    value = {(m.case, m.metric): m.value for m in parsers.parse("torch_ops", raw.encode()).measurements}
    assert value[("roof", "device_power_cap")] == 700
    assert 0.2 < value[("roof/fp32", "sustained_peak")] / value[("roof/fp32", "peak")] < 2


DEVICE = """
import timing, time
class Event:
    def __init__(self, device, enable_timing): pass
    def record(self): self.moment = clock[0]
    def elapsed_time(self, end): return (end.moment - self.moment) * 1e3
class Torch:
    Event = Event
    class accelerator:
        synchronize = staticmethod(lambda: None)
clock = [0.0]
timer = timing.Clock.__new__(timing.Clock)
timer.torch, timer.device, timer.accelerated, timer.handle = Torch, "xpu", True, None
class sweep: zero_ = staticmethod(lambda: None)
timer.sweep = sweep
def call():
    clock[0] += 1e-5  # on the device
    time.sleep(0.001)  # on the host
times = timer.sample(call, 0.05)
import torch_ops
bench = torch_ops.Bench.__new__(torch_ops.Bench)
bench.clock = timer
print(json.dumps([bench.launches(call, times), max(times.seconds)]))
"""


def test_a_call_that_the_host_starts_slower_than_the_device_runs_it_says_so() -> None:
    launches, longest = in_torch(DEVICE)
    assert launches["host"] >= 0.001 > 1e-5 * 1.01 > longest
    assert launches["no_graph"] == "only CUDA devices capture calls"


def test_no_operator_asks_the_device_for_a_value() -> None:
    """On torch's meta device there is no value to wait for: what needs one, as bincount does, fails there."""
    waiting = in_torch("""
import fused, longtail
dims = {"rows": 32, "experts": 4, "top": 2, "cols": 16, "hidden": 16}
maker, waiting = operators.Maker(torch, "meta", "fp32"), []
for name, operator in operators.TABLE.items():
    if operator.family == "moe":
        try:
            operator.run(*operator.make(maker, dims))
        except Exception as error:
            waiting.append([name, str(error)])
print(json.dumps(waiting))
""")
    assert not waiting


def test_the_librarys_fastest_kernel_is_searched(tmp_path: Path) -> None:
    program = f"""
import runpy, sys, torch
sys.path.insert(0, {str(FILES)!r})
runpy.run_path({str(FILES / "torch_ops.py")!r}, run_name="__main__")
print(torch.backends.cudnn.benchmark)
"""
    words = ("--grade", "basic", "--operators", "copy", "--precisions", "fp32")
    out = bench(tmp_path, {"rows": {"x": {"rows": 2, "cols": 2}}}, *words, program=("-c", program))
    assert out.splitlines()[-1] == "True"


def test_a_launch_bound_case_is_named_with_its_graph() -> None:
    fields = {
        "model": "",
        "flops": 10,
        "bytes": 100,
        "n": 5,
        "throttled": 0,
        "error": 0.0,
        "tolerance": 1.0,
        "right": True,
    }
    times = {"best": 1e-5, "median": 1e-5, "q1": 1e-5, "q3": 1e-5}
    head = {
        "fleetmark": "torch_ops",
        "format": 1,
        "torch": "2",
        "device": "cuda",
        "name": "x",
        "runtime": "",
        "isa": "",
    }
    head |= {"onednn_isa": "", "threads": 1, "grade": "fused"}
    counts = {"cases": 3, "skipped": 0, "failed": 0, "wrong": 0}
    lines = [
        head,
        {"case": "silu/bf16/a", **fields, **times, "host": 4e-5, "graph": 5e-6},
        {"case": "silu/bf16/b", **fields, **times, "host": 2e-6},
        {"case": "silu/bf16/c", **fields, **times, "host": 4e-5, "no_graph": "it allocates"},
        {"roof": "bf16", "rate": 1e12},
        {"roof": "memory", "rate": 1e8},
        {"end": counts, "seconds": 1.0},
    ]
    output = parsers.parse("torch_ops", "\n".join(map(json.dumps, lines)).encode())
    assert output.notes == (
        "launch-bound, so rated by their time as one CUDA graph (time_graph): silu/bf16/a",
        "launch-bound, so rated by the time of the host's start, as no graph was timed: silu/bf16/c",
    )

    def values(metric: str) -> dict[str, float]:
        return {m.case[-1]: m.value for m in output.measurements if m.metric == metric and "silu" in m.case}

    assert values("time_graph") == {"a": 5e-6}
    assert values("launch_ratio") == pytest.approx({"a": 4, "b": 0.2, "c": 4})
    assert values("time") == dict.fromkeys("abc", 1e-5)
    assert values("bandwidth") == pytest.approx({"a": 100 / 5e-6, "b": 100 / 1e-5, "c": 100 / 1e-5})
    assert values("roof_share") == pytest.approx({"a": 1e-6 / 5e-6, "b": 1e-6 / 1e-5, "c": 1e-6 / 1e-5})


def test_the_power_cap_of_each_device_is_told(tmp_path: Path) -> None:
    gpus = tuple(
        Gpu(index=n, name="H100", vendor="nvidia", power_limit=limit) for n, limit in enumerate((700.0, 350.0))
    )
    two = Torch(version="2.11.0", device="cuda", devices=2)
    settings = {"torch_ops": {"grades": "basic", "devices": "all"}}
    steps = schedule(suite(tmp_path, "  torch_ops:\n"), settings, torch={"python3": two}, gpus=gpus).hosts["h1"].steps
    caps = {s.case.rpartition("-")[2]: [w for w in s.argv if w.startswith(("--power", "--sust"))] for s in steps}
    assert caps == {"gpu0": ["--sustained=3.0", "--power-cap=700.0"], "gpu1": ["--sustained=3.0", "--power-cap=350.0"]}
