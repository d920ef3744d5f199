"""Define small networks once, as lists of ONNX operators with seeded weights, and compute their outputs in fp64.

Every engine gets the same operators, weights and inputs: as an ONNX model (``onnx_model``), or as a torch module
(``torch_engines``). ``reference`` computes the outputs with NumPy in fp64, without code of any engine.
"""

import math

import numpy as np

SEED = 39
OPSET = 17
INPUT, OUTPUT = "input", "output"


class Network(object):
    """Operators in order: ``nodes`` are (operator, inputs, output, attributes), ``weights`` are fp32 by name."""

    def __init__(self, name, shape):
        self.name, self.shape, self.nodes, self.weights = name, shape, [], {}
        self.random = np.random.default_rng(SEED)

    def weight(self, *shape, **words):
        """Add a weight with random values of the variance 1 / ``fan``, and return its name."""
        fan = words.get("fan") or shape[0]
        return self.constant((self.random.standard_normal(shape) / math.sqrt(fan)).astype(np.float32))

    def constant(self, value):
        name = "w%d" % len(self.weights)
        self.weights[name] = np.asarray(value)
        return name

    def add(self, operator, *inputs, **attributes):
        """Add an operator, and return the name of its output."""
        output = "v%d" % len(self.nodes)
        self.nodes.append((operator, inputs, output, attributes))
        return output

    def end(self):
        operator, inputs, _, attributes = self.nodes[-1]
        self.nodes[-1] = (operator, inputs, OUTPUT, attributes)
        return self

    def linear(self, x, inputs, outputs):
        return self.add("Add", self.add("MatMul", x, self.weight(inputs, outputs)), self.weight(outputs, fan=100))

    def conv(self, x, inputs, outputs, stride=1):
        weight = self.weight(outputs, inputs, 3, 3, fan=9 * inputs)
        return self.add("Conv", x, weight, strides=[stride, stride], pads=[1, 1, 1, 1], kernel_shape=[3, 3])

    def inputs(self, batch):
        """Return the inputs of a batch; those of a smaller batch are the first of a larger one."""
        return np.random.default_rng(SEED + 1).standard_normal((batch, *self.shape)).astype(np.float32)


def mlp():
    """Three dense layers, 512 - 2048 - 2048 - 512."""
    net = Network("mlp", (512,))
    x = net.add("Relu", net.linear(INPUT, 512, 2048))
    x = net.add("Relu", net.linear(x, 2048, 2048))
    net.linear(x, 2048, 512)
    return net.end()


def convnet():
    """A residual network of six 3 x 3 convolutions on images of 64 x 64."""
    net = Network("convnet", (3, 64, 64))
    x = net.add("Relu", net.conv(INPUT, 3, 32, 2))
    for _ in range(2):
        y = net.add("Relu", net.conv(x, 32, 32))
        x = net.add("Relu", net.add("Add", net.conv(y, 32, 32), x))
    x = net.add("Relu", net.conv(x, 32, 64, 2))
    x = net.add("Flatten", net.add("GlobalAveragePool", x), axis=1)
    net.linear(x, 64, 100)
    return net.end()


def encoder():
    """Two layers of a transformer's encoder: 128 tokens, width 256, 4 heads."""
    tokens, width, heads = 128, 256, 4
    net = Network("encoder", (tokens, width))
    split = net.constant(np.array([-1, tokens, heads, width // heads], np.int64))
    joined = net.constant(np.array([-1, tokens, width], np.int64))
    scale = net.constant(np.array(1 / math.sqrt(width // heads), np.float32))

    def norm(x):
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        return net.add("LayerNormalization", x, net.constant(ones), net.constant(zeros), axis=-1, epsilon=1e-5)

    def part(x, order):
        return net.add("Transpose", net.add("Reshape", net.linear(x, width, width), split), perm=order)

    x = INPUT
    for _ in range(2):
        y = norm(x)
        q, k, v = part(y, [0, 2, 1, 3]), part(y, [0, 2, 3, 1]), part(y, [0, 2, 1, 3])
        share = net.add("Softmax", net.add("Mul", net.add("MatMul", q, k), scale), axis=-1)
        y = net.add("Transpose", net.add("MatMul", share, v), perm=[0, 2, 1, 3])
        x = net.add("Add", x, net.linear(net.add("Reshape", y, joined), width, width))
        y = net.linear(net.add("Relu", net.linear(norm(x), width, 4 * width)), 4 * width, width)
        x = net.add("Add", x, y)
    norm(x)
    return net.end()


NETWORKS = {"mlp": mlp, "convnet": convnet, "encoder": encoder}


def conv64(x, weight, strides, pads, kernel_shape):
    """Return a 3 x 3 convolution as sums of matrix products, one for each position of the kernel."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    rows = (x.shape[2] - kernel_shape[0]) // strides[0] + 1
    columns = (x.shape[3] - kernel_shape[1]) // strides[1] + 1
    out = np.zeros((x.shape[0], weight.shape[0], rows, columns))
    for i in range(kernel_shape[0]):
        for j in range(kernel_shape[1]):
            window = x[:, :, i : i + strides[0] * rows : strides[0], j : j + strides[1] * columns : strides[1]]
            out += np.tensordot(weight[:, :, i, j], window, ([1], [1])).transpose(1, 0, 2, 3)
    return out


def norm64(x, scale, shift, axis, epsilon):
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis, keepdims=True) + epsilon) * scale + shift


def softmax64(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


FP64 = {
    "MatMul": np.matmul,
    "Add": np.add,
    "Mul": np.multiply,
    "Relu": lambda x: np.maximum(x, 0),
    "Conv": conv64,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "Flatten": lambda x, axis: x.reshape(x.shape[0], -1),
    "Reshape": lambda x, shape: x.reshape(shape.astype(int)),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Softmax": softmax64,
    "LayerNormalization": norm64,
}


def reference(net, inputs):
    """Return the outputs of ``net`` in fp64."""
    values = {name: value.astype(np.float64) for name, value in net.weights.items()}
    values[INPUT] = inputs.astype(np.float64)
    for operator, names, output, attributes in net.nodes:
        values[output] = FP64[operator](*[values[name] for name in names], **attributes)
    return values[OUTPUT]


def onnx_model(net, batch):
    """Return ``net`` for one batch size as the bytes of an ONNX model. Needs the package onnx."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [helper.make_node(op, list(names), [output], **words) for op, names, output, words in net.nodes]
    graph = helper.make_graph(
        nodes,
        net.name,
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, (batch, *net.shape))],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in net.weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return model.SerializeToString()
