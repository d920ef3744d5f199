"""A roofline of one forward pass: the seconds that each operator's arithmetic and memory traffic take at least.

Operators are the projections (all products that every token uses), the experts, the attention over cached tokens and
the output head. Each takes the longer of its two times, after division by the efficiency of that operator (Williams,
Waterman, Patterson 2009). Collectives take a latency each and the time of their bytes; each layer takes its launches.
Arithmetic works on numbers and on arrays alike, so that a fit evaluates all its points at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fleetmark.planner.predict.serving.architecture import Architecture

OPERATORS = ("projections", "experts", "attention", "head")
SIZES: Mapping[str, float] = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.53125}  # bytes a weight; fp4 with a scale for 32
_CACHE = 2.0  # bytes a cached value
_ACTIVATION = 2.0  # bytes a value that a collective moves
_ALLREDUCES = 2  # in a layer: after attention and after the experts or the dense network


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """An accelerator: ``memory`` in B/s, ``dense`` operations a second by precision.

    ``link``: B/s in one direction; of all its links if ``is_switched``, else of the one to each other GPU. ``size``:
    bytes of memory; ``watts``: its power limit. These three are 0 if unknown. ``generation``: chips with the same
    software behave alike within it. ``source``: where each figure comes from.
    """

    name: str
    generation: str
    memory: float
    dense: Mapping[str, float]
    link: float
    is_switched: bool = True
    size: float = 0.0
    watts: float = 0.0
    source: Mapping[str, str] = field(default_factory=dict)

    def rate(self, precision: str) -> float:
        """Return the operations a second of products in ``precision``.

        A chip without products of so few bits widens the weights as it reads them, and computes in its next format.
        """
        order = ("fp4", "fp8", "bf16")
        return next(self.dense[p] for p in order[order.index(precision) :] if p in self.dense)

    def wire(self, gpus: int) -> float:
        """Return the B/s in one direction between one GPU and all others of ``gpus``."""
        return self.link if self.is_switched else self.link * (gpus - 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the GPUs of an instance share the model.

    ``tensor``: GPUs that share each attention layer. ``replicas``: copies of the attention layers, which share the
    experts (data parallelism). ``experts``: groups of GPUs among which whole experts are divided.
    """

    tensor: int = 1
    replicas: int = 1
    experts: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.replicas

    def __str__(self) -> str:
        parts = [f"TP{self.tensor}", f"EP{self.experts}" if self.experts > 1 else ""]
        return " ".join([p for p in (*parts, f"DP{self.replicas}" if self.replicas > 1 else "") if p])


