"""Define fused operators of current networks: attention, norms, gated activations, rotary embedding, experts, loss."""

import basic
from basic import F, on_rows, with_weights
from operators import FLOATS, add

MATH = FLOATS[:2] + FLOATS[3:]  # attention has no own switch for tf32


def torch():
    return basic.torch


# Attention. kv: heads of keys and values; s: queries, t: keys, d: width of a head.
def heads(t, d):
    q = t.rand(d["b"], d["h"], d["s"], d["d"])
    k = t.rand(d["b"], d["kv"], d["t"], d["d"])
    return [q, k, t.rand(d["b"], d["kv"], d["t"], d["d"], low=-0.5, high=1.5)]


def attend(q, k, v, causal):
    """Compute torch's fused attention. Queries that share keys pass them unchanged, because a copy would be work of the
    harness.
    """
    grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    return F().scaled_dot_product_attention(q, k, v, is_causal=causal, **grouped)


def scores(held):
    """Return the bytes of ``held`` matrices of scores, which accelerators keep if no fused kernel exists.

    Fused kernels have no fp64, and those that share keys among queries have no fp32 either.
    """

    def scratch(d, size, precision):
        is_kept = precision == "fp64" or (precision == "fp32" and d["h"] != d["kv"])
        return held * d["b"] * d["h"] * d["s"] * d["t"] * size if is_kept else 0

    return scratch


def pairs(d, causal):
    """Return the number of query-key pairs that attention computes."""
    s, t = d["s"], d["t"]
    return d["b"] * d["h"] * (s * (s + 1) / 2 if causal else s * t)


def first_heads(inputs, result):
    """Select the first head of the first sequence."""
    cut = [x[:1, :1] if hasattr(x, "ndim") and x.ndim == 4 else x for x in inputs]
    return cut, [x[:1, :1] for x in result]


def first_group(inputs, result):
    """Select the first head of keys and values, with all query heads that share it."""
    group = inputs[0].shape[1] // inputs[1].shape[1]
    sizes = (group, 1, 1)
    return [x[:1, :n] for x, n in zip(inputs, sizes)], [x[:1, :n] for x, n in zip(result, sizes)]  # noqa: B905


for name, causal in (("attention", False), ("attention_causal", True)):
    add(
        name,
        "attention",
        "fused",
        heads,
        lambda q, k, v, causal=causal: attend(q, k, v, causal),
        lambda d, causal=causal: 4 * pairs(d, causal) * d["d"],
        part=first_heads,
        precisions=MATH,
        scratch=scores(2),
    )


def gradients(run, *inputs):
    """Return the gradients of ``run``'s result, or of half its sum of squares, for all non-integer inputs."""
    inputs = [x.detach().requires_grad_(x.is_floating_point()) for x in inputs]
    result = run(*inputs)
    weights = result.detach() if result.ndim else torch().ones_like(result)
    return torch().autograd.grad(result, [x for x in inputs if x.requires_grad], weights)


add(
    "attention_backward",
    "attention",
    "fused",
    heads,
    lambda q, k, v: gradients(lambda *x: attend(*x, True), q, k, v),
    lambda d: 14 * pairs(d, True) * d["d"],  # 4 for the forward pass, 10 for the backward pass
    part=first_group,
    precisions=MATH,
    loose=4,
    scratch=scores(4),
)


def rms_norm(x, w):
    return F().rms_norm(x, x.shape[-1:], w, 1e-6)


on_rows("rms_norm", "fused", rms_norm, 5, make=with_weights(1))
on_rows(
    "add_rms_norm",
    "fused",
    lambda x, y, w: rms_norm(x + y, w),
    6,
    make=lambda t, d: [*(t.rand(d["rows"], d["cols"]) for _ in range(2)), t.rand(d["cols"])],
    loose=2,
)
on_rows(
    "rms_norm_backward",
    "fused",
    lambda x, w: gradients(rms_norm, x, w),
    15,
    make=with_weights(1),
    part=None,
    loose=8,
)
on_rows(
    "layer_norm_backward",
    "fused",
    lambda x, w, b: gradients(lambda x, w, b: F().layer_norm(x, x.shape[-1:], w, b), x, w, b),
    20,
    make=with_weights(2),
    part=None,
    loose=8,
)
on_rows("softmax_backward", "fused", lambda x: gradients(lambda x: torch().softmax(4 * x, -1), x)[0], 12, loose=4)
on_rows("gelu", "fused", lambda x: F().gelu(x), 8)
on_rows("gelu_tanh", "fused", lambda x: F().gelu(x, approximate="tanh"), 8)
on_rows("silu", "fused", lambda x: F().silu(x), 4)
on_rows("swiglu", "fused", lambda x, y: F().silu(x) * y, 5, 2, loose=2)
on_rows("geglu", "fused", lambda x, y: F().gelu(x) * y, 9, 2, loose=2)
on_rows("bias_gelu", "fused", lambda x, b: F().gelu(x + b), 9, make=with_weights(1), loose=2)
on_rows("gelu_backward", "fused", lambda x: gradients(F().gelu, x)[0], 20, loose=4)


