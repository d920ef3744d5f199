"""Define basic operators: products, convolutions, element-wise, reductions, normalisation, pooling, look-up."""

from operators import FLOATS, add, product_of, rows_of

torch = None  # set by use()


def use(module):
    """Set the torch module that the operators use."""
    global torch
    torch = module


def F():
    return torch.nn.functional


# Products. fp8 requires scales, and int8 accumulates in 32 bits.
SCALES = {}  # the value 1 on each device, created once outside the timed calls


def scale(device):
    if device not in SCALES:
        SCALES[device] = torch.ones((), device=device)
    return SCALES[device]


def mm(a, b):
    if a.dtype == torch.int8:
        return torch._int_mm(a, b)
    if a.dtype.is_floating_point and a.dtype.itemsize == 1:
        one = scale(a.device)
        return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    return torch.mm(a, b)


def mm_out(a, b, out):
    return torch.mm(a, b, out=out) if a.dtype.is_floating_point and a.dtype.itemsize > 1 else mm(a, b)


MM = {"part": product_of, "precisions": (*FLOATS, "fp8", "int8")}


def factors(t, d):
    b = t.rand(d["n"], d["k"]).t() if t.precision == "fp8" else t.rand(d["k"], d["n"])  # fp8 requires column order
    return [t.rand(d["m"], d["k"]), b]


add("mm", "mm", "basic", factors, mm, lambda d: 2 * d["m"] * d["k"] * d["n"], out=mm_out, **MM)
add(
    "linear",
    "mm",
    "basic",
    lambda t, d: [*factors(t, d), t.rand(d["n"])],
    lambda a, b, bias: torch.addmm(bias, a, b),
    lambda d: (2 * d["k"] + 1) * d["m"] * d["n"],
    part=product_of,
    precisions=FLOATS,
)
add(
    "mv",
    "mm",
    "basic",
    lambda t, d: [t.rand(d["n"], d["k"]), t.rand(d["k"])],
    lambda a, x: torch.mv(a, x),
    lambda d: 2 * d["k"] * d["n"],
    out=lambda a, x, out: torch.mv(a, x, out=out),
)
add(
    "bmm",
    "bmm",
    "basic",
    lambda t, d: [t.rand(d["b"], d["m"], d["k"]), t.rand(d["b"], d["k"], d["n"])],
    lambda a, b: torch.bmm(a, b),
    lambda d: 2 * d["b"] * d["m"] * d["k"] * d["n"],
    part=product_of,
    out=lambda a, b, out: torch.bmm(a, b, out=out),
    precisions=FLOATS,
)


# Convolutions: padding keeps the size, stride divides it.
def images(t, d):
    return t.rand(d["n"], d["c"], d["h"], d["w"])


def conv_flops(d, per_channel=None):
    channels = per_channel or d["c"]
    pixels = -(-d["h"] // d["stride"]) * -(-d["w"] // d["stride"])
    return 2 * d["n"] * d["o"] * pixels * channels * d["r"] ** 2


def first_image(inputs, result):
    return [inputs[0][-1:], *inputs[1:]], [result[0][-1:]]


def conv(x, weight, stride, groups=1):
    return F().conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2, groups=groups)


def kernel(t, d):
    return [images(t, d), t.rand(d["o"], d["c"], d["r"], d["r"]), d["stride"]]


