"""Comparisons and choices of quantized values, compared with LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Array, Given, Option, Result, check_operator, one_operator
from together import variants_together

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
COMPARISONS = ["Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"]
HALF = Quantization((0.5,), (3,))


def drawn(seed: int, dtype: Any, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8).view(dtype)


def node_of(name: str) -> tuple[int, Option]:
    kind = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_").upper()
    return getattr(KIND, kind), (getattr(OPTIONS, f"{name}Options"), table({}, 0))


@variants_together
@pytest.mark.parametrize("scales", [(0.021, 0.042), (0.021, 0.021), (0.5, 0.25)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name: str, dtype: Any, scales: tuple[float, float]) -> None:
    quantizations = [Quantization((scale,), (point,)) for scale, point in zip(scales, (9, 30), strict=True)]
    data = [drawn(0, dtype, 4, 300), drawn(1, dtype, 300)]
    inputs = [Given(one, quantization=how) for one, how in zip(data, quantizations, strict=True)]
    kind, option = node_of(name)
    (found,) = check_operator(kind, inputs, [Result((4, 300), np.bool_)], option)
    assert 0 < np.count_nonzero(found) < found.size


def test_a_scale_of_one_is_refused() -> None:
    inputs = [Given(drawn(seed, np.int8, 6), quantization=Quantization((1.0,), (0,))) for seed in range(2)]
    kind, option = node_of("Less")
    with pytest.raises(ImportModelError, match=r"left operand scale must be below 1, but got 1\.0"):
        import_tflite(one_operator(kind, inputs, [Result((6,), np.bool_)], option))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(4, 5), (5,), (4, 1)])
def test_choices(shape: tuple[int, ...], dtype: Any) -> None:
    condition = Given(drawn(0, np.uint8, *shape) > 127)
    sides = [Given(drawn(seed, dtype, 4, 5), quantization=HALF) for seed in (1, 2)]
    kind = KIND.SELECT_V2, OPTIONS.SelectV2Options
    check_operator(kind[0], [condition, *sides], [Result((4, 5), dtype, HALF)], (kind[1], table({}, 0)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(4, 4), (4,)])
def test_rows_are_chosen_by_a_condition_of_one_dimension(shape: tuple[int, ...], dtype: Any) -> None:
    how = None if dtype is np.float32 else HALF
    condition = Given(drawn(0, np.uint8, *shape) > 127)
    sides = [Given(drawn(seed, np.uint8, 4, 4).astype(dtype), quantization=how) for seed in (1, 2)]
    option = OPTIONS.SelectOptions, table({}, 0)
    check_operator(KIND.SELECT, [condition, *sides], [Result((4, 4), dtype, how)], option)
