"""Fused ops that round once: scaled, biased, summed and activated as real numbers, compiled as the reference says."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import TABLE, check, ends, tensor
from graphs import graph

from qdialect._mlir import ir
from qdialect.dialect import FusedConv2DOp, FusedDenseOp, FusedOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.quant_math import Activation, RealScaling, ResidualPlace, Rounding, activate, requantize_real

FLOATS = [rounding for rounding in Rounding if not rounding.is_fixed]
INPUT_SCALE, OUTPUT_SCALE = 0.02, 0.0470588244497776


def stages(element: str, activation: Activation = Activation.NONE, **changes: Any) -> dict[str, Any]:
    """Attributes of a fused op with a real stage and nothing after it."""
    low, high = ends(element)
    first: dict[str, Any] = {"scale": OUTPUT_SCALE, "zero_point": low + 37, "min": low, "max": high}
    values = {f"{stage}_{name}": value for stage in ("output", "sum") for name, value in first.items()}
    values |= {"table": None, "table_scale": OUTPUT_SCALE, "table_zero_point": low + 37}
    values |= {"rounding": Rounding.F32_RNE_ZP_LAST, "real_scaling": RealScaling.RECIPROCAL, "activation": activation}
    return values | {"activation_alpha": 0.1 if activation.has_alpha else 0.0} | changes


def check_fused(
    op: type[FusedOp],
    data: tuple[int, ...],
    weight: tuple[int, ...],
    element: str,
    residual: tuple[int, ...] | None = None,
    real_bias: bool = True,
    **attributes: Any,
) -> None:
    """Compiled for every kind of CPU the op gives what the reference gives."""
    rng, low = np.random.default_rng(5), ends(element)[0]
    channels = weight[0]
    depth = int(np.prod(weight[1:]))
    scales = rng.uniform(0.5, 1.5, channels) / (INPUT_SCALE * 75 * 75 * np.sqrt(depth)) * 3
    bias = rng.normal(size=channels).astype(np.float32) if real_bias else rng.integers(-500, 500, channels, np.int32)

    def body(*values: ir.Value) -> ir.Value:
        codes = constant(rng.integers(-128, 128, weight, dtype=np.int8))
        operands = (values[0], codes, constant(bias), *values[1:])
        parameters = {"input_scale": INPUT_SCALE, "input_zero_point": low + 128, "weight_scales": tuple(scales)}
        return build(op, *operands, element=element, **parameters, **attributes).operation.results[0]

    shapes = [data] if residual is None else [data, residual]
    check(graph([tensor(shape, element) for shape in shapes], body))


@pytest.mark.parametrize("activation", Activation)
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_every_activation(activation: Activation, element: str) -> None:
    check_fused(FusedDenseOp, (3, 9), (21, 9), element, **stages(element, activation))


@pytest.mark.parametrize("rounding", FLOATS)
@pytest.mark.parametrize("scaling", [RealScaling.DIVIDE, RealScaling.RECIPROCAL])
def test_every_rounding(rounding: Rounding, scaling: RealScaling) -> None:
    changes = stages("i8", Activation.HARDSWISH, rounding=rounding, real_scaling=scaling, output_scale=2.0**-4)
    changes |= {"sum_scale": 2.0**-4, "table_scale": 2.0**-4}
    check_fused(FusedDenseOp, (5, 16), (67, 16), "i8", real_bias=False, **changes)


@pytest.mark.parametrize(("channels", "depth", "groups"), [(5, 3, 1), (17, 6, 1), (12, 12, 12), (6, 4, 2)])
def test_convolutions(channels: int, depth: int, groups: int) -> None:
    weight = (channels, 3, 3, depth // groups)
    window = {"strides": (2, 1), "padding": (1, 1, 1, 1), "groups": groups}
    for element in ("i8", "ui8"):
        check_fused(FusedConv2DOp, (1, 5, 7, depth), weight, element, **window, **stages(element, Activation.SILU))


@pytest.mark.parametrize("activation", [Activation.NONE, Activation.LEAKY_RELU])
@pytest.mark.parametrize("pixels", [1, 11])
def test_a_residual_before_the_rounding(activation: Activation, pixels: int) -> None:
    shapes = {"data": (1, 1, pixels, 8), "weight": (19, 1, 1, 8), "residual": (1, 1, pixels, 19)}
    how = {"residual_place": ResidualPlace.BEFORE_ROUNDING, "residual_scale": 0.03, "output_min": 0, "sum_min": 0}
    for element in ("i8", "ui8"):
        point = {"residual_zero_point": ends(element)[1]}
        check_fused(FusedConv2DOp, element=element, **shapes, **stages(element, activation, **how, **point))


@pytest.mark.parametrize("place", [ResidualPlace.LEFT, ResidualPlace.RIGHT])
def test_a_residual_after_the_rounding_and_a_table(place: ResidualPlace) -> None:
    changes: dict[str, Any] = {"residual_place": place, "residual_scale": 0.013, "sum_arithmetic": "float_once"}
    changes |= {"sum_scale": 0.0712, "table": TABLE, "table_scale": 0.5, "table_zero_point": 3}
    attributes = stages("ui8", Activation.GELU, **changes)
    check_fused(FusedDenseOp, (7, 8), (33, 8), "ui8", residual=(7, 33), **attributes)


def test_one_rounding_is_not_two() -> None:
    """A value that a table of the rounded code would send elsewhere."""
    real = np.array([0.26], np.float32)
    half = (0.5, 0, -128, 127, Rounding.F32_RNE_ZP_LAST, RealScaling.DIVIDE)
    once = requantize_real(activate(Activation.LEAKY_RELU, 2.0, -real), *half)
    first = requantize_real(-real, *half).astype(np.float32) * np.float32(0.5)
    twice = requantize_real(activate(Activation.LEAKY_RELU, 2.0, first), *half)
    assert (once.tolist(), twice.tolist()) == ([-1], [-2])


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
def test_codes_saturate(dtype: str) -> None:
    """Real numbers far outside of the codes' range end at its ends."""
    low, high = ends(dtype)
    values = np.array([-(2.0**90), 2.0**90], np.float32)
    found = requantize_real(values, 2.0**-60, 5, low, high, Rounding.F32_RNE_ZP_FIRST, RealScaling.DIVIDE)
    assert found.astype(NUMPY_DTYPES[dtype]).tolist() == [low, high]
