"""The arithmetic of TFLite's XNNPACK delegate, which desktop builds use, instead of the reference kernels'.

The delegate computes the same operators on the same quantized values, but rounds elsewhere: contractions, products and
means are rescaled once by a float32 factor, ties to even, zero point last; sums are one integer expression;
`leaky_relu` and a rescale of 8-bit quantized values have factors of 8 fractional bits.  What it does not take, and
factors outside its ranges, fall back to TFLite's own kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect import arithmetic
from qdialect import dialect as qnn
from qdialect.arithmetic import FloatRounding, Multiplier, Rounding, SubArithmetic
from qdialect.arithmetic.choices import Interpolation, LeakyMode
from qdialect.arithmetic.profiles import TFLITE, TFLITE_XNNPACK
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import dtype_of, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import Replacement, apply_patterns, rebuilt
from qdialect.passes.tabulate import is_eight_bit

# FULLY_CONNECTED of i8 with weights that are known when the network runs, which TFLite's XNNPACK delegate leaves.
#
# TFLite's own kernel rounds twice (ruy's of x86): the doubling high product with the multiplier ``q * 2^(e - 31)``,
# then the shift by -e bits, ties up both times.

_FACTOR_BITS = 31


class RunTimeDense(Replacement[tuple[int, int]]):
    """The rescale of such a product by integer ops, whose factor is below one."""

    name: ClassVar[str] = "xnnpack-run-time-dense"
    roots = ("qnn.requantize",)

    def check(self, op: qnn.RequantizeOp) -> tuple[int, int] | None:
        """Multiplier and exponent."""
        producer = op.input.owner
        # BATCH_MATMUL rounds in another way already.
        is_other = op.rounding is not Rounding.FIXED64_NEAREST or element_of(op.output.type) != "i8"
        if is_other or isinstance(producer, ir.Block) or not isinstance(producer.opview, qnn.MatMulOp):
            return None
        if constant_value(producer.operands[1]) is not None or len(op.weight_scales) != 1:
            return None
        q, e = arithmetic.quantize_multiplier(op.input_scale * op.weight_scales[0] / op.output_scale)
        return (q, e) if e <= 0 and -e < _FACTOR_BITS else None

    def emit(self, op: qnn.RequantizeOp, match: tuple[int, int]) -> ir.Value:
        q, e = match
        shape, bounds = shape_of(op.input.type), range_of(op.output.type)
        wide = tensor_of(shape, ir.IntegerType.get_signless(64))

        def of_number(name: str, value: ir.Value, number: int) -> ir.Value:
            return upstream(name, wide, value, constant(np.broadcast_to(np.int64(number), shape)))

        value = of_number("arith.muli", upstream("arith.extsi", wide, op.input), q)
        for count in (_FACTOR_BITS, -e):
            # A shift by no bits has no half to add.
            nudged = of_number("arith.addi", value, (1 << count) >> 1)
            value = of_number("arith.shrsi", nudged, count)
        value = of_number("arith.addi", value, op.output_zero_point)
        value = of_number("arith.minsi", of_number("arith.maxsi", value, bounds[0]), bounds[1])
        return upstream("arith.trunci", tensor_of(shape, ir.IntegerType.get_signless(8)), value)


# MEAN and SUM of TFLite's XNNPACK delegate: the sum of quantized values times one factor, plus one bias, in float32.
#
# With n elements and ``m = (s_x / s_y) * (1 / n)``, or ``s_x / s_y`` for a sum, every operation rounded to float32, it
# is ``half_even(float32(sum) * m + (-(z_x * n) * m + z_y))`` (XNNPACK's reduce operator of 8-bit tensors).

_MAX_SUMMANDS = 2**23
"""Of elements that are added up."""


class Mean(Replacement[tuple[np.float32, np.float32]]):
    """A mean, or a sum, as a sum of integers, a factor and a bias."""

    name: ClassVar[str] = "xnnpack-mean"
    roots = ("qnn.mean", "qnn.sum")

    def check(self, op: qnn.MeanOp | qnn.SumOp) -> tuple[np.float32, np.float32] | None:
        """Factor and bias; None where 32 bits may not hold the sum."""
        count = math.prod(shape_of(op.input.type)[axis] for axis in op.axes)
        if count > _MAX_SUMMANDS:
            return None
        factor = np.float32(op.input_scale) / np.float32(op.output_scale)
        if isinstance(op, qnn.MeanOp):
            factor = factor * (np.float32(1) / np.float32(count))
        return factor, np.float32(-op.input_zero_point * count) * factor + np.float32(op.output_zero_point)

    def emit(self, op: qnn.MeanOp | qnn.SumOp, match: tuple[np.float32, np.float32]) -> ir.Value:
        factor, bias = match
        total = qnn.build(qnn.IntSumOp, op.input, element="i32", axes=op.axes, keep_dims=op.keep_dims).output
        shape = shape_of(total.type)
        value = upstream("arith.sitofp", tensor_of(shape, ir.F32Type.get()), total)
        for name, number in (("arith.mulf", factor), ("arith.addf", bias)):
            value = upstream(name, value.type, value, constant(np.broadcast_to(number, shape)))
        how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": FloatRounding.HALF_EVEN}
        return qnn.build(qnn.QuantizeOp, value, element=element_of(op.output.type), **how).output


def tensor_of(shape: tuple[int, ...], element: ir.Type) -> ir.Type:
    """A ranked tensor type."""
    return ir.RankedTensorType.get(list(shape), element)


def upstream(name: str, type_: ir.Type, *operands: ir.Value) -> ir.Value:
    """The result of an upstream op without attributes."""
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]


# The factors of each kind that the delegate's subgraph accepts: the minimum, and the first that is too large.
_CONTRACTIONS = (0.0, 2.0**8)
_PRODUCTS = (2.0**-16, 2.0**8)
_SUMS = (2.0**-10, 2.0**8)
_TABLES = (2.0**-8, 2.0**7)
_SLOPE_BITS = 8
_CONTRACTION_OPS = tuple(qnn.CONTRACTION_CLASSES.values())


def use_xnnpack(module: ir.Module) -> None:
    """Give the ops of an imported module the delegate's arithmetic, in place."""
    with module.context:
        apply_patterns(module, [pattern() for pattern in _PATTERNS])


