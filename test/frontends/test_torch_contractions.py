"""Convolutions and matrix products of PyTorch: weights by tensor and by channel, float biases, float epilogues."""

import io
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from compiled_ops import check_compiled, variants_together
from tolerances import assert_floats_within, assert_within, loosest
from torch import Tensor, nn
from torch_models import Function, check, dequantized, drawn, operators_of, quantized

import qdialect
from qdialect.driver.torch_backend import compile_captured
from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run

INPUT_SCALE, OUTPUT_SCALE = 2**0.5 / 50, 3**0.5 / 20

Call = Callable[[Any, Any, Any], Any]


class Layer(nn.Module):
    """`call` of dequantized data, dequantized weights and a float bias, quantized."""

    def __init__(self, call: Call, weight: tuple[int, ...], *, per_channel: bool, bias: bool, axis: int = 0) -> None:
        super().__init__()
        drawn = np.random.default_rng(3)
        channels = weight[axis]
        self.call = call
        self.axis = axis
        self.values = nn.Buffer(torch.tensor(drawn.integers(-127, 128, weight)).to(torch.int8))
        self.scales = nn.Buffer(torch.tensor(drawn.uniform(0.001, 0.02, channels)).float())
        self.points = nn.Buffer(torch.zeros(channels, dtype=torch.int64))
        self.bias = nn.Parameter(torch.tensor(drawn.uniform(-1, 1, channels)).float()) if bias else None
        self.per_channel = per_channel

    def forward(self, values: Tensor) -> Tensor:
        data = dequantized(values, INPUT_SCALE, 17, values.dtype)
        operator: Any = torch.ops.quantized_decomposed.dequantize_per_channel.default
        if self.per_channel:
            weight = operator(self.values, self.scales, self.points, self.axis, -127, 127, torch.int8)
        else:
            weight = dequantized(self.values, 0.0123, 0, torch.int8)
        return quantized(self.call(data, weight, self.bias), OUTPUT_SCALE, -4, torch.int8)


LAYERS: dict[str, tuple[Call, tuple[int, ...], tuple[int, ...], int]] = {
    "conv": (lambda x, w, b: nnf.conv2d(x, w, b, 2, 1), (2, 5, 9, 8), (7, 5, 3, 3), 0),
    "conv_dilated": (lambda x, w, b: nnf.conv2d(x, w, b, 1, (2, 0), (2, 1)), (1, 5, 9, 8), (3, 5, 3, 2), 0),
    "conv_grouped": (lambda x, w, b: nnf.conv2d(x, w, b, groups=3), (1, 6, 5, 4), (9, 2, 1, 1), 0),
    "conv_depthwise": (lambda x, w, b: nnf.conv2d(x, w, b, 1, 1, groups=5), (1, 5, 6, 7), (5, 1, 3, 3), 0),
    "conv_same": (lambda x, w, b: nnf.conv2d(x, w, b, padding="same"), (1, 5, 6, 7), (3, 5, 2, 3), 0),
    "conv_of_lines": (lambda x, w, b: nnf.conv1d(x, w, b, 2, 1), (2, 5, 11), (7, 5, 3), 0),
    "conv_transpose": (lambda x, w, b: nnf.conv_transpose2d(x, w, b, 2, 1, 1), (2, 5, 4, 3), (5, 7, 3, 3), 1),
    "linear": (nnf.linear, (4, 13), (7, 13), 0),
    "linear_of_rows": (nnf.linear, (2, 3, 13), (7, 13), 0),
    "mm_transposed": (lambda x, w, _: torch.mm(x, w.t()), (4, 13), (7, 13), 0),
    "mm": (lambda x, w, _: torch.mm(x, w), (4, 13), (13, 7), 1),
    "matmul": (lambda x, w, _: torch.matmul(x, w), (2, 4, 13), (13, 7), 1),
    "addmm": (lambda x, w, b: x @ w if b is None else torch.addmm(b, x, w), (4, 13), (13, 7), 1),
    "conv_relu": (lambda x, w, b: torch.relu(nnf.conv2d(x, w, b)), (1, 5, 6, 7), (3, 5, 2, 3), 0),
    "conv_hardswish": (lambda x, w, b: nnf.hardswish(nnf.conv2d(x, w, b)), (1, 5, 6, 7), (3, 5, 2, 3), 0),
    "linear_gelu": (lambda x, w, b: nnf.gelu(nnf.linear(x, w, b)), (4, 13), (7, 13), 0),
    "linear_elu": (lambda x, w, b: nnf.elu(nnf.linear(x, w, b)), (4, 13), (7, 13), 0),
    "linear_leaky": (lambda x, w, b: nnf.leaky_relu(nnf.linear(x, w, b), 0.2), (4, 13), (7, 13), 0),
    "linear_silu_sum": (lambda x, w, b: nnf.silu(nnf.linear(x, w, b)) + x, (4, 13), (13, 13), 0),
}


