"""torch_ops: its operators against numpy, its shapes, its timing and its errors, by a real torch if there is one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Gpu, Torch
from fleetmark.base.measurement import Status
from fleetmark.campaign.outcome import _status_of
from tests.schedules import schedule, suite
from tests.torches import needs_torch
from tests.workloads.torch_bench import FILES, bench, torch_python

TORCH = Torch(version="2.13.0", device="cpu")
GPUS = tuple(Gpu(index=n, name="H100", vendor="nvidia") for n in range(8))

# Runs in the Python with torch: operators in fp64 against numpy, written without torch.
AGAINST_NUMPY = """
import json, math, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import torch
import cases, operators, basic
basic.use(torch)
D = {"m": 5, "k": 16, "n": 8, "b": 2, "rows": 12, "cols": 16, "h": 4, "kv": 2, "s": 6, "t": 6, "d": 8, "vocab": 20,
     "experts": 4, "top": 2, "hidden": 8, "c": 8, "w": 8, "o": 4, "r": 3, "stride": 1}
def soft(x): e = np.exp(x - x.max(-1, keepdims=True)); return e / e.sum(-1, keepdims=True)
def rms(x, w): return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
def norm(x, w, b): return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
erf = np.vectorize(math.erf)
def gelu(x): return x * (1 + erf(x / math.sqrt(2))) / 2
def silu(x): return x / (1 + np.exp(-x))
def attend(q, k, v, causal):
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal: s = np.where(np.tril(np.ones(s.shape[-2:])) > 0, s, -np.inf)
    return soft(s) @ v