def _ratio(scale: float, output_scale: float) -> np.float32:
    return np.float32(scale) / np.float32(output_scale)


def _within(factors: Sequence[Any], bounds: tuple[float, float]) -> bool:
    return all(bounds[0] <= factor < bounds[1] for factor in factors)


class _Restated(Replacement[dict[str, Any]]):
    """The same op with other attributes."""

    def emit(self, op: Any, match: dict[str, Any]) -> ir.Value:
        return rebuilt(op, **match).output


class _Accumulators(_Restated):
    name: ClassVar[str] = "xnnpack-accumulators"
    roots = ("qnn.requantize",)

    def check(self, op: qnn.RequantizeOp) -> dict[str, Any] | None:
        # The kernels of recurrent operators, which are not the delegate's, have factors of float32.
        is_other = op.multiplier is Multiplier.F32 or not _is_delegated_product(op)
        if is_other or op.rounding is TFLITE_XNNPACK.rounding:
            return None
        products = np.float32(op.input_scale) * np.array(op.weight_scales, dtype=np.float32)
        factors: list[float] = (products / np.float32(op.output_scale)).tolist()
        return TFLITE_XNNPACK.rescale if _within(factors, _CONTRACTIONS) else None


def _is_delegated_product(op: qnn.RequantizeOp) -> bool:
    """Whether `op` rescales products that the delegate takes: weights have no zero point, or are constant."""
    producer = op.input.owner
    if isinstance(producer, ir.Block) or not isinstance(producer.opview, _CONTRACTION_OPS):
        return False
    return constant_value(producer.operands[1]) is not None or not any(producer.opview.weight_zero_points)


class _Product(_Restated):
    name: ClassVar[str] = "xnnpack-product"
    roots = ("qnn.mul",)

    def check(self, op: qnn.MulOp) -> dict[str, Any] | None:
        product = np.float32(op.lhs_scale) * np.float32(op.rhs_scale)
        is_taken = _within([product / np.float32(op.output_scale)], _PRODUCTS)
        return TFLITE_XNNPACK.rescale if is_taken and op.rounding is not TFLITE_XNNPACK.rounding else None


