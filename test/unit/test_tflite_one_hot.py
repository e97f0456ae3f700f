"""ONE_HOT compared with LiteRT's reference kernel."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Given, Result, check_operator, one_operator
from together import variants_together

from qdialect.frontends.tflite import import_tflite
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
POSITIONS = np.random.default_rng(0).integers(-1, 9, (3, 4))


def inputs(dtype: Any, positions: Any = np.int32, depth: int = 7) -> list[Given]:
    numbers = [np.array(7 if dtype is np.int8 else 1).astype(dtype), np.array(0).astype(dtype)]
    given = Given(POSITIONS.astype(positions)), Given(np.array(depth, np.int32), is_constant=True)
    return [*given, *(Given(number, is_constant=True) for number in numbers)]


@variants_together
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize(("axis", "shape"), [(-1, (3, 4, 7)), (0, (7, 3, 4)), (1, (3, 7, 4))])
def test_numbers_at_indices(dtype: Any, axis: int, shape: tuple[int, ...]) -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", axis)}, 1)
    check_operator(KIND.ONE_HOT, inputs(dtype), [Result(shape, dtype)], option)


def test_wide_indices() -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", -1)}, 1)
    check_operator(KIND.ONE_HOT, inputs(np.float32, np.int64), [Result((3, 4, 7), np.float32)], option)


def test_no_depth_is_refused() -> None:
    option = OPTIONS.OneHotOptions, table({0: ("Int32", -1)}, 1)
    content = one_operator(KIND.ONE_HOT, inputs(np.float32, depth=0), [Result((3, 4, 1), np.float32)], option)
    with pytest.raises(ImportModelError, match=r"depth must be in \[1, 1048576\], but got \[0\]"):
        import_tflite(content)
