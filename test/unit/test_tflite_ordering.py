"""Running sums and the largest elements, compared with LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Array, Given, Result, check_operator, one_operator
from together import variants_together

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
HALF = Quantization((0.5,), (3,))


def drawn(dtype: Any, *shape: int) -> Array:
    values = np.random.default_rng(0).normal(size=shape) * 20 + (60 if dtype is np.uint8 else 0)
    return values.astype(dtype) if dtype is not np.uint8 else np.clip(values, 0, 255).astype(dtype)


@variants_together
@pytest.mark.parametrize("ways", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_running_sums(dtype: Any, ways: tuple[bool, bool]) -> None:
    inputs = [Given(drawn(dtype, 3, 4, 5)), Given(np.array([1], np.int32), is_constant=True)]
    fields = {slot: ("Bool", int(flag)) for slot, flag in enumerate(ways)}
    check_operator(KIND.CUMSUM, inputs, [Result((3, 4, 5), dtype)], (OPTIONS.CumsumOptions, table(fields, 2)))


def largest(data: Array, count: int) -> tuple[list[Given], list[Result]]:
    how = HALF if data.dtype.itemsize == 1 else None
    shape = (*data.shape[:-1], count)
    inputs = [Given(data, quantization=how), Given(np.array([count], np.int32), is_constant=True)]
    return inputs, [Result(shape, data.dtype.type, how), Result(shape, np.int32)]


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.uint8])
def test_largest_elements(dtype: Any) -> None:
    """Drawn integers have equal ones among them."""
    check_operator(KIND.TOPK_V2, *largest(drawn(dtype, 2, 3, 20), 7), (OPTIONS.TopKV2Options, table({}, 0)))


def test_zeros_of_both_signs_are_equal() -> None:
    data = np.array([[-0.0, 0.0, -1.0, 0.0, -0.0]], np.float32)
    check_operator(KIND.TOPK_V2, *largest(data, 4), (OPTIONS.TopKV2Options, table({}, 0)))


def test_more_than_there_are_is_refused() -> None:
    content = one_operator(KIND.TOPK_V2, *largest(drawn(np.float32, 2, 3), 4), (OPTIONS.TopKV2Options, table({}, 0)))
    with pytest.raises(ImportModelError, match=r"k must be in \[1, 3\], but got \[4\]"):
        import_tflite(content)