def test_sums_beyond_32_bits_are_floats() -> None:
    """PyTorch adds in float32, where accumulators would wrap around."""
    weight = torch.full((1, 70_000), 127, dtype=torch.int8)

    def product(x: Tensor) -> Tensor:
        total = nnf.linear(dequantized(x, 1.0, 0, torch.uint8), dequantized(weight, 2.0**-10, 0, torch.int8))
        return quantized(total, 2.0**14, 0, torch.uint8)

    values = torch.full((2, 70_000), 255, dtype=torch.uint8)
    (found,) = run(import_torch(torch.export.export(Function(product), (values,))), [values.numpy()])
    np.testing.assert_array_equal(found, product(values).numpy(), strict=True)


@variants_together
@pytest.mark.parametrize(("per_channel", "bias"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str, per_channel: bool, bias: bool) -> None:
    call, data, weight, axis = LAYERS[name]
    model = Layer(call, weight, per_channel=per_channel, bias=bias, axis=axis)
    dtype = torch.uint8 if per_channel else torch.int8
    bounds = torch.iinfo(dtype)
    values = torch.tensor(np.random.default_rng(5).integers(bounds.min, bounds.max + 1, data)).to(dtype)
    with torch.no_grad():
        wanted = model(values).numpy()
    exported = torch.export.export(model, (values,))
    module = import_torch(exported)
    (found,) = run(module, [values.numpy()])
    assert_within(found, wanted, loosest(".pt2", operators_of(exported)))
    # Neither constant nor saturated: the comparison says something.
    assert len(np.unique(wanted)) >= 8
    if per_channel:
        check_compiled(module, "host", [[values.numpy()]], [[found]])


@pytest.mark.parametrize("axis", [0, 1])
def test_transposed_groups_by_channel(axis: int) -> None:
    """Every group has the scales of the output channels; scales of input channels leave the layer to float32."""

    def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        bias = torch.cat([b, b])[: (4 if axis else 6)]
        return nnf.conv_transpose2d(x, w, bias if axis else None, 2, groups=2)

    model = Layer(call, (6, 2, 2, 3), per_channel=True, bias=True, axis=axis)
    values = torch.tensor(np.random.default_rng(5).integers(0, 256, (1, 6, 4, 3))).to(torch.uint8)
    exported = torch.export.export(model, (values,))
    module = import_torch(exported)
    assert ("qnn.conv_transpose2d" in str(module)) == (axis == 1)
    with torch.no_grad():
        wanted = model(values).numpy()
    assert_within(run(module, [values.numpy()])[0], wanted, loosest(".pt2", operators_of(exported)))
    assert np.array_equal(qdialect.compile(module)(values.numpy()), run(module, [values.numpy()])[0])


def weights(*shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(4).normal(size=shape), dtype=torch.float32)


def test_transposed_groups() -> None:
    def call(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return nnf.conv_transpose2d(x, w, torch.cat([b, b, b]), (1, 3), (0, 1), (0, 2), groups=3, dilation=(2, 1))

    model = Layer(call, (6, 2, 2, 3), per_channel=False, bias=True, axis=1)
    values = torch.tensor(np.random.default_rng(5).integers(-128, 128, (1, 6, 4, 3))).to(torch.int8)
    module = import_torch(torch.export.export(model, (values,)))
    with torch.no_grad():
        assert np.array_equal(run(module, [values.numpy()])[0], model(values).numpy())
    assert np.array_equal(qdialect.compile(module)(values.numpy()), model(values).detach().numpy())


F32_VALUES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "linear": (lambda x: nnf.linear(x, weights(7, 13), weights(7)), (2, 3, 13)),
    "linear_of_f32_values": (lambda x: nnf.linear(torch.relu(x) * 0.5, weights(7, 13)), (3, 13)),
    "mm": (lambda x: torch.mm(x, weights(13, 4)), (3, 13)),
    "attention": (lambda x: torch.softmax(x @ x.transpose(1, 2), -1) @ x, (2, 5, 3)),
    "bmm": (lambda x: torch.bmm(x, x.permute(0, 2, 1)), (2, 5, 3)),
    "conv": (lambda x: nnf.conv2d(x, weights(6, 2, 3, 2), weights(6), 2, (1, 0), groups=2), (2, 4, 7, 6)),
    "conv_of_lines": (lambda x: nnf.conv1d(x, weights(6, 4, 3), None, 1, 1), (2, 4, 7)),
    "conv_of_one_image": (lambda x: nnf.conv2d(x, weights(6, 4, 3, 2)), (4, 7, 6)),
    "convolution": (
        lambda x: torch.convolution(x, weights(6, 2, 3, 2), None, [2, 1], [1, 0], [1, 1], False, [0, 0], 2),
        (2, 4, 7, 6),
    ),
    "transposed": (lambda x: nnf.conv_transpose2d(x, weights(4, 6, 3, 2), weights(6), 2, (1, 0), 1), (2, 4, 7, 6)),
    "transposed_groups": (
        lambda x: nnf.conv_transpose2d(x, weights(4, 3, 3, 2), weights(6), (2, 3), 2, 0, 2, (1, 2)),
        (2, 4, 7, 6),
    ),
    "transposed_lines": (lambda x: nnf.conv_transpose1d(x, weights(4, 6, 3), None, 3, 1, 2), (2, 4, 7)),
    "transposed_convolution": (
        lambda x: torch.convolution(x, weights(4, 6, 3), None, [2], [1], [1], True, [1], 1),
        (2, 4, 7),
    ),
}


@pytest.mark.parametrize("name", F32_VALUES)
def test_real_layer(name: str) -> None:
    """What is not quantized runs in float32."""
    function, shape = F32_VALUES[name]

    values = torch.tensor(np.random.default_rng(5).integers(-128, 128, shape)).to(torch.int8)
    check(lambda x: function(dequantized(x, INPUT_SCALE, 17, torch.int8)), values)


# Convolutions and pools over three dimensions, against PyTorch.

EXPORT: Any = import_module("torch.export")


class _Quantized(nn.Module):
    """An operator between quantizations, its weights quantized by channel."""

    def __init__(self, function: Callable[..., Tensor], kernel: tuple[int, ...], axis: int) -> None:
        super().__init__()
        generator = np.random.default_rng(7)
        self.function, self.axis = function, axis
        self.weight = torch.tensor(generator.integers(-127, 128, kernel, dtype=np.int8))
        self.scales = torch.linspace(0.01, 0.05, kernel[axis])

    def forward(self, x: Tensor) -> Tensor:
        ops = torch.ops.quantized_decomposed
        points = torch.zeros(len(self.scales), dtype=torch.int64)
        weight = ops.dequantize_per_channel(self.weight, self.scales, points, self.axis, -127, 127, torch.int8)
        data = ops.dequantize_per_tensor(x, 0.043, 7, 0, 255, torch.uint8)
        return ops.quantize_per_tensor(self.function(data, weight), 0.31, 5, 0, 255, torch.uint8)


def _convolved(x: Tensor, w: Tensor) -> Tensor:
    return nnf.conv3d(x, w, None, (1, 2, 1), (1, 0, 1), (2, 1, 1), 2)


def _transposed(x: Tensor, w: Tensor) -> Tensor:
    return nnf.conv_transpose3d(x, w, None, (2, 1, 2), (1, 0, 1), (1, 0, 0), 2)


@pytest.mark.parametrize(
    ("function", "kernel", "axis"), [(_convolved, (6, 2, 2, 3, 2), 0), (_transposed, (4, 3, 3, 2, 2), 1)]
)
def test_products_of_quantized_volumes_are_integers(
    function: Callable[..., Tensor], kernel: tuple[int, ...], axis: int
) -> None:
    """PyTorch adds float32 numbers up, so that a tie may be rounded to the other side."""
    x = np.random.default_rng(8).integers(0, 256, (1, 4, 4, 5, 6), dtype=np.uint8)
    model = _Quantized(function, kernel, axis)
    module = import_torch(EXPORT.export(model, (torch.tensor(x),)))
    assert "xf32>" not in str(module)
    found, wanted = qdialect.compile(module)(x), model(torch.tensor(x)).numpy()
    assert np.count_nonzero(found != wanted) <= wanted.size // 1000


# Models whose weights are tensors made of others, as torchao's ``quantize_`` leaves them: exported and captured.

TORCH: Any = torch
QUANTIZATION: Any = import_module("torchao.quantization")


def of_integers(dtype: Any, granularity: Any) -> Any:
    return QUANTIZATION.IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


CONFIGURATIONS = {
    "weights": QUANTIZATION.Int8WeightOnlyConfig,
    "rows": QUANTIZATION.Int8DynamicActivationInt8WeightConfig,
    "groups": lambda: QUANTIZATION.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=TORCH.int4, weight_granularity=QUANTIZATION.PerGroup(32)
    ),
    "rows by channels": lambda: QUANTIZATION.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=TORCH.int8, weight_granularity=QUANTIZATION.PerAxis(0)
    ),
    "weights in groups": lambda: QUANTIZATION.Int8WeightOnlyConfig(granularity=QUANTIZATION.PerGroup(16)),
    "weights of 4 bits": lambda: of_integers(TORCH.int4, QUANTIZATION.PerGroup(32)),
    "weights of 2 bits": lambda: of_integers(TORCH.int2, QUANTIZATION.PerAxis(0)),
}


