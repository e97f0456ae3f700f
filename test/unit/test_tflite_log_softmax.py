"""LOG_SOFTMAX of bytes beside LiteRT's reference kernel."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Given, Result, check_operator, one_operator
from together import variants_together

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
OPTION = OPTIONS.LogSoftmaxOptions, table({}, 0)


@variants_together
@pytest.mark.parametrize(("dtype", "largest"), [(np.int8, 127), (np.uint8, 255)])
@pytest.mark.parametrize(
    ("scale", "shape"), [(1e-4, (40, 10)), (0.004, (5,)), (0.05, (2, 3, 201)), (0.3, (40, 10)), (2.0, (2, 3, 201))]
)
def test_rows(dtype: Any, largest: int, scale: float, shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(shape[-1]).integers(largest - 255, largest + 1, shape).astype(dtype)
    inputs = [Given(data, quantization=Quantization((scale,), (3,)))]
    outputs = [Result(shape, dtype, Quantization((1 / 16,), (largest,)))]
    check_operator(KIND.LOG_SOFTMAX, inputs, outputs, OPTION)


def test_another_output_scale_is_refused() -> None:
    inputs = [Given(np.zeros((2, 3), np.int8), quantization=Quantization((0.1,), (0,)))]
    outputs = [Result((2, 3), np.int8, Quantization((0.1,), (127,)))]
    with pytest.raises(ImportModelError, match=r"output scale and zero point must be \(0.0625, 127\)"):
        import_tflite(one_operator(KIND.LOG_SOFTMAX, inputs, outputs, OPTION))