def weighed(t, d):
    mask = torch().ones(d["rows"], d["cols"], dtype=torch().bool, device=t.device).tril(d["cols"] - d["rows"])
    return [t.rand(d["rows"], d["cols"]), mask]


on_rows(
    "masked_softmax",
    "fused",
    lambda x, mask: torch().softmax(x.masked_fill(~mask, -1e4), -1),
    6,
    make=weighed,
)


# Rotary embedding on queries: b x h x s x d with tables of s x d.
def turned(t, d):
    return [t.rand(d["b"], d["h"], d["s"], d["d"]), t.rand(d["s"], d["d"]), t.rand(d["s"], d["d"])]


def rotary(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch().cat((-right, left), -1) * sin


add(
    "rotary",
    "attention",
    "fused",
    turned,
    rotary,
    lambda d: 3 * d["b"] * d["h"] * d["s"] * d["d"],
    part=lambda inputs, result: ([inputs[0][:1, :1], *inputs[1:]], [result[0][:1, :1]]),
    loose=2,
)


# Mixture of experts: the router, sorting tokens by expert, the experts, and the reverse order.
def dispatch(x, gate, top):
    """Return the rows of all tokens sorted by their expert, and the number of rows per expert."""
    scores = torch().softmax((x.float() if x.dtype.itemsize < 4 else x) @ gate, -1)
    experts = scores.topk(top, -1)[1].flatten()
    order = experts.sort(stable=True)[1]
    counts = experts.new_zeros(gate.shape[1]).scatter_add_(0, experts, torch().ones_like(experts))
    return x[order // top], counts  # bincount would wait for the device


def routed(t, d):
    gate = t.rand(d["cols"], d["experts"])
    return [t.rand(d["rows"], d["cols"]), gate.float() if gate.dtype.itemsize < 4 else gate, d["top"]]


add(
    "moe_dispatch",
    "moe",
    "fused",
    routed,
    dispatch,
    lambda d: 2 * d["rows"] * d["cols"] * d["experts"],
    moved=lambda d, size: d["rows"] * d["cols"] * size * (1 + 2 * d["top"]) + d["cols"] * d["experts"] * 4,
)


def experts(x, counts, up, down):
    """Compute each expert's two products on its rows of ``x``, which are sorted by expert."""
    parts, start = [], 0
    for expert, count in enumerate(counts):
        if count:
            parts.append(F().silu(x[start : start + count] @ up[expert]) @ down[expert])
        start += count
    return torch().cat(parts)


def loaded(t, d):
    share, rest = divmod(d["rows"] * d["top"], d["experts"])
    counts = [share + (expert < rest) for expert in range(d["experts"])]
    small = {"low": -0.1, "high": 0.1}
    up = t.rand(d["experts"], d["cols"], d["hidden"], **small)
    down = t.rand(d["experts"], d["hidden"], d["cols"], **small)
    return [t.rand(d["rows"] * d["top"], d["cols"]), counts, up, down]


def first_expert(inputs, result):
    x, counts, up, down = inputs
    return [x[: counts[0]], counts[:1], up[:1], down[:1]], [result[0][: counts[0]]]


add(
    "moe_experts",
    "moe",
    "fused",
    loaded,
    experts,
    lambda d: 4 * d["rows"] * d["top"] * d["cols"] * d["hidden"],
    part=first_expert,
    precisions=FLOATS,
    loose=2,
)


# Losses over a vocabulary, and the optimiser's step.
def labelled(t, d):
    return [t.rand(d["rows"], d["cols"], low=-4.0, high=4.0), t.ints(d["cols"], d["rows"])]


on_rows("cross_entropy", "fused", lambda x, y: F().cross_entropy(x, y), 5, make=labelled, part=None)
on_rows(
    "cross_entropy_backward",
    "fused",
    lambda x, y: gradients(lambda x, y: F().cross_entropy(x, y, reduction="sum"), x, y),
    10,
    make=labelled,
    loose=4,
)


def adamw(weight, gradient, mean, square):
    """Compute one step of AdamW as torch's single-tensor code does, after a thousand steps."""
    mean = mean.lerp(gradient, 0.1)
    square = (square * 0.999).addcmul(gradient, gradient, value=0.001)
    return weight * (1 - 1e-5) - 1e-3 * mean / (square.sqrt() + 1e-8)


on_rows(
    "adamw",
    "fused",
    adamw,
    14,
    make=lambda t, d: [*(t.rand(d["rows"], d["cols"]) for _ in range(3)), t.rand(d["rows"], d["cols"], low=0.1)],
    loose=4,
)
on_rows("dropout_mask", "fused", lambda x, y: torch().where(y > 0, x / 0.9, 0.0), 2, 2)
