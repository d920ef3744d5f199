"""Define an operator for the benchmark: its inputs, its computation, its cost, and its check.

The modules basic, fused and longtail fill the table. They use torch only when an operator runs, so that the controller
can read the table without torch to check shapes.
"""

import math

# Dimensions that a row of the shapes file must give, by family.
FAMILIES = {
    "mm": ("m", "k", "n"),
    "bmm": ("b", "m", "k", "n"),
    "conv": ("n", "c", "h", "w", "o", "r", "stride"),
    "image": ("n", "c", "h", "w"),
    "attention": ("b", "h", "kv", "s", "t", "d"),
    "rows": ("rows", "cols"),
    "embedding": ("rows", "vocab", "cols"),
    "moe": ("rows", "experts", "top", "cols", "hidden"),
}
CLASSES = ("basic", "fused", "long-tail")
FLOATS = ("fp64", "fp32", "tf32", "bf16", "fp16")
PLAIN = ("fp64", "fp32", "bf16", "fp16")  # without tf32, which applies only to products
WIDE = ("fp64", "fp32")
# The largest error of a result as a share of the largest value of the reference, which has the same rounded inputs.
TOLERANCE = {"fp64": 1e-10, "fp32": 5e-5, "tf32": 5e-3, "bf16": 2e-2, "fp16": 5e-3, "fp8": 2e-2, "int8": 0.0}

TABLE = {}


class Operator:
    """One operator. ``make(maker, dims)`` gives its inputs, ``run(*inputs)`` its result, a tensor or several.

    ``flops(dims)``: floating point operations of one call, as the field counts them; 0 for operators that only
    move data. ``moved(dims, size)``: minimum bytes that a call reads and writes, with elements of ``size`` bytes;
    None: all inputs and results, once. ``part(inputs, result)``: a sample of both that can be checked alone; None:
    everything. ``out(*inputs, out)``: writes to an existing result. ``loose``: the factor on its tolerance.
    ``scratch(dims, size, precision)``: bytes of intermediate results; None: negligible.
    """

    def __init__(
        self,
        name,
        family,
        grade,
        make,
        run,
        flops,
        *,
        moved=None,
        part=None,
        out=None,
        precisions=PLAIN,
        loose=1.0,
        scratch=None,
    ):
        self.name, self.family, self.grade = name, family, grade
        self.make, self.run, self.flops, self.moved = make, run, flops, moved
        self.part, self.out, self.precisions, self.loose, self.scratch = part, out, precisions, loose, scratch


def add(name, family, grade, make, run, flops, **more):
    """Add an operator to the table."""
    TABLE[name] = Operator(name, family, grade, make, run, flops, **more)


class Maker:
    """Create inputs of one precision on one device from a pool of random numbers, because new ones take minutes."""

    POOL = 1 << 20

    def __init__(self, torch, device, precision, kind=None):
        """``kind``: the device whose types apply if ``device`` is the meta device."""
        self.torch, self.device, self.precision = torch, device, precision
        self.dtype = dtype_of(torch, precision, device if kind is None else kind)
        generator = torch.Generator().manual_seed(17)
        self.numbers = torch.rand(self.POOL + 7, generator=generator, dtype=torch.float64) * 2 - 1
        self.turn = 0

    def start(self):
        """Start the inputs of a case, which do not depend on earlier cases."""
        self.turn = 0

    def rand(self, *shape, low=-1.0, high=1.0):
        """Return new numbers between ``low`` and ``high`` at each call; integers for int8."""
        torch = self.torch
        if self.dtype == torch.int8:
            return self._filled((self.numbers * 127).round().to(torch.int8), shape)
        pool = ((self.numbers + 1) * ((high - low) / 2) + low).to(self.dtype)
        if self.precision == "fp8":  # few operators support fp8, so repeat its bytes
            return self._filled(pool.view(torch.uint8), shape).view(self.dtype)
        return self._filled(pool, shape)

    def ints(self, high, *shape):
        """Return integers from 0 to below ``high``."""
        return self._filled(((self.numbers + 1) / 2 * high).long().clamp_(0, high - 1), shape)

    def _filled(self, pool, shape):
        count = math.prod(shape)
        self.turn += 104729
        pool = pool.roll(self.turn)[:count].to(self.device)
        return pool.repeat(-(-count // len(pool)))[:count].view(shape)

    def order(self, count):
        """Return a permutation of the numbers below ``count``."""
        generator = self.torch.Generator().manual_seed(17)
        return self.torch.randperm(count, generator=generator).to(self.device)


def dtype_of(torch, precision, device="cpu"):
    """Return torch's element type. MI300 (gfx94x) uses an fp8 type without infinities and negative zero."""
    names = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    return getattr(torch, {**names, "fp8": fp8_name(torch, device), "int8": "int8"}[precision])


def fp8_name(torch, device="cpu"):
    """Return torch's name of the fp8 type that the current device computes in."""
    if device == "cuda" and torch.version.hip:
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        if getattr(properties, "gcnArchName", "").startswith("gfx94"):
            return "float8_e4m3fnuz"
    return "float8_e4m3fn"


ROWS_CHECKED = 16


def rows_of(inputs, result):
    """Return sixteen evenly spread rows of all inputs and results with as many rows as the first input."""
    count = inputs[0].shape[0]
    step = max(1, (count - 1) // (ROWS_CHECKED - 1)) if count > ROWS_CHECKED else 1
    few = slice(0, None, step)

    def cut(value):
        return value[few] if getattr(value, "ndim", 0) and value.shape[0] == count else value

    return [cut(value) for value in inputs], [cut(value) for value in result]


def product_of(inputs, result):
    """Return some rows of the first factor, some columns of the second, and the corresponding part of the product."""
    a, b = inputs[:2]
    rows, columns = slice(0, None, max(1, a.shape[-2] // 16)), slice(0, None, max(1, b.shape[-1] // 16))
    cut = [a[..., rows, :], b[..., :, columns], *(bias[..., columns] for bias in inputs[2:])]
    return cut, [result[0][..., rows, columns]]
