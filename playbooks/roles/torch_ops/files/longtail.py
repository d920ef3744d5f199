"""Define the long tail: operators without their own benchmarks that can still slow down a network."""

import basic
from basic import F, images, named, on_images, on_rows
from operators import WIDE, add


def torch():
    return basic.torch


POSITIVE = {"low": 0.1, "high": 2.0}
UNIT = {"low": -0.9, "high": 0.9}
TAIL = "long-tail"

# Element-wise, one input.
for name in ("abs", "neg", "sign", "floor", "ceil", "round", "trunc", "frac", "square", "exp2", "expm1", "sin", "cos"):
    named(name, TAIL, 1)
for name in ("sinh", "cosh", "atan", "erf", "erfc", "tan"):
    named(name, TAIL, 1, 1, UNIT, loose=2)
for name in ("asin", "acos", "atanh"):
    named(name, TAIL, 1, 1, UNIT, loose=2)
for name in ("log2", "log10", "log1p", "reciprocal", "lgamma", "digamma"):
    named(name, TAIL, 1, 1, {"low": 0.5, "high": 2.5}, loose=4)
on_rows("pow", TAIL, lambda x: torch().pow(x, 2.5), 1, bounds=POSITIVE)
on_rows("clamp", TAIL, lambda x: x.clamp(-0.5, 0.5), 2)
for name, cost in (
    *(("leaky_relu", 2), ("elu", 3), ("selu", 3), ("celu", 3), ("softplus", 3), ("hardswish", 4), ("hardsigmoid", 3)),
    *(
        ("mish", 6),
        ("softsign", 3),
        ("logsigmoid", 4),
        ("hardtanh", 2),
        ("relu6", 2),
        ("tanhshrink", 2),
        ("softshrink", 2),
    ),
):
    on_rows(name, TAIL, lambda x, name=name: getattr(F(), name)(x), cost, loose=2)
on_rows("glu", TAIL, lambda x: F().glu(x, -1), 3)
on_rows("prelu", TAIL, lambda x, w: F().prelu(x, w), 2, make=basic.with_weights(1))

# Element-wise, several inputs.
for name in ("maximum", "minimum", "hypot", "atan2"):
    named(name, TAIL, 1, 2, loose=2)
for name in ("fmod", "remainder"):  # powers of two, so that rounding has no effect
    on_rows(name, TAIL, lambda x, name=name: getattr(torch(), name)(x, 0.25), 1)
on_rows("lerp", TAIL, lambda x, y: torch().lerp(x, y, 0.25), 3, 2)
on_rows("addcmul", TAIL, lambda x, y, z: torch().addcmul(x, y, z), 2, 3)
on_rows("addcdiv", TAIL, lambda x, y, z: torch().addcdiv(x, y, z), 2, 3, bounds=POSITIVE)
on_rows("where", TAIL, lambda x, y: torch().where(x > 0, x, y), 1, 2)
on_rows("masked_fill", TAIL, lambda x, y: x.masked_fill(y > 0, 0.5), 1, 2)
for name in ("eq", "lt", "ge", "logical_and"):
    on_rows(name, TAIL, lambda x, y, name=name: getattr(torch(), name)(x, y), 1, 2)
for name in ("isnan", "isfinite"):
    on_rows(name, TAIL, lambda x, name=name: getattr(torch(), name)(x), 1)

# Reductions and scans.
on_rows("var", TAIL, lambda x: x.var(-1), 4, loose=2)
on_rows("std", TAIL, lambda x: x.std(-1), 5, loose=2)
on_rows("norm", TAIL, lambda x: torch().linalg.vector_norm(x, dim=-1), 2)
on_rows("logsumexp", TAIL, lambda x: x.logsumexp(-1), 4)
on_rows("prod", TAIL, lambda x: x.prod(-1), 1, bounds={"low": 0.999, "high": 1.001}, precisions=WIDE, loose=4)
on_rows("argmax", TAIL, lambda x: x.gather(-1, x.argmax(-1, keepdim=True)), 1)
on_rows("argmin", TAIL, lambda x: x.gather(-1, x.argmin(-1, keepdim=True)), 1)
on_rows("any", TAIL, lambda x: (x > 0.9).any(-1), 1)
on_rows("all", TAIL, lambda x: (x > -2).all(-1), 1)
on_rows("count_nonzero", TAIL, lambda x: x.count_nonzero(-1), 1)
on_rows("cumsum", TAIL, lambda x: x.cumsum(-1), 1, loose=4)
on_rows("cummax", TAIL, lambda x: x.cummax(-1)[0], 1)
on_rows("median", TAIL, lambda x: x.median(-1)[0], 1)
on_rows("aminmax", TAIL, lambda x: torch().stack(torch().aminmax(x, dim=-1)), 2, part=None)

