"""Weights of few bits in blocks with scales of their own: MatMulNBits, GatherBlockQuantized, QMoE; and MoE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from qdialect.arithmetic import activations, onnx_activations
from qdialect.arithmetic.block_weights import WEIGHT_BITS, BlockWeights, PackedWeights, pack, packed_bytes, unpack
from qdialect.arithmetic.choices import BlockActivations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.dialect import DynamicGatherOp, F32MatmulOp, TopKOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, axes_in, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import Slice, gather, take_slices
from qdialect.frontends.onnx.operators.elementwise import binary_tensor
from qdialect.frontends.onnx.operators.indexing import elements_along, indices_of
from qdialect.frontends.onnx.operators.quantization import dequantized_blocks, widened
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.attention import softmax
from qdialect.frontends.planning.block_weights import block_product
from qdialect.frontends.planning.elementwise import value_of_tensor
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.movement import gathered
from qdialect.frontends.planning.reduction import top_indices
from qdialect.frontends.planning.tensors import Computation, Computed, Constant, F32Tensor, Tensor, product
from qdialect.ir._mlir import ir

INTEGERS = 4
"""The accuracy level that lets ONNX Runtime quantize activations."""
_BLOCKS_OF_2_BITS = (32, 64, 128)
"""Those for which it has a kernel that does."""


@imports("com.microsoft.MatMulNBits")
def _product(call: Call) -> Tensor:
    """``A W^T + bias`` of rows [..., K] and weights [N, K], whose blocks lie along K.

    A is quantized in blocks where ONNX Runtime's kernels do so at accuracy level 4, and stays f32 elsewhere.
    """
    call.count(3, 6)
    require(call.attribute("weight_prepacked", 0) == 0, "weight_prepacked must be 0")
    source, (rows, depth) = call.f32(0), (int(call.attribute(name, 0)) for name in ("N", "K"))
    require(source.shape[-1:] == (depth,), f"input must have a last extent of {depth}, but got {list(source.shape)}")
    bits, size = _form(call)
    blocks = -(-depth // size)
    packed, wanted = call.constant(1), rows * blocks * size * bits // 8
    require(packed.dtype == np.uint8, f"input 1 must be bytes, but got {packed.dtype}")
    require(packed.size == wanted, f"input 1 must have {wanted} bytes for blocks of {size}, but got {packed.size}")
    weight = packed.reshape(rows, -1)[:, : packed_bytes(depth, bits)]
    scales, points = f32_constant(call, 2, (rows, blocks)), points_of(call, 3, bits, (rows, blocks))
    weights = PackedWeights(weight, scales, points, bits, min(size, depth), depth)
    level: int = call.attribute("accuracy_level", 0)
    if call.optional(4) is not None:
        result = _product_of_groups(call, source, weights)
    else:
        can_round = (points is None or points.dtype == np.uint8) and (bits > 2 or size in _BLOCKS_OF_2_BITS)
        own = BlockActivations.I8_BLOCK if level == INTEGERS else BlockActivations.F32
        result = _multiplied(source, weights, (call.plan.activations or own) if can_round else BlockActivations.F32)
    return result if call.optional(5) is None else binary_tensor("Add", result, call.f32(5))


def _multiplied(
    source: F32Tensor, weights: PackedWeights, activations: BlockActivations, order: Sequence[int] | None = None
) -> Computation:
    """The product with `source`, whose last dimension is taken in this order."""

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        data = operands[0] if order is None else gather(emitter, operands[0], len(source.shape) - 1, order)
        return block_product(emitter, data, weights, activations=activations)

    return Computation((*source.shape[:-1], len(weights.weight)), (source,), build)


def _product_of_groups(call: Call, source: F32Tensor, weights: PackedWeights) -> Computation:
    """With input 4, the block of each index along K, which ONNX Runtime reads with f32 activations.

    Where blocks are full, weights and data are reordered; else the weights become f32.
    """
    groups, size = np.array(call.integers(4)), weights.block
    blocks = weights.scales.shape[1]
    holds = groups.shape == (weights.depth,) and bool(((groups >= 0) & (groups < blocks)).all())
    require(holds, f"input 4 must have {weights.depth} integers in [0, {blocks})")
    order = np.argsort(groups, kind="stable")
    if np.array_equal(groups[order], np.arange(weights.depth) // size):
        held = unpack(weights.weight, weights.bits, weights.depth)[:, order]
        return _multiplied(
            source, replace(weights, weight=pack(held, weights.bits)), BlockActivations.F32, order.tolist()
        )
    call.plan.budget.spend_constant((blocks, weights.depth), 4)
    form = weights.bits, size, weights.depth
    by_group = BlockWeights.unpacked(weights.weight, weights.scales, weights.zero_points, *form)
    values = (by_group.quantized - by_group.zero_points[:, groups]) * by_group.scales[:, groups]
    return product(source, np.ascontiguousarray(values.T))


@imports("com.microsoft.GatherBlockQuantized")
def _gather(call: Call) -> Tensor:
    """Elements of a table along one dimension, in blocks along any; rows of bytes hold blocks along their last."""
    call.count(3, 4)
    bits, size = _form(call)
    is_packed = call.constant(0).dtype == np.uint8
    if is_packed:
        call = _with_integers(call, bits)
    else:
        before, call = call.constant(0).dtype, widened(call, (0, 3))
        holds = bits == 4 and call.constant(0).dtype != before
        require(holds, f"table must be integers of 4 bits or bytes, but got {before} and bits {bits}")
    rank = len(call.tensor(0).shape)
    gathers, blocks = axes_in([call.attribute("gather_axis", 0), call.attribute("quantize_axis", 1)], rank)
    fits = not is_packed or gathers == 0 < blocks == rank - 1
    require(fits, f"table of bytes must be in blocks along its rows, but got axes {gathers} and {blocks}")
    table = dequantized_blocks(call, (0, 2, 3), blocks, size)
    return gathered(call.plan, call.name, table, indices_of(call, 1), gathers)


def _with_integers(call: Call, bits: int) -> Call:
    """The call with a byte for each number of a packed table, and for each zero point, by default 2^(bits - 1)."""
    table, scales = call.constant(0), call.constant(2)
    call.plan.budget.spend_constant((*table.shape[:-1], table.shape[-1] * 8 // bits), 1)
    points = points_of(call, 3, bits, scales.shape)
    if points is None:
        points = np.full(scales.shape, 2 ** (bits - 1), np.uint8)
    elif points.dtype == np.uint8:
        points = unpack(points, bits, scales.shape[-1])
    whole = unpack(table, bits, table.shape[-1] * 8 // bits)
    return replace(call, inputs=(Constant(whole), *call.inputs[1:3], Constant(points)))


def _form(call: Call) -> tuple[int, int]:
    """Bits of a weight and weights of a block."""
    bits, size = call.attribute("bits", 4), call.attribute("block_size", 128)
    check_form(bits, size)
    return bits, size


def check_form(bits: int, size: int) -> None:
    """Raise `UnsupportedError` where no packed weights have this form."""
    require(bits in WEIGHT_BITS, f"bits must be 2, 4 or 8, but got {bits}")
    require(size >= 16 and size & (size - 1) == 0, f"block_size must be a power of two from 16 on, but got {size}")


def f32_constant(call: Call, index: int, shape: Shape) -> Array:
    """Input `index`, known f32 values that `shape` holds; raises `UnsupportedError`."""
    array = call.constant(index)
    holds = array.dtype == np.float32 and array.size == math.prod(shape)
    require(holds, f"input {index} must be f32 of {list(shape)}, but got {list(array.shape)} of {array.dtype}")
    return array.reshape(shape)


def points_of(call: Call, index: int, bits: int, shape: Shape) -> Array | None:
    """Zero points by block: floats, or bytes in which each row begins anew; None where they are omitted."""
    if call.optional(index) is None:
        return None
    array = call.constant(index)
    if array.dtype == np.float32:
        return f32_constant(call, index, shape)
    wanted = (*shape[:-1], packed_bytes(shape[-1], bits))
    holds = array.dtype == np.uint8 and array.size == math.prod(wanted)
    require(holds, f"input {index} must be bytes of {list(wanted)}, but got {list(array.shape)} of {array.dtype}")
    return array.reshape(wanted)


# QMoE and MoE of com.microsoft: each token goes through the experts that its logits choose.

_SMALLEST = 16
_FEW_TOKENS = 8
_LEAST_SHARE = 1e-8
"""ONNX Runtime leaves out an expert whose share of a token is not larger."""
_GATED = "swiglu"
_FUNCTIONS: dict[str, Expression] = {
    "relu": activations.relu,
    "gelu": activations.gelu_tanh,
    "silu": activations.silu,
    "identity": Input(),
}
_GATE, _LINEAR = Input(0), Input(1)


Multiply = Callable[[Emitter, ir.Value, int], ir.Value]
"""(emitter, rows [tokens, K], expert) -> their product with the expert's weights, [tokens, N]."""


