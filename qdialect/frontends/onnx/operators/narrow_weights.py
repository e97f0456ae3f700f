"""Weights of 4 bits, and weights that are quantized in blocks: what is constant is widened when the model is read.

Integers of 4 bits are the same integers in 8.  Blocks have scales along two dimensions, so their numbers become f32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.frontends.common import Array, UnsupportedError, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.planning.tensors import Constant

_WIDER = {"int4": np.int8, "uint4": np.uint8}


def widened(call: Call, indices: Sequence[int]) -> Call:
    """The call with 8 bits in constant inputs of 4 bits among those of `indices`."""
    for index in indices:
        tensor = call.optional(index)
        if isinstance(tensor, Constant) and tensor.array.dtype.name in _WIDER:
            wide = tensor.array.astype(_WIDER[tensor.array.dtype.name])
            call = call.with_input(index, Constant(wide))
    return call


def dequantized_blocks(call: Call) -> Array:
    """``scale * (quantized value - zero point)`` of constants, in float32, as ONNX Runtime computes it.

    Each scale and zero point holds for `block_size` elements along the axis, of which the last block may have fewer.
    """
    values, scales = _array(call, 0), _array(call, 1)
    points = None if call.optional(2) is None else _array(call, 2)
    axis, size = call.attribute("axis", 1), call.attribute("block_size", 0)
    rank = values.ndim
    require(size >= 1, f"block_size must be at least 1, but got {size}")
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    axis %= rank
    wanted = (*values.shape[:axis], -(-values.shape[axis] // size), *values.shape[axis + 1 :])
    for what, array in (("scale", scales), ("zero point", scales if points is None else points)):
        require(array.shape == wanted, f"{what} must have the shape {list(wanted)}, but got {list(array.shape)}")
    require(scales.dtype == np.float32, f"scale must be f32, but got {scales.dtype}")
    require(values.dtype.kind in "iu", f"input 0 must be integers, but got {values.dtype}")
    require(points is None or points.dtype == values.dtype, f"zero point must be {values.dtype}")
    call.plan.budget.spend_constant(values.shape, 4)
    centred = values.astype(np.int64)
    if points is not None:
        centred = centred - spread(points, size, axis, values.shape[axis]).astype(np.int64)
    return centred.astype(np.float32) * spread(scales, size, axis, values.shape[axis])


def _array(call: Call, index: int) -> Array:
    tensor = call.tensor(index)
    if not isinstance(tensor, Constant):
        raise UnsupportedError(f"input {index} must be constant where it is quantized in blocks")
    return tensor.array


def spread(blocks: Array, size: int, axis: int, extent: int) -> Array:
    """Each entry for `size` elements along `axis`, of which there are `extent`."""
    return np.take(np.repeat(blocks, size, axis), np.arange(extent), axis)