# Sorting and selection.
on_rows("sort", TAIL, lambda x: x.sort(-1)[0], 1)
on_rows("argsort", TAIL, lambda x: x.gather(-1, x.argsort(-1)), 1)
on_rows("topk", TAIL, lambda x: x.topk(min(50, x.shape[-1]), -1)[0], 1)
on_rows("kthvalue", TAIL, lambda x: x.kthvalue(x.shape[-1] // 2 + 1, -1)[0], 1)
on_rows("searchsorted", TAIL, lambda x, y: torch().searchsorted(x.sort(-1)[0], y), 1, 2)
on_rows(
    "bincount",
    TAIL,
    lambda x: x.flatten().bincount(minlength=256),
    1,
    make=lambda t, d: [t.ints(256, d["rows"], d["cols"])],
    part=None,
    precisions=("fp32",),
)


# Gathering and scattering: these move data without computation.
def indexed(t, d):
    return [t.rand(d["rows"], d["cols"]), t.ints(d["cols"], d["rows"], d["cols"])]


def permuted(t, d):
    return [t.rand(d["rows"], d["cols"]), t.order(d["rows"])]


def permuted_into(t, d):
    return [t.rand(d["rows"], d["cols"]), t.order(d["rows"]), t.rand(d["rows"], d["cols"])]


on_rows("gather", TAIL, lambda x, index: x.gather(-1, index), 0, make=indexed)
on_rows(
    "scatter",
    TAIL,
    lambda x, index: torch().zeros_like(x).scatter_(0, index[:, None].expand_as(x), x),
    0,
    make=permuted,
    part=None,
)
on_rows(
    "scatter_add", TAIL, lambda x, index: torch().zeros_like(x).scatter_add_(-1, index, x), 1, make=indexed, loose=8
)
on_rows("index_select", TAIL, lambda x, index: x.index_select(0, index), 0, make=permuted, part=None)
on_rows("index_add", TAIL, lambda x, index, y: x.index_add(0, index, y), 1, make=permuted_into, part=None)
on_rows("index_copy", TAIL, lambda x, index, y: x.index_copy(0, index, y), 0, make=permuted_into, part=None)
on_rows("masked_select", TAIL, lambda x: x.masked_select(x > 0), 0, part=None)
on_rows("nonzero", TAIL, lambda x: (x > 0.5).nonzero(), 0, part=None)
on_rows("roll", TAIL, lambda x: x.roll(7, -1), 0)
on_rows("flip", TAIL, lambda x: x.flip(-1), 0)
on_rows("tril", TAIL, lambda x: x.tril(), 0, part=None)
on_rows("triu", TAIL, lambda x: x.triu(), 0, part=None)
on_rows("stack", TAIL, lambda x, y: torch().stack((x, y), 1), 0, 2)
on_rows("repeat_interleave", TAIL, lambda x: x.repeat_interleave(2, -1), 0)
on_rows("pad", TAIL, lambda x: F().pad(x, (3, 3)), 0)
on_rows(
    "cast_fp32", TAIL, lambda x: x.to(torch().float32 if x.dtype != torch().float32 else torch().bfloat16), 0, loose=400
)
on_rows("fill", TAIL, lambda x: torch().full_like(x, 0.5), 0)
add(
    "embedding_bag",
    "embedding",
    TAIL,
    lambda t, d: [t.ints(d["vocab"], d["rows"], 16), t.rand(d["vocab"], d["cols"])],
    lambda index, table: F().embedding_bag(index, table, mode="sum"),
    lambda d: 16 * d["rows"] * d["cols"],
    moved=lambda d, size: d["rows"] * (16 * 8 + 17 * d["cols"] * size),
    part=lambda inputs, result: ([inputs[0][::16], inputs[1]], [result[0][::16]]),
)

# Images.
on_images(
    "group_norm",
    TAIL,
    lambda x, w, b: F().group_norm(x, 8, w, b),
    8,
    make=lambda t, d: [images(t, d), t.rand(d["c"]), t.rand(d["c"])],
)
on_images("instance_norm", TAIL, lambda x: F().instance_norm(x), 8)
on_images("interpolate_nearest", TAIL, lambda x: F().interpolate(x, scale_factor=2, mode="nearest"), 0)
on_images("interpolate_bilinear", TAIL, lambda x: F().interpolate(x, scale_factor=2, mode="bilinear"), 28, loose=2)
on_images("pixel_shuffle", TAIL, lambda x: F().pixel_shuffle(x, 2), 0)
on_images("unfold", TAIL, lambda x: F().unfold(x, 3, padding=1), 0)
on_images("adaptive_avg_pool2d", TAIL, lambda x: F().adaptive_avg_pool2d(x, 7), 1)
on_images("reflection_pad2d", TAIL, lambda x: F().pad(x, (1, 1, 1, 1), mode="reflect"), 0)
on_images("channels_last", TAIL, lambda x: x.contiguous(memory_format=torch().channels_last), 0)

# Losses, distances and linear algebra.
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    on_rows(name, TAIL, lambda x, y, name=name: getattr(F(), name)(x, y), 3, 2, part=None, loose=2)
on_rows("bce_with_logits", TAIL, lambda x, y: F().binary_cross_entropy_with_logits(x, (y > 0).to(y)), 6, 2, part=None)
on_rows(
    "kl_div",
    TAIL,
    lambda x, y: F().kl_div(torch().log_softmax(x, -1), torch().softmax(y, -1), reduction="sum"),
    12,
    2,
    part=None,
    loose=4,
)
on_rows("cosine_similarity", TAIL, lambda x, y: F().cosine_similarity(x, y, -1), 6, 2, loose=2)
on_rows("normalize", TAIL, lambda x: F().normalize(x, dim=-1), 3, loose=2)
on_rows("pairwise_distance", TAIL, lambda x, y: F().pairwise_distance(x, y), 3, 2, loose=2)
on_rows("outer", TAIL, lambda x: torch().outer(x[:, 0], x[0]), 1, part=None)
on_rows("dot", TAIL, lambda x, y: torch().dot(x.flatten(), y.flatten()), 2, 2, part=None, precisions=WIDE, loose=4)
on_rows("fft", TAIL, lambda x: torch().view_as_real(torch().fft.rfft(x)), 60, precisions=WIDE, loose=2)