@dataclass(frozen=True)
class _Layer:
    """The weights of each expert, perhaps in parts side by side, and its biases [experts, N] for each part."""

    parts: Sequence[Multiply]
    biases: Sequence[Array | None]

    def emit(self, emitter: Emitter, rows: ir.Value, expert: int) -> list[ir.Value]:
        """The parts for one expert."""
        products = [multiply(emitter, rows, expert) for multiply in self.parts]
        return [
            one if bias is None else emitter.f32("addf", one, emitter.constant(bias[expert]))
            for one, bias in zip(products, self.biases, strict=True)
        ]


@imports("com.microsoft.QMoE")
def _quantized_experts(call: Call) -> Tensor:
    """By packed weights: of f32 data, or of data quantized in blocks where ONNX Runtime's kernels do so."""
    call.count(7, 21)
    _omitted(call, (8, 9, 10, 13, *range(15, 21)))
    require(call.attribute("quant_type", "int") == "int", "quant_type must be 'int'")
    require(call.attribute("weights_prepacked", -1) in (-1, 0), "weights_prepacked must be -1 or 0")
    bits, size = int(call.attribute("expert_weight_bits", 4)), int(call.attribute("block_size", 0))
    check_form(bits, size or _SMALLEST)
    own = [call.attribute("fc1_expert_weight_bits", bits), call.attribute("fc2_expert_weight_bits", bits)]
    require(own == [bits, bits], f"bits of each layer must be {bits} as expert_weight_bits, but are {own}")
    call.ignore("fc3_expert_weight_bits")
    # ONNX Runtime multiplies those by tables of sums of quantized data.
    require(bits > 2 or not size, "weights of 2 bits must have one scale a channel")
    width, inner = call.f32(0).shape[-1], call.tensor(5).shape[-1] * 8 // bits
    has_gate = _has_gate(call)
    level: int = call.attribute("accuracy_level", 0)
    own = BlockActivations.I8_BLOCK if size and (bits == 8 or level == INTEGERS) else BlockActivations.F32
    form = bits, size, (call.plan.activations or own) if size else BlockActivations.F32
    first = _packed_layer(call, (2, 3, 4, 11), (inner * (1 + has_gate), width), form, has_gate=has_gate)
    second = _packed_layer(call, (5, 6, 7, 12), (width, inner), form, has_gate=False)
    return _mixed(call, first, second, _routes(call), are_packed=True)


