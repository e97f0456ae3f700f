"""MatMulNBits and GatherBlockQuantized of com.microsoft: weights of 2, 4 or 8 bits in blocks with scales of their own.

Constant weights become f32 when the model is read, ``(quantized value - zero point) * scale``.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect.frontends.building.checks import Array, Shape, axes_in, require
from qdialect.frontends.onnx.operators.elementwise import binary_tensor
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.quantization import spread, widened
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.movement import gathered
from qdialect.frontends.planning.tensors import Computed, Tensor, product

_BITS = (2, 4, 8)


@imports("com.microsoft.MatMulNBits")
def _product(call: Call) -> Tensor:
    """``A W^T + bias`` of rows [..., K] and weights [N, K], whose blocks lie along K; A stays f32 at every level."""
    call.count(3, 6)
    call.ignore("accuracy_level")
    require(call.optional(4) is None, "input 4, g_idx, must be omitted")
    require(call.attribute("weight_prepacked", 0) == 0, "weight_prepacked must be 0")
    source, (rows, depth) = call.f32(0), (int(call.attribute(name, 0)) for name in ("N", "K"))
    require(source.shape[-1:] == (depth,), f"input must have a last extent of {depth}, but got {list(source.shape)}")
    bits, size = _form(call)
    blocks = -(-depth // size)
    values = _unpacked(call, 1, bits, (rows, blocks * size), size)
    scales = _f32_constant(call, 2, (rows, blocks))
    points = _points(call, 3, bits, (rows, blocks))
    matrix = _widened(call, values, scales, points, size, 1)[:, :depth]
    result = product(source, np.ascontiguousarray(matrix.T))
    return result if call.optional(5) is None else binary_tensor("Add", result, call.f32(5))


@imports("com.microsoft.GatherBlockQuantized")
def _gather(call: Call) -> Tensor:
    """Elements of a table along one dimension, in blocks along any; rows of bytes hold blocks along their last."""
    call.count(3, 4)
    bits, size = _form(call)
    is_packed = call.constant(0).dtype == np.uint8
    table = call.constant(0) if is_packed else widened(call, (0,)).constant(0)
    rank = table.ndim
    gathers, blocks = axes_in([call.attribute("gather_axis", 0), call.attribute("quantize_axis", 1)], rank)
    if is_packed:
        fits = gathers == 0 < blocks == rank - 1
        require(fits, f"table of bytes must be in blocks along its rows, but got axes {gathers} and {blocks}")
        call.plan.budget.spend_constant((*table.shape[:-1], table.shape[-1] * 8 // bits), 4)
        table = _bits_of(table, bits)
    else:
        holds = bits == 4 and table.dtype != call.constant(0).dtype
        require(holds, f"table must be integers of 4 bits or bytes, but got {call.constant(0).dtype} and bits {bits}")
    along, extent = table.shape[:blocks], table.shape[blocks]
    scales = _f32_constant(call, 2, (*along, -(-extent // size), *table.shape[blocks + 1 :]))
    points = _points(call, 3, bits, scales.shape) if is_packed else _integer_points(call, scales.shape)
    array = _widened(call, table, scales, points, size, blocks)
    held = Computed(array.shape, Value(call.name, array.shape, "f32", data=array))
    return gathered(call.plan, call.name, held, indices_of(call, 1), gathers)


def _integer_points(call: Call, shape: Shape) -> Array:
    """Zero points of the table's own integers of 4 bits, one for each block; zeros where they are omitted."""
    if call.optional(3) is None:
        return np.zeros(shape)
    points = call.constant(3)
    holds = points.dtype == call.constant(0).dtype and points.shape == shape
    require(holds, f"input 3 must be {call.constant(0).dtype} of {list(shape)}, but got {list(points.shape)}")
    return points.astype(np.int8)


def _form(call: Call) -> tuple[int, int]:
    """Bits of a weight and weights of a block."""
    bits, size = call.attribute("bits", 4), call.attribute("block_size", 128)
    require(bits in _BITS, f"bits must be 2, 4 or 8, but got {bits}")
    require(size >= 16 and size & (size - 1) == 0, f"block_size must be a power of two from 16 on, but got {size}")
    return bits, size


def _unpacked(call: Call, index: int, bits: int, shape: tuple[int, int], size: int) -> Array:
    """Weights from bytes, the first of a byte in its lowest bits."""
    packed = call.constant(index)
    wanted = shape[0] * shape[1] * bits // 8
    require(packed.dtype == np.uint8, f"input {index} must be bytes, but got {packed.dtype}")
    found = f"input {index} must have {wanted} bytes for blocks of {size}, but got {packed.size}"
    require(packed.size == wanted, found)
    call.plan.budget.spend_constant(shape, 4)
    return _bits_of(packed, bits).reshape(shape)


def _bits_of(packed: Array, bits: int) -> Array:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[..., None] >> shifts) & (2**bits - 1)).reshape(*packed.shape[:-1], -1)


def _f32_constant(call: Call, index: int, shape: Shape) -> Array:
    array = call.constant(index)
    holds = array.dtype == np.float32 and array.size == math.prod(shape)
    require(holds, f"input {index} must be f32 of {list(shape)}, but got {list(array.shape)} of {array.dtype}")
    return array.reshape(shape)


def _points(call: Call, index: int, bits: int, shape: Shape) -> Array:
    """Zero points by block: floats, bytes in which each row begins anew, or the middle of the range."""
    if call.optional(index) is None:
        return np.full(shape, 2 ** (bits - 1))
    array = call.constant(index)
    if array.dtype == np.float32:
        return _f32_constant(call, index, shape)
    wanted = (*shape[:-1], -(-shape[-1] * bits // 8))
    holds = array.dtype == np.uint8 and array.size == math.prod(wanted)
    require(holds, f"input {index} must be bytes of {list(wanted)}, but got {list(array.shape)} of {array.dtype}")
    return _bits_of(array.reshape(wanted), bits)[..., : shape[-1]]


def _widened(call: Call, values: Array, scales: Array, points: Array, size: int, axis: int) -> Array:
    """f32 values of blocks of `size` along `axis`."""
    call.plan.budget.spend_constant(values.shape, 4)
    by_weight = [spread(one, size, axis, values.shape[axis]).astype(np.float32) for one in (points, scales)]
    return (values.astype(np.float32) - by_weight[0]) * by_weight[1]