class Block(nn.Module):
    """A residual block with two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.last(torch.nn.functional.gelu(self.first(x))))


def quantized_wrapped_weights(kind: str) -> nn.Module:
    TORCH.manual_seed(0)
    model = Block().eval()
    QUANTIZATION.quantize_(model, CONFIGURATIONS[kind]())
    return model


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_exported(kind: str) -> None:
    """Weights of products with floats stay packed."""
    model, x = quantized_wrapped_weights(kind), drawn(1, 2, 6, 32)
    module = import_torch(torch.export.export(model, (x,)))
    (found,) = run(module, [x.numpy()])
    assert_floats_within(found, model(x).detach().numpy(), "layer")
    bits = {"groups": 4, "weights of 4 bits": 4, "weights of 2 bits": 2}.get(kind, 8)
    product = "qnn.block_dynamic_dense" if kind in ("groups", "rows by channels") else "qnn.block_dense"
    counts = {op: str(module).count(op) for op in ("qnn.f32_matmul", product, f"bits = {bits} : i64")}
    assert list(counts.values()) == ([0, 0, 0] if kind == "rows" else [0, 2, 2])


def test_captured() -> None:
    model, x = quantized_wrapped_weights("rows"), drawn(1, 2, 6, 32)
    TORCH._dynamo.reset()
    captured: Any = TORCH.compile(model, backend=compile_captured, options={"fallback": "none", "cache": False})
    assert_floats_within(captured(x).detach().numpy(), model(x).detach().numpy(), "layer")


def test_rows_are_multiplied_as_integers() -> None:
    module = import_torch(torch.export.export(quantized_wrapped_weights("rows"), (drawn(1, 2, 6, 32),)))
    assert str(module).count("qnn.dense") == 2


def test_an_archive_of_them_needs_no_trust() -> None:
    program, file = torch.export.export(quantized_wrapped_weights("weights"), (drawn(1, 2, 6, 32),)), io.BytesIO()
    torch.export.save(program, file)
    x = drawn(2, 2, 6, 32)
    (wanted,) = run(import_torch(program), [x.numpy()])
    for trust in (False, True):
        (found,) = run(import_torch(file.getvalue(), trust=trust), [x.numpy()])
        assert np.array_equal(found, wanted)


def test_products_of_integers() -> None:
    random = np.random.default_rng(3)
    left, right = (torch.tensor(random.integers(-128, 128, shape, np.int8)) for shape in ((20, 16), (16, 24)))

    def products(x: Tensor) -> Any:
        return TORCH._int_mm(x, right), TORCH._int_mm(x, x[:16].clone())

    check(products, left)


ATEN: Any = TORCH.ops.aten
NIBBLES = np.random.default_rng(4).integers(0, 16, (32, 64)).astype(np.int32)
GROUPS = np.random.default_rng(5).uniform(0.01, 0.02, (32, 2)).astype(np.float32)


def packed_nibbles(zeros: Any) -> Any:
    """PyTorch's product with weights of 4 bits in groups of 32, which it packs as this machine likes them."""
    packed = ATEN._convert_weight_to_int4pack_for_cpu(torch.tensor(NIBBLES), 1)
    pairs = np.stack([GROUPS.T, np.broadcast_to(zeros, GROUPS.T.shape)], 2)
    parameters = torch.tensor(np.ascontiguousarray(pairs, np.float32))
    return partial(ATEN._weight_int4pack_mm_for_cpu, mat2=packed, qGroupSize=32, qScaleAndZeros=parameters)