@imports("com.microsoft.MoE")
def _float_experts(call: Call) -> Tensor:
    call.count(5, 8)
    _omitted(call, (6, 7))
    width, inner = call.f32(0).shape[-1], call.tensor(4).shape[-1]
    has_gate = _has_gate(call)
    first = _float_layer(call, (2, 3), (inner * (1 + has_gate), width), has_gate=has_gate)
    second = _float_layer(call, (4, 5), (width, inner), has_gate=False)
    return _mixed(call, first, second, _routes(call), are_packed=False)


def _omitted(call: Call, indices: Sequence[int]) -> None:
    for index in indices:
        require(call.optional(index) is None, f"input {index} must be omitted")


def _has_gate(call: Call) -> bool:
    """Whether rows of the first weights are those of a gate and of what it is multiplied by, in turns."""
    kind: str = call.attribute("activation_type", "relu")
    require(
        kind in (_GATED, *_FUNCTIONS), f"activation_type must be {', '.join(_FUNCTIONS)} or {_GATED}, but is {kind}"
    )
    wanted = int(kind == _GATED)
    found: int = call.attribute("swiglu_fusion", 0)
    require(found == wanted, f"swiglu_fusion must be {wanted} for {kind}, but is {found}")
    require(call.attribute("use_sparse_mixer", 0) == 0, "use_sparse_mixer must be 0")
    return kind == _GATED


