"""Col2Im: elements of windows added to where they lie in an image."""

from __future__ import annotations

import math

import numpy as np

from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.indexing import scatter
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.onnx.operators.window import declared_window
from qdialect.frontends.planning.movement import Reshaping, Slicing, move_value
from qdialect.frontends.planning.plain import constant_of, tensor_of
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.slices import Slice
from qdialect.quant_math.choices import ScatterReduction


@imports("Col2Im")
def _col2im(call: Call) -> Tensor:
    """Of [N, C * taps, windows] the image [N, C, ...] in which each element is the sum of what windows have for it."""
    call.count(3)
    value, size, kernel = value_of(call, 0), call.integers(1), call.integers(2)
    require(value.element == "f32", f"input must be f32, but got {value.element}")
    require(len(value.shape) == 3, f"input must have 3 dimensions, but got {len(value.shape)}")
    window = declared_window(call, size, kernel)
    batch, rows, windows = value.shape
    taps = math.prod(kernel)
    fits = rows % taps == 0 and windows == math.prod(window.output) and min(size) >= 1
    require(fits, f"input must have rows of {taps} taps and {math.prod(window.output)} windows, but is {value.shape}")
    padded = tuple(map(sum, zip(size, window.before, window.after, strict=True)))
    call.plan.budget.spend_constant(value.shape, 8)
    images = batch * (rows // taps)
    at = _offsets(kernel, window.dilation, padded)[:, np.newaxis] + _offsets(window.output, window.strides, padded)
    indices = (np.arange(images) * math.prod(padded))[:, np.newaxis, np.newaxis] + at
    zeros = constant_of(call, np.zeros((images, *padded), np.float32))
    positions = constant_of(call, indices.astype(np.int64))
    updates = move_value(call.plan, call.name, value, Reshaping((images, taps, windows)), None)
    count = (math.prod(zeros.shape),)
    image = scatter(call, zeros, positions, updates, count, ScatterReduction.ADD)
    kept = [Slice(0, 1, images), *(Slice(low, 1, extent) for low, extent in zip(window.before, size, strict=True))]
    cut = move_value(call.plan, call.name, image, Slicing.of(kept), None)
    return tensor_of(move_value(call.plan, call.name, cut, Reshaping((batch, rows // taps, *size)), None))


def _offsets(counts: Shape, steps: Shape, size: Shape) -> Array:
    """Where elements, `steps` apart along each dimension, lie in an image of `size`, in row-major order."""
    grid = np.indices(counts).reshape(len(counts), -1)
    return np.asarray(np.ravel_multi_index(tuple(axis * step for axis, step in zip(grid, steps, strict=True)), size))
