"""The arithmetic of TFLite's XNNPACK delegate, which desktop builds use, instead of the reference kernels'.

The delegate computes the same operators on the same quantized values, but rounds elsewhere: contractions, products and
means are rescaled once by a float32 factor, ties to even, zero point last; sums are one integer expression;
`leaky_relu` and a rescale of 8-bit quantized values have factors of 8 fractional bits.  What it does not take, and
factors outside its ranges, fall back to TFLite's own kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import (
    CONTRACTION_CLASSES,
    AddOp,
    LeakyReluOp,
    LutOp,
    MulOp,
    RequantizeOp,
    ResizeBilinearOp,
    SubOp,
    build,
)
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of
from qdialect.frontends.tflite.xnnpack_dense import RunTimeDense
from qdialect.frontends.tflite.xnnpack_mean import Mean
from qdialect.passes.matching import rebuilt
from qdialect.passes.pattern import Pattern, Rewriter, apply_patterns
from qdialect.passes.tabulate import is_eight_bit
from qdialect.profiles import TFLITE, TFLITE_XNNPACK
from qdialect.quant_math import Multiplier, SubArithmetic, encode_table, table_values
from qdialect.quant_math.choices import Interpolation, LeakyMode

# What the delegate's subgraph accepts of each kind of factor: the minimum, and the first that is too large.
_CONTRACTIONS = (0.0, 2.0**8)
_PRODUCTS = (2.0**-16, 2.0**8)
_SUMS = (2.0**-10, 2.0**8)
_TABLES = (2.0**-8, 2.0**7)
_FRACTION_BITS = 8
_CONTRACTION_OPS = tuple(CONTRACTION_CLASSES.values())


def use_xnnpack(module: ir.Module) -> None:
    """Give the ops of an imported module the delegate's arithmetic, in place."""
    with module.context:
        apply_patterns(module, [pattern() for pattern in _PATTERNS])


def _ratio(scale: float, output_scale: float) -> np.float32:
    return np.float32(scale) / np.float32(output_scale)


def _within(factors: Sequence[Any], bounds: tuple[float, float]) -> bool:
    return all(bounds[0] <= factor < bounds[1] for factor in factors)


class _Restated(Pattern[dict[str, Any]]):
    """The same op with other attributes."""

    def rewrite(self, op: Any, match: dict[str, Any], rewriter: Rewriter) -> None:
        with rewriter.before(op):
            restated = rebuilt(op, **match)
        rewriter.replace(op, restated.output)


class _Accumulators(_Restated):
    name: ClassVar[str] = "xnnpack-accumulators"
    roots: ClassVar[tuple[str, ...]] = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> dict[str, Any] | None:
        # The kernels of recurrent operators, which are not the delegate's, have factors of float32.
        is_other = op.multiplier is Multiplier.F32 or not _is_delegated_product(op)
        if is_other or op.rounding is TFLITE_XNNPACK.rounding:
            return None
        products = np.float32(op.input_scale) * np.array(op.weight_scales, dtype=np.float32)
        factors: list[float] = (products / np.float32(op.output_scale)).tolist()
        return TFLITE_XNNPACK.rescale if _within(factors, _CONTRACTIONS) else None


def _is_delegated_product(op: RequantizeOp) -> bool:
    """Whether `op` rescales products that the delegate takes: weights have no zero point, or are constant."""
    producer = op.input.owner
    if isinstance(producer, ir.Block) or not isinstance(producer.opview, _CONTRACTION_OPS):
        return False
    return constant_value(producer.operands[1]) is not None or not any(producer.opview.weight_zero_points)


class _Product(_Restated):
    name: ClassVar[str] = "xnnpack-product"
    roots: ClassVar[tuple[str, ...]] = ("qnn.mul",)

    def check(self, op: MulOp) -> dict[str, Any] | None:
        product = np.float32(op.lhs_scale) * np.float32(op.rhs_scale)
        is_taken = _within([product / np.float32(op.output_scale)], _PRODUCTS)
        return TFLITE_XNNPACK.rescale if is_taken and op.rounding is not TFLITE_XNNPACK.rounding else None


