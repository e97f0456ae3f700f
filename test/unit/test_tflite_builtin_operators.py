"""Every operator of the schema is imported, or is left to LiteRT for a reason; none ends in a traceback."""

from contextlib import suppress

import numpy as np
import pytest
import tflite
from tflite_operators import Given, Result, one_operator

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from qdialect.frontends.tflite.operators import supported_operators
from qdialect.frontends.tflite.operators.registry import UNNAMED, reason_of
from qdialect.support.diagnostics import ImportModelError

BUILTIN = {
    name: kind
    for name, kind in vars(tflite.BuiltinOperator).items()
    if isinstance(kind, int) and not name.startswith("PLACEHOLDER")
}
TENSORS = [
    Given(np.zeros((1, 4, 4, 2), np.float32)),
    Given(np.zeros((1, 4, 4, 2), np.int8), quantization=Quantization((0.1,), (1,))),
    Given(np.zeros((1, 4, 4, 2), np.int16), quantization=Quantization((0.1,), (0,))),
    Given(np.zeros((3,), np.int32)),
    Given(np.array([1, 0], np.int32), is_constant=True),
    Given(np.zeros((2, 2), np.bool_)),
]


def test_every_operator_is_supported_or_has_a_reason() -> None:
    supported, left = set(supported_operators()), {kind for kind in BUILTIN if reason_of(kind) != UNNAMED}
    assert BUILTIN.keys() == supported | left
    assert not supported & left


def test_reasons_are_part_of_the_message() -> None:
    content = one_operator(BUILTIN["ATAN2"], TENSORS[:1] * 2, [Result((1, 4, 4, 2), np.float32)])
    with pytest.raises(
        ImportModelError, match=r"node 0 ATAN2 \('y0'\): operator is not supported: converters write it"
    ):
        import_tflite(content)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_operators_without_options_and_with_tensors_of_any_type(count: int) -> None:
    """A node that is wrong ends in an error of the import, whatever its tensors are."""
    for kind in BUILTIN.values():
        inputs = [TENSORS[(kind + i) % len(TENSORS)] for i in range(count)]
        outputs = [Result((1, 4, 4, 2), inputs[0].data.dtype.type if inputs else np.float32)]
        with suppress(ImportModelError):
            import_tflite(one_operator(kind, inputs, outputs))
