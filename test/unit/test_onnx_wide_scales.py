"""QLinear operators by scales beyond those of the dialect, as quantizers write for masks of attention.

ONNX Runtime is the measure.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_agreement import agreed
from onnx_graphs import CONTRIB, ModelBuilder, Quantization, drawn, f32_values, quantized_of
from together import check_compiled

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
MASK = 1.3344405750530544e36
SHAPE = (2, 3, 8, 9)
MASKS = drawn(SHAPE[2:], np.uint8, seed=1)


def _binary(kind: str, sides: tuple[Quantization, Quantization, Quantization], dtype: Any, mask: Array) -> bytes:
    model = ModelBuilder()
    left, right, result = (model.parameters(one, dtype) for one in sides)
    data = model.input("x", SHAPE, dtype)
    return model.finish(
        model.node(f"{CONTRIB}.QLinear{kind}", data, *left, model.constant(mask), *right, *result), dtype=dtype
    )


def _sum(result: Quantization) -> bytes:
    return _binary("Add", ((MASK, 128), (MASK / 3, 255), result), np.uint8, MASKS)


def _mask(dtype: Any) -> Array:
    """Nothing above the diagonal counts: quantized, 0 is the largest number and -3.4e38 the smallest."""
    limits = np.iinfo(dtype)
    return np.where(np.tri(*SHAPE[2:], dtype=np.bool_), limits.max, limits.min).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_mask_is_added(dtype: Any) -> None:
    top = int(np.iinfo(dtype).max)
    sides = ((0.0051, top - 129), (MASK, top), (MASK, top))
    found = agreed(_binary("Add", sides, dtype, _mask(dtype)), drawn(SHAPE, dtype))
    assert set(np.unique(found)) == {np.iinfo(dtype).min, top}


@pytest.mark.parametrize("result", [(MASK, 255), (MASK * 2, 200)])
def test_sums_are_quantized_by_a_wide_scale(result: Quantization) -> None:
    agreed(_sum(result), drawn(SHAPE, np.uint8))


@pytest.mark.parametrize("result", [(2.0**31, 255), (0.5, 128)])
def test_quotients_that_no_i32_holds_saturate(result: Quantization) -> None:
    """As the standard says; ONNX Runtime gives the smallest quantized value for the largest sums."""
    x = drawn(SHAPE, np.uint8)
    left, right = f32_values(x, (MASK, 128)), f32_values(MASKS, (MASK / 3, 255))
    module = import_onnx(_sum(result))
    with np.errstate(over="ignore"):
        wanted = quantized_of(left + right, result)
    assert {0, 255} <= set(np.unique(wanted))
    np.testing.assert_array_equal(interpreter.run(module, [x])[0], wanted, strict=True)
    check_compiled(module, "host", [[x]], [[wanted]])


@pytest.mark.parametrize(
    "sides",
    [
        ((0.02, 128), (MASK, 255), (MASK, 100)),
        ((0.02, 128), (2.0**33, 7), (2.0**34, 128)),
        ((0.02, 128), (2.0**33, 7), (2.0**29, 128)),
    ],
)
def test_products_are_quantized_by_any_scale(sides: tuple[Quantization, Quantization, Quantization]) -> None:
    agreed(_binary("Mul", sides, np.uint8, MASKS), drawn(SHAPE, np.uint8))


@pytest.mark.parametrize("scale", [MASK, 2.0**31, 3.4e38, 2.0**-61])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_softmax_of_any_scale(scale: float, dtype: Any) -> None:
    """Beyond 2^30 what is not the largest of its row has no share, and several that are divide it."""
    model = ModelBuilder()
    data = model.input("x", SHAPE, dtype)
    parameters = (*model.parameters((scale, 5), dtype), *model.parameters((1 / 256, int(np.iinfo(dtype).min)), dtype))
    content = model.finish(model.node(f"{CONTRIB}.QLinearSoftmax", data, *parameters, axis=-1, opset=13), dtype=dtype)
    values = drawn(SHAPE, dtype)
    values[0, 0, :4, :5] = np.iinfo(dtype).max
    agreed(content, values)


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_softmax_of_a_mask_in_a_group(dtype: Any, version: int) -> None:
    """The group is one integer kernel for ONNX Runtime: the only element of a row has 254 of 255 parts."""
    model, limits = ModelBuilder(), np.iinfo(dtype)
    data = model.dequantize(model.input("x", (9, 9), dtype), (MASK, int(limits.max)), dtype)
    shares = model.node("Softmax", data, axis=1)
    content = model.finish(model.quantize(shares, (1 / 255, int(limits.min)), dtype), dtype=dtype, version=version)
    found = agreed(content, np.where(np.tri(9, dtype=np.bool_), limits.max, limits.min).astype(dtype))
    assert int(found[0, 0]) - limits.min == 254


def test_parts_are_joined_by_any_scale() -> None:
    model = ModelBuilder()
    mask = np.broadcast_to(_mask(np.uint8), SHAPE)
    parts = [(model.input("x", SHAPE, np.uint8), (0.02, 128)), (model.constant(mask), (MASK, 255))]
    values = [name for part, of in parts for name in (part, *model.parameters(of, np.uint8))]
    result = model.node(f"{CONTRIB}.QLinearConcat", *model.parameters((MASK, 255), np.uint8), *values, axis=1)
    agreed(model.finish(result), drawn(SHAPE, np.uint8))


@pytest.mark.parametrize("scale", [0.0, -1.0, -np.inf])
def test_what_is_no_scale_is_refused(scale: float) -> None:
    sides = ((0.02, 128), (scale, 255), (MASK, 255))
    with pytest.raises(ImportModelError) as caught:
        import_onnx(_binary("Add", sides, np.uint8, _mask(np.uint8)))
    assert f"scale must be in [2^-60, 2^30], but got {scale}" in caught.value.render()
