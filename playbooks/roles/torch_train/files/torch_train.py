"""Time training steps of a model on one or more devices. Print one JSON document per line.

A small model of the same family is trained first, in the same precision and shared among the ranks in the same way, and
its loss is compared with that of the same steps in fp64 on one CPU. MFU is the model's operations (by formula) divided
by the time and the peak: the given peak, and the rate of a matrix product measured in the same run.
"""

import contextlib
import json
import resource
import sys
import time

import torch_ranks

CHECK_STEPS = 5
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "bf16": 2e-2, "fp16": 2e-2, "fp8": 5e-2}
WARMUP, LEAST = 3, 5  # steps
LAYOUTS = ("nchw", "channels_last")  # layouts of images; libraries have kernels for both
STATE_BYTES = 16  # bytes per parameter: itself, its gradient, and AdamW's two moments, all in fp32


def add_words(parser):
    parser.add_argument("--model", required=True)
    parser.add_argument("--mode", choices=["single", "ddp", "fsdp"], default="single")
    parser.add_argument("--precision", choices=sorted(TOLERANCE), default="fp32")
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--batch", type=int, default=0, help="samples of each device; 0: the preset's")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of timed steps")
    parser.add_argument(
        "--power-cap", type=float, default=0.0, help="power limit of a device in W, as reported by its driver"
    )
    parser.add_argument(
        "--peak", type=float, default=0.0, help="peak of a device in FLOP/s, as specified by its vendor"
    )