# Weights of all experts, by expert.


def _packed_layer(
    call: Call, indices: tuple[int, ...], extents: Shape, form: tuple[int, int, BlockActivations], *, has_gate: bool
) -> _Layer:
    """Inputs `indices`: weights of `extents` [N, K] for each expert, scales, biases and zero points."""
    (bits, size, how), (rows, depth), experts = form, extents, _experts_of(call)
    require(not size or depth % size == 0, f"block_size must divide {depth}, but is {size}")
    blocks = depth // size if size else 1
    weights, scales = call.constant(indices[0]), f32_constant(call, indices[1], (experts, rows, blocks))
    wanted = (experts, rows, packed_bytes(depth, bits))
    holds = weights.dtype == np.uint8 and weights.shape == wanted and depth * bits % 8 == 0
    require(holds, f"input {indices[0]} must be bytes of {list(wanted)}, but got {list(weights.shape)}")
    points = None
    if call.optional(indices[3]) is not None:
        # Those of channels are packed along the channels.
        along = (experts, rows, blocks) if size else (experts, rows)
        require(not size or blocks > 1, "zero points in blocks must be several for each channel")
        points = points_of(call, indices[3], bits, along)
        assert points is not None
        require(points.dtype == np.uint8, f"input {indices[3]} must be bytes, but got {points.dtype}")
        points = points if size else pack(unpack(points, bits, rows)[..., None], bits)

    def part(chosen: slice) -> Multiply:
        packed = [
            PackedWeights(
                np.ascontiguousarray(weights[expert, chosen]),
                np.ascontiguousarray(scales[expert, chosen]),
                None if points is None else np.ascontiguousarray(points[expert, chosen]),
                *(bits, size or depth, depth),
            )
            for expert in range(experts)
        ]
        return lambda emitter, data, expert: block_product(emitter, data, packed[expert], activations=how)

    return _of_parts(call, indices[2], (experts, rows), part, has_gate=has_gate)


def _float_layer(call: Call, indices: tuple[int, int], extents: Shape, *, has_gate: bool) -> _Layer:
    """Inputs `indices`: weights of `extents` [N, K] for each expert, and biases."""
    weights = f32_constant(call, indices[0], (_experts_of(call), *extents))

    def part(chosen: slice) -> Multiply:
        def multiply(emitter: Emitter, data: ir.Value, expert: int) -> ir.Value:
            matrix = emitter.constant(np.ascontiguousarray(weights[expert, chosen].T))
            return emitter.build(F32MatmulOp, data, matrix, element="f32")

        return multiply

    return _of_parts(call, indices[1], weights.shape[:2], part, has_gate=has_gate)


