"""Build networks with synthetic weights as ONNX graphs (ResNet-50 v1.5, BERT and a small one), and their samples.

Weights and samples come from a seeded generator, so that every host runs the same network on the same data and nothing
is downloaded. The answers of such a network have no meaning, but the computation is that of the architecture.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET, IR = 17, 8  # an opset that every recent onnxruntime supports
PAGE = 4096  # weights begin on pages, so that onnxruntime can map them
PIECE = 1 << 22  # number of weights generated and written at a time


@dataclass(frozen=True)
class Network:
    """``rules``: its name in LoadGen's own configuration. ``samples``: the minimum number of samples that the rules
    require.
    """

    name: str
    rules: str
    samples: int
    sample_bytes: int
    is_image: bool
    limit_s: float  # of a request in the Server scenario
    build: Callable[[Graph], None]
    make: Callable[[int, int], dict[str, Any]]


class Graph:
    """An ONNX graph under construction. Weights are written to a file as they are generated, to save memory."""

    def __init__(self, name: str, weights: BinaryIO, location: str, seed: int) -> None:
        self.name, self.weights, self.location = name, weights, location
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.count = 0  # weights so far

    def input(self, name: str, kind: int, *shape: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["batch", *shape]))
        return name

    def output(self, source: str, name: str, kind: int, *shape: int) -> None:
        self.nodes.append(helper.make_node("Identity", [source], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, ["batch", *shape]))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, kind: int) -> str:
        array = np.asarray(value)
        name = f"c{len(self.initializers)}"
        self.initializers.append(helper.make_tensor(name, kind, array.shape, array.flatten().tolist()))
        return name

    def weight(self, *shape: int, scale: float = 0.0, offset: float = 0.0) -> str:
        """Weights around ``offset`` with this standard deviation; without one, that value throughout."""
        size = int(np.prod(shape))
        self.weights.write(b"\0" * (-self.weights.tell() % PAGE))
        begin = self.weights.tell()
        for done in range(0, size, PIECE):
            count = min(PIECE, size - done)
            values = np.full(count, offset, np.float32)
            if scale:
                values += scale * self.rng.standard_normal(count, np.float32)
            self.weights.write(values.tobytes())
        tensor = TensorProto(name=f"w{len(self.initializers)}", data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self.location), ("offset", begin), ("length", 4 * size)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        self.count += size
        return str(tensor.name)

    def model(self) -> Any:
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)


# -- convolutional networks


def _convolution(g: Graph, x: str, inputs: int, outputs: int, size: int, stride: int = 1) -> str:
    weight = g.weight(outputs, inputs, size, size, scale=(2.0 / (inputs * size * size)) ** 0.5)
    return g.node("Conv", x, weight, kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4)


def _normalised(g: Graph, x: str, channels: int, gain: float = 1.0) -> str:
    """Batch normalisation as at inference: running mean and variance are constants."""
    scale, shift = g.weight(channels, offset=gain, scale=0.1 * gain), g.weight(channels, scale=0.1)
    mean, variance = g.weight(channels, scale=0.1), g.weight(channels, offset=1.0)
    return g.node("BatchNormalization", x, scale, shift, mean, variance, epsilon=1e-5)


def _bottleneck(g: Graph, x: str, inputs: int, width: int, stride: int) -> str:
    """Return the residual block of version 1.5, in which the 3x3 convolution has the stride instead of the
    first 1x1.
    """
    y = g.node("Relu", _normalised(g, _convolution(g, x, inputs, width, 1), width))
    y = g.node("Relu", _normalised(g, _convolution(g, y, width, width, 3, stride), width))
    y = _normalised(g, _convolution(g, y, width, 4 * width, 1), 4 * width, gain=0.25)  # so that sums stay small
    if inputs != 4 * width:
        x = _normalised(g, _convolution(g, x, inputs, 4 * width, 1, stride), 4 * width)
    return g.node("Relu", g.node("Add", x, y))


def _classify(g: Graph, x: str, features: int, classes: int) -> None:
    x = g.node("Flatten", g.node("GlobalAveragePool", x))
    weight = g.weight(features, classes, scale=features**-0.5)
    scores = g.node("Gemm", x, weight, g.weight(classes))
    g.output(g.node("ArgMax", scores, axis=1, keepdims=0), "class", TensorProto.INT64)


def _resnet50(g: Graph) -> None:
    x = g.input("image", TensorProto.FLOAT, 3, 224, 224)
    x = g.node("Relu", _normalised(g, _convolution(g, x, 3, 64, 7, 2), 64))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            x = _bottleneck(g, x, channels, width, 2 if stage and not block else 1)
            channels = 4 * width
    _classify(g, x, channels, 1000)


def _small(g: Graph) -> None:
    x = g.input("image", TensorProto.FLOAT, 3, 64, 64)
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        x = g.node("Relu", _normalised(g, _convolution(g, x, inputs, outputs, 3, 2), outputs))
    _classify(g, x, 64, 10)


def _images(*shape: int) -> Callable[[int, int], dict[str, Any]]:
    def make(count: int, seed: int) -> dict[str, Any]:
        images = np.empty((count, *shape), np.float32)
        rng = np.random.default_rng(seed)
        for image in images:
            rng.standard_normal(dtype=np.float32, out=image)
        return {"image": images}

    return make


# -- BERT, with the head that answers questions

TOKENS, WORDS = 384, 30522


def _linear(g: Graph, x: str, inputs: int, outputs: int) -> str:
    return g.node("Add", g.node("MatMul", x, g.weight(inputs, outputs, scale=0.02)), g.weight(outputs))


def _layer_norm(g: Graph, x: str, width: int) -> str:
    return g.node("LayerNormalization", x, g.weight(width, offset=1.0), g.weight(width), axis=-1, epsilon=1e-12)


def _bert(layers: int, width: int) -> Callable[[Graph], None]:
    heads, inner = width // 64, 4 * width

    def build(g: Graph) -> None:
        ids, mask, kinds = (
            g.input(n, TensorProto.INT64, TOKENS) for n in ("input_ids", "attention_mask", "token_type_ids")
        )
        number = TensorProto.FLOAT
        by_head = g.constant([0, 0, heads, 64], TensorProto.INT64)
        full_shape = g.constant([0, 0, width], TensorProto.INT64)
        half, one, root = (g.constant(v, number) for v in (0.5, 1.0, 2.0**0.5))
        scale = g.constant(64.0**-0.5, number)

        words = g.node("Gather", g.weight(WORDS, width, scale=0.02), ids)
        places = g.node(
            "Slice",
            g.weight(512, width, scale=0.02),
            *(g.constant([v], TensorProto.INT64) for v in (0, TOKENS, 0)),
        )
        types = g.node("Gather", g.weight(2, width, scale=0.02), kinds)
        x = _layer_norm(g, g.node("Add", g.node("Add", words, types), places), width)
        hidden = g.node("Sub", one, g.node("Cast", mask, to=number))
        hidden = g.node("Mul", hidden, g.constant(-10000.0, number))
        hidden = g.node("Unsqueeze", hidden, g.constant([1, 2], TensorProto.INT64))

        for _ in range(layers):
            query, key, value = (g.node("Reshape", _linear(g, x, width, width), by_head) for _ in range(3))
            query, value = (g.node("Transpose", v, perm=[0, 2, 1, 3]) for v in (query, value))
            key = g.node("Transpose", key, perm=[0, 2, 3, 1])
            scores = g.node("Mul", g.node("MatMul", query, key), scale)
            weights = g.node("Softmax", g.node("Add", scores, hidden), axis=-1)
            y = g.node("Transpose", g.node("MatMul", weights, value), perm=[0, 2, 1, 3])
            y = _linear(g, g.node("Reshape", y, full_shape), width, width)
            x = _layer_norm(g, g.node("Add", y, x), width)
            y = _linear(g, x, width, inner)
            gelu = g.node("Add", g.node("Erf", g.node("Div", y, root)), one)
            y = g.node("Mul", g.node("Mul", y, gelu), half)
            x = _layer_norm(g, g.node("Add", _linear(g, y, inner, width), x), width)
        g.output(_linear(g, x, width, 2), "span", number, TOKENS, 2)

    return build


def _questions(count: int, seed: int) -> dict[str, Any]:
    """Token sequences of 96 tokens and more, padded, in two parts, as questions with their passages are."""
    rng = np.random.default_rng(seed)
    place = np.arange(TOKENS)
    length = rng.integers(96, TOKENS + 1, (count, 1))
    question = rng.integers(8, 33, (count, 1))
    inside = place < length
    return {
        "input_ids": np.where(inside, rng.integers(1, WORDS, (count, TOKENS)), 0),
        "attention_mask": inside.astype(np.int64),
        "token_type_ids": (inside & (place >= question)).astype(np.int64),
    }


NETWORKS = {
    network.name: network
    for network in (
        Network("resnet50", "resnet50", 1024, 4 * 3 * 224 * 224, True, 0.015, _resnet50, _images(3, 224, 224)),
        Network("bert-large", "bert", 10833, 3 * 8 * TOKENS, False, 0.130, _bert(24, 1024), _questions),
        Network("bert-base", "bert", 10833, 3 * 8 * TOKENS, False, 0.130, _bert(12, 768), _questions),
        Network("small", "small", 1024, 4 * 3 * 64 * 64, True, 0.010, _small, _images(3, 64, 64)),
    )
}


def write(network: Network, folder: Path, seed: int) -> tuple[Path, int]:
    """Return the network as an ONNX file in ``folder``, and its number of weights; written once, atomically."""
    stem = f"{network.name}-{seed}"
    path, count_file = folder / f"{stem}.onnx", folder / f"{stem}.count"
    if path.exists() and count_file.exists():
        return path, int(count_file.read_text())
    weights = folder / f"{stem}.weights"
    with weights.open("wb") as out:
        graph = Graph(network.name, out, weights.name, seed)
        network.build(graph)
    count_file.write_text(str(graph.count))
    part = path.with_suffix(".part")
    onnx.save_model(graph.model(), str(part))
    os.replace(part, path)
    return path, graph.count
