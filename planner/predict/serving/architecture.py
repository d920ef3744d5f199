"""Define architectures of language models from a table of public ones, the user's own YAML, or a Hugging Face
``config.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml

_FILE = Path(__file__).with_name("models.yml")
_TEXTS = ("name", "source", "quantised")
_MAX = 10_000_000  # maximum of any dimension; the largest vocabularies have 300,000 entries
_HUGGING_FACE = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "vocabulary": ("vocab_size",),
    "feedforward": ("intermediate_size",),
    "experts": ("num_local_experts", "n_routed_experts", "num_experts"),
    "active_experts": ("num_experts_per_tok", "experts_per_token"),
    "shared_experts": ("n_shared_experts",),
    "expert_feedforward": ("moe_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "window": ("sliding_window",),
    "latent": ("kv_lora_rank",),
    "query_latent": ("q_lora_rank",),
    "rotary": ("qk_rope_head_dim",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The dimensions of a decoder-only transformer.

    - ``feedforward``: the width of a dense layer's gated network; ``expert_feedforward``: the same for one expert
    - ``dense_layers``: the number of layers without experts, in a model with experts
    - ``window``: the tokens that a layer with a sliding window sees, in ``windowed`` of all layers (a share)
    - ``latent``, ``query_latent``, ``rotary``: the ranks of multi-head latent attention (DeepSeek-V2); 0 without it
    - ``quantised``: the parts that a 4-bit checkpoint stores in 4 bits: all products, or only the experts
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    feedforward: int
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_feedforward: int = 0
    dense_layers: int = 0
    window: int = 0
    windowed: float = 0.0
    latent: int = 0
    query_latent: int = 0
    rotary: int = 0
    quantised: str = "all"
    source: str = ""

    def attention_weights(self) -> float:
        """Return the parameters of one layer's attention projections."""
        if not self.latent:
            return self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        query = self.query_latent or self.hidden
        per_head = self.head_size + self.rotary
        return (
            (self.hidden * self.query_latent if self.query_latent else 0)
            + query * self.heads * per_head
            + self.hidden * (self.latent + self.rotary)
            + self.latent * self.heads * 2 * self.head_size
            + self.heads * self.head_size * self.hidden
        )

    def expert_weights(self) -> float:
        """Return the parameters of one expert: three matrices of a gated network."""
        return 3.0 * self.hidden * self.expert_feedforward

    def expert_layers(self) -> int:
        """Return the number of layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    def dense_weights(self) -> float:
        """Return the parameters that every token uses, without the output head: attention, dense and shared parts."""
        plain = self.layers - self.expert_layers()
        shared = self.expert_layers() * self.shared_experts * self.expert_weights()
        return self.layers * self.attention_weights() + plain * 3.0 * self.hidden * self.feedforward + shared

    def weights(self) -> float:
        """Return all parameters, including the embedding and the output head."""
        routed = self.expert_layers() * self.experts * self.expert_weights()
        return self.dense_weights() + routed + 2.0 * self.vocabulary * self.hidden

    def cache_values(self) -> float:
        """Return the values that one layer caches for one token."""
        return float(self.latent + self.rotary if self.latent else 2 * self.kv_heads * self.head_size)

    def seen(self, context: float) -> float:
        """Return the number of tokens in a ``context`` that a layer attends to, averaged over layers."""
        near = min(context, self.window) if self.window else context
        return self.windowed * near + (1 - self.windowed) * context


@cache
def known() -> Mapping[str, Architecture]:
    """Return the public architectures by name."""
    return {name: _checked({"name": name, **row}, f"models.yml: {name}") for name, row in read_yaml(_FILE).items()}


def read(document: Mapping[str, Any], place: str) -> Architecture:
    """Return the architecture in a document of Fleetmark's format, or in a Hugging Face ``config.json``.

    Raise FleetmarkError, which names ``place``, for a missing, unknown or implausible dimension.
    """
    if "hidden_size" in document or "text_config" in document or "n_embd" in document:
        return _checked(_converted(document, Path(place).parent.name or place), place)
    return _checked({"name": Path(place).stem, **document}, place)


def _converted(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the dimensions of a Hugging Face configuration under Fleetmark's names."""
    nested = document.get("text_config")
    config = nested if isinstance(nested, Mapping) else document
    dimensions: dict[str, Any] = {"name": str(document.get("_name_or_path") or name)}
    for ours, theirs in _HUGGING_FACE.items():
        value = next((config[k] for k in theirs if config.get(k) is not None), None)
        if value is not None:
            dimensions[ours] = value
    heads, hidden = dimensions.get("heads"), dimensions.get("hidden")
    dimensions.setdefault("kv_heads", heads)
    if dimensions.get("latent"):
        dimensions["head_size"] = (
            config.get("v_head_dim") or config.get("qk_nope_head_dim") or dimensions.get("head_size")
        )
    elif isinstance(heads, int) and isinstance(hidden, int) and heads > 0:
        dimensions.setdefault("head_size", hidden // heads)
    if dimensions.get("experts"):
        dimensions.setdefault("expert_feedforward", dimensions.get("feedforward"))
    kinds = config.get("layer_types")
    if dimensions.get("window") and config.get("use_sliding_window") is not False:
        sliding = [k == "sliding_attention" for k in kinds] if isinstance(kinds, list) and kinds else [True]
        dimensions["windowed"] = sum(sliding) / len(sliding)
    else:
        dimensions.pop("window", None)
    return dimensions


def _checked(values: Mapping[str, Any], place: str) -> Architecture:
    """Return an architecture whose dimensions are whole, positive and bounded."""
    kinds = {f.name: f.default for f in fields(Architecture)}
    if unknown := sorted(map(str, set(values) - set(kinds))):
        raise FleetmarkError(f"{place}: unknown key {unknown[0]!r}; allowed are {', '.join(kinds)}")
    needed = ["layers", "hidden", "heads", "kv_heads", "head_size", "vocabulary"]
    if not values.get("experts") or values.get("dense_layers"):
        needed.append("feedforward")
    if values.get("experts"):
        needed += ["active_experts", "expert_feedforward"]
    for key in needed:
        if values.get(key) in (None, 0):
            raise FleetmarkError(f"{place}: {key} is missing; give the model's {key.replace('_', ' ')}")
    sound = {"feedforward": 0, **{key: _sound(key, value, place) for key, value in values.items()}}
    if sound.get("quantised", "all") not in ("all", "experts"):
        raise FleetmarkError(f"{place}: quantised must be all or experts, got {sound['quantised']!r}")
    if sound.get("active_experts", 0) > sound.get("experts", 0):
        raise FleetmarkError(f"{place}: active_experts is larger than experts")
    if not 0 <= sound.get("windowed", 0.0) <= 1:
        raise FleetmarkError(f"{place}: windowed is a share of the layers, from 0 to 1, got {sound['windowed']:g}")
    return Architecture(**sound)


def _sound(key: str, value: Any, place: str) -> Any:
    """Return the value of ``key`` as a dimension or a text."""
    if key in _TEXTS:
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX:
        raise FleetmarkError(f"{place}: {key} must be a number from 0 to {_MAX:,}, got {value!r}")
    if key != "windowed" and value != int(value):
        raise FleetmarkError(f"{place}: {key} must be a whole number, got {value!r}")
    return float(value) if key == "windowed" else int(value)