def conv(x, w, stride):
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    win = np.lib.stride_tricks.sliding_window_view(p, (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", win, w)
def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + np.concatenate((-x[..., half:], x[..., :half]), -1) * sin
def dispatch(x, gate, top):
    experts = np.argsort(-soft(x @ gate), -1, kind="stable")[:, :top].ravel()
    return x[np.argsort(experts, kind="stable") // top]
def experts(x, counts, up, down):
    parts, at = [], 0
    for e, n in enumerate(counts): parts.append(silu(x[at:at + n] @ up[e]) @ down[e]); at += n
    return np.concatenate(parts)
def gradient(f):  # of half the sum of squares, by differences
    def of(*x):
        result = []
        for i in range(len(x)):
            g = np.zeros_like(x[i])
            for j in np.ndindex(*x[i].shape):
                up, down = [y.copy() for y in x], [y.copy() for y in x]
                up[i][j] += 1e-5; down[i][j] -= 1e-5
                g[j] = ((f(*up) ** 2).sum() - (f(*down) ** 2).sum()) / 4e-5
            result.append(g)
        return result
    return of
EXPECTED = {
    "mm": np.matmul, "bmm": np.matmul, "linear": lambda a, b, c: a @ b + c, "mv": np.matmul, "conv2d": conv,
    "add": np.add, "div": np.divide, "exp": np.exp, "sum": lambda x: x.sum(-1), "softmax": soft, "transpose": np.transpose,
    "layer_norm": norm, "rms_norm": rms, "add_rms_norm": lambda x, y, w: rms(x + y, w), "gelu": gelu, "silu": silu,
    "swiglu": lambda x, y: silu(x) * y, "geglu": lambda x, y: gelu(x) * y, "rotary": rotary,
    "attention": lambda q, k, v: attend(q, k, v, False), "attention_causal": lambda q, k, v: attend(q, k, v, True),
    "attention_backward": gradient(lambda q, k, v: attend(q, k, v, True)), "rms_norm_backward": gradient(rms),
    "embedding": lambda at, table: table[at], "moe_dispatch": dispatch, "moe_experts": experts,
    "cross_entropy": lambda x, y: -np.log(soft(x))[np.arange(len(y)), y].mean(),
    "sort": lambda x: np.sort(x, -1), "topk": lambda x: -np.sort(-x, -1)[:, :50], "cumsum": lambda x: x.cumsum(-1),
    "gather": lambda x, at: np.take_along_axis(x, at, -1), "index_select": lambda x, at: x[at], "roll": lambda x: np.roll(x, 7, -1),
    "logsumexp": lambda x: np.log(np.exp(x).sum(-1)), "argmax": lambda x: x.max(-1, keepdims=True), "std": lambda x: x.std(-1, ddof=1),
    "scatter": lambda x, at: x[np.argsort(at)], "mse_loss": lambda x, y: ((x - y) ** 2).mean(), "outer": lambda x: np.outer(x[:, 0], x[0]),
}
def plain(x): return x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x
worst = {}
for name, expected in EXPECTED.items():
    operator = operators.TABLE[name]
    dims = {k: D[k] for k in operators.FAMILIES[operator.family]}
    if operator.family in ("conv",): dims["n"] = 2
    inputs = operator.make(operators.Maker(torch, "cpu", "fp64"), dims)
    before = [plain(x) for x in inputs]
    got, want = operator.run(*inputs), expected(*before)
    got, want = ([plain(x) for x in (y if isinstance(y, (tuple, list)) else [y])] for y in (got, want))
    worst[name] = max(float(np.abs(g - w).max() / (np.abs(w).max() or 1)) if g.shape == np.shape(w) else 9.0 for g, w in zip(got, want))
print(json.dumps(worst))
"""
# A bench that does not foresee what a case allocates.
UNFORESEEN = """
import sys; sys.path.insert(0, sys.argv.pop(1))
import torch_ops
torch_ops.Bench.shortage = lambda *_: None
torch_ops.main()
"""
# A bench in which one operator computes something else.
INJECTED = """
import sys; sys.path.insert(0, sys.argv.pop(1))
import cases, operators, torch_ops
gelu = operators.TABLE["gelu"].run
operators.TABLE["gelu"].run = lambda x: gelu(x) * (1 if x.dtype.itemsize == 8 else float("nan"))
torch_ops.main()
"""


def script(name: str) -> Any:
    sys.path.insert(0, str(FILES))
    try:
        spec = importlib.util.spec_from_file_location(f"torch_ops_{name}", FILES / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FILES))
    return module


CASES = script("cases")


@needs_torch
def test_operators_compute_what_numpy_does() -> None:
    ran = subprocess.run([torch_python(), "-c", AGAINST_NUMPY, str(FILES)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    worst = json.loads(ran.stdout)
    assert len(worst) >= 35
    assert {name: error for name, error in worst.items() if not error < 1e-6} == {}


@needs_torch
def test_a_tiny_run_is_right_in_every_precision(tmp_path: Path) -> None:
    shapes = {
        "mm": {"tiny": {"m": "tokens", "k": 32, "n": 48, "model": "none"}},
        "rows": {"tiny": {"rows": 20, "cols": 33}},
    }
    raw = bench(tmp_path, shapes, "--grade", "basic", "--operators", "mm,softmax,add", "--tokens", "32")
    output = parsers.parse("torch_ops", raw.encode())
    assert output.invalid is None
    measured = {m.case for m in output.measurements if m.metric == "error"}
    assert {"mm/fp64/tiny", "mm/fp32/tiny", "mm/bf16/tiny", "softmax/bf16/tiny", "add/fp64/tiny"} <= measured
    assert any(note.startswith("skipped mm/tf32: the device has no tf32") for note in output.notes)


@needs_torch
def test_a_wrong_operator_is_invalid_never_fast(tmp_path: Path) -> None:
    shapes = {"rows": {"tiny": {"rows": 20, "cols": 33}}}
    words = ("--grade", "fused", "--operators", "gelu,silu", "--precisions", "fp32")
    raw = bench(tmp_path, shapes, *words, program=("-c", INJECTED, str(FILES)))
    output = parsers.parse("torch_ops", raw.encode())
    assert output.invalid == "gelu/fp32/tiny computes a wrong result: it is not a number"
    assert output.invalid_cases == ("gelu/fp32/tiny",)
    assert _status_of("gelu/fp32/tiny", output, Status.INVALID) == "invalid"
    assert _status_of("silu/fp32/tiny", output, Status.INVALID) == "passed"
    assert _status_of("silu/fp32/tiny", output, Status.FAILED) == "failed"


@needs_torch
def test_a_case_without_memory_fails_with_what_was_asked_and_free(tmp_path: Path) -> None:
    shapes = {"rows": {"huge": {"rows": 1 << 20, "cols": 1 << 14}, "tiny": {"rows": 2, "cols": 2}}}
    words = ("--grade", "basic", "--operators", "copy", "--precisions", "fp32")
    program = ("-c", UNFORESEEN, str(FILES))
    raw = bench(tmp_path, shapes, *words, program=program, limit=12 << 30)
    (fail,) = [json.loads(line) for line in raw.splitlines() if line.startswith('{"fail"')]
    assert fail["fail"] == "copy/fp32/huge"
    assert "you tried to allocate 687" in fail["why"] and fail["why"].endswith("GiB free")
    assert parsers.parse("torch_ops", raw.encode()).invalid_cases == ("copy/fp32/huge",)


@needs_torch
def test_a_call_that_would_take_long_is_skipped(tmp_path: Path) -> None:
    shapes = {"mm": {"slow": {"m": 1 << 20, "k": 1 << 20, "n": 1 << 20}}}
    raw = bench(tmp_path, shapes, "--grade", "basic", "--operators", "mm", "--precisions", "fp32")
    assert '"skip": "mm/fp32/slow", "why": "a call would take' in raw


def test_a_hundred_operators_and_more_in_every_class() -> None:
    shapes = CASES.check(
        json.loads(subprocess.check_output([sys.executable, str(FILES / "cases.py"), str(FILES / "shapes.yml")]))
    )
    count = {
        g: len({o.name for o, *_ in CASES.cases(shapes, g, ["*"], ["*"], 8, 1)})
        for g in ("basic", "fused", "long-tail")
    }
    assert count["basic"] >= 35 and count["fused"] >= 20 and count["long-tail"] >= 100
    for family, named in shapes.items():
        assert all(row["model"] for row in named.values()), family


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[1]", "it is not a mapping of families (mm, bmm, conv, image, attention, rows, embedding, moe) to shapes"),
        ("mn: {a: {m: 1}}", "there is no family 'mn'; there are mm, bmm, conv"),
        ("mm: {a: {m: 1, k: 2}}", "mm.a: n is not given; mm has m, k, n"),
        ("mm: {a: {m: 1, k: 2, n: 0}}", "mm.a.n: 0 is not a whole number above 0, nor tokens or batch"),
        ("mm: {a: {m: 1, k: 2, n: word}}", "mm.a.n: 'word' is not a whole number above 0"),
        ("mm: {a: {m: 1, k: 2, n: 3, x: 4}}", "mm.a: it has 'x', which is unknown to mm"),
        ("mm: {'a b': {m: 1, k: 2, n: 3}}", "mm.a b: a name is of letters, digits, dots and hyphens, 60 at most"),
        ("mm: {a: {m: 1, k: 2, n: 3, operators: [gelu]}}", "mm.a.operators: 'gelu' is not one of mm's: mm, linear, mv"),
        ("mm: {a: 1}", "mm.a: it is not a mapping of dimensions"),
        ("mm: {a: {m: 1", "it is not readable YAML"),
    ],
)
def test_wrong_shapes_are_one_sentence(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text)
    ran = subprocess.run([sys.executable, str(FILES / "cases.py"), str(file)], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr.startswith(f"{file}: {error}") and ran.stderr.count("\n") == 1


def test_a_host_without_torch_is_skipped(tmp_path: Path) -> None:
    name = suite(tmp_path, "  torch_ops:\n")
    host = schedule(name, torch={"python3": Torch(error="has no torch")}).hosts["h1"]
    assert not host.steps
    assert host.skipped["torch_ops"] == (
        "needs a Python with torch: python3 has no torch; set torch_ops.python to an interpreter, a virtual environment, or "
        "docker:IMAGE (podman:, enroot:) on this host that has one"
    )


def test_a_torch_without_the_device_says_so(tmp_path: Path) -> None:
    name = suite(tmp_path, "  torch_ops:\n")
    host = schedule(name, torch={"python3": TORCH}, gpus=GPUS).hosts["h1"]
    assert host.skipped["torch_ops"] == (
        "needs a torch that sees an accelerator: python3 has torch 2.13.0, which sees none, though the host has 8 x H100; "
        "set torch_ops.python to one built for it, or torch_ops.device to cpu"
    )
    assert schedule(name, {"torch_ops": {"device": "cpu"}}, torch={"python3": TORCH}, gpus=GPUS).hosts["h1"].steps


@pytest.mark.parametrize(
    ("torch", "case", "class_"),
    [
        (TORCH, "basic-128t-b1", "cpu"),
        (Torch(version="2.11.0", device="cuda", devices=1), "basic-4096t-b32", "gpu"),
        (Torch(version="2.11.0", device="cuda", devices=8), "basic-4096t-b32-gpu0", "gpu"),
    ],
)
def test_a_case_says_how_much_of_the_host_it_is(tmp_path: Path, torch: Torch, case: str, class_: str) -> None:
    steps = schedule(suite(tmp_path, "  torch_ops:\n"), torch={"python3": torch}).hosts["h1"].steps
    assert {s.class_ for s in steps if s.case == case} == {class_}


EIGHT = Torch(version="2.11.0", device="cuda", devices=8)


@pytest.mark.parametrize(
    ("settings", "torch", "cases"),
    [
        ({}, EIGHT, {"-gpu0": 0}),
        ({"devices": "2,5"}, EIGHT, {"-gpu2": 2, "-gpu5": 5}),
        ({"devices": "all"}, EIGHT, {f"-gpu{n}": n for n in range(8)}),
        ({"devices": "all"}, Torch(version="2.11.0", device="cuda", devices=1), {"": 0}),
        ({"devices": "all", "device": "cpu"}, EIGHT, {"-cpu": None}),
        ({"devices": "all"}, TORCH, {"": None}),
    ],
)
def test_each_device_that_is_named_is_a_case(
    tmp_path: Path, settings: dict[str, Any], torch: Torch, cases: dict[str, int | None]
) -> None:
    chosen = {"torch_ops": {"grades": "basic", "tokens": 8, "batch": 1, **settings}}
    steps = schedule(suite(tmp_path, "  torch_ops:\n"), chosen, repeats=1, torch={"python3": torch}).hosts["h1"].steps
    index = {s.case: [word for word in s.argv if word.startswith("--index")] for s in steps}
    assert index == {f"basic-8t-b1{name}": [f"--index={n}"] if n is not None else [] for name, n in cases.items()}


def test_a_device_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    name = suite(tmp_path, "  torch_ops:\n")
    host = schedule(name, {"torch_ops": {"devices": "0,8"}}, torch={"python3": EIGHT}).hosts["h1"]
    assert host.skipped["torch_ops"] == (
        "needs the devices 0, 8: torch sees 8 here, counted from 0; set torch_ops.devices"
    )
    with pytest.raises(FleetmarkError, match="devices to be numbers from 0, or all: it is first"):
        schedule(name, {"torch_ops": {"devices": "first"}}, torch={"python3": EIGHT})


def test_the_program_takes_the_device_that_is_named() -> None:
    program = script("torch_ops")
    taken: list[int] = []
    kind = SimpleNamespace(type="npu")
    accelerator = SimpleNamespace(is_available=lambda: True, current_accelerator=lambda: kind, device_count=lambda: 8)
    torch = SimpleNamespace(__version__="2.11.0", accelerator=accelerator, npu=SimpleNamespace(set_device=taken.append))
    assert (program.pick(torch, "auto", 3), taken) == ("npu", [3])
    assert (program.pick(torch, "cpu", 0), taken) == ("cpu", [3])
    with pytest.raises(SystemExit, match="there is no device 8: torch sees 8 here, counted from 0"):
        program.pick(torch, "auto", 8)
    accelerator.is_available = lambda: False
    with pytest.raises(SystemExit, match="sees no accelerator here"):
        program.pick(torch, "accelerator", 0)


def test_one_of_several_devices_is_no_capacity() -> None:
    from fleetmark.workloads import load

    describe = load("torch_ops").describe
    entire = describe("flops", ["basic-4096t-b32", "mm/bf16/x"], "gpu", "FLOP/s", "higher")
    one = describe("flops", ["basic-4096t-b32-gpu3", "mm/bf16/x"], "gpu", "FLOP/s", "higher")
    assert (entire.class_, entire.kind) == ("gpu-compute", "capacity")
    assert (one.class_, one.kind) == ("gpu-latency", "responsiveness")


def test_it_runs_on_python_3_9() -> None:
    vermin = [
        str(Path(sys.executable).with_name("vermin")),
        "-t=3.9-",
        "--no-tips",
        *map(str, sorted(FILES.glob("*.py"))),
    ]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