def _of_parts(call: Call, bias: int, shape: Shape, part: Callable[[slice], Multiply], *, has_gate: bool) -> _Layer:
    biases = None if call.optional(bias) is None else f32_constant(call, bias, shape)
    slices = [slice(0, None, 2), slice(1, None, 2)] if has_gate else [slice(None)]
    return _Layer([part(one) for one in slices], [None if biases is None else biases[:, one] for one in slices])


def _experts_of(call: Call) -> int:
    shape, tokens = call.f32(1).shape, math.prod(call.f32(0).shape[:-1])
    holds = len(shape) == 2 and shape[0] == tokens and len(call.f32(0).shape) in (2, 3)
    require(holds, f"input 1 must have {tokens} rows, but got {list(shape)}")
    return shape[1]


# The share of each expert in each token.


def _routes(call: Call) -> Value:
    """f32 [tokens, experts]: of the `k` largest logits the softmax, or the router's weights; of the others 0.

    Of equal logits the last ones count, so that both are taken in the opposite order.
    """
    experts, count = _experts_of(call), int(call.attribute("k", 1))
    require(1 <= count <= experts, f"k must be in [1, {experts}], but is {count}")
    is_normalized = call.flag("normalize_routing_weights", 0)
    logits = _reversed(call.f32(1))
    indices = top_indices(call, logits, 1, count, is_largest=True)
    has_weights, source = True, logits
    if call.optional(14) is not None:
        source = _reversed(call.f32(14))
    elif call.node.kind.endswith(".MoE") and not is_normalized:
        # The softmax of all logits.
        source = Computation(logits.shape, (logits,), lambda emitter, operands: softmax(emitter, operands[0], (1,)))
    else:
        has_weights = False
    require(source.shape == logits.shape, f"input 14 must be {list(logits.shape)}, but got {list(source.shape)}")
    picked = value_of_tensor(call, elements_along(call, source, indices, 1))

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        values, places = operands
        if not has_weights:
            s = emitter.f32
            values = s("exp", s("subf", values, _column(emitter, values, 0)))
        columns = [_column(emitter, values, j) for j in range(count)]
        if not has_weights or is_normalized:
            total, s = columns[0], Arithmetic(emitter)
            for column in columns[1:]:
                total = s.op("arith.addf", total, column)
            inverse = emitter.f32("divf", 1.0, total)
            inverse = s.select(s.compare("eq", total, 0.0), 0.0, inverse)
            columns = [s.op("arith.mulf", column, inverse) for column in columns]
        return _scattered(emitter, columns, places, logits.shape)

    return call.plan.ordered(call.name, logits.shape, "f32", [picked, indices], build)


def _reversed(source: F32Tensor) -> Computation:
    order = [*range(source.shape[1] - 1, -1, -1)]
    return Computation(source.shape, (source,), lambda emitter, operands: gather(emitter, operands[0], 1, order))


def _column(emitter: Emitter, values: ir.Value, index: int) -> ir.Value:
    return take_slices(emitter, values, [Slice(0, 1, shape_of(values.type)[0]), Slice(index, 1, 1)])


def _scattered(emitter: Emitter, columns: Sequence[ir.Value], places: ir.Value, shape: Shape) -> ir.Value:
    """Columns of shares at `places` [tokens, k], which count from the last expert, among zeros."""
    s = Arithmetic(emitter)
    experts = emitter.constant(np.broadcast_to(np.arange(shape[1])[::-1], shape).astype(np.int64))
    total = emitter.number(0.0, shape)
    for j, column in enumerate(columns):
        is_here = s.compare("eq", emitter.broadcast(_column(emitter, places, j), shape), experts)
        total = s.select(is_here, emitter.broadcast(column, shape), total)
    return total


# The sum of what the experts give, each times its share.