class Trainer(object):
    """A model in training on this rank: its precision, distribution and optimizer."""

    def __init__(self, group, model, mode, precision, optimizer):
        self.group, self.torch, self.model, self.precision = group, group.torch, model, precision
        kind = {"bf16": self.torch.bfloat16, "fp8": self.torch.bfloat16, "fp16": self.torch.float16}.get(precision)
        policy = kind if mode == "fsdp" and not has_batch_norm(self.torch, model) else None
        self.runs = shared(group, as_fp8(group, model) if precision == "fp8" else model, mode, policy)
        self.optimizer = optimizer(self.runs.parameters())
        is_cast = kind and not policy
        self.cast = lambda: self.torch.autocast(group.kind, kind) if is_cast else contextlib.nullcontext()

    def step(self, batch):
        """Run one step, and return the loss of this rank's samples, on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            loss = self.model.loss(self.runs(batch[0]), *batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def has_batch_norm(torch, model):
    """Return whether the statistics of ``model`` need fp32 with half-precision weights, as under autocast."""
    return any(isinstance(module, torch.nn.BatchNorm2d) for module in model.modules())


def shared(group, model, mode, kind=None):
    """Return ``model`` as distributed over the ranks: on one rank, replicated, or sharded.

    ``kind``: the type in which FSDP gathers weights and computes; gradients are summed in fp32. Weights on torch's
    meta device get their values after they are sharded, so no rank ever holds the whole model.
    """
    if mode == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model, device_ids=None if group.kind == "cpu" else [group.local])
    if mode == "fsdp":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        mesh = group.dist.device_mesh.init_device_mesh(group.kind, (group.world,))
        words = {"mesh": mesh}
        if kind:
            words["mp_policy"] = MixedPrecisionPolicy(param_dtype=kind, reduce_dtype=group.torch.float32)
        for block in model.blocks:
            fully_shard(block, **words)
        fully_shard(model, **words)
        if next(model.parameters()).is_meta:
            import torch_models

            model.to_empty(device=group.device)
            torch_models.fill(model)
    return model


def as_fp8(group, model):
    try:
        from torchao.float8 import convert_to_float8_training
    except ImportError as error:
        raise torch_ranks.Wrong("fp8 training needs the package torchao in this Python") from error
    capability = getattr(group.library(), "get_device_capability", lambda: (0, 0))() if group.kind != "cpu" else (0, 0)
    if tuple(capability) < (8, 9):
        raise torch_ranks.Wrong("fp8 training needs a device that has fp8: %s has none" % group.kind)
    if not any(takes_fp8(group.torch, module) for module in model.modules()):
        raise torch_ranks.Wrong("fp8 training needs linear layers whose sides 16 divides, and this model has none")
    model = convert_to_float8_training(model, module_filter_fn=lambda module, name: takes_fp8(group.torch, module))
    for block in model.blocks:
        block.compile()  # without it, casts and scales are separate kernels, and fp8 is slower than bf16
    return model


def takes_fp8(torch, module):
    """Return whether a module is a linear layer that fp8 kernels accept: 16 divides both of its sides."""
    return isinstance(module, torch.nn.Linear) and not (module.in_features % 16 or module.out_features % 16)


def set_tf32(torch, is_on):
    """Allow or forbid rounding fp32 products and convolutions to tf32. cuDNN has a separate switch, which is on by
    default.
    """
    torch.backends.cuda.matmul.allow_tf32 = is_on
    torch.backends.cudnn.allow_tf32 = is_on


def placed(group, build, mode):
    """Return a model of ``build`` on this rank's device, with the same weights on all ranks; FSDP's has no values."""
    group.torch.manual_seed(1)
    device = group.torch.device("meta") if mode == "fsdp" else group.device
    with group.torch.device(device):
        return build()


def check(options, group):
    """Return (the loss of the small model after CHECK_STEPS, the expected loss). The first rank computes the expected
    loss on one CPU in fp64, from the same weights and all ranks' samples.
    """
    import torch_models

    torch = group.torch
    torch.manual_seed(2)
    model, samples = torch_models.build_check(options.model)
    reference = {name: value.clone() for name, value in model.state_dict().items()}
    generator = torch.Generator().manual_seed(3)
    batches = [model.batch(samples * group.world, generator) for _ in range(CHECK_STEPS)]
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.1)  # noqa: E731
    trainer = Trainer(group, model.to(group.device), options.mode, options.precision, sgd)
    mine = slice(group.rank * samples, (group.rank + 1) * samples)
    for batch in batches:
        loss = trainer.step([part[mine].to(group.device) for part in batch])
    total = loss.float().reshape(1).clone()
    if group.world > 1:
        group.dist.all_reduce(total)
    must = float("nan")
    if group.leads:
        exact, _ = torch_models.build_check(options.model)
        exact.load_state_dict(reference)
        exact.double()
        alone = Trainer(Alone(torch), exact, "single", "fp32", sgd)
        for batch in batches:
            must = exact_step(alone, batch)
    return float(total.item()) / group.world, must


def exact_step(trainer, batch):
    """Prepare the samples of a step in fp64. Images are converted; tokens stay whole numbers."""
    return float(trainer.step([part.double() if part.is_floating_point() else part for part in batch]).item())


class Alone(object):
    """Return a group of this process on the CPU alone."""

    kind, world, rank, local = "cpu", 1, 0, 0

    def __init__(self, torch):
        self.torch, self.device = torch, torch.device("cpu")


def fits(options, group, ranks):
    """Return the model's parameters. Raise Wrong if the weights and the optimizer alone need more than the free
    memory.
    """
    import torch_models

    number, block = torch_models.parameters(options.model, options.layers)
    held = number / ranks + 2 * block if options.mode == "fsdp" and ranks > 1 else number
    needed, free = held * STATE_BYTES, free_bytes(group)
    if needed > free:
        raise torch_ranks.Wrong(
            "out of memory: %s has %.3g parameters, whose weights, gradients and AdamW's state need %.1f GiB on "
            "each device, and %.1f GiB are free: take a smaller model, fewer layers, or fsdp"
            % (options.model, number, needed / 2.0**30, free / 2.0**30)
        )
    return number


def free_bytes(group):
    if group.kind != "cpu":
        return group.library().mem_get_info()[0]
    with open("/proc/meminfo") as source:
        kib = next(int(line.split()[1]) for line in source if line.startswith("MemAvailable"))
    ranks_here = group.world // group.nodes
    return kib * 1024 // ranks_here


def timed(group, trainer, batches, budget, alone=False):
    """Return (seconds of each step, first and last loss, Unix seconds of begin and end), for all ranks together or for
    one.
    """
    agree = (lambda number: number) if alone else (lambda number: agreed(group, number))
    losses = [trainer.step(batches[n % len(batches)]) for n in range(WARMUP)]
    group.synchronize()
    begin = time.perf_counter()
    losses.append(trainer.step(batches[0]))
    group.synchronize()
    steps = agree(max(LEAST, int(budget / max(time.perf_counter() - begin, 1e-4))))
    each, start = [], time.time()
    before = time.perf_counter()
    for n in range(steps):
        losses.append(trainer.step(batches[n % len(batches)]))
        group.synchronize()
        now = time.perf_counter()
        each.append(now - before)
        before = now
    return each, float(losses[0].item()), float(losses[-1].item()), (start, time.time())


def agreed(group, number):
    if group.world == 1:
        return number
    tensor = group.torch.tensor([number], dtype=group.torch.int64, device=group.device)
    group.dist.broadcast(tensor, 0)
    return int(tensor.item())


def over_ranks(group, values, op):
    if group.world == 1:
        return list(values)
    tensor = group.torch.tensor(list(values), dtype=group.torch.float32, device=group.device)
    group.dist.all_reduce(tensor, op=getattr(group.dist.ReduceOp, op))
    return tensor.tolist()


def product_type(torch, precision):
    """Return the type of the factors of products in ``precision``."""
    if precision == "fp8":
        try:
            from torchao.float8.config import e4m3_dtype  # MI300 has its own fp8 type
        except ImportError:
            return torch.float8_e4m3fn
        return e4m3_dtype
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)


def matrix_peak(group, precision):
    """Return (FLOP/s of a square matrix product in the type of ``precision``, that type): the best of a second."""
    torch = group.torch
    kind = product_type(torch, precision)
    side = 1024 if group.kind == "cpu" else 8192
    a, b = (torch.randn(side, side, device=group.device).to(kind) for _ in range(2))
    if precision == "fp8":
        one = torch.ones((), device=group.device)
        words = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": True}
        product = lambda: torch._scaled_mm(a, b.t(), **words)  # noqa: E731
    else:
        out = torch.empty(side, side, dtype=kind, device=group.device)
        product = lambda: torch.mm(a, b, out=out)  # noqa: E731
    product()
    group.synchronize()
    best, deadline = float("inf"), time.perf_counter() + 1.0
    while time.perf_counter() < deadline:
        begin = time.perf_counter()
        for _ in range(3):
            product()
        group.synchronize()
        best = min(best, (time.perf_counter() - begin) / 3)
    return 2.0 * side**3 / best, str(kind).replace("torch.", "")


def peak_memory(group):
    if group.kind != "cpu":
        return group.library().max_memory_allocated(group.device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def samples_of(options, group, model, samples):
    """Return random batches of this rank on its device, the same in every run."""
    generator = group.torch.Generator().manual_seed(100 + group.rank)
    batches = [model.batch(options.batch or samples, generator) for _ in range(2)]
    return [[part.to(group.device) for part in batch] for batch in batches]


def in_layout(torch, batches, layout):
    """Return ``batches`` with their images in ``layout``, which decides in what layout libraries convolve."""
    kind = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    return [[part.contiguous(memory_format=kind) if part.dim() == 4 else part for part in batch] for batch in batches]


def begin(options, group, mode, adamw, layout):
    """Return (trainer of a new model, its batches), both in ``layout``.

    With a batch alone in channels_last, libraries convert the weights in each step. FSDP shards only weights that are
    contiguous, so its weights stay as they are.
    """
    import torch_models

    model, samples = placed(group, lambda: torch_models.build(options.model, options.layers), mode)
    if layout == "channels_last" and mode != "fsdp":
        model = model.to(memory_format=group.torch.channels_last)
    batches = in_layout(group.torch, samples_of(options, group, model, samples), layout)
    return Trainer(group, model, mode, options.precision, adamw), batches


def fastest(options, group, mode, adamw, alone=False):
    """Return (trainer, batches, seconds of a step by layout), in the faster layout. All ranks choose the same.

    Tokens have no layout, and no step is run for them. The trainer is a new one.
    """
    trainer, batches = begin(options, group, mode, adamw, LAYOUTS[0])
    if batches[0][0].dim() != 4:
        return trainer, batches, {}
    seconds = {}
    for layout in LAYOUTS:
        if seconds:
            trainer, batches = begin(options, group, mode, adamw, layout)
        each, _, _, _ = timed(group, trainer, batches, 0.0, alone)
        seconds[layout] = min(each) if alone else over_ranks(group, (min(each),), "MAX")[0]
        del trainer  # free memory before the next model is created
    return (*begin(options, group, mode, adamw, min(seconds, key=seconds.get)), seconds)


def alone(options, group, adamw):
    """Return the seconds per step of the first rank alone, while the others wait; None if the model does not fit on one
    device.
    """

    def single():
        mean = None
        try:
            fits(options, group, 1)
            trainer, batches, _ = fastest(options, group, "single", adamw, True)
            each, _, _, _ = timed(group, trainer, batches, options.budget / 3, True)
            mean = sum(each) / len(each)
            del trainer
        except (torch_ranks.Wrong, RuntimeError) as error:
            if not isinstance(error, torch_ranks.Wrong) and "memory" not in str(error):
                raise
        if group.kind != "cpu":
            group.library().empty_cache()
        return mean

    return group.wait_for_first(single)


def work(options, group):
    import torch_models

    torch = group.torch
    if options.model not in torch_models.NAMES:
        raise torch_ranks.Wrong("no model %s: there are %s" % (options.model, ", ".join(torch_models.NAMES)))
    set_tf32(torch, options.precision == "tf32")
    torch.backends.cudnn.benchmark = True  # the library tries its kernels once for each shape
    number = fits(options, group, group.world)
    say(group, {
        "tool": "torch_train", "torch": torch.__version__, "backend": group.backend if group.world > 1 else "",
        "device": group.kind, "model": options.model, "mode": options.mode, "precision": options.precision,
        "layers": options.layers, "power_cap": options.power_cap, "parameters": number,
        "ranks": group.world, "nodes": group.nodes,
    })  # fmt: skip
    loss, must = check(options, group)
    say(group, {"check": loss, "must": must, "tolerance": TOLERANCE[options.precision]})
    adamw = lambda parameters: torch.optim.AdamW(parameters, lr=3e-4)  # noqa: E731
    peak, kind = matrix_peak(group, options.precision)
    single = alone(options, group, adamw) if group.world > 1 else None
    trainer, batches, layouts = fastest(options, group, options.mode, adamw)
    with torch.device("meta"):
        model, _ = torch_models.build(options.model, options.layers)
    flops, units = (amount(len(batches[0][0])) for amount in (model.flops, model.units))
    if group.kind != "cpu":
        group.library().reset_peak_memory_stats(group.device)
    each, first, last, window = timed(group, trainer, batches, options.budget)
    slowest = over_ranks(group, each, "MAX")
    first, last = (value / group.world for value in over_ranks(group, (first, last), "SUM"))
    memory, peak = over_ranks(group, (peak_memory(group),), "MAX")[0], over_ranks(group, (peak,), "MIN")[0]
    ordered = sorted(slowest)
    say(group, {
        "steps": len(each), "step": sum(slowest) / len(slowest), "p50": ordered[len(ordered) // 2],
        "p90": ordered[int(0.9 * len(ordered))], "units": units * group.world, "unit": unit_of(options.model),
        "flops": flops * group.world, "matrix_peak": peak, "matrix_type": kind,
        "peak": options.peak, "memory": memory, "alone": single,
        "first_loss": first, "last_loss": last, "window": window, "layouts": layouts,
    })  # fmt: skip
    if group.world > 1:
        say_overlap(group, lambda: trainer.step(batches[0]))
    say(group, {"end": True})


def say_overlap(group, step):
    """Report the communication of a step and its exposed part, each the mean of all ranks."""
    import torch_overlap

    seconds = torch_overlap.measure(group, step)
    totals = over_ranks(group, seconds or (0.0, 0.0), "SUM")
    if seconds:
        say(group, {"communication": totals[0] / group.world, "exposed": totals[1] / group.world})


def unit_of(model):
    return "tokens" if model.startswith("gpt") else "images"


def say(group, document):
    if group.leads:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    torch_ranks.run(__doc__.splitlines()[0], add_words, work)
