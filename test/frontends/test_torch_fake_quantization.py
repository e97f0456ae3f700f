"""Fake quantization, and quantization at run time: the same bits as PyTorch."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from compiled_ops import check_compiled, variants_together
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch_models import Function, check, drawn, refused

import qdialect
from qdialect.frontends.torch import import_torch

ATEN: Any = torch.ops.aten
# No float32 number, so that the order of rounding shows.
SCALE = 0.0371
SCALES, POINTS = torch.tensor([0.037, 0.011, 0.3, 0.05]), torch.tensor([0, 3, -2, 7], dtype=torch.int32)


def near_ties() -> Tensor:
    """Around what lies halfway between two quantized values, and what no quantized value stands for."""
    halves = (torch.arange(-150, 150) + 0.5) * float(np.float32(SCALE))
    steps = [torch.nextafter(halves, torch.full_like(halves, end)) for end in (9.0, -9.0)]
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 0.0, -0.0, 1e-45])
    return torch.cat([halves, *steps, special])


def test_of_tensors() -> None:
    scale, point = torch.tensor([SCALE]), torch.tensor([3], dtype=torch.int32)
    on, off = torch.tensor([1]), torch.tensor([0])

    def functions(x: Tensor) -> list[Tensor]:
        affine, learnable = torch.fake_quantize_per_tensor_affine, ATEN._fake_quantize_learnable_per_tensor_affine
        with_mask = ATEN._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return [
            *(affine(x, SCALE, 3, low, high) for low, high in ((-128, 127), (0, 255), (-8, 7), (0, 15), (-300, 300))),
            affine(x, scale, point, -127, 127),
            ATEN.fake_quantize_per_tensor_affine_cachemask(x, SCALE, 3, -128, 127)[0],
            *(with_mask(x, scale, point, enabled, -128, 127)[0] for enabled in (on, off)),
            *(learnable(x, scale, torch.tensor([z]), -128, 127, 1.5) for z in (3.4, -2.5, 200.0)),
        ]

    check(functions, near_ties())


def test_of_channels_of_constants() -> None:
    weight = torch.cat([drawn(1, 4, 50) * 5, (torch.arange(50) - 25 + 0.5) * SCALES[:, None]], 1)

    def functions(x: Tensor) -> list[Tensor]:
        learnable = ATEN._fake_quantize_learnable_per_channel_affine
        return [
            x + torch.fake_quantize_per_channel_affine(weight, SCALES, POINTS, 0, -128, 127),
            x + ATEN.fake_quantize_per_channel_affine_cachemask(weight, SCALES, POINTS, 0, -8, 7)[0],
            x + torch.fake_quantize_per_channel_affine(weight.T.contiguous(), SCALES, POINTS, 1, -128, 127).T,
            x + learnable(weight, SCALES, POINTS + 0.4, 0, -128, 127, 1.0),
        ]

    check(functions, torch.zeros(4, 100))


class Observed(torch.nn.Module):
    """As quantization-aware training leaves a layer."""

    def __init__(self, *, observes: bool, fakes: bool, by_rows: bool) -> None:
        super().__init__()
        count = 4 if by_rows else 1
        self.on = torch.nn.Buffer(torch.tensor([int(observes)]))
        self.fakes = torch.nn.Buffer(torch.tensor([int(fakes)]))
        self.low, self.high = torch.nn.Buffer(torch.zeros(count)), torch.nn.Buffer(torch.ones(count))
        self.scale = torch.nn.Buffer(SCALES[:count].clone())
        self.point = torch.nn.Buffer(torch.zeros(count, dtype=torch.int32))
        self.weight = torch.nn.Buffer(drawn(5, 4, 16))
        self.by_rows = by_rows

    def forward(self, x: Tensor) -> Tensor:
        ranges = (self.low, self.high, self.scale, self.point)
        operand = self.weight if self.by_rows else x
        bounds = (0.01, -128, 127, 0, self.by_rows, False)
        # The operand is read again as it was.
        return x @ torch.fused_moving_avg_obs_fake_quant(operand, self.on, self.fakes, *ranges, *bounds).T + x.sum()


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("fakes", [False, True])
def test_observers_that_are_off(by_rows: bool, fakes: bool) -> None:
    model, x = Observed(observes=False, fakes=fakes, by_rows=by_rows), drawn(6, 16, 16)
    check(model, x)


def test_refusals() -> None:
    observed = Observed(observes=True, fakes=True, by_rows=False)
    assert "argument 'observer_on' must be 0" in refused(observed, drawn(6, 16, 16))
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, POINTS, 0, -128, 127), "'self' must be constant"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -(2**20), 2**20), "must lie in 16 bits"),
        (
            lambda x: x + torch.fake_quantize_per_channel_affine(drawn(7, 4, 4), SCALES, POINTS + 0.5, 0, -128, 127),
            "'zero_point' must be integers",
        ),
    ]
    for function, reason in cases:
        assert reason in refused(function, drawn(8, 4, 4))


# Quantization by ranges that are found when the network runs: zero points and quantized values are PyTorch's.

import_module("torch.ao.quantization.fx._decomposed")
OPS = torch.ops.quantized_decomposed
BOUNDS = {torch.int8: (-128, 127), torch.uint8: (0, 255)}
RANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "both": lambda x: x,
    "positive": lambda x: x.abs() + 1,
    "negative": lambda x: -x.abs() - 1,
    "narrow": lambda x: x * 1e-4,
    "wide": lambda x: x * 1e20,
    "zero": torch.zeros_like,
}


def dynamic(choose: Any, dtype: torch.dtype, epsilon: float, bounds: tuple[int, int]) -> Callable[[Tensor], Any]:
    """Zero point, quantized values and f32 values of a tensor by its own range."""

    def function(x: Tensor) -> Any:
        scale, point = choose(x, *bounds, epsilon, dtype)
        values = OPS.quantize_per_tensor.tensor(x, scale, point, *bounds, dtype)
        return point, values, OPS.dequantize_per_tensor.tensor(values, scale, point, *bounds, dtype)

    return function


def outputs(module: Any, x: Tensor) -> Any:
    """What compiled code gives."""
    return qdialect.compile(module)(x.numpy())


def exactly(function: Callable[[Tensor], Any], x: Tensor) -> None:
    module = import_torch(torch.export.export(Function(function), (x,)))
    check_compiled(module, "host", [[x.numpy()]], [[wanted.numpy() for wanted in function(x)]])


@variants_together
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize("form", ["choose_qparams", "choose_qparams_symmetric"])
def test_of_a_tensor(form: str, kind: str, dtype: torch.dtype) -> None:
    choose = getattr(OPS, form).tensor
    x = RANGES[kind](drawn(1, 2, 3, 50, 7))
    exactly(dynamic(choose, dtype, 2.0**-12, BOUNDS[dtype]), x)


def test_of_fewer_values() -> None:
    exactly(dynamic(OPS.choose_qparams.tensor, torch.int8, 1e-7, (-127, 127)), drawn(2, 900))


@variants_together
@pytest.mark.parametrize("kind", RANGES)
def test_of_rows(kind: str) -> None:
    def function(x: Tensor) -> Any:
        scales, points = OPS.choose_qparams_per_token(x, torch.int8)
        values = OPS.quantize_per_token(x, scales, points, -128, 127, torch.int8)
        return values, OPS.dequantize_per_token(values, scales, points, -128, 127, torch.int8, torch.float32)

    exactly(function, RANGES[kind](drawn(4, 3, 20, 33)))


@variants_together
@pytest.mark.parametrize("kind", RANGES)
def test_of_rows_with_zero_points(kind: str) -> None:
    def function(x: Tensor) -> Any:
        scales, points = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
        return points, OPS.quantize_per_token(x, scales, points, -128, 127, torch.int8)

    exactly(function, RANGES[kind](drawn(5, 3, 20, 33)))


def test_numbers_of_rows_near_the_middle_between_quantized_values() -> None:
    """PyTorch divides these in float64; in float32 a product with the reciprocal of the scale is often the middle."""

    def function(x: Tensor) -> Any:
        scales, points = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
        return points, OPS.quantize_per_token(x, scales, points, -128, 127, torch.int8)

    generator = np.random.default_rng(7)
    low, high = -generator.uniform(0, 2, (24, 1)), generator.uniform(0.1, 2, (24, 1))
    ends = np.concatenate([low, high], axis=1).astype(np.float32)
    scales = (ends[:, 1:] - ends[:, :1]) / np.float32(255)
    middles = np.round(ends[:, :1] / scales) + np.arange(1, 254) + 0.5
    near = [np.nextafter((middles * scales).astype(np.float32), np.float32(side)) for side in (-9, 9)]
    x = np.concatenate([ends, (middles * scales).astype(np.float32), *near], axis=1)
    exactly(function, torch.tensor(np.clip(x, ends[:, :1], ends[:, 1:]).tolist()))


def converted(model: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    """A module whose products quantize their data when they run."""
    pt2e: Any = import_module("torchao.quantization.pt2e.quantize_pt2e")
    x86: Any = import_module("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    configuration = x86.get_default_x86_inductor_quantization_config(is_dynamic=True)
    quantizer = x86.X86InductorQuantizer().set_global(configuration)
    prepared = pt2e.prepare_pt2e(torch.export.export(model.eval(), inputs, strict=True).module(), quantizer)
    prepared(*inputs)
    return pt2e.convert_pt2e(prepared)


def product_count(text: str) -> int:
    return text.count('"qnn.dynamic_dense"') + text.count('"qnn.dynamic_conv2d"')


def test_a_network_multiplies_integers() -> None:
    model = nn.Sequential(nn.Linear(16, 40), nn.ReLU(), nn.Linear(40, 24, bias=False), nn.GELU(), nn.Linear(24, 5))
    rows = drawn(6, 3, 7, 16)
    module = converted(model, (rows,))
    imported = import_torch(torch.export.export(module, (rows,)))
    assert product_count(str(imported)) == 3
    found = outputs(imported, rows)
    assert_floats_within(found, module(rows).detach().numpy(), "layer")


class Weighted(nn.Module):
    """A product of data and weights quantized by channel, the data by its own range."""

    def __init__(self, product: Callable[..., Tensor], *shape: int) -> None:
        super().__init__()
        self.product = product
        self.values = nn.Buffer(torch.tensor(np.random.default_rng(7).integers(-127, 128, shape).astype(np.int8)))
        self.scales = nn.Buffer(drawn(8, shape[0]).abs() / 50)
        self.points = nn.Buffer(torch.zeros(shape[0], dtype=torch.int64))
        self.bias = nn.Buffer(drawn(9, shape[0]))

    def forward(self, x: Tensor) -> Tensor:
        choose = dynamic(OPS.choose_qparams.tensor, torch.int8, 2.0**-12, (-128, 127))
        weight = OPS.dequantize_per_channel(self.values, self.scales, self.points, 0, -127, 127, torch.int8)
        return self.product(choose(x)[2], weight, self.bias)


PRODUCTS: dict[str, tuple[Callable[[Any, Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "conv2d": (lambda x, w, b: nnf.conv2d(x, w, b, 2, 1), (2, 6, 9, 11), (8, 6, 3, 3)),
    "depthwise": (lambda x, w, b: nnf.conv2d(x, w, b, 1, 1, 1, 8), (1, 8, 9, 11), (8, 1, 3, 3)),
    "dilated": (lambda x, w, b: nnf.conv2d(x, w, b, 1, 0, 2, 2), (1, 8, 9, 11), (6, 4, 3, 3)),
    "conv1d": (lambda x, w, b: nnf.conv1d(x, w, b, padding=2), (2, 6, 31), (8, 6, 5)),
    "linear": (nnf.linear, (4, 12), (9, 12)),
    "linear_of_three": (nnf.linear, (2, 4, 12), (9, 12)),
    "view": (lambda x, w, b: nnf.linear(x.view(8, 12), w, b), (2, 4, 12), (9, 12)),
    "addmm": (lambda x, w, b: torch.addmm(b, x, w.t()), (4, 12), (9, 12)),
    "matmul": (lambda x, w, b: torch.matmul(x, w.t()) + b, (2, 4, 12), (9, 12)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    product, shape, weights = PRODUCTS[name]
    x, model = drawn(10, *shape), Weighted(product, *weights)
    imported = import_torch(torch.export.export(model, (x,)))
    assert product_count(str(imported)) == 1
    assert_floats_within(outputs(imported, x), model(x).numpy(), "layer")


def test_other_parameters_are_not_those_of_a_border() -> None:
    """What is dequantized by other parameters is padded with 0, which is no quantized value of the data."""

    def product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return nnf.conv2d(x, w, b, padding=1)

    class Shifted(Weighted):
        def forward(self, x: Tensor) -> Tensor:
            scale, point = OPS.choose_qparams.tensor(x, -128, 127, 2.0**-12, torch.int8)
            values = OPS.quantize_per_tensor.tensor(x, scale, point, -128, 127, torch.int8)
            shifted = OPS.dequantize_per_tensor.tensor(values, scale, point + 3, -128, 127, torch.int8)
            weight = OPS.dequantize_per_channel(self.values, self.scales, self.points, 0, -127, 127, torch.int8)
            return self.product(shifted, weight, self.bias)

    x, model = drawn(11, 1, 4, 6, 6), Shifted(product, 5, 4, 3, 3)
    found = outputs(import_torch(torch.export.export(model, (x,))), x)
    assert_floats_within(found, model(x).numpy(), "layer")


def test_rows_multiply_integers() -> None:
    class Rows(Weighted):
        def forward(self, x: Tensor) -> Tensor:
            scales, points = OPS.choose_qparams_per_token_asymmetric(x, torch.int8)
            values = OPS.quantize_per_token(x, scales, points, -128, 127, torch.int8)
            data = OPS.dequantize_per_token(values, scales, points, -128, 127, torch.int8, torch.float32)
            weight = OPS.dequantize_per_channel(self.values, self.scales, self.points, 0, -127, 127, torch.int8)
            return self.product(data, weight, self.bias)

    x, model = drawn(12, 3, 5, 16), Rows(nnf.linear, 7, 16)
    imported = import_torch(torch.export.export(model, (x,)))
    assert product_count(str(imported)) == 1
    assert_floats_within(outputs(imported, x), model(x).numpy(), "layer")


def test_a_scale_is_no_result() -> None:
    message = refused(lambda x: OPS.choose_qparams.tensor(x, 0, 255, 1e-5, torch.uint8)[0], drawn(3, 7))
    assert "its type is float64" in message
