"""Compute a roofline of one forward pass: the minimum time of each operator's arithmetic and memory traffic.

The operators are the projections (all products that every token uses), the experts, the attention over cached tokens
and the output head. Each takes the longer of its two times, divided by the efficiency of the operator (Williams,
Waterman, Patterson 2009). A collective takes its latency plus the transfer time of its bytes. A layer also takes the
time of its kernel launches.

The arithmetic works on both numbers and arrays, so that a fit evaluates all points together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fleetmark.planner.predict.serving.architecture import Architecture

OPERATORS = ("projections", "experts", "attention", "head")
SIZES: Mapping[str, float] = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.53125}  # bytes per weight; fp4: a scale for 32
_CACHE = 2.0  # bytes per cached value
_ACTIVATION = 2.0  # bytes per value that a collective moves
_ALLREDUCES = 2  # per layer: after attention, and after the experts or the dense network


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """An accelerator: ``memory`` in B/s, and ``dense`` operations per second by precision.

    - ``link``: B/s in one direction, over all links if ``is_switched``, else over the link to each other GPU; 0 if
      unknown
    - ``size``: bytes of memory; 0 if unknown
    - ``watts``: the power limit; 0 if unknown
    - ``generation``: the group of chips on which the same software behaves alike
    - ``source``: the origin of each figure
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
        """Return the operations per second of products in ``precision``.

        A chip without products of this precision widens the weights when it reads them, and computes in its next wider
        format.
        """
        order = ("fp4", "fp8", "bf16")
        return next(self.dense[p] for p in order[order.index(precision) :] if p in self.dense)

    def wire(self, gpus: int) -> float:
        """Return the B/s in one direction between one GPU and the other GPUs of ``gpus``."""
        return self.link if self.is_switched else self.link * (gpus - 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """Describe how the GPUs of an instance share the model.

    ``tensor`` is the number of GPUs that share each attention layer. ``replicas`` is the number of copies of the
    attention layers, which share the experts (data parallelism). ``experts`` is the number of GPU groups over which
    whole experts are distributed.
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
    """The minimum times of a forward pass on each GPU, in seconds at the chip's peaks; numbers or arrays.

    ``compute`` and ``traffic`` are by operator. ``wire`` is the time for the bytes of all collectives. ``collectives``
    and ``layers`` are counts.
    """

    compute: Mapping[str, Any]
    traffic: Mapping[str, Any]
    wire: Any
    collectives: Any
    layers: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """The shares of the peaks that software reaches, and the times (seconds) that no peak explains.

    ``compute`` and ``traffic`` are by operator; ``wire`` is that of collectives. ``launch`` is the time per layer,
    ``collective`` per collective and ``step`` per forward pass. ``overlap`` is the share of other streams' prefill that
    delays a decode step. ``waiting`` is the median wait before prefill, relative to an M/D/1 queue. ``prefill`` is the
    additional time of a prompt. ``step_pace`` is a factor on a whole decode step.
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
    """Return the bytes of cached tokens on each GPU, for ``streams`` in the whole instance."""
    split = 1 if model.latent else min(layout.tensor, model.kv_heads)
    cached = model.layers * model.cache_values() * model.seen(context) * _CACHE
    return streams / layout.replicas * cached / split


def step(
    model: Architecture, chip: Chip, precision: str, layout: Layout, *, streams: float, tokens: float, context: float
) -> Step:
    """Return the minimum times of a pass over ``streams`` sequences of ``tokens`` new tokens each.

    ``context`` is the mean number of tokens of a sequence that its new tokens attend to. ``streams`` is the number over
    all replicas.
    """
    local = streams / layout.replicas  # sequences per replica
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
    """Return the operations of all layers per pair of a new token and a cached token.

    Latent attention works on the compressed values in decode and on whole heads in prefill (DeepSeek-V2, 2.1).
    """
    if model.latent:
        wide = 2 * model.latent + model.rotary if tokens == 1 else 2 * model.head_size + model.rotary
        return 2.0 * model.layers * model.heads * wide
    return 4.0 * model.layers * model.heads * model.head_size


def by_operator(work: Step, e: Efficiency) -> dict[str, Any]:
    """Return the seconds of a pass by operator, and those of ``collectives`` and ``launches``."""
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
