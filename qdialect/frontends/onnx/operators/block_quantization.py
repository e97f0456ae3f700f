"""MatMulNBits and GatherBlockQuantized of com.microsoft: weights of few bits in blocks with scales of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.arithmetic.block_weights import WEIGHT_BITS, BlockWeights, PackedWeights, pack, packed_bytes, unpack
from qdialect.arithmetic.choices import BlockActivations
from qdialect.frontends.building.checks import Array, Shape, axes_in, require
from qdialect.frontends.building.slices import gather
from qdialect.frontends.onnx.operators.elementwise import binary_tensor
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.quantization import dequantized_blocks, widened
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.block_weights import block_product
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.movement import gathered
from qdialect.frontends.planning.tensors import Computation, Constant, F32Tensor, Tensor, product
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
