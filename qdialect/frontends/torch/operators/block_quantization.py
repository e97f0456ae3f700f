"""Weights in groups with scales of their own, as torchao has them, and PyTorch's products with packed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from qdialect.arithmetic.block_weights import PackedWeights, pack_weights
from qdialect.arithmetic.choices import SumOrder
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.block_weights import BlockQuantized, block_product
from qdialect.frontends.planning.elementwise import constant_of, value_of_tensor
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Computation, F32Tensor
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.tensors import RunTimeParameters, RunTimeQuantized, dequantized
from qdialect.frontends.torch.program.pytorch_operators import call_operator, torch_package
from qdialect.ir._mlir import ir

_MIDDLE = 8
"""A packed weight of 4 bits is its number less this."""
_ZERO = np.zeros(1, np.int64)
_PLACES = 5
"""Numbers of 4 bits whose sum, each times a power of 16 of its own, float32 holds."""


@imports("torchao.dequantize_affine.default")
def _dequantize_affine(call: Call) -> Result:
    """``(q - z) * s`` of constant matrices in groups along one dimension, and of rows; others are decomposed."""
    call.ignore("input_dtype", "quant_min", "quant_max")
    block = call.dimensions("block_size")
    if isinstance(source := call.tensor("input"), Value):
        return _dequantized_rows(call, source, block)
    values = call.constant("input")
    require(values.ndim == len(block) == 2, "groups must be those of a matrix")
    axis = 0 if block[1] == 1 else 1
    require(block[1 - axis] == 1, "groups must lie along one dimension")
    points = None if call.result("zero_point") is None else call.constant("zero_point")
    return _in_groups(call, values, call.constant("scale"), points, axis, block[axis])


def _dequantized_rows(call: Call, values: Value, block: Shape) -> RunTimeQuantized:
    *leading, extent = values.shape
    require(block == (*(1,) * len(leading), extent), "a group must be a row where the input is known at run time")
    has_points = call.result("zero_point") is not None
    parts = [call.f32("scale").f32(call.plan, call.name)]
    parts.append(value_of_tensor(call, call.tensor("zero_point")) if has_points else constant_of(call, _ZERO))
    scale, point = (_of_rows(call, part, (*leading, 1)) for part in parts)
    return dequantized(call.name, values, RunTimeParameters(scale, point, "i8", -128, 127, rounds_last=False))


def _of_rows(call: Call, part: Value, shape: Shape) -> Value:
    """One number for each row, or for all."""
    count = math.prod(part.shape)
    require(count in (1, math.prod(shape)), f"parameters must have {math.prod(shape)} entries, but got {count}")
    if part.shape == shape or count == 1:
        return part
    return call.plan.compute(
        call.name, shape, part.element, lambda emitter: (emitter.reshape(emitter.to_channels_first(part), shape), False)
    )


@imports("quantized_decomposed.dequantize_per_channel_group.default")
def _dequantize_groups(call: Call) -> Result:
    """As `_dequantize_affine`, of rows of a matrix in groups along its last dimension."""
    call.ignore("quant_min", "quant_max")
    values = call.constant("input")
    require(values.ndim == 2, f"input must be a matrix, but has {values.ndim} dimensions")
    points = None if call.result("zero_points") is None else call.constant("zero_points")
    return _in_groups(call, values, call.constant("scales"), points, 1, call.integers("group_size", 1)[0])


def _in_groups(call: Call, values: Array, scales: Array, points: Array | None, axis: int, size: int) -> BlockQuantized:
    extent = values.shape[axis]
    require(0 < size <= extent and extent % size == 0, f"groups of {size} must fill a dimension of {extent}")
    shape = [extent // size if i == axis else other for i, other in enumerate(values.shape)]
    count = int(np.prod(shape))
    for what, array in (("scale", scales), ("zero point", scales if points is None else points)):
        require(array.size == count, f"{what} must have {count} entries, but got {array.size}")
    require(values.dtype.name in ("int8", "uint8"), f"input must be int8 or uint8, but got {values.dtype}")
    require(scales.dtype == np.float32, f"scale must be float32, but got {scales.dtype}")
    is_f32 = points is None or points.dtype.kind in "iu" or points.dtype == np.float32
    require(is_f32, "zero point must be integers or float32")
    zero = None if points is None else points.reshape(shape)
    return BlockQuantized(values.shape, values, scales.reshape(shape), zero, axis, size, name=call.name)


@imports("_weight_int8pack_mm.default")
def _product_of_bytes(call: Call) -> Result:
    """``(x W^T) * scales`` of weights of 8 bits, which are multiplied as whole numbers."""
    weight, scales = call.constant("mat2"), call.constant("scales")
    require(weight.dtype == np.int8, f"argument 'mat2' must be int8, but got {weight.dtype}")
    require(scales.dtype == np.float32, f"argument 'scales' must be float32, but got {scales.dtype}")
    packed = pack_weights(weight, scales.reshape(-1, 1), None, weight.shape[1])
    assert packed is not None
    return _multiplied(call.f32("self"), packed, order=SumOrder.SCALE_LAST)


@imports("_weight_int4pack_mm_for_cpu.default")
def _product_of_nibbles(call: Call) -> Result:
    """``x W^T`` of weights ``(q - 8) * s + z`` in groups, which PyTorch packs as this machine's kernel reads them."""
    packed, parameters = call.constant("mat2"), call.constant("qScaleAndZeros")
    size, source = call.integers("qGroupSize", 1)[0], call.f32("self")
    require(parameters.dtype == np.float32, f"scales and zeros must be float32, but got {parameters.dtype}")
    depth = source.shape[-1]
    fits = packed.ndim == 2 and parameters.shape == (-(-depth // size), len(packed), 2) and depth % size == 0
    require(fits, f"scales and zeros must be those of {len(packed)} rows of {depth} weights in groups of {size}")
    scales, zeros = (np.ascontiguousarray(parameters[..., i].T) for i in range(2))
    with np.errstate(all="ignore"):
        points = np.where(zeros == 0, np.float32(_MIDDLE), np.float32(_MIDDLE) - zeros / scales)
    require(bool(np.isfinite(points).all()), "scales of groups with zeros must not be 0")
    is_whole = bool((points == np.rint(points)).all() and (points >= 0).all() and (points < 2 * _MIDDLE).all())
    integers = _unpacked(call, len(packed), depth, size)
    weights = pack_weights(integers, scales, points.astype(np.uint8) if is_whole else points, size)
    if weights is None:
        raise UnsupportedError("zeros must be multiples of scales that float32 holds")
    return _multiplied(source, weights)


def _unpacked(call: Call, rows: int, depth: int, size: int) -> Array:
    """Whole numbers of 4 bits, found by products with rows that have powers of 16 for a few weights each."""
    torch = torch_package()
    count = -(-depth // _PLACES)
    call.plan.budget.spend_constant((count, max(depth, rows)), 4)
    probes = np.zeros((count, count * _PLACES), np.float32)
    powers = np.float32(2 * _MIDDLE) ** np.arange(_PLACES, dtype=np.float32)
    for row in range(count):
        probes[row, row * _PLACES : (row + 1) * _PLACES] = powers
    probes = probes[:, :depth]
    plain = np.stack([np.ones((depth // size, rows)), np.zeros((depth // size, rows))], 2).astype(np.float32)
    names = {call.reads("self"): probes, call.reads("mat2"): call.constant("mat2"), call.reads("qScaleAndZeros"): plain}
    found = call_operator(call.node, lambda name: torch.from_numpy(np.ascontiguousarray(names[name])), "cpu").numpy()
    sums = np.rint(found + _MIDDLE * probes.sum(1, keepdims=True)).astype(np.int64)
    digits = [(sums >> (4 * place)) & (2 * _MIDDLE - 1) for place in range(_PLACES)]
    return np.stack(digits, 1).transpose(2, 0, 1).reshape(rows, -1)[:, :depth].astype(np.uint8)


def _multiplied(source: F32Tensor, weights: PackedWeights, **how: Any) -> Computation:
    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return block_product(emitter, operands[0], weights, **how)

    return Computation((*source.shape[:-1], len(weights.weight)), (source,), build)
