"""Scales around 1e36, which masks of attention bring along, compared with LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Array, Given, Result, check_operator, one_operator

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
WIDE = Quantization((9.3e35,), (127,))
SHARES = Quantization((1 / 256,), (-128,))


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)


def _scores(scale: float) -> list[Given]:
    numbers = Given(drawn(1, 3, 20), quantization=Quantization((scale,), (2,)))
    return [numbers, Given(drawn(2, 1, 20), quantization=Quantization((0.0014,), (-128,)))]


def test_products_vanish_beside_the_scale() -> None:
    option = OPTIONS.MulOptions, table({}, 0)
    (found,) = check_operator(KIND.MUL, _scores(0.092), [Result((3, 20), np.int8, WIDE)], option)
    assert np.all(found == 127)


def test_products_that_do_not_vanish_are_refused() -> None:
    content = one_operator(KIND.MUL, _scores(1e3), [Result((3, 20), np.int8, WIDE)], (OPTIONS.MulOptions, table({}, 0)))
    with pytest.raises(ImportModelError, match=r"output scale must be in \[2\^-60, 2\^30\], but got 9\."):
        import_tflite(content)


def test_choices() -> None:
    condition = Given(drawn(3, 3, 20) > 0)
    sides = [Given(drawn(seed, *shape), quantization=WIDE) for seed, shape in ((4, (3, 20)), (5, (1, 20)))]
    option = OPTIONS.SelectV2Options, table({}, 0)
    check_operator(KIND.SELECT_V2, [condition, *sides], [Result((3, 20), np.int8, WIDE)], option)


def _beta(builder: Any) -> int:
    tflite.SoftmaxOptionsStart(builder)
    tflite.SoftmaxOptionsAddBeta(builder, 1.0)
    return tflite.SoftmaxOptionsEnd(builder)


@pytest.mark.parametrize("scale", [1e10, 9.3e35])
def test_shares_of_masked_scores(scale: float) -> None:
    """The largest of a row has all, and equal ones have as much."""
    values = np.where(drawn(6, 5, 20) > 0, 127, drawn(7, 5, 20)).astype(np.int8)
    given = Given(values, quantization=Quantization((scale,), (127,)))
    check_operator(KIND.SOFTMAX, [given], [Result((5, 20), np.int8, SHARES)], (OPTIONS.SoftmaxOptions, _beta))