class _Sum(_Restated):
    name: ClassVar[str] = "xnnpack-sum"
    roots = ("qnn.add", "qnn.sub")

    def check(self, op: qnn.AddOp | qnn.SubOp) -> dict[str, Any] | None:
        ratios = [_ratio(scale, op.output_scale) for scale in (op.lhs_scale, op.rhs_scale)]
        is_taken = op.arithmetic == TFLITE.addition and _within(ratios, _SUMS)
        once = TFLITE_XNNPACK.addition if isinstance(op, qnn.AddOp) else SubArithmetic.FIXED_ONCE
        return {"arithmetic": once} if is_taken else None


class _Resize(_Restated):
    name: ClassVar[str] = "xnnpack-resize"
    roots = ("qnn.resize_bilinear",)

    def check(self, op: qnn.ResizeBilinearOp) -> dict[str, Any] | None:
        is_taken = op.arithmetic is not Interpolation.XNNPACK_FIXED and is_eight_bit(op.input)
        return {"arithmetic": Interpolation.XNNPACK_FIXED} if is_taken else None


class _Tabulated(Replacement[tuple[np.float32, np.float32]]):
    """A table of ``floor(((x - z_x) * f + 128) / 256) + z_y``, f the factor of the side of x in 1/256."""

    def emit(self, op: Any, match: tuple[np.float32, np.float32]) -> ir.Value:
        input_zero_point = op.input_zero_points[0] if isinstance(op, qnn.RequantizeOp) else op.input_zero_point
        offsets = arithmetic.table_values(dtype_of(op.input.type)).astype(np.int64) - input_zero_point
        values = _rescaled(offsets, *match) + op.output_zero_point
        table = arithmetic.encode_table(np.clip(values, *range_of(op.output.type)), dtype_of(op.output.type))
        parameters: dict[str, Any] = {
            "input_scale": op.input_scale,
            "input_zero_point": input_zero_point,
            "output_scale": op.output_scale,
            "output_zero_point": op.output_zero_point,
        }
        return qnn.build(qnn.LutOp, op.input, element=element_of(op.output.type), table=table, **parameters).output


def _rescaled(offsets: NDArray[np.int64], positive: np.float32, negative: np.float32) -> NDArray[np.int64]:
    factors = [int(np.rint(factor * np.float32(2**_SLOPE_BITS))) for factor in (positive, negative)]
    half = 1 << (_SLOPE_BITS - 1)
    return (offsets * np.where(offsets >= 0, *factors) + half) >> _SLOPE_BITS


class _Rescale(_Tabulated):
    name: ClassVar[str] = "xnnpack-rescale"
    roots = ("qnn.requantize",)

    def check(self, op: qnn.RequantizeOp) -> tuple[np.float32, np.float32] | None:
        # QUANTIZE forms its factor in float64; the clamps, whose factor is a float32, are not the delegate's.
        is_quantize = op.multiplier is Multiplier.F64 and len(op.input_zero_points) == 1
        is_same_type = element_of(op.input.type) == element_of(op.output.type) and is_eight_bit(op.input)
        factor = _ratio(op.input_scale, op.output_scale)
        return (factor, factor) if is_quantize and is_same_type and _within([factor], _TABLES) else None


class _LeakyRelu(_Tabulated):
    name: ClassVar[str] = "xnnpack-leaky-relu"
    roots = ("qnn.leaky_relu",)

    def check(self, op: qnn.LeakyReluOp) -> tuple[np.float32, np.float32] | None:
        positive = _ratio(op.input_scale, op.output_scale)
        negative = positive * np.float32(op.alpha)
        is_taken = op.mode is LeakyMode.TFLITE and _within([positive], _TABLES) and negative >= _TABLES[0]
        return (positive, negative) if is_taken else None


_PATTERNS = (RunTimeDense, _Accumulators, _Product, Mean, _Sum, _Resize, _Rescale, _LeakyRelu)