add("conv2d", "conv", "basic", kernel, conv, conv_flops, part=first_image, precisions=FLOATS)
add(
    "conv2d_depthwise",
    "conv",
    "basic",
    lambda t, d: [images(t, d), t.rand(d["c"], 1, d["r"], d["r"]), d["stride"]],
    lambda x, weight, stride: conv(x, weight, stride, x.shape[1]),
    lambda d: conv_flops({**d, "o": d["c"]}, 1),
    part=first_image,
)
add(
    "conv_transpose2d",
    "conv",
    "basic",
    lambda t, d: [images(t, d), t.rand(d["c"], d["o"], d["r"], d["r"])],
    lambda x, weight: F().conv_transpose2d(x, weight, padding=weight.shape[-1] // 2),
    lambda d: 2 * d["n"] * d["c"] * d["o"] * d["h"] * d["w"] * d["r"] ** 2,
    part=first_image,
    precisions=FLOATS,
)
add(
    "conv1d",
    "conv",
    "basic",
    lambda t, d: [t.rand(d["n"], d["c"], d["h"] * d["w"]), t.rand(d["o"], d["c"], d["r"])],
    lambda x, weight: F().conv1d(x, weight, padding=weight.shape[-1] // 2),
    lambda d: 2 * d["n"] * d["c"] * d["o"] * d["h"] * d["w"] * d["r"],
    part=first_image,
    precisions=FLOATS,
)


# Operators on rows x cols matrices: name, function, inputs, operations per element, whether out= is supported.
def matrix(number=1, **bounds):
    return lambda t, d: [t.rand(d["rows"], d["cols"], **bounds) for _ in range(number)]


def per_element(count):
    return lambda d: count * d["rows"] * d["cols"]


def on_rows(name, grade, run, count, number=1, out=None, make=None, bounds=None, **more):
    """Define an operator on a matrix with independent rows."""
    more.setdefault("part", rows_of)
    add(name, "rows", grade, make or matrix(number, **(bounds or {})), run, per_element(count), out=out, **more)


def named(name, grade, count, number=1, bounds=None, **more):
    """Define an operator from a torch function that supports out=."""
    on_rows(
        name,
        grade,
        lambda *x: getattr(torch, name)(*x),
        count,
        number,
        lambda *x, out: getattr(torch, name)(*x, out=out),
        bounds=bounds,
        **more,
    )


POSITIVE = {"low": 0.1, "high": 2.0}
for name in ("add", "sub", "mul"):
    named(name, "basic", 1, 2)
named("div", "basic", 1, 2, POSITIVE)
for name in ("exp", "tanh", "sigmoid"):
    named(name, "basic", 1)
for name in ("log", "sqrt", "rsqrt"):
    named(name, "basic", 1, 1, POSITIVE)
on_rows("relu", "basic", lambda x: torch.relu(x), 1, out=lambda x, out: torch.clamp_min(x, 0, out=out))
on_rows("copy", "basic", lambda x: x.clone(), 0, out=lambda x, out: out.copy_(x))
on_rows("transpose", "basic", lambda x: x.t().contiguous(), 0, part=None)
on_rows("cat", "basic", lambda x, y: torch.cat((x, y), 1), 0, 2)
on_rows("sum", "basic", lambda x: x.sum(-1), 1)
on_rows("mean", "basic", lambda x: x.mean(-1), 1)
on_rows("max", "basic", lambda x: x.amax(-1), 1)
on_rows("min", "basic", lambda x: x.amin(-1), 1)
on_rows("sum_columns", "basic", lambda x: x.sum(0), 1, part=None, loose=4)
on_rows("softmax", "basic", lambda x: torch.softmax(x, -1), 5)
on_rows("log_softmax", "basic", lambda x: torch.log_softmax(x, -1), 5)


def with_weights(number):
    return lambda t, d: [t.rand(d["rows"], d["cols"]), *(t.rand(d["cols"]) for _ in range(number))]


on_rows(
    "layer_norm",
    "basic",
    lambda x, w, b: F().layer_norm(x, x.shape[-1:], w, b),
    8,
    make=with_weights(2),
)
on_rows("bias_add", "basic", lambda x, b: x + b, 1, make=with_weights(1))


def pixels(count):
    return lambda d: count * d["n"] * d["c"] * d["h"] * d["w"]


def on_images(name, grade, run, count, make=None, **more):
    """Define an operator on independent images."""
    more.setdefault("part", first_image)
    add(name, "image", grade, make or (lambda t, d: [images(t, d)]), run, pixels(count), **more)


def channels(t, d):
    return [images(t, d), t.rand(d["c"]), t.rand(d["c"], low=0.5), t.rand(d["c"]), t.rand(d["c"])]


on_images("batch_norm", "basic", lambda x, mean, var, w, b: F().batch_norm(x, mean, var, w, b), 4, make=channels)
on_images("max_pool2d", "basic", lambda x: F().max_pool2d(x, 3, 2, 1), 2)
on_images("avg_pool2d", "basic", lambda x: F().avg_pool2d(x, 2), 1)
on_images("global_avg_pool", "basic", lambda x: x.mean((2, 3)), 1)

add(
    "embedding",
    "embedding",
    "basic",
    lambda t, d: [t.ints(d["vocab"], d["rows"]), t.rand(d["vocab"], d["cols"])],
    lambda index, table: F().embedding(index, table),
    lambda d: 0,
    moved=lambda d, size: d["rows"] * (8 + 2 * d["cols"] * size),
    part=lambda inputs, result: ([inputs[0][::16], inputs[1]], [result[0][::16]]),
)