def _mixed(call: Call, first: _Layer, second: _Layer, shares: Value, *, are_packed: bool) -> Computed:
    """Every expert has a row for every token, and those that a token did not choose are left out of its sum."""
    source = call.f32(0).f32(call.plan, call.name)
    tokens, width = math.prod(source.shape[:-1]), source.shape[-1]
    function = _function(call)

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        rows = emitter.reshape(operands[0], (tokens, width))
        s, total = emitter.f32, emitter.number(0.0, (tokens, width))
        for expert in range(shares.shape[1]):
            share = _column(emitter, operands[1], expert)
            order = _Order.of(emitter, share, are_packed=are_packed)
            chosen = order.chosen(order.sorted(rows))
            hidden = emitter.expression(function, *first.emit(emitter, chosen, expert))
            (found,) = second.emit(emitter, order.chosen(hidden), expert)
            share = emitter.broadcast(share, (tokens, width))
            term = s("addf", total, s("mulf", share, order.restored(found)))
            total = emitter.select(_counts(emitter, share), term, total)
        return emitter.reshape(total, source.shape)

    return Computed(source.shape, call.plan.ordered(call.name, source.shape, "f32", [source, shares], build))


def _counts(emitter: Emitter, share: ir.Value) -> ir.Value:
    return Arithmetic(emitter).compare("gt", share, _LEAST_SHARE)


@dataclass(frozen=True)
class _Order:
    """Rows in the order in which those of an expert come first; few are left as they are.

    Kernels of packed weights pass over tiles of zeros, which the other rows become.
    """

    emitter: Emitter
    share: ir.Value | None
    """Of each row; None where the weights are not packed."""
    places: ir.Value | None

    @classmethod
    def of(cls, emitter: Emitter, share: ir.Value, *, are_packed: bool) -> Self:
        """That for the `share` of each token."""
        tokens = shape_of(share.type)[0]
        if not are_packed or tokens <= _FEW_TOKENS:
            return cls(emitter, share if are_packed else None, None)
        key = Arithmetic(emitter).resize(emitter.reshape(_counts(emitter, share), (tokens,)), "i32")
        places = emitter.build(TopKOp, key, element="i64", axis=0, count=tokens)
        return cls(emitter, emitter.build(DynamicGatherOp, share, places, element="f32", axis=0), places)

    def chosen(self, rows: ir.Value) -> ir.Value:
        """The rows of the expert, and zeros."""
        if self.share is None:
            return rows
        counts = _counts(self.emitter, self.emitter.broadcast(self.share, shape_of(rows.type)))
        return Arithmetic(self.emitter).select(counts, rows, 0.0)

    def sorted(self, rows: ir.Value) -> ir.Value:
        """Rows of tokens in this order."""
        if self.places is None:
            return rows
        return self.emitter.build(DynamicGatherOp, rows, self.places, element="f32", axis=0)

    def restored(self, rows: ir.Value) -> ir.Value:
        """Rows of this order in that of the tokens."""
        if self.places is None:
            return rows
        # Where each token went: the smallest place first.
        falling = Arithmetic(self.emitter).op("arith.xori", self.places, -1)
        count = shape_of(falling.type)[0]
        back = self.emitter.build(TopKOp, falling, element="i64", axis=0, count=count)
        return self.emitter.build(DynamicGatherOp, rows, back, element="f32", axis=0)


def _function(call: Call) -> Expression:
    """The activation; a gate times ``sigmoid(alpha * gate)`` times what it is for, which `beta` is added to."""
    kind = call.attribute("activation_type", "relu")
    if kind != _GATED:
        return _FUNCTIONS[kind]
    alpha, beta = call.attribute("activation_alpha", 1.0), call.attribute("activation_beta", 0.0)
    limit = call.attribute("swiglu_limit", math.inf)
    gate, linear = _GATE, _LINEAR
    if math.isfinite(limit):
        gate, linear = gate.at_most(limit), linear.at_most(limit).at_least(-limit)
    return onnx_activations.swish(alpha).of(gate) * (linear + beta)
