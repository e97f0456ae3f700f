"""Small networks of PyTorch, quantized with PT2E on random calibration data, and what they compute."""

import copy
import io
import json
import pickle
import subprocess
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
import torch.utils._pytree as pytree
from compiled_ops import check_compiled
from numpy.typing import NDArray
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.fx.graph import CodeGen

from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.importer import nodes_of
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]

# Registers the operators that PT2E writes.
import_module("torch.ao.quantization.fx._decomposed")
# Tests share the machine.
torch.set_num_threads(1)

BATCHES = 4


def dequantized(quantized_values: Tensor, scale: float, zero_point: int, dtype: torch.dtype) -> Tensor:
    """What PT2E puts before an operator."""
    bounds = torch.iinfo(dtype)
    operator: Any = torch.ops.quantized_decomposed.dequantize_per_tensor.default
    return operator(quantized_values, scale, zero_point, bounds.min, bounds.max, dtype)


def quantized(f32_values: Tensor, scale: float, zero_point: int, dtype: torch.dtype) -> Tensor:
    """What PT2E puts after an operator."""
    bounds = torch.iinfo(dtype)
    operator: Any = torch.ops.quantized_decomposed.quantize_per_tensor.default
    return operator(f32_values, scale, zero_point, bounds.min, bounds.max, dtype)


def operators_of(exported: ExportedProgram) -> list[str]:
    """The names of the operators of an exported program."""
    return [node.kind for node in nodes_of(exported)]


def x86_quantizer() -> Any:
    x86: Any = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    return x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())


def xnnpack_quantizer() -> Any:
    xnnpack: Any = import_module("torchao.testing.pt2e._xnnpack_quantizer")
    with warnings.catch_warnings():
        # It lives on in another package, with the same annotations.
        warnings.simplefilter("ignore")
        return xnnpack.XNNPACKQuantizer().set_global(xnnpack.get_symmetric_quantization_config(is_per_channel=True))


QUANTIZERS: dict[str, Callable[[], Any]] = {"x86": x86_quantizer, "xnnpack": xnnpack_quantizer}


class Residual(nn.Module):
    """Two convolutions and a shortcut, which is a convolution where shapes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
        )
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        changes = stride > 1 or inputs != outputs
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = self.shortcut if changes else nn.Sequential()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.second(self.first(x)) + self.shortcut(x))


class ResNet(nn.Module):
    """A stem with a pool, two residual blocks, a mean over 3 x 3 and a linear layer."""

    shape = (1, 3, 20, 20)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 13, 3, 2, 1, bias=False), nn.BatchNorm2d(13), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Residual(13, 13, 1), Residual(13, 20, 2))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))


class SqueezeExcite(nn.Module):
    """Channels weighted by what their means say."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 8, 1), nn.ReLU(), nn.Conv2d(8, channels, 1), nn.Hardsigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)


class Inverted(nn.Module):
    """Widen, convolve each channel, weigh the channels, narrow."""

    def __init__(self, inputs: int, width: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
            SqueezeExcite(width),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNet(nn.Module):
    """A stem and two inverted blocks, with means over 9 x 9 and 5 x 5."""

    shape = (1, 3, 18, 18)

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 9, 3, 2, 1, bias=False), nn.BatchNorm2d(9), nn.Hardswish())
        self.blocks = nn.Sequential(Inverted(9, 18, 9, 1), Inverted(9, 21, 11, 2))
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(11, 17), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(17, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))


