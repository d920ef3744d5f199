"""What a review of torch_train and torch_collectives found: switches, types, sharding, waits. By a real torch on CPUs."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Gpu, Torch
from fleetmark.parsers import parse
from fleetmark.workloads import load
from tests.schedules import schedule, suite
from tests.torches import needs_torch
from tests.workloads.torch_bench import torch_python
from tests.workloads.torch_programs import complaint, copied, figures, run

pytestmark = needs_torch


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("programs"))


def in_torch(programs: Path, program: str) -> Any:
    """Run ``program`` beside the files of torch_train and return the JSON that it prints."""
    start = f"import json, sys; sys.path.insert(0, {str(programs)!r})\nimport torch, torch_train, torch_models\n"
    ran = subprocess.run(
        [torch_python(), "-c", start + textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("is_on", [False, True])
def test_fp32_has_no_tf32_in_convolutions_either(programs: Path, is_on: bool) -> None:
    switches = in_torch(
        programs,
        f"""
        torch_train.set_tf32(torch, {is_on})
        print(json.dumps([torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32]))
        """,
    )
    assert switches == [is_on, is_on]


def test_every_precision_divides_by_products_of_its_own_type(programs: Path) -> None:
    kinds = in_torch(
        programs,
        """
        class group: kind, device = "cpu", torch.device("cpu")
        group.torch, group.synchronize = torch, lambda: None
        randn, empty = torch.randn, torch.empty  # small products: a CPU without fp16 takes seconds for a large one
        torch.randn = lambda *_, **more: randn(64, 64, **more)
        torch.empty = lambda *_, **more: empty(64, 64, **more)
        print(json.dumps({p: torch_train.matrix_peak(group, p)[1] for p in ("fp32", "bf16", "fp16", "fp8")}))
        """,
    )
    assert kinds == {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp8": "float8_e4m3fn"}


FP8 = """
import types
seen = []
def convert(model, module_filter_fn):
    seen.append([name for name, module in model.named_modules() if module_filter_fn(module, name)])
    return model
torchao, float8 = types.ModuleType("torchao"), types.ModuleType("torchao.float8")
float8.convert_to_float8_training = convert
sys.modules.update({"torchao": torchao, "torchao.float8": float8})
class group:
    kind, torch = "cuda", torch
    library = staticmethod(lambda: types.SimpleNamespace(get_device_capability=lambda: (9, 0)))
with torch.device("meta"):
    model, _ = torch_models.build(%r, %d)
try:
    torch_train.as_fp8(group, model)
    print(json.dumps([len(seen[0]), all(block._compiled_call_impl for block in model.blocks)]))
except Exception as error:
    print(json.dumps(str(error)))
"""


def test_fp8_is_compiled_and_leaves_layers_that_its_kernels_refuse(programs: Path) -> None:
    assert in_torch(programs, FP8 % ("gpt-125m", 2)) == [8, True]  # qkv, out, up and down of each block
    refused = "fp8 training needs linear layers whose sides 16 divides, and this model has none"
    assert in_torch(programs, FP8 % ("resnet-50", 0)) == refused  # its head has 1,000 classes


SHARDED = """
import json, sys
import torch_models, torch_ranks, torch_train

def work(options, group):
    torch = group.torch
    built = []
    def build():
        model, samples = torch_models.build("gpt-tiny")
        built.append(next(model.parameters()).device.type)
        return model, samples
    model, samples = torch_train.placed(group, build, "fsdp")
    whole = sum(p.numel() for p in model.parameters())
    trainer = torch_train.Trainer(group, model, "fsdp", "bf16", lambda p: torch.optim.AdamW(p, lr=3e-4))
    here = sum(p.to_local().numel() for p in model.parameters())
    spread = float(model.tokens.weight.full_tensor().std())
    policy = model._get_fsdp_state()._mp_policy
    trainer.step(model.batch(1, None))
    if group.leads:
        print(json.dumps([built, here / whole, spread, str(policy.param_dtype), str(policy.reduce_dtype)]), flush=True)

