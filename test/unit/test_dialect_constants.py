"""Constants: from an array to an op, through text, and back, bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse

DTYPES = list(NUMPY_DTYPES.values())
CONTEXT = make_context()
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=4, max_side=4))
)


def through_text(array: NDArray[Any]) -> NDArray[Any]:
    """The array after it was a constant, text, and a constant again."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            direct = constant_value(constant(array))
    assert direct is not None
    assert direct.tobytes() == array.tobytes()
    return value_of(str(module))


def read(text: str) -> NDArray[Any] | None:
    # An op does not keep its module alive: the module needs a name for as long as the op is used.
    module = parse(text, CONTEXT)
    return constant_value(module.body.operations[0].operation.results[0])


def value_of(text: str) -> NDArray[Any]:
    value = read(text)
    assert value is not None
    return value


def assert_same(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@given(ARRAYS)
def test_any_array_is_exact(array: NDArray[Any]) -> None:
    if array.dtype.kind == "f":
        # Text keeps a NaN, but not which one of them it is.
        array = np.where(np.isnan(array), np.float32(np.nan), array)
    assert_same(through_text(array), array)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 4)], ids=str)
def test_a_splat_is_exact(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    known = {"f": [0.5, -np.inf], "b": [False, True]}.get(dtype.kind)
    for value in known or [np.iinfo(dtype.name).min, np.iinfo(dtype.name).max]:
        array = np.full(shape, value, dtype)
        assert_same(through_text(array), array)


def test_a_big_array_is_exact() -> None:
    array = np.random.default_rng(0).integers(-128, 128, (300, 70, 50), np.int8)
    assert_same(through_text(array), array)


def test_the_order_in_memory_does_not_matter() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    assert_same(through_text(np.asfortranarray(array)), array)
    assert_same(through_text(array.transpose(2, 0, 1)), np.ascontiguousarray(array.transpose(2, 0, 1)))
    assert_same(through_text(array[:, ::-2]), np.ascontiguousarray(array[:, ::-2]))


def test_what_is_read_cannot_be_written() -> None:
    for array in (np.arange(3, dtype=np.int8), np.zeros(3, np.int8)):
        assert not through_text(array).flags.writeable


def test_upstreams_constant_is_read() -> None:
    assert_same(value_of("%0 = arith.constant dense<[1, -2]> : tensor<2xi8>"), np.array([1, -2], np.int8))
    assert_same(value_of("%0 = arith.constant dense<5> : tensor<2x2xi32>"), np.full((2, 2), 5, np.int32))


@pytest.mark.parametrize(
    "text",
    [
        "%0 = arith.constant 5 : i8",
        "%0 = arith.constant dense<5> : vector<4xi8>",
        "%0 = arith.constant dense<1.0> : tensor<4xf64>",
        "%0 = arith.constant dense<[1, 2]> : tensor<2xindex>",
        "%0 = arith.constant dense_resource<blob> : tensor<4xi8>",
        "%0 = arith.constant sparse<[[0]], 1> : tensor<4xi8>",
        "%0 = arith.constant dense<0> : tensor<4294967296x4294967296xi8>",
        "%0 = tensor.empty() : tensor<4xi8>",
    ],
)
def test_what_has_no_array_reads_as_none(text: str) -> None:
    assert read(text) is None


def test_an_argument_is_no_constant() -> None:
    module = parse("func.func @f(%x: tensor<4xi8>) { return }", CONTEXT)
    assert constant_value(module.body.operations[0].regions[0].blocks[0].arguments[0]) is None


@pytest.mark.parametrize("dtype", [np.float64, np.uint32, np.dtype(">i4")], ids=str)
def test_a_dtype_without_element_type_is_refused(dtype: Any) -> None:
    with CONTEXT, ir.Location.unknown(), pytest.raises(KeyError):
        constant(np.zeros(3, dtype))