def packed_bytes(x: Tensor) -> Tensor:
    return TORCH._weight_int8pack_mm(x, torch.tensor(NIBBLES * 16 - 120).to(torch.int8), torch.tensor(GROUPS[:, 0]))


def groups_of_channels(x: Tensor) -> Tensor:
    dequantize: Any = TORCH.ops.quantized_decomposed.dequantize_per_channel_group
    weights, points = torch.tensor(NIBBLES - 8).to(torch.int8), torch.full((32, 2), 3)
    held = dequantize(weights, torch.tensor(GROUPS), points, -8, 7, torch.int8, 32, torch.float32)
    return torch.nn.functional.linear(x, held)


PRODUCTS: dict[str, tuple[Any, str]] = {
    "nibbles": (packed_nibbles(0), "bits = 4"),
    "nibbles and zeros": (packed_nibbles(GROUPS.T * 3), "bits = 4"),
    "nibbles and floats": (packed_nibbles(np.float32(0.03)), "bits = 4"),
    "bytes": (packed_bytes, 'order = "scale_last"'),
    "groups": (groups_of_channels, "bits = 4"),
}


@pytest.mark.parametrize("kind", PRODUCTS)
def test_products_of_packed_weights(kind: str) -> None:
    function, form = PRODUCTS[kind]
    x = drawn(3, 5, 64)
    module = import_torch(torch.export.export(Function(function), (x,)))
    assert form in str(module)
    assert_floats_within(run(module, [x.numpy()])[0], function(x).numpy(), "layer")
