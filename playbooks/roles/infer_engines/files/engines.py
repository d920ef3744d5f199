"""Run a network on one inference engine: each class builds it for one batch size and maps inputs to outputs.

``Engine(net, batch, device, threads)`` builds the network; a call takes and returns fp32 arrays in the host's memory,
so that copies to a device count for every engine. ``version`` names the library. All engines compute in fp32, without
tf32 or bf16.
"""

import kserve
import networks


class TorchEager(object):
    """torch, operator by operator."""

    def __init__(self, net, batch, device, threads):
        import torch

        self.torch, self.version = torch, torch.__version__
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.device = torch.device(device)
        self.model = module(torch, net).to(self.device).eval()

    def __call__(self, inputs):
        with self.torch.inference_mode():
            return self.model(self.torch.from_numpy(inputs).to(self.device)).cpu().numpy()


class TorchCompile(TorchEager):
    """torch.compile with TorchInductor, in its default mode."""

    def __init__(self, net, batch, device, threads):
        TorchEager.__init__(self, net, batch, device, threads)
        self.model = self.torch.compile(self.model, dynamic=False)


class OnnxRuntime(object):
    """ONNX Runtime with all its graph optimisations."""

    def __init__(self, net, batch, device, threads):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        providers = ["CPUExecutionProvider"]
        if device != "cpu":
            wanted = "ROCMExecutionProvider" if rocm() else "CUDAExecutionProvider"
            if wanted not in onnxruntime.get_available_providers():
                raise ImportError("this onnxruntime has no %s" % wanted)
            providers = [(wanted, {"use_tf32": "0"} if wanted.startswith("CUDA") else {})]
        self.session = onnxruntime.InferenceSession(networks.onnx_model(net, batch), options, providers=providers)

    def __call__(self, inputs):
        return self.session.run(None, {networks.INPUT: inputs})[0]


class OpenVino(object):
    """OpenVINO for latency. Without a hint, it computes in bf16 if the processor supports it."""

    def __init__(self, net, batch, device, threads):
        import openvino

        self.version = openvino.__version__.partition("-")[0]
        core = openvino.Core()
        if device != "cpu" and "GPU" not in core.available_devices:
            raise ImportError("this openvino sees no GPU")
        hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        if device == "cpu":
            hints["INFERENCE_NUM_THREADS"] = threads
        model = core.read_model(networks.onnx_model(net, batch))
        self.compiled = core.compile_model(model, "CPU" if device == "cpu" else "GPU", hints)
        self.request = self.compiled.create_infer_request()

    def __call__(self, inputs):
        return self.request.infer([inputs])[self.compiled.output(0)].copy()


class TensorRt(object):
    """TensorRT with torch's buffers, on NVIDIA devices only."""

    def __init__(self, net, batch, device, threads):
        import tensorrt
        import torch

        if not device.startswith("cuda"):
            raise ImportError("TensorRT runs on NVIDIA's devices only")
        self.torch, self.version = torch, tensorrt.__version__
        logger = tensorrt.Logger(tensorrt.Logger.ERROR)
        builder = tensorrt.Builder(logger)
        network = builder.create_network(0)
        parser = tensorrt.OnnxParser(network, logger)
        if not parser.parse(networks.onnx_model(net, batch)):
            raise RuntimeError("TensorRT cannot read the model: %s" % parser.get_error(0).desc())
        config = builder.create_builder_config()
        config.clear_flag(tensorrt.BuilderFlag.TF32)
        plan = builder.build_serialized_network(network, config)
        self.runtime = tensorrt.Runtime(logger)
        self.plan = self.runtime.deserialize_cuda_engine(plan)
        self.context = self.plan.create_execution_context()
        self.inputs = torch.empty((batch, *net.shape), device=device)
        self.output = torch.empty(tuple(self.context.get_tensor_shape(networks.OUTPUT)), device=device)
        self.context.set_tensor_address(networks.INPUT, self.inputs.data_ptr())
        self.context.set_tensor_address(networks.OUTPUT, self.output.data_ptr())

    def __call__(self, inputs):
        stream = self.torch.cuda.current_stream()
        self.inputs.copy_(self.torch.from_numpy(inputs))
        self.context.execute_async_v3(stream.cuda_stream)
        return self.output.cpu().numpy()


ENGINES = {
    "torch_eager": TorchEager,
    "torch_compile": TorchCompile,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "tensorrt": TensorRt,
    "kserve": kserve.KServe,
}


def rocm():
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.version.hip)


def module(torch, net):
    """Return ``net`` as a torch module that applies the same operators in the same order."""
    functional = torch.nn.functional
    operators = {
        "MatMul": torch.matmul,
        "Add": torch.add,
        "Mul": torch.mul,
        "Relu": torch.relu,
        "Conv": lambda x, w, strides, pads, kernel_shape: functional.conv2d(x, w, None, strides, pads[:2]),
        "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
        "Flatten": torch.flatten,
        "Reshape": torch.reshape,
        "Transpose": torch.permute,
        "Softmax": torch.softmax,
        "LayerNormalization": lambda x, scale, shift, axis, epsilon: functional.layer_norm(
            x, x.shape[axis:], scale, shift, epsilon
        ),
    }
    names = {"Flatten": ("axis", "start_dim"), "Transpose": ("perm", "dims"), "Softmax": ("axis", "dim")}

    class Operators(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in net.weights.items():
                if value.dtype.kind == "f":
                    self.register_buffer(name, torch.from_numpy(value))

        def forward(self, x):
            values = {networks.INPUT: x}
            for operator, inputs, output, attributes in net.nodes:
                given = [values[n] if n in values else self.constant(n) for n in inputs]
                words = {names.get(operator, (k, k))[1]: v for k, v in attributes.items()}
                values[output] = operators[operator](*given, **words)
            return values[networks.OUTPUT]

        def constant(self, name):
            value = net.weights[name]
            return getattr(self, name) if value.dtype.kind == "f" else tuple(value.tolist())

    return Operators()