@dataclass(frozen=True, slots=True)
class Step:
    """The least times of a forward pass on each GPU, in seconds at the chip's peaks; numbers or arrays.

    ``compute`` and ``traffic`` by operator. ``wire``: that of the bytes of all collectives. ``collectives`` and
    ``layers`` are counts.
    """

    compute: Mapping[str, Any]
    traffic: Mapping[str, Any]
    wire: Any
    collectives: Any
    layers: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Shares of the peaks that software reaches, and times that no peak explains (seconds).

    ``compute`` and ``traffic`` by operator, ``wire`` of collectives; ``launch`` of a layer, ``collective`` of one
    collective and ``step`` of a forward pass. ``overlap``: the share of others' prefill that delays a decode step.
    ``waiting``: the median wait before prefill, relative to an M/D/1 queue. ``prefill``: what a prompt takes besides.
    ``step_pace`` multiplies a whole decode step.
    """

    compute: Mapping[str, float]
    traffic: Mapping[str, float]
    wire: float
    launch: float
    collective: float
    step: float
    overlap: float
    waiting: float
    prefill: float
    step_pace: Any = 1.0


def weight_size(model: Architecture, precision: str, operator: str) -> float:
    """Return the bytes of one weight of an operator in a checkpoint of ``precision``."""
    return SIZES[_stored(model, precision, operator)]


def _stored(model: Architecture, precision: str, operator: str) -> str:
    if operator == "head":
        return "bf16"
    if precision == "fp4" and model.quantised == "experts" and operator != "experts":
        return "bf16"
    return precision


def memory_needed(model: Architecture, precision: str, layout: Layout) -> float:
    """Return the bytes of weights on each GPU."""
    dense = model.dense_weights() * weight_size(model, precision, "projections") / layout.tensor
    routed = model.expert_layers() * model.experts * model.expert_weights()
    head = 2.0 * model.vocabulary * model.hidden * weight_size(model, precision, "head") / layout.tensor
    return dense + routed * weight_size(model, precision, "experts") / layout.gpus + head


def cache_needed(model: Architecture, layout: Layout, streams: float, context: float) -> float:
    """Return the bytes of cached tokens on each GPU, of ``streams`` in the whole instance."""
    split = 1 if model.latent else min(layout.tensor, model.kv_heads)
    cached = model.layers * model.cache_values() * model.seen(context) * _CACHE
    return streams / layout.replicas * cached / split


def step(
    model: Architecture, chip: Chip, precision: str, layout: Layout, *, streams: float, tokens: float, context: float
) -> Step:
    """Return the least times of a pass over ``streams`` sequences of ``tokens`` new tokens each.

    ``context``: the tokens of a sequence that its new tokens attend to, on average. ``streams`` is of all replicas.
    """
    local = streams / layout.replicas  # sequences of one replica
    dense = model.dense_weights() / layout.tensor
    head = model.vocabulary * model.hidden / layout.tensor
    flops = {
        "projections": 2 * dense * local * tokens,
        "attention": _attention_flops(model, tokens) * model.seen(context) * local * tokens / layout.tensor,
        "head": 2 * head * local,
    }
    kinds = {k: _stored(model, precision, k) for k in ("projections", "experts", "head")}
    traffic = {
        "projections": dense * SIZES[kinds["projections"]],
        "attention": cache_needed(model, layout, streams, context),
        "head": head * SIZES[kinds["head"]],
    }
    if model.experts:
        routed = model.expert_layers() * model.expert_weights() / layout.gpus
        touched = model.experts * (1 - (1 - model.active_experts / model.experts) ** (streams * tokens))
        flops["experts"] = 2 * model.active_experts * routed * streams * tokens
        traffic["experts"] = touched * routed * SIZES[kinds["experts"]]
    rates = {k: chip.rate(v) for k, v in kinds.items()} | {"attention": chip.rate("bf16")}
    shared = layout.gpus > 1
    size = local * tokens * model.hidden * _ACTIVATION * 2 * (layout.gpus - 1) / layout.gpus
    count = _ALLREDUCES * model.layers if shared else 0
    return Step(
        compute={k: flops.get(k, 0.0) / rates[k] for k in OPERATORS},
        traffic={k: traffic.get(k, 0.0) / chip.memory for k in OPERATORS},
        wire=count * size / chip.wire(layout.gpus) if shared else 0.0,
        collectives=float(count),
        layers=float(model.layers),
    )


def _attention_flops(model: Architecture, tokens: float) -> float:
    """Return the operations of all layers for each pair of a new and a cached token.

    Latent attention works on the compressed values in decode and on whole heads in prefill (DeepSeek-V2, 2.1).
    """
    if model.latent:
        wide = 2 * model.latent + model.rotary if tokens == 1 else 2 * model.head_size + model.rotary
        return 2.0 * model.layers * model.heads * wide
    return 4.0 * model.layers * model.heads * model.head_size


def by_operator(work: Step, e: Efficiency) -> dict[str, Any]:
    """Return the seconds of a pass by operator, with ``collectives`` and ``launches``."""
    times: dict[str, Any] = {
        k: np.maximum(np.divide(work.compute[k], e.compute[k]), np.divide(work.traffic[k], e.traffic[k]))
        for k in OPERATORS
    }
    times["collectives"] = work.collectives * e.collective + np.divide(work.wire, e.wire)
    times["launches"] = work.layers * e.launch + e.step
    return times


def seconds(work: Step, e: Efficiency) -> Any:
    """Return the seconds of a pass."""
    return sum(by_operator(work, e).values())
