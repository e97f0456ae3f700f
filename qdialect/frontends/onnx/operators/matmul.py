"""Products of matrices: Gemm, MatMul, QGemm, QLinearMatMul and MatMulInteger of any rank, and Einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic.block_weights import PackedWeights
from qdialect.arithmetic.choices import BlockActivations
from qdialect.dialect.type_constraints import NARROW_ELEMENTS, NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import Array, Shape, check_scales, require, required
from qdialect.frontends.onnx.operators import convolution
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, Quantized, computed, imports, imports_f32, part_of
from qdialect.frontends.planning import block_weights, contraction
from qdialect.frontends.planning.contraction import Contraction
from qdialect.frontends.planning.elementwise import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, SIXTEEN_BIT, Computed, Constant, Tensor
from qdialect.ir._mlir import ir

# Gemm, MatMul, QGemm, QLinearMatMul and MatMulInteger, of any rank, operands constant or not.


@imports("Gemm")
def _gemm(call: Call) -> Tensor:
    found = _general(call, convolution.data_of(call.quantized(0), NARROW_ELEMENTS), call.quantized(1), 2, has_beta=True)
    contraction.check_sums(call.quantized(1), [int(call.flag("transB", 0))])
    return found


@imports("com.microsoft.QGemm")
def _qgemm(call: Call) -> Tensor:
    call.count(6, 9)
    columns = 0 if call.flag("transB", 0) else 1
    qdq_group = _general(
        call, convolution.data_of(dequantized(call, 0, 1, 1)), dequantized(call, 3, 4, columns), 6, has_beta=False
    )
    if call.optional(7) is None:
        return qdq_group
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 7, qdq_group.data.values.element))


_MATMULS = ("MatMul", "com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")


@imports(*_MATMULS)
def _matmul(call: Call) -> Tensor:
    alpha, turns = _form(call)
    require(alpha > 0, f"alpha must be positive, but got {alpha}")
    elements = NARROW_ELEMENTS if call.node.kind == "MatMul" else EIGHT_BIT
    data, right = _scaled(convolution.data_of(call.quantized(0), elements), alpha), call.quantized(1)
    found = _Factors(data, right, *turns).product(None)
    contraction.check_sums(right, [max(len(right.shape) - (1 if turns[1] else 2), 0)])
    return found


def _form(call: Call) -> tuple[float, list[bool]]:
    """The factor of a product, and whether each operand has its last two dimensions exchanged."""
    if call.node.kind == "MatMul":
        return 1.0, [False, False]
    call.count(2)
    turned = any(call.flag(name, 0) for name in ("transBatchA", "transBatchB"))
    require(not turned, "transBatchA and transBatchB must be 0")
    return call.attribute("alpha", 1.0), [call.flag(name, 0) for name in ("transA", "transB")]


@imports("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Tensor:
    left = dequantized(call, 0, 1, 0)
    if is_by_matrix(call, 4, 5):
        qdq_group = product_by_matrix(call, left, values=3, scale=4, zero_point=5)
    else:
        qdq_group = product_of(left, dequantized(call, 3, 4, -1))
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 6, qdq_group.data.values.element))


@imports("MatMulInteger")
def _matmul_integer(call: Call) -> Tensor:
    return integer_product(call)


def integer_product(call: Call) -> Value:
    """The i32 product of inputs 0 and 1, whose zero points are inputs 2 and 3."""
    lhs, rhs = call.value(0), call.value(1)
    point = convolution.run_time_zero_point(call, 2, lhs)
    right_is_known = convolution.run_time_zero_point(call, 3, rhs) is None
    if point is not None and right_is_known and rhs.data is not None and rhs.data.ndim == 2:
        return _corrected_product(call, lhs, point)
    if point is not None or not right_is_known:
        points = [None if call.optional(index) is None else call.value(index) for index in (2, 3)]
        return convolution.product(call, lhs, rhs, *points)
    left = convolution.integers(call, 0, 2)
    if is_by_matrix(call, 3):
        qdq_group = product_by_matrix(call, left, values=1, scale=None, zero_point=3)
    else:
        qdq_group = product_of(left, _along_columns(convolution.integers(call, 1, 3)))
    return qdq_group.accumulators(call.plan, call.name)


def _corrected_product(call: Call, left: Value, point: Value) -> Value:
    """By a constant matrix: the left zero point takes the sums of its columns off afterwards."""
    right = _along_columns(convolution.integers(call, 1, 3))
    assert right.values.data is not None, "the caller has seen a constant"
    columns = (right.values.data.astype(np.int64) - np.array(right.zero_points)).sum(axis=0)
    sums = product_of(Quantized(left.shape, left, (1.0,), (0,)), right).accumulators(call.plan, call.name)
    return convolution.corrected(call, sums, point, columns)


def _along_columns(right: Quantized) -> Quantized:
    """Zero points that are several are those of the columns."""
    return Quantized(right.shape, right.values, right.scales, right.zero_points, max(len(right.shape) - 1, 0))


def _general(call: Call, left: Quantized, right: Quantized, bias: int, has_beta: bool) -> Contraction:
    """``alpha * A * B + beta * C``; alpha joins the scale of the data, beta the bias."""
    alpha: float = call.attribute("alpha", 1.0)
    beta: float = call.attribute("beta", 1.0) if has_beta else 1.0
    require(alpha > 0, f"alpha must be positive, but got {alpha}")
    for name, operand in (("input", left), ("right operand", right)):
        require(len(operand.shape) == 2, f"{name} must have 2 dimensions, but got {len(operand.shape)}")
    data = _scaled(left, alpha)
    factors = _Factors(data, right, call.flag("transA", 0), call.flag("transB", 0))
    is_product = alpha == 1 and beta == 1
    factor = None if is_product or not has_beta else beta
    return factors.product(convolution.bias_of(call, bias, data, right.scales, factors.right_shape[-1], factor))


def _scaled(data: Quantized, alpha: float) -> Quantized:
    if alpha == 1:
        return data
    return Quantized(
        data.shape, data.values, (float(np.float32(alpha) * np.float32(data.scales[0])),), data.zero_points
    )


def product_of(left: Quantized, right: Quantized, *, by_rows: bool = False) -> Contraction:
    """`left` times `right` [K, N], or [N, K]; raises `UnsupportedError` where no integer op multiplies them."""
    return _Factors(convolution.data_of(left), right, transpose_rhs=by_rows).product(None)


@dataclass(frozen=True)
class _Factors:
    """The operands of a product of any rank, each perhaps with its last two dimensions exchanged."""

    left: Quantized
    right: Quantized
    transpose_lhs: bool = False
    transpose_rhs: bool = False

    @property
    def left_shape(self) -> Shape:
        """[..., M, K]"""
        shape = self.left.shape
        require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
        return (1, *shape) if len(shape) == 1 else exchanged(shape, self.transpose_lhs)

    @property
    def right_shape(self) -> Shape:
        """[..., K, N]"""
        shape = self.right.shape
        require(len(shape) >= 1, "right operand must have at least 1 dimension, but got 0")
        return (*shape, 1) if len(shape) == 1 else exchanged(shape, self.transpose_rhs)

    def product(self, bias: Array | None) -> Contraction:
        """The tensor that stands for the result."""
        self._check_right()
        left, right = self.left_shape, self.right_shape
        require(left[-1] == right[-2], f"input must have a last extent of {right[-2]}, but got {left[-1]}")
        rows = left[-2:-1] if len(self.left.shape) > 1 else ()
        columns = right[-1:] if len(self.right.shape) > 1 else ()
        shape = (*broadcast_shape(left[:-2], right[:-2]), *rows, *columns)

        def finish(emitter: Emitter, value: ir.Value) -> Emitted:
            return emitter.reshape(value, shape), False

        are_words = self.left.values.element in SIXTEEN_BIT
        kind, sums = (contraction.WordContraction, self._sums_of_words()) if are_words else (Contraction, self._sums)
        return kind(shape, self.left, self.right.scales, bias, sums, finish)

    @property
    def _rows(self) -> Array | None:
        """The right operand as [N, K], where it is one constant matrix."""
        weights, right = self.right.values.data, self.right_shape
        if weights is None or math.prod(right[:-2]) != 1:
            return None
        return weights.reshape(right[-2:][::-1]) if self.transpose_rhs else weights.reshape(right[-2:]).T

    def _sums(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        data = _ordered(emitter, emitter.to_channels_first(self.left.values), self.left_shape, self.transpose_lhs)
        start, rows = None if bias is None else emitter.constant(bias), self._rows
        attributes = contraction.accumulator_attributes(self.left, self.right)
        if rows is not None:
            return emitter.build(qnn.DenseOp, data, emitter.constant(rows), start, element="i32", **attributes)
        held = emitter.to_channels_first(self.right.values)
        matrix = _ordered(emitter, held, self.right_shape, self.transpose_rhs)
        return emitter.build(qnn.MatMulOp, data, matrix, start, element="i32", **attributes)

    def _sums_of_words(self) -> contraction.Accumulate:
        """Of 16-bit data."""
        left, rows = self.left, required(self._rows, "right operand of 16-bit data must be a constant matrix")
        contraction.check_terms_of_words(rows.shape[1])
        centered = contraction.Weight(rows, self.right.scales, self.right.zero_points).centered()
        parameters = left.values.element, left.zero_points[0]

        def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
            words = contraction.signed_words(emitter, left.values, emitter.to_channels_first)
            data = _ordered(emitter, words, self.left_shape, self.transpose_lhs)
            return contraction.word_sums(emitter, qnn.I16DenseOp, data, centered, parameters, bias)

        return accumulate

    def _check_right(self) -> None:
        right = self.right
        require(right.values.element in EIGHT_BIT, f"right operand must be i8 or ui8, but got {right.values.element}")
        check_scales(right.scales, "scale of the right operand")
        if len(right.scales) > 1:
            axis = len(right.shape) - (2 if self.transpose_rhs else 1)
            found = f"scales of the right operand must lie along axis {axis}, but got {right.axis}"
            require(right.axis == axis and len(right.shape) > 1, found)


def _ordered(emitter: Emitter, value: ir.Value, shape: Shape, is_transposed: bool) -> ir.Value:
    """Matrices of `shape`, from those that are exchanged, or from a vector."""
    rank = len(shape_of(value.type))
    if is_transposed and rank > 1:
        value = emitter.transpose(value, (*range(rank - 2), rank - 1, rank - 2))
    return emitter.reshape(value, shape)


def exchanged(shape: Shape, is_transposed: bool) -> Shape:
    """With the last two entries, if there are two, exchanged where it `is_transposed`."""
    return (*shape[:-2], shape[-1], shape[-2]) if is_transposed and len(shape) > 1 else shape


# Products in float32, which ONNX Runtime adds up in another order.


@imports_f32(*_MATMULS)
def _f32_matmul(call: Call) -> Computed:
    """One dimension is a row of A, or a column of B, that the result is without."""
    shapes, (alpha, turns) = [call.f32(index).shape for index in range(2)], _form(call)
    is_vector = [len(shape) == 1 for shape in shapes]
    lhs, rhs = (exchanged(shape, turn) for shape, turn in zip(shapes, turns, strict=True))
    lhs, rhs = (1, *lhs) if is_vector[0] else lhs, (*rhs, 1) if is_vector[1] else rhs
    holds = len(lhs) >= 2 and len(rhs) >= 2 and lhs[-1] == rhs[-2]
    require(holds, f"operands must be matrices that multiply, but got {list(shapes[0])} and {list(shapes[1])}")
    leading = broadcast_shape(lhs[:-2], rhs[:-2])
    after = (*leading, *(() if is_vector[0] else lhs[-2:-1]), *(() if is_vector[1] else rhs[-1:]))
    weights = block_weights.packed_matrix(call.tensor(1), is_transposed=turns[1])

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        data, *matrices = (
            emitter.transpose(value, exchanged(tuple(range(len(shape))), turn)) if turn and len(shape) > 1 else value
            for value, turn, shape in zip(values, turns, shapes, strict=False)
        )
        data = emitter.broadcast(emitter.reshape(data, lhs), (*leading, *lhs[-2:]))
        product = _multiplied(call, weights, emitter, [data, *matrices], rhs)
        scaled = product if alpha == 1 else emitter.f32("mulf", product, alpha)
        return emitter.reshape(scaled, after)

    return computed(call, after, (0,) if weights else (0, 1), build)


_CHANNEL_BLOCK = 32
"""Of data, where ONNX Runtime makes a MatMulNBits of weights with one scale a channel."""


def _multiplied(
    call: Call, weights: PackedWeights | None, emitter: Emitter, operands: Sequence[ir.Value], shape: Shape
) -> ir.Value:
    """Data times packed weights, or times a matrix of `shape`, or as many as the data has matrices."""
    if weights is not None:
        return block_weights.block_product(emitter, operands[0], weights, **_activations(call, weights))
    data, matrix = operands[0], emitter.reshape(operands[1], shape)
    if len(shape) > 2:
        matrix = emitter.broadcast(matrix, (*shape_of(data.type)[:-2], *shape[-2:]))
    return emitter.build(qnn.F32MatmulOp, data, matrix, element="f32")


def _activations(call: Call, weights: PackedWeights) -> dict[str, Any]:
    """How the profile multiplies data by packed weights."""
    has_integers = weights.zero_points is None or weights.zero_points.dtype == np.uint8
    if call.plan.activations is not BlockActivations.I8_BLOCK or not has_integers:
        return {}
    size = 0 if isinstance(call.tensor(1), block_weights.BlockQuantized) else _CHANNEL_BLOCK
    return {"activations": call.plan.activations, "activation_block": size}


@imports_f32("Gemm")
def _f32_gemm(call: Call) -> Computed:
    shapes = [call.f32(index).shape for index in range(2)]
    require(all(len(shape) == 2 for shape in shapes), "operands must have 2 dimensions")
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    transposed = [call.flag(name, 0) for name in ("transA", "transB")]
    lhs, rhs = (shape[::-1] if swap else shape for shape, swap in zip(shapes, transposed, strict=True))
    require(lhs[1] == rhs[0], f"operands must be matrices that multiply, but got {list(lhs)} and {list(rhs)}")
    after, has_bias = (lhs[0], rhs[1]), call.optional(2) is not None
    weights = block_weights.packed_matrix(call.tensor(1), is_transposed=transposed[1])
    read = [0, *([] if weights else [1]), *([2] if has_bias else [])]

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s = emitter.f32
        data, *matrices = (
            emitter.transpose(value, (1, 0)) if index < 2 and transposed[index] else value
            for index, value in zip(read, values, strict=True)
        )
        total = _multiplied(call, weights, emitter, [data, *matrices], rhs)
        total = total if alpha == 1 else s("mulf", total, alpha)
        if not has_bias:
            return total
        bias = emitter.broadcast(values[-1], after)
        return s("addf", total, bias if beta == 1 else s("mulf", bias, beta))

    return computed(call, after, read, build)


# Products whose right operand has parameters of its own for each column of each matrix: shape [..., 1, N].
#
# No op has zero points by matrix.  The accumulators are the difference of two products, with the quantized values and
# with the zero points in their stead, ``sum (x - z_x) w - sum (x - z_x) z_w``; for scales by matrix the matrices are
# laid side by side.


def is_by_matrix(call: Call, *parameters: int) -> bool:
    """Whether one of these inputs has a dimension before that of the columns and one before the rows."""
    tensors = [call.optional(index) for index in parameters]
    return any(isinstance(tensor, Constant) and tensor.array.ndim > 2 for tensor in tensors)


def product_by_matrix(call: Call, left: Quantized, values: int, scale: int | None, zero_point: int) -> Contraction:
    """`left` times input `values`, whose parameters are inputs `scale`, 1 where that is None, and `zero_point`."""
    data, right = convolution.data_of(left), call.value(values)
    require(right.element in EIGHT_BIT, f"right operand must be i8 or ui8, but got {right.element}")
    shape, rank = right.shape, len(right.shape)
    require(rank > 2, f"right operand must have at least 3 dimensions, but got {rank}")
    require(len(data.shape) >= 2, f"input must have at least 2 dimensions, but got {len(data.shape)}")
    leads = data.shape[:-2]
    fits = len(leads) <= rank - 2 and all(own in (1, n) for own, n in zip(leads[::-1], shape[:-2][::-1], strict=False))
    require(fits, f"batches must be {list(shape[:-2])}, but got {list(leads)}")
    require(data.shape[-1] == shape[-2], f"input must have a last extent of {shape[-2]}, but got {data.shape[-1]}")
    wanted = (*shape[:-2], 1, shape[-1])
    points = np.zeros((), NUMPY_DTYPES[right.element])
    if call.optional(zero_point) is not None:
        points = _parameter(call, zero_point, "zero point", wanted)
    require(points.dtype == NUMPY_DTYPES[right.element], f"zero point must be {right.element}, but got {points.dtype}")
    scales = np.float32(1) if scale is None else _parameter(call, scale, "scale", wanted)
    require(scales.dtype == np.float32, f"scale must be f32, but got {scales.dtype}")
    flat = tuple(float(value) for value in np.broadcast_to(scales, wanted).ravel()) if scales.size > 1 else ()
    check_scales(flat or (float(scales),), "scale")
    layout = _Layout(data, right, np.broadcast_to(points, shape), (*shape[:-2], data.shape[-2], shape[-1]))
    if flat:
        return Contraction(layout.shape, data, flat, None, layout.side_by_side, layout.apart)
    return Contraction(layout.shape, data, (float(scales),), None, layout.sums, lambda _, value: (value, False))


def _parameter(call: Call, index: int, what: str, wanted: Shape) -> Array:
    values = call.constant(index)
    fits = values.size == 1 or values.shape == wanted
    require(fits, f"{what} must have 1 entry or the shape {list(wanted)}, but got {list(values.shape)}")
    return values if values.size > 1 else values.reshape(())


@dataclass(frozen=True)
class _Layout:
    data: Quantized
    right: Value
    points: Array
    shape: Shape
    """[..., M, N]"""

    def sums(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        """The accumulators [..., M, N]; there is no bias."""
        del bias
        data = emitter.to_channels_first(self.data.values)
        of_data = {"input_scale": self.data.scales[0], "input_zero_point": self.data.zero_points[0]}
        how = {**of_data, "weight_scales": (1.0,), "weight_zero_points": (0,)}
        products, offset = (
            emitter.build(qnn.MatMulOp, data, matrix, None, element="i32", **how)
            for matrix in (emitter.to_channels_first(self.right), emitter.constant(self.points))
        )
        return emitter.upstream("arith.subi", products, offset)

    def side_by_side(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        """The accumulators [M, ... * N]."""
        rank = len(self.shape)
        rows_first = emitter.transpose(self.sums(emitter, bias), (rank - 2, *range(rank - 2), rank - 1))
        return emitter.reshape(rows_first, (self.shape[-2], math.prod(self.shape) // self.shape[-2]))

    def apart(self, emitter: Emitter, value: ir.Value) -> Emitted:
        """[M, ... * N] as [..., M, N]."""
        *leading, rows, columns = self.shape
        rank = len(self.shape)
        spread = emitter.reshape(value, (rows, *leading, columns))
        return emitter.transpose(spread, (*range(1, rank - 1), 0, rank - 1)), False


# Einsum: sums over labels, transposes, and a product of matrices for each further tensor, from the left.

_OWN_LABELS = "0123456789"
"""For the dimensions that an ellipsis stands for."""
_ELLIPSIS = "..."


@dataclass(frozen=True)
class _Operand:
    """A tensor with a label for each dimension."""

    tensor: Tensor
    labels: str

    @property
    def extents(self) -> dict[str, int]:
        """By label."""
        return dict(zip(self.labels, self.tensor.shape, strict=True))


@imports("Einsum")
def _einsum(call: Call) -> Tensor:
    operands, result = _labelled(call)
    operands = [_summed(call, operand, _kept(operands, index, result)) for index, operand in enumerate(operands)]
    product, *others = operands
    for index, operand in enumerate(others):
        # Labels of later operands must be left for them.
        needed = result + "".join(other.labels for other in others[index + 1 :])
        product = _product(call, product, operand, needed)
    return _transposed(call, product, result).tensor


def _labelled(call: Call) -> tuple[list[_Operand], str]:
    """The operands and the labels of the result."""
    equation: str = call.attribute("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    count = len(call.inputs)
    require(len(terms) == count, f"equation must have {count} terms, but got '{equation}'")
    tensors = [call.tensor(index) for index in range(count)]
    hidden = [len(tensor.shape) - len(term.replace(_ELLIPSIS, "")) for tensor, term in zip(tensors, terms, strict=True)]
    maximum = max((own for own, term in zip(hidden, terms, strict=True) if _ELLIPSIS in term), default=0)
    operands: list[_Operand] = []
    for tensor, term, own in zip(tensors, terms, hidden, strict=True):
        fits = (0 <= own <= len(_OWN_LABELS)) if _ELLIPSIS in term else own == 0
        require(fits, f"term '{term}' must have a label for each dimension of {list(tensor.shape)}")
        labels = term.replace(_ELLIPSIS, _OWN_LABELS[maximum - own : maximum])
        require(len(set(labels)) == len(labels), f"labels of a term must differ, but got '{term}'")
        operands.append(_Operand(tensor, labels))
    _check_extents(operands)
    found = "".join(operand.labels for operand in operands)
    single = "".join(sorted(label for label in set(found) if found.count(label) == 1 and label not in _OWN_LABELS))
    result = right.replace(_ELLIPSIS, _OWN_LABELS[:maximum]) if arrow else _OWN_LABELS[:maximum] + single
    fits = len(set(result)) == len(result) and set(result) <= set(found)
    require(fits, f"equation must name labels of its operands once in the result, but got '{equation}'")
    return operands, result


def _check_extents(operands: Sequence[_Operand]) -> None:
    known: dict[str, int] = {}
    for operand in operands:
        for label, extent in operand.extents.items():
            wanted = known.setdefault(label, extent)
            require(wanted == extent, f"label '{label}' must stand for one extent, but got {wanted} and {extent}")


def _kept(operands: Sequence[_Operand], index: int, result: str) -> str:
    """The labels of an operand that anything else has."""
    others = "".join(operand.labels for i, operand in enumerate(operands) if i != index)
    return "".join(label for label in operands[index].labels if label in result + others)


def _summed(call: Call, operand: _Operand, kept: str) -> _Operand:
    axes = [i for i, label in enumerate(operand.labels) if label not in kept]
    if not axes:
        return operand
    found = part_of(call, "ReduceSum", [operand.tensor, Constant(np.array(axes))], keepdims=0)
    return _Operand(found, kept)


def _product(call: Call, lhs: _Operand, rhs: _Operand, result: str) -> _Operand:
    """Matrices of the labels that both have and the result too, with columns or rows of those that it lacks."""
    batch = "".join(label for label in lhs.labels if label in rhs.labels and label in result)
    inner = "".join(label for label in lhs.labels if label in rhs.labels and label not in result)
    rows = "".join(label for label in lhs.labels if label not in rhs.labels)
    columns = "".join(label for label in rhs.labels if label not in lhs.labels)
    extents = lhs.extents | rhs.extents
    left = _matrix(call, _transposed(call, lhs, batch + rows + inner), (batch, rows, inner))
    right = _matrix(call, _transposed(call, rhs, batch + inner + columns), (batch, inner, columns))
    labels = batch + rows + columns
    found = _reshaped(call, part_of(call, "MatMul", [left, right]), tuple(extents[label] for label in labels))
    return _Operand(found, labels)


def _matrix(call: Call, operand: _Operand, parts: Sequence[str]) -> Tensor:
    """An operand with one dimension for each label of the first part and one for each of the others."""
    batch, *matrix = parts
    extents = operand.extents
    sizes = (math.prod(extents[label] for label in part) for part in matrix)
    return _reshaped(call, operand.tensor, (*(extents[label] for label in batch), *sizes))


def _transposed(call: Call, operand: _Operand, labels: str) -> _Operand:
    if operand.labels == labels:
        return operand
    order = [operand.labels.index(label) for label in labels]
    return _Operand(part_of(call, "Transpose", [operand.tensor], perm=order), labels)


def _reshaped(call: Call, tensor: Tensor, shape: Shape) -> Tensor:
    if tensor.shape == shape:
        return tensor
    return part_of(call, "Reshape", [tensor, Constant(np.array(shape, np.int64))])