class _Sum(_Restated):
    name: ClassVar[str] = "xnnpack-sum"
    roots: ClassVar[tuple[str, ...]] = ("qnn.add", "qnn.sub")

    def check(self, op: AddOp | SubOp) -> dict[str, Any] | None:
        ratios = [_ratio(scale, op.output_scale) for scale in (op.lhs_scale, op.rhs_scale)]
        is_taken = op.arithmetic == TFLITE.addition and _within(ratios, _SUMS)
        once = TFLITE_XNNPACK.addition if isinstance(op, AddOp) else SubArithmetic.FIXED_ONCE
        return {"arithmetic": once} if is_taken else None


class _Resize(_Restated):
    name: ClassVar[str] = "xnnpack-resize"
    roots: ClassVar[tuple[str, ...]] = ("qnn.resize_bilinear",)

    def check(self, op: ResizeBilinearOp) -> dict[str, Any] | None:
        is_taken = op.arithmetic is not Interpolation.XNNPACK_FIXED and is_eight_bit(op.input)
        return {"arithmetic": Interpolation.XNNPACK_FIXED} if is_taken else None


class _Tabulated(Pattern[tuple[np.float32, np.float32]]):
    """A table of ``floor(((x - z_x) * f + 128) / 256) + z_y``, f the factor of the side of x in 1/256."""

    def rewrite(self, op: Any, match: tuple[np.float32, np.float32], rewriter: Rewriter) -> None:
        input_zero_point = op.input_zero_points[0] if isinstance(op, RequantizeOp) else op.input_zero_point
        offsets = table_values(dtype_of(op.input.type)).astype(np.int64) - input_zero_point
        values = _rescaled(offsets, *match) + op.output_zero_point
        table = encode_table(np.clip(values, *range_of(op.output.type)), dtype_of(op.output.type))
        parameters: dict[str, Any] = {
            "input_scale": op.input_scale,
            "input_zero_point": input_zero_point,
            "output_scale": op.output_scale,
            "output_zero_point": op.output_zero_point,
        }
        with rewriter.before(op):
            lut = build(LutOp, op.input, element=element_of(op.output.type), table=table, **parameters)
        rewriter.replace(op, lut.output)


def _rescaled(offsets: NDArray[np.int64], positive: np.float32, negative: np.float32) -> NDArray[np.int64]:
    factors = [int(np.rint(factor * np.float32(2**_FRACTION_BITS))) for factor in (positive, negative)]
    half = 1 << (_FRACTION_BITS - 1)
    return (offsets * np.where(offsets >= 0, *factors) + half) >> _FRACTION_BITS


class _Rescale(_Tabulated):
    name: ClassVar[str] = "xnnpack-rescale"
    roots: ClassVar[tuple[str, ...]] = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> tuple[np.float32, np.float32] | None:
        # QUANTIZE forms its factor in float64; the clamps, whose factor is a float32, are not the delegate's.
        is_quantize = op.multiplier is Multiplier.F64 and len(op.input_zero_points) == 1
        is_same_type = element_of(op.input.type) == element_of(op.output.type) and is_eight_bit(op.input)
        factor = _ratio(op.input_scale, op.output_scale)
        return (factor, factor) if is_quantize and is_same_type and _within([factor], _TABLES) else None


class _LeakyRelu(_Tabulated):
    name: ClassVar[str] = "xnnpack-leaky-relu"
    roots: ClassVar[tuple[str, ...]] = ("qnn.leaky_relu",)

    def check(self, op: LeakyReluOp) -> tuple[np.float32, np.float32] | None:
        positive = _ratio(op.input_scale, op.output_scale)
        negative = positive * np.float32(op.alpha)
        is_taken = op.mode is LeakyMode.TFLITE and _within([positive], _TABLES) and negative >= _TABLES[0]
        return (positive, negative) if is_taken else None


_PATTERNS = (RunTimeDense, _Accumulators, _Product, Mean, _Sum, _Resize, _Rescale, _LeakyRelu)
