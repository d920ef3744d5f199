"""Time torch's operators on one device and check their results. Print a line of JSON for each case.

torch_ops.py --grade basic --shapes shapes.json ... prints the environment, the measured roofs of this device (products
in each precision, memory), the cases, and an end mark. A case is timed and checked against a reference in fp64, or
skipped with a reason. Standard library and torch only, Python 3.9 and later.
"""

import argparse
import json
import math
import os
import platform
import statistics
import sys
import time

import cases
import memory
from operators import FLOATS, TABLE, TOLERANCE, Maker, dtype_of, fp8_name
from timing import Clock, spread

SLOW_S = 5.0  # a call that would take longer is skipped
INTERESTING = (
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "amx_fp16",
    "asimd",
    "sve",
    "sve2",
    "bf16",
    "i8mm",
)


def say(**line):
    """Print one line immediately, so that results survive if the next case ends the process."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def flags():
    """Return the CPU's instruction set flags that matter to operators."""
    try:
        with open("/proc/cpuinfo") as file:
            line = next(line for line in file if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return []
    return [word for word in line.split() if word in INTERESTING]


def environment(torch, device, clock, chosen):
    """Return the environment on which the results depend."""
    runtimes = (("CUDA", "cuda"), ("ROCm", "hip"), ("CANN", "cann"))
    versions = [(name, getattr(torch.version, key, None)) for name, key in runtimes]
    name = platform.processor() or platform.machine()
    if device != "cpu":
        name = getattr(torch, device).get_device_name(chosen.index)
    say(
        fleetmark="torch_ops",
        format=1,
        torch=str(torch.__version__),
        python=platform.python_version(),
        device=device,
        index=chosen.index,
        name=str(name)[:200],
        runtime=", ".join("%s %s" % pair for pair in versions if pair[1]),
        isa=torch.backends.cpu.get_cpu_capability(),
        flags=flags(),
        onednn_isa=os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
        threads=torch.get_num_threads(),
        throttle=clock.throttle,
        grade=chosen.grade,
        tokens=chosen.tokens,
        batch=chosen.batch,
        budget=chosen.budget,
        power_cap=chosen.power_cap or None,
    )


def set_tf32(torch, is_on):
    """Allow or forbid rounding fp32 products to tf32."""
    torch.backends.cuda.matmul.allow_tf32 = is_on
    torch.backends.cudnn.allow_tf32 = is_on


def why_not(torch, device, index, precision):
    """Return why the device lacks a precision, or None if it supports it."""
    if precision == "tf32":
        major = torch.cuda.get_device_capability(index)[0] if device == "cuda" and torch.version.hip is None else 0
        return None if major >= 8 else "the device has no tf32"
    if precision == "fp8" and not hasattr(torch, fp8_name(torch, device)):
        return "this torch has no fp8"
    return None


def pick(torch, asked, index):
    """Return the type of device to measure, and make number ``index`` torch's default device."""
    device = "cpu"
    if asked != "cpu":
        if not hasattr(torch, "accelerator"):
            sys.exit(
                "torch %s is older than 2.6, before which only CPUs are measured: set device to cpu" % torch.__version__
            )
        if torch.accelerator.is_available():
            device = torch.accelerator.current_accelerator().type
    if device != "cpu":
        library, count = getattr(torch, device), torch.accelerator.device_count()
        if index >= count:
            sys.exit("there is no device %d: torch sees %d here, counted from 0" % (index, count))
        library.set_device(index)
    elif asked == "accelerator":
        sys.exit(
            "torch %s sees no accelerator here: give a Python whose torch has one, or set device to cpu"
            % torch.__version__
        )
    return device


class Bench:
    """Run cases on one device, and store its clock and its roofs so far."""

    def __init__(self, torch, device, chosen):
        self.torch, self.device, self.chosen = torch, device, chosen
        self.clock = Clock(torch, device, chosen.index)
        self.makers = {}
        self.peaks = {}  # FLOP/s by precision
        self.memory = None  # B/s
        self.counts = dict.fromkeys(("cases", "skipped", "failed", "wrong"), 0)

    def maker(self, precision):
        if precision not in self.makers:
            self.makers[precision] = Maker(self.torch, self.device, precision)
        self.makers[precision].start()
        return self.makers[precision]

    # -- roofs

    def find_memory(self):
        """Measure the rate of copying a buffer far larger than any cache, in bytes read and written per second."""
        torch = self.torch
        size = self.chosen.memory_buffer
        a = torch.zeros(size // 4, dtype=torch.float32, device=self.device)
        b = torch.empty_like(a)
        call = lambda: b.copy_(a)  # noqa: E731
        self.clock.once(call)
        samples, _, dropped = self.clock.sample(call, max(0.2, 4 * self.chosen.budget))
        if samples:
            self.memory = 2 * size / min(samples)
            say(roof="memory", rate=self.memory, size=size, throttled=dropped)

    def find_peak(self, precision):
        """Measure the best rate of square products in ``precision``. Increase their size within the time budget."""
        torch, operator = self.torch, TABLE["mm"]
        if reason := why_not(torch, self.device, self.chosen.index, precision):
            self.skip("mm/%s" % precision, reason)
            return
        set_tf32(torch, precision == "tf32")
        best, n, best_size, best_inputs = 0.0, 128, 0, None
        share = max(0.02, self.chosen.budget) if self.device == "cpu" else 0.002
        try:
            while n <= 8192:
                dims = {"m": n, "k": n, "n": n}
                inputs = operator.make(self.maker(precision), dims)
                call = lambda: operator.run(*inputs)  # noqa: E731, B023
                first = self.clock.once(call)
                samples = [first] if first > SLOW_S else self.clock.sample(call, self.chosen.budget).seconds
                rate = operator.flops(dims) / min(samples or [first])
                if rate > best:
                    best, best_size, best_inputs = rate, n, inputs
                took = min(samples or [first])
                if (took > share and n >= 1024) or took > 0.4:  # the next size takes eight times as long
                    break
                n *= 2
        except (RuntimeError, NotImplementedError, TypeError) as error:
            if not best:
                self.skip("mm/%s" % precision, "the device lacks it: %s" % first_line(error))
                return
        self.peaks[precision] = best
        say(roof=precision, rate=best, size=best_size, throttled=0)
        flops = operator.flops(dict.fromkeys("mkn", best_size))
        if self.chosen.sustained and flops / best < SLOW_S:
            held = self.clock.sustained(lambda: operator.run(*best_inputs), flops / best, self.chosen.sustained)
            say(sustained=precision, rate=flops / held.seconds, clock=held.clock, power=held.power)

    # -- cases

    def run(self, operator, precision, shape, dims, model):
        """Create, run, time and check one case. Print a line for every outcome."""
        name = "%s/%s/%s" % (operator.name, precision, shape)
        if precision not in self.peaks:
            return  # already reported with the roofs
        flops = operator.flops(dims)
        predicted = flops / self.peaks[precision]
        if predicted > SLOW_S:
            self.skip(name, "a call would take %.0f s at the rate of this device's products" % predicted)
            return
        if shortage := self.shortage(operator, precision, dims):
            self.skip(name, shortage)
            return
        set_tf32(self.torch, precision == "tf32")
        try:
            self.measure(operator, precision, name, dims, flops, model)
        except MemoryError as error:
            self.fail(name, self.out_of_memory(error))
        except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
            text = str(error)
            if "memory" in text and ("alloc" in text or "enough" in text):  # torch's own errors are RuntimeErrors too
                self.fail(name, self.out_of_memory(error))
            else:
                self.skip(name, "the device lacks it: %s" % first_line(error))

    def shortage(self, operator, precision, dims):
        """Return why a case does not fit into the free memory, or None if its sizes fit."""
        torch, device = self.torch, self.device
        maker = Maker(torch, "meta", precision, device)
        needed = memory.needed(torch, operator, dims, maker, 2 if operator.family == "conv" else 1)
        if device == "cpu":  # its kernels store no scores, but the reference uses the same memory
            needed -= operator.scratch(dims, maker.dtype.itemsize, precision) if operator.scratch else 0
            needed += memory.reference_bytes(torch, operator, dims, maker)
        free = memory.available(torch, device)
        if free is None or needed <= memory.SHARE * free:
            return None
        return "it needs at least %.1f GiB, and %.1f GiB are free: set tokens or batch lower" % (
            needed / 2**30,
            free / 2**30,
        )

    def layouts(self, operator, inputs):
        """Return the inputs by the name of their layout; convolutions run in both layouts."""
        torch = self.torch
        wide = [getattr(x, "ndim", 0) == 4 for x in inputs]
        if operator.family != "conv" or not any(wide):
            return {"": inputs}
        last = [
            x.contiguous(memory_format=torch.channels_last) if is_wide else x
            for x, is_wide in zip(inputs, wide)  # noqa: B905  Python 3.9
        ]
        return {"nchw": inputs, "channels_last": last}

    def measure(self, operator, precision, name, dims, flops, model):
        """Check and time a case in each layout of its inputs, and print the line of the fastest."""
        torch = self.torch
        first = operator.make(self.maker(precision), dims)
        timed, worst, moved = {}, 0.0, 0
        for layout, inputs in self.layouts(operator, first).items():
            results = as_list(torch, operator.run(*inputs))
            call = lambda inputs=inputs: operator.run(*inputs)  # noqa: E731
            if operator.out and results[0].dtype == dtype_of(torch, precision, self.device):
                place = torch.empty_like(results[0])
                call = lambda inputs=inputs, place=place: operator.out(*inputs, out=place)  # noqa: E731
                results = as_list(torch, call())
            worst = max(worst, self.error(operator, inputs, results))
            size = results[0].element_size()
            moved = operator.moved(dims, size) if operator.moved else size_of(torch, inputs, results)
            took = self.clock.once(call)
            if took > SLOW_S:
                self.skip(name, "a call takes %.1f s" % took)
                return
            times = self.clock.sample(call, self.chosen.budget)
            if not times.seconds:
                self.fail(name, "the device throttled during all of %d calls" % times.dropped)
                return
            timed[layout] = (spread(times.seconds), times, self.launches(call, times))
        best = min(timed, key=lambda layout: timed[layout][0]["median"])
        summary, times, launches = timed[best]
        tolerance = TOLERANCE[precision] * operator.loose
        right = worst <= tolerance
        self.counts["cases"] += 1
        self.counts["wrong"] += not right
        if best:
            launches.update(layout=best, layouts={layout: values[0]["median"] for layout, values in timed.items()})
        say(
            case=name,
            model=model,
            dims=dims,
            flops=flops,
            bytes=moved,
            n=len(times.seconds),
            throttled=times.dropped,
            error=worst if math.isfinite(worst) else None,
            tolerance=tolerance,
            right=right,
            **summary,
            **launches,
        )

    def launches(self, call, times):
        """Return the time that the host needs to start a call, and the time of its graph if the host takes longer.

        ``host``: median seconds; ``graph``: median seconds of the replayed graph, or ``no_graph``: why there is none.
        """
        if not times.host:
            return {}
        host = statistics.median(times.host)
        if host < statistics.median(times.seconds):
            return {"host": host}
        replay, reason = self.clock.captured(call)
        if replay is None:
            return {"host": host, "no_graph": reason}
        seconds = self.clock.sample(replay, self.chosen.budget).seconds
        return {"host": host, "graph": statistics.median(seconds) if seconds else None}

    def error(self, operator, inputs, results):
        """Return the largest error as a share of the reference's largest value; infinite if a value is NaN.

        The reference is the same operator in fp64 on the CPU with the same rounded inputs. For large shapes, it covers
        a part of the result.
        """
        torch = self.torch
        if operator.part:
            inputs, results = operator.part(inputs, results)
        wide = [self.widened(x) for x in inputs]
        worst = 0.0
        expected = as_list(torch, operator.run(*wide))
        if len(results) != len(expected):
            return math.inf
        for result, reference in zip(results, expected):  # noqa: B905  Python 3.9
            got, want = result.detach().to("cpu", torch.float64), reference.detach().to(torch.float64)
            if got.shape != want.shape:
                return math.inf
            if got.numel() == 0:
                continue
            scale = float(want.abs().max()) or 1.0
            difference = float((got - want).abs().max()) / scale
            worst = max(worst, difference if math.isfinite(difference) else math.inf)
        return worst

    def widened(self, value):
        if not isinstance(value, self.torch.Tensor):
            return value
        value = value.detach().cpu()
        return value.to(self.torch.float64) if value.is_floating_point() or value.dtype == self.torch.int8 else value

    def out_of_memory(self, error):
        """Return the requested and the free memory, as far as the device reports them."""
        text = " ".join(str(error).split())
        if self.device == "cpu":
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        else:
            try:
                getattr(self.torch, self.device).empty_cache()
                free = getattr(self.torch, self.device).mem_get_info()[0]
            except Exception:
                free = None
        words = "" if free is None else "; %.1f GiB free" % (free / 2**30)
        return "out of memory: %s%s" % (first_line(text), words)

    def skip(self, name, reason):
        self.counts["skipped"] += 1
        say(skip=name, why=reason[:300])

    def fail(self, name, reason):
        self.counts["failed"] += 1
        say(fail=name, why=reason[:300])


def as_list(torch, results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def size_of(torch, inputs, results):
    """Return the total size of all distinct tensors in bytes."""
    return sum(x.numel() * x.element_size() for x in [*inputs, *results] if isinstance(x, torch.Tensor))


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--grade", required=True)
    parser.add_argument("--shapes", required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--precisions", default=",".join((*FLOATS, "fp8", "int8")))
    parser.add_argument("--operators", default="*")
    parser.add_argument("--chosen", default="*")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--sustained", type=float, default=0.0, help="seconds of products without a pause")
    parser.add_argument("--power-cap", type=float, default=0.0, help="power limit in W, as reported by the driver")
    parser.add_argument("--memory-buffer", type=int, default=256 << 20)
    return parser.parse_args()


def main():
    chosen = arguments()
    try:
        with open(chosen.shapes) as file:
            shapes = cases.check(json.load(file))
    except (OSError, ValueError, cases.Wrong) as error:
        sys.exit("%s: %s" % (chosen.shapes, error))
    import basic
    import torch

    basic.use(torch)
    torch.backends.cudnn.benchmark = True  # the library tries its kernels once for each shape
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    device = pick(torch, chosen.device, chosen.index)
    bench = Bench(torch, device, chosen)
    environment(torch, device, bench.clock, chosen)
    started = time.perf_counter()
    bench.find_memory()
    precisions = chosen.precisions.split(",")
    listed = list(
        cases.cases(
            shapes, chosen.grade, chosen.operators.split(","), chosen.chosen.split(","), chosen.tokens, chosen.batch
        )
    )
    for precision in precisions:
        if any(precision in operator.precisions for operator, *_ in listed):
            bench.find_peak(precision)
    for operator, shape, dims, model in listed:
        for precision in precisions:
            if precision in operator.precisions:
                bench.run(operator, precision, shape, dims, model)
    say(end=bench.counts, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main()