torch_ranks.run("shards", torch_train.add_words, work)
"""


def test_no_rank_ever_holds_the_whole_model_and_fsdp_gathers_half_precision(programs: Path) -> None:
    (programs / "sharded.py").write_text(SHARDED)
    done = run(programs, "sharded", "--model", "gpt-tiny", "--mode", "fsdp", "--ranks", "2")
    assert done.returncode == 0, done.stderr
    built, share, spread, gathered, summed = json.loads(done.stdout)
    assert built == ["meta"]
    assert share == pytest.approx(0.5, abs=0.01)
    assert spread == pytest.approx(0.02, rel=0.05)  # the weights were filled as the model fills them
    assert (gathered, summed) == ("torch.bfloat16", "torch.float32")


@pytest.mark.parametrize("model", ["gpt-tiny", "resnet-tiny"])
def test_sharded_bf16_has_the_loss_of_fp64(programs: Path, model: str) -> None:
    words = [
        "--model",
        model,
        "--batch",
        "2",
        "--budget",
        "0.1",
        "--ranks",
        "2",
        "--mode",
        "fsdp",
        "--precision",
        "bf16",
    ]
    assert figures("torch_train", run(programs, "torch_train", *words))["ranks"] == 2


def test_images_are_trained_in_both_layouts_and_the_faster_is_named(programs: Path) -> None:
    words = ["--model", "resnet-tiny", "--batch", "2", "--budget", "0.1"]
    done = run(programs, "torch_train", *words)
    assert done.returncode == 0, done.stderr
    parsed = parse("torch_train", done.stdout)
    assert parsed.invalid is None
    seconds = {
        m.metric: m.value for m in parsed.measurements if m.metric in ("step_time_nchw", "step_time_channels_last")
    }
    assert len(seconds) == 2
    faster = min(seconds, key=lambda name: seconds[name]).removeprefix("step_time_")
    assert parsed.notes == (f"the layout {faster} of images is the faster one",)


LAYOUTS = """
import types
class group: torch, kind, device, world, rank = torch, "cpu", torch.device("cpu"), 1, 0
options = types.SimpleNamespace(model=%r, layers=0, batch=2, precision="fp32")
adamw = lambda parameters: torch.optim.AdamW(parameters, lr=3e-4)
def last(parts):
    return sorted({part.is_contiguous(memory_format=torch.channels_last) for part in parts if part.dim() == 4})
seen = {}
for layout in torch_train.LAYOUTS:
    trainer, batches = torch_train.begin(options, group, "single", adamw, layout)
    trainer.step(batches[0])
    weights = [p for p in trainer.model.parameters() if p.dim() == 4 and p.shape[1] > 1 and p.shape[2] > 1]
    moments = [trainer.optimizer.state[p]["exp_avg"] for p in weights]
    seen[layout] = [last(batches[0]), last(weights), last([p.grad for p in weights]), last(moments)]
print(json.dumps(seen))
"""


def test_images_weights_gradients_and_moments_have_the_layout_that_is_named(programs: Path) -> None:
    assert in_torch(programs, LAYOUTS % "resnet-tiny") == {"nchw": [[False]] * 4, "channels_last": [[True]] * 4}


def test_ranks_share_gradients_in_the_layout_of_the_weights(programs: Path) -> None:
    words = ["--model", "resnet-tiny", "--batch", "2", "--budget", "0.1", "--ranks", "2", "--mode", "ddp"]
    done = run(programs, "torch_train", *words)
    assert figures("torch_train", done)["ranks"] == 2
    assert b"strides" not in done.stderr  # DDP copies each gradient if its buckets have another layout


SWITCHES = """
import torch_ranks, torch_train

def work(options, group):
    torch_train.work(options, group)
    print(group.torch.backends.cudnn.benchmark, flush=True)

torch_ranks.run("switches", torch_train.add_words, work)
"""


def test_the_librarys_fastest_kernel_is_searched(programs: Path) -> None:
    (programs / "switches.py").write_text(SWITCHES)
    done = run(programs, "switches", "--model", "resnet-tiny", "--batch", "2", "--budget", "0.1")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, b"True"), done.stderr


WAITING = """
import time
import torch_ranks

def work(options, group):
    print(group.wait_for_first(lambda: time.sleep(15) or "done alone") if group.leads else group.wait_for_first(None))

torch_ranks.run("waits", lambda parser: None, work)
"""


def test_ranks_wait_for_the_first_longer_than_a_barrier_would(programs: Path) -> None:
    (programs / "waiting.py").write_text(WAITING)
    done = run(programs, "waiting", "--ranks", "2", "--patience", "10")
    assert (done.returncode, done.stdout) == (0, b"done alone\n"), done.stderr


SLOW = """
import time
import torch_ranks

def work(options, group):
    time.sleep(20 if group.leads else 0)
    group.dist.all_reduce(group.torch.ones(1))

torch_ranks.run("late", lambda parser: None, work)
"""


def test_a_rank_that_waits_too_long_says_so_without_a_librarys_path(programs: Path) -> None:
    (programs / "late.py").write_text(SLOW)
    sentence = complaint(run(programs, "late", "--ranks", "2", "--patience", "10"))
    assert sentence.startswith("a rank waited longer than 10 s for another: raise patience"), sentence
    assert ".cc" not in sentence


def test_the_largest_size_is_measured(tmp_path: Path) -> None:
    gpus = (Gpu(index=0, name="H100", vendor="nvidia"), Gpu(index=1, name="H100", vendor="nvidia"))
    two = Torch(version="2.11.0", device="cuda", devices=2, backends=("nccl",), names=("H100", "H100"))
    settings = {"torch_collectives": {"collectives": "all_reduce"}}
    host = schedule(suite(tmp_path, "  torch_collectives:\n"), settings, torch={"python3": two}, gpus=gpus).hosts["h1"]
    (sizes,) = {word for step in host.steps for word in step.argv if word.startswith("--sizes=")}
    assert sizes.startswith("--sizes=8,32,") and sizes.endswith(",134217728,268435456")


def test_no_metric_of_collectives_is_named_as_another_tools_is() -> None:
    mine, other = (load(name).metrics for name in ("torch_collectives", "nccl_tests"))
    assert "torch_peak_busbw" in mine and "peak_busbw" in other
    assert not {name for name in mine if name.startswith("peak")} & set(other)
