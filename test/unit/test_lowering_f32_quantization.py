"""Float32 numbers become quantized values as the reference has them: around ties, and for scales that are easy."""

import numpy as np
import pytest
from compiled_ops import INTEGERS, Attributes, check_variants, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together

from qdialect.arithmetic import FloatRounding, NanPolicy, Scaling
from qdialect.dialect import QuantizeOp, build
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.targets import TARGETS

POWERS = [2.0**exponent for exponent in (-149, -128, -127, -126, -125, -4, -1, 0, 1, 7, 30)]


def around(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each number with its neighbours, and all of them negated."""
    bits = numbers.view(np.int32)[:, np.newaxis] + np.arange(-2, 3, dtype=np.int32)
    near = bits.reshape(-1).view(np.float32)
    return np.concatenate([near, -near])


def ties() -> NDArray[np.float32]:
    """Numbers around whole numbers and halves of every size that float32 has them for."""
    whole = np.unique(np.concatenate([np.arange(1, 200), *(2**e + np.arange(-3, 4) for e in range(3, 31))]))
    halves = np.concatenate([whole, np.append(whole, 0) + 0.5]).astype(np.float32)
    return around(halves)


@variants_together
@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("rounding", FloatRounding)
def test_ties_and_their_neighbours(element: str, rounding: FloatRounding) -> None:
    values = ties()
    variants: list[Attributes] = [{"scales": [1.0], "zero_points": [point], "rounding": rounding} for point in (0, 3)]
    check_variants(QuantizeOp, [tensor(values.shape, "f32")], element, variants, [values])


@variants_together
@pytest.mark.parametrize("scaling", Scaling)
def test_scales_that_are_powers_of_two(scaling: Scaling) -> None:
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    values = np.concatenate(
        [special, *(around((scale * np.array([0.5, 1, 1.5, 90])).astype(np.float32)) for scale in POWERS)]
    )
    variants: list[Attributes] = [
        {"scales": [scale], "zero_points": [5], "scaling": scaling, "nan": nan}
        for scale, nan in zip(POWERS, [*NanPolicy] * len(POWERS), strict=False)
    ]
    check_variants(QuantizeOp, [tensor(values.shape, "f32")], "ui8", variants, [values])


@pytest.mark.parametrize(("scales", "wanted"), [((1.0,), ""), ((0.5, 2.0), "arith.mulf"), ((0.5, 0.7), "arith.divf")])
def test_what_a_number_is_divided_by(scales: tuple[float, ...], wanted: str) -> None:
    """By 1 it is not, and a power of two has a reciprocal."""
    how: Attributes = {"scales": scales, "zero_points": [0], "axis": 1}
    module = graph([tensor((9, 2), "f32")], lambda x: build(QuantizeOp, x, element="i8", **how).output)
    text = str(lower(module, TARGETS["avx512vbmi"], Phase.LINALG).module)
    found = [name for name in ("arith.mulf", "arith.divf") if name in text]
    assert found == [wanted] * bool(wanted)
