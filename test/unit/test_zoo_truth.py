"""tools/zoo/truth: the float64 evaluators against formulas, PyTorch's float64 and the operators of onnx itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import load_from_string
from onnx_graphs import CONTRIB, ModelBuilder, convolved, drawn, f32_values, quantized_of
from torch import Tensor, nn
from torch.nn import functional
from torch_models import dequantized, network, quantized

from tools.zoo import frameworks, truth
from tools.zoo.tensors import tensors
from tools.zoo.truth.onnx_truth import in_double
from tools.zoo.truth.windows import convolution, maximum, padding_of

BY = (0.05, 7)
# An attribute is a float32; its default is 1e-5.
_EPSILON = float(np.float32(1e-5))


def _truth(builder: ModelBuilder, output: str, *inputs: Any, dtype: type[np.generic] = np.float32) -> Any:
    (found,) = in_double(load_from_string(builder.finish(output, dtype=dtype, version=20)))(list(inputs))
    assert found.dtype == np.float64
    return found


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolution_is_the_sum_of_products(groups: int) -> None:
    random = np.random.default_rng(groups)
    data, weights = random.standard_normal((2, 4, 9, 8)), random.standard_normal((8, 4 // groups, 3, 2))
    found = convolution(data, weights, [1, 0, 1, 0], [2, 1], [1, 3], groups)
    one, other = tensors([data, weights])
    wanted = functional.conv2d(one, other, None, (2, 1), (1, 0), (1, 3), groups)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rounds_up", [False, True])
@pytest.mark.parametrize("size", [7, 8, 9])
def test_a_pool_is_that_of_pytorch(size: int, rounds_up: bool) -> None:
    data = np.random.default_rng(size).standard_normal((1, 2, size, size))
    found = maximum(data, [3, 2], [1, 1, 1, 1], [3, 2], [1, 2], rounds_up=rounds_up)
    wanted = functional.max_pool2d(tensors([data])[0], (3, 2), (3, 2), (1, 1), (1, 2), rounds_up)
    np.testing.assert_array_equal(found, wanted.numpy())


def test_a_pool_of_quantized_values_gives_quantized_values() -> None:
    builder = ModelBuilder()
    found = builder.node("MaxPool", builder.input("x", (1, 1, 4, 4), np.uint8), kernel_shape=[2, 2], strides=[2, 2])
    quantized = drawn((1, 1, 4, 4), np.uint8)
    wanted = quantized.reshape(2, 2, 2, 2).max((1, 3))
    assert _truth(builder, found, quantized, dtype=np.uint8).reshape(2, 2).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("mode", "wanted"), [("VALID", [0, 0, 0, 0]), ("SAME_UPPER", [0, 1, 1, 1]), ("SAME_LOWER", [1, 1, 0, 1])]
)
def test_automatic_padding_is_that_of_the_specification(mode: str, wanted: list[int]) -> None:
    # 8 positions in steps of 2 need 4 windows of 3, one row more; 5 in steps of 1 need one on either side.
    assert padding_of(mode, [8, 5], [3, 3], [2, 1]) == wanted


def test_a_quantized_convolution_has_no_rounding_but_its_last() -> None:
    builder = ModelBuilder()
    weights, scales = drawn((6, 2, 3, 3), np.int8), np.linspace(0.01, 0.02, 6).astype(np.float32)
    data = builder.dequantize(builder.input("x", (1, 4, 6, 6), np.uint8), BY)
    window = {"pads": [1, 1, 1, 1], "group": 2}
    sums = builder.node("Conv", data, builder.weight(weights, scales.tolist()), **window)
    quantized = drawn((1, 4, 6, 6), np.uint8)
    exact = convolved(quantized.astype(np.int64) - BY[1], weights, window).astype(np.float64)
    wanted = exact * float(np.float32(BY[0])) * scales.astype(np.float64).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(_truth(builder, sums, quantized), wanted, rtol=1e-14)


def test_quantize_rounds_the_float64_quotient_to_even() -> None:
    builder = ModelBuilder()
    found = builder.quantize(builder.input("x", (5,)), (0.5, 3))
    values = np.array([0.25, 0.75, -0.25, 200.0, -9.0], np.float32)
    assert _truth(builder, found, values, dtype=np.uint8).tolist() == [3, 5, 3, 255, 0]


def test_f32_constants_and_casts_to_f32_stay_in_float64() -> None:
    builder = ModelBuilder()
    third = builder.node("Div", builder.constant(1.0), builder.constant(3.0))
    cast = builder.node("Cast", builder.input("x", (1,), np.int32), to=1)
    found = _truth(builder, builder.node("Mul", cast, third), np.array([1], np.int32))
    assert found.tolist() == [1 / 3]


def _functions(x: Any) -> dict[str, Any]:
    (values,) = tensors([x])
    return {
        "Softmax": values.softmax(-1),
        "Erf": values.erf(),
        "Gelu": functional.gelu(values),
        "LayerNormalization": functional.layer_norm(values, (6,), torch.full((6,), 2.0).double(), None, _EPSILON),
    }


@pytest.mark.parametrize("kind", ["Softmax", "Erf", "Gelu", "LayerNormalization"])
def test_functions_are_those_of_float64(kind: str) -> None:
    values = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    builder = ModelBuilder()
    gamma = [builder.constant(np.full(6, 2, np.float32))] if kind == "LayerNormalization" else []
    found = _truth(builder, builder.node(kind, builder.input("x", (3, 6)), *gamma), values)
    np.testing.assert_allclose(found, _functions(values.astype(np.float64))[kind].numpy(), rtol=1e-13, atol=1e-15)


def test_dynamic_quantization_has_the_range_of_the_data_and_zero() -> None:
    builder = ModelBuilder()
    names = ["q", "scale", "zero"]
    builder.node_of_many("DynamicQuantizeLinear", [builder.input("x", (3,))], names)
    weights = drawn((3, 2), np.int8)
    sums = builder.node("MatMulInteger", "q", builder.constant(weights), "zero")
    scaled = builder.node("Mul", builder.node("Cast", sums, to=1), "scale")
    values = np.array([-1.0, 0.5, 3.0], np.float32)
    scale = 4 / 255
    shifted = np.rint(values.astype(np.float64) / scale)
    assert _truth(builder, scaled, values) == pytest.approx((shifted @ weights) * scale, rel=1e-12)


def test_operators_of_com_microsoft_quantize_the_exact_result() -> None:
    builder = ModelBuilder()
    parameters = [*builder.parameters((0.1, 10), np.uint8), "y", *builder.parameters((0.2, 20), np.uint8)]
    builder.input("x", (9,), np.uint8)
    builder.input("y", (9,), np.uint8)
    result = builder.parameters((0.3, 5), np.uint8)
    found = builder.node(f"{CONTRIB}.QLinearAdd", "x", *parameters, *result)
    x, y = drawn((9,), np.uint8, 1), drawn((9,), np.uint8, 2)
    wanted = quantized_of(f32_values(x, (0.1, 10)) + f32_values(y, (0.2, 20)), (0.3, 5))
    assert _truth(builder, found, x, y, dtype=np.uint8).tolist() == wanted.tolist()


def test_elements_of_long_rows_are_gathered() -> None:
    """The evaluator of onnx takes 64 of them at most."""
    rows, indices = np.random.default_rng(0).normal(size=(2, 100)), np.array([[99, -1, 70], [0, 80, 3]])
    builder = ModelBuilder()
    names = builder.input("x", rows.shape, np.float64), builder.input("i", indices.shape, np.int64)
    found = builder.node("GatherElements", *names, axis=1)
    np.testing.assert_array_equal(_truth(builder, found, rows, indices), np.take_along_axis(rows, indices, 1))


PADS = [
    ([0, -1, 2, -2], None, "constant", 18),
    ([1, 0], [-1], "constant", 18),
    ([-1, 3], [1], "edge", 18),
    ([0, -1, 0, 2], None, "reflect", 17),
    ([1, -1, 0, 0], None, "constant", 17),
]


@pytest.mark.parametrize(("pads", "axes", "mode", "version"), PADS)
def test_negative_pads_remove_elements(
    pads: list[int], axes: list[int] | None, mode: str, version: int, tmp_path: Path
) -> None:
    builder, data = ModelBuilder(), np.arange(28, dtype=np.float32).reshape(4, 7)
    given = [builder.constant(np.array(pads)), builder.constant(np.array(5, np.float32)) if mode == "constant" else ""]
    given += [builder.constant(np.array(axes))] if axes else []
    padded = builder.node("Pad", builder.input("x", (4, 7)), *given, mode=mode)
    path = tmp_path / "model.onnx"
    path.write_bytes(builder.finish(padded, dtype=np.float32, version=version))
    (found,) = truth.load(str(path), ".onnx")([data])
    (wanted,) = frameworks.load("onnx_runtime", str(path))([data])
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)


def test_an_operator_without_an_evaluator_is_named() -> None:
    builder = ModelBuilder()
    found = builder.node(f"{CONTRIB}.FusedMystery", builder.input("x", (2,)))
    with pytest.raises(truth.NoTruthError, match="FusedMystery"):
        _truth(builder, found, np.zeros(2, np.float32))


def test_a_format_without_an_evaluator_is_named(tmp_path: Path) -> None:
    with pytest.raises(truth.NoTruthError, match=r"a \.mlir file has no evaluator in float64"):
        truth.load(str(tmp_path / "model.mlir"), ".mlir")


@pytest.mark.parametrize("quantizer", ["x86", "xnnpack"])
def test_a_program_of_pytorch_has_the_quantized_values_of_its_file(tmp_path: Path, quantizer: str) -> None:
    converted = network("resnet", quantizer)
    path = tmp_path / "model.pt2"
    torch.export.save(converted.exported(), path)
    (found,) = truth.load(str(path), ".pt2")([converted.images[0].numpy()])
    assert found.dtype == np.float64
    # PyTorch computes the same graph in float32: apart from ties, both are at the same quantized values.
    wanted = converted.results()[0]
    assert np.abs(found - wanted).max() < 0.05 * np.ptp(wanted)
    assert not np.array_equal(found, wanted.astype(np.float64))


class _Requantized(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return dequantized(quantized(x, 0.3, 3, torch.uint8), 1.0, 0, torch.uint8)


def test_pytorch_quantizations_round_the_float64_quotient(tmp_path: Path) -> None:
    near_ties = ((np.arange(100) + 0.5) * 0.3).astype(np.float32)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(_Requantized(), tensors([near_ties])), path)
    (found,) = truth.load(str(path), ".pt2")([near_ties])
    exact = np.rint(near_ties.astype(np.float64) / 0.3)
    assert not np.array_equal(exact, np.rint(near_ties / np.float32(0.3)))
    assert found.tolist() == (exact + 3).tolist()


class _Spread(nn.Module):
    """Writes into zeros, whose type it leaves to the default."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(2, 5).scatter(1, torch.tensor([[3], [0]]), x)


def test_zeros_of_a_program_are_as_wide_as_its_numbers(tmp_path: Path) -> None:
    path, x = tmp_path / "program.pt2", np.random.default_rng(0).normal(size=(2, 1)).astype(np.float32)
    torch.export.save(torch.export.export(_Spread(), tensors([x])), path)
    (found,) = truth.load(str(path), ".pt2")([x])
    assert found[[0, 1], [3, 0]].tolist() == x[:, 0].tolist()