class Perceptron(nn.Module):
    """Linear layers with a clamp, a smooth function and none between them."""

    shape = (4, 37)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(37, 64), nn.ReLU(), nn.Linear(64, 33), nn.GELU(), nn.Linear(33, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


NETWORKS: dict[str, type[ResNet | MobileNet | Perceptron]] = {
    "resnet": ResNet,
    "mobilenet": MobileNet,
    "perceptron": Perceptron,
}


class Quantized:
    """A network that PT2E converted, and images it was not calibrated on."""

    def __init__(self, model: Any, images: Sequence[Tensor]) -> None:
        self.model = model
        self.images = tuple(images)

    def exported(self) -> Any:
        """The program of `torch.export`."""
        return torch.export.export(self.model, (self.images[0],))

    def opened(self) -> Any:
        """The model with the quantized values of every quantization among its results."""
        opened = copy.deepcopy(self.model)
        quantized_values = [node for node in opened.graph.nodes if "quantized_decomposed.quantize" in str(node.target)]
        for node in opened.graph.nodes:
            if node.op == "output":
                node.args = (tuple(quantized_values),)
        # Calls hand back what the graph gives, not what the model gave before.
        opened.graph.set_codegen(CodeGen())
        opened.recompile()
        return opened

    def results(self) -> list[Array]:
        """What PyTorch computes."""
        with torch.no_grad():
            return [self.model(image).numpy() for image in self.images]


@cache
def network(name: str, quantizer: str) -> Quantized:
    """One of `NETWORKS` with random weights, quantized by one of `QUANTIZERS`."""
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    pt2e.torch.manual_seed(1)
    net = NETWORKS[name]()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            _draw_statistics(layer)
    shape = net.shape
    program = torch.export.export(net.eval(), (torch.randn(shape),)).module()
    prepared = pt2e.prepare_pt2e(program, QUANTIZERS[quantizer]())
    for _ in range(BATCHES):
        prepared(torch.randn(shape))
    return Quantized(pt2e.convert_pt2e(prepared), [torch.randn(shape) for _ in range(BATCHES)])


def _draw_statistics(layer: nn.BatchNorm2d) -> None:
    generator = np.random.default_rng(layer.num_features)
    size = layer.num_features
    drawn = {
        "weight": generator.uniform(0.5, 1.5, size),
        "bias": generator.uniform(-0.3, 0.3, size),
        "running_mean": generator.uniform(-0.2, 0.2, size),
        "running_var": generator.uniform(0.5, 1.5, size),
    }
    layer.load_state_dict({name: torch.tensor(values) for name, values in drawn.items()}, strict=False)


# Archives that `torch.export.save` writes, taken apart, changed and put together again.

ROOT = "archive/"
PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"

Members = dict[str, bytes]
"""The members of an archive by their names below its root."""


class Boom:
    """Makes the file `marker` when it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[list[str]], int], tuple[list[str]]]:
        return subprocess.call, (["touch", self.marker],)


def pickled(marker: str) -> bytes:
    """As `torch.save` writes an object."""
    stream = io.BytesIO()
    torch.save(Boom(marker), stream)
    return stream.getvalue()


def bare_pickle(marker: str) -> bytes:
    return pickle.dumps(Boom(marker))


class Net(nn.Module):
    """A quantized linear layer whose weight is quantized by the program itself, and an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(-6.0, 6.0).reshape(3, 4) / 8)
        self.offset = nn.Buffer(torch.tensor([0.5, -0.25, 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        weight = dequantized(quantized(self.weight * 2, 0.125, 0, torch.int8), 0.125, 0, torch.int8)
        product = nnf.linear(dequantized(x, 0.25, 0, torch.int8), weight, self.offset)
        left, right = torch.chunk(torch.relu(product), 2, 1)
        return quantized(torch.cat([right, left], 1), 0.25, 1, torch.int8)


def content_of(program: Any) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


@cache
def program() -> Any:
    import_module("torch.ao.quantization.fx._decomposed")
    return torch.export.export(Net(), (torch.zeros((2, 4), dtype=torch.int8),))


@cache
def good_content() -> bytes:
    return content_of(program())


def good() -> Members:
    return members_of(good_content())


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def packed(members: Members, compression: int = zipfile.ZIP_STORED, root: str = ROOT) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(root + name, content)
    return stream.getvalue()


def directory(content: bytes | bytearray) -> int:
    """Where the directory of an archive begins, an entry for each member in order."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.start_dir


def edited(member: str, change: Callable[[Any], None], **others: bytes) -> Members:
    """The good members, the JSON of `member` changed in place."""
    members = good()
    held = json.loads(members[member])
    change(held)
    return {**members, member: json.dumps(held).encode(), **others}


def graph_of(held: Any) -> Any:
    return held["graph_module"]["graph"]


def argument(name: str, kind: str, value: object, position: int = 1) -> dict[str, Any]:
    return {"name": name, "arg": {kind: value}, "kind": position}


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def node(target: str, name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "target": target,
        "inputs": list(arguments),
        "outputs": [tensor(name)],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": name,
    }


def with_node(inserted: dict[str, Any]) -> Members:
    """The good members, but the weight is what a node gives that comes first."""

    def change(held: Any) -> None:
        graph = graph_of(held)
        name = inserted["name"]
        graph["tensor_values"][name] = graph["tensor_values"]["p_weight"]
        for other in graph["nodes"]:
            for given in other["inputs"]:
                if given["arg"] == tensor("p_weight"):
                    given["arg"] = tensor(name)
        graph["nodes"].insert(0, inserted)

    return edited(PROGRAM, change)


def with_nodes(nodes: list[dict[str, Any]], shapes: dict[str, list[int]] | None = None) -> Members:
    """A program of `nodes` between `numbers`, the dequantized input of shape 2x4, and the last one, which is quantized.

    Results have the input's shape unless `shapes` has another; `p_weight` is the constant of shape 3x4.
    """

    def change(held: Any) -> None:
        graph = graph_of(held)
        values = graph["tensor_values"]
        values["numbers"] = {**values["x"], "dtype": 7}
        for entry in nodes:
            shape = (shapes or {}).get(entry["name"], [2, 4])
            dtype = 2 if ".quantize_per" in entry["target"] else 7
            sizes = [{"as_int": extent} for extent in shape]
            values[entry["name"]] = {**values["numbers"], "sizes": sizes, "dtype": dtype}
        values["quantized"] = {**values[nodes[-1]["name"]], "dtype": 2}
        graph["nodes"] = [
            quantization("dequantize", "numbers", "x"),
            *nodes,
            quantization("quantize", "quantized", nodes[-1]["name"]),
        ]
        graph["outputs"] = [tensor("quantized")]

    return edited(PROGRAM, change)


def quantization(what: str, name: str, source: str, scale: float = 0.25) -> dict[str, Any]:
    """A node that quantizes or dequantizes by `scale` to or from int8."""
    return node(
        f"torch.ops.quantized_decomposed.{what}_per_tensor.default",
        name,
        {"name": "input", "arg": tensor(source), "kind": 1},
        argument("scale", "as_float", scale),
        argument("zero_point", "as_int", 0),
        argument("quant_min", "as_int", -128),
        argument("quant_max", "as_int", 127),
        argument("dtype", "as_scalar_type", 2),
    )


def call(kind: str, name: str, *sources: str, **options: Mapping[str, object]) -> dict[str, Any]:
    """A node of an operator of aten on tensors ``self`` and ``other``; `options` are arguments by their kinds."""
    operands = [
        {"name": key, "arg": tensor(source), "kind": 1} for key, source in zip(("self", "other"), sources, strict=False)
    ]
    others = [{"name": key, "arg": value, "kind": 1} for key, value in options.items()]
    return node(f"torch.ops.aten.{kind}", name, *operands, *others)


# Functions of tensors as programs, and whether compiled ones give what PyTorch does.


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


Call = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]


class Function(nn.Module):
    """A function of tensors, as a module."""

    def __init__(self, function: Call) -> None:
        super().__init__()
        self.function: Callable[..., Any] = function

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given)


def check(function: Call, *given: Tensor) -> None:
    """The reference and compiled code give what PyTorch does, and with its types."""
    module = import_torch(torch.export.export(Function(function), given))
    arrays = [one.numpy() for one in given]
    call: Callable[..., Any] = function
    wanted: list[Tensor] = pytree.tree_leaves(call(*given))
    results = run(module, arrays)
    check_compiled(module, "host", [arrays], [results])
    for one, tensor in zip(results, wanted, strict=True):
        assert one.dtype == tensor.numpy().dtype
        if one.dtype == np.float32:
            assert_floats_within(one, tensor.numpy(), "layer")
        else:
            assert np.array_equal(one, tensor.numpy())


def refused(function: Call, *given: Tensor) -> str:
    """Why a function or a module is not imported."""
    model = function if isinstance(function, nn.Module) else Function(function)
    with pytest.raises(ImportModelError) as caught:
        import_torch(torch.export.export(model, given))
    return caught.value.render()
