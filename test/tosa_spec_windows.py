"""Contractions, pools and RESIZE of the TOSA 1.0 specification; see `tosa_spec`."""

from collections.abc import Iterator

import numpy as np
from tosa_spec import Array, Node, computes


def _wide(value: Array) -> Array:
    return value if value.dtype == np.float32 else value.astype(np.int64)


def _centered(value: Array, zero_point: Array) -> Array:
    return value if value.dtype == np.float32 else value.astype(np.int64) - zero_point.astype(np.int64)


def _taps(data: Array, node: Node, kernel: tuple[int, int], dilation: list[int]) -> Iterator[tuple[int, int, Array]]:
    """For each tap of the kernel the elements that the windows meet there."""
    height, width = node.shape[1:3]
    down, across = node.integers("stride")
    for i, j in np.ndindex(*kernel):
        y, x = i * dilation[0], j * dilation[1]
        yield i, j, data[:, y : y + (height - 1) * down + 1 : down, x : x + (width - 1) * across + 1 : across]


def _padded(data: Array, node: Node, fill: float = 0) -> Array:
    top, bottom, left, right = node.integers("pad")
    return np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)


@computes("conv2d", "depthwise_conv2d")
def _conv2d(node: Node, values: list[Array]) -> Array:
    data, weight = _padded(_centered(values[0], values[3]), node), _centered(values[1], values[4])
    is_depthwise = node.op.name == "tosa.depthwise_conv2d"
    kernel = weight.shape[:2] if is_depthwise else weight.shape[1:3]
    total = np.zeros(node.shape, data.dtype)
    for i, j, window in _taps(data, node, (kernel[0], kernel[1]), node.integers("dilation")):
        if is_depthwise:
            total += (window[..., np.newaxis] * weight[i, j]).reshape(node.shape)
        else:
            total += window @ weight[:, i, j].T
    return total + _wide(values[2])


@computes("transpose_conv2d")
def _transpose_conv2d(node: Node, values: list[Array]) -> Array:
    data, weight = _centered(values[0], values[3]), _centered(values[1], values[4])
    top, _, left, _ = node.integers("out_pad")
    down, across = node.integers("stride")
    total = np.zeros(node.shape, data.dtype) + _wide(values[2])
    for n, y, x in np.ndindex(data.shape[:3]):
        for i, j in np.ndindex(weight.shape[1:3]):
            row, column = y * down + i + top, x * across + j + left
            if 0 <= row < node.shape[1] and 0 <= column < node.shape[2]:
                total[n, row, column] += weight[:, i, j] @ data[n, y, x]
    return total


@computes("matmul", "matmul_t")
def _matmul(node: Node, values: list[Array]) -> Array:
    lhs, rhs = _centered(values[0], values[2]), _centered(values[1], values[3])
    return lhs @ (rhs.swapaxes(1, 2) if node.op.name == "tosa.matmul_t" else rhs)


@computes("max_pool2d")
def _max_pool2d(node: Node, values: list[Array]) -> Array:
    data = values[0]
    lowest = -np.inf if data.dtype == np.float32 else np.iinfo(data.dtype).min
    ignores = node.mode("nan_mode", "PROPAGATE") == "IGNORE"
    kernel = node.integers("kernel")
    windows = [window for _, _, window in _taps(_padded(data, node, lowest), node, (kernel[0], kernel[1]), [1, 1])]
    return (np.fmax if ignores else np.maximum).reduce(windows)


@computes("avg_pool2d")
def _avg_pool2d(node: Node, values: list[Array]) -> Array:
    kernel = node.integers("kernel")
    inside = np.ones((1, *values[0].shape[1:3], 1), np.int64)
    data = _padded(_centered(values[0], values[1]), node)
    total = sum(window for _, _, window in _taps(data, node, (kernel[0], kernel[1]), [1, 1]))
    count = sum(window for _, _, window in _taps(_padded(inside, node), node, (kernel[0], kernel[1]), [1, 1]))
    if values[0].dtype == np.float32:
        return np.asarray(total) / np.asarray(count).astype(np.float32)
    bounds = np.iinfo(values[0].dtype)
    mean = _divided(np.asarray(total), np.asarray(count))
    return (mean + values[2].astype(np.int64)).clip(bounds.min, bounds.max)


def _divided(total: Array, count: Array) -> Array:
    """apply_scale_32 with reciprocal_scale(count)."""
    powers = np.array([int(n - 1).bit_length() for n in count.ravel()]).reshape(count.shape)
    multiplier = (((1 << 30) + 1) << powers) // count
    return (total * multiplier + (1 << (29 + powers))) >> (30 + powers)


@computes("resize")
def _resize(node: Node, values: list[Array]) -> Array:
    data, (scale, offset, _) = values[0], values[1:]
    lower, upper, rest = zip(*(_positions(node, data, scale, offset, axis) for axis in (0, 1)), strict=True)
    if node.mode("mode") == "NEAREST_NEIGHBOR":
        picked: list[Array] = [np.where(2 * rest[i] >= scale[2 * i], upper[i], lower[i]) for i in (0, 1)]
        return data[:, picked[0]][:, :, picked[1]]
    is_float = data.dtype == np.float32
    weights: list[tuple[Array, Array]] = []
    for axis in (0, 1):
        up = rest[axis].astype(np.float32) / np.float32(scale[2 * axis]) if is_float else rest[axis]
        whole = np.float32(1) if is_float else scale[2 * axis]
        shape = (1, -1, 1, 1) if axis == 0 else (1, 1, -1, 1)
        weights.append(((whole - up).reshape(shape), up.reshape(shape)))
    total = np.zeros(node.shape, np.float32 if is_float else np.int64)
    for row, rows in enumerate((lower[0], upper[0])):
        for column, columns in enumerate((lower[1], upper[1])):
            total += _wide(data[:, rows][:, :, columns]) * weights[0][row] * weights[1][column]
    return total


def _positions(node: Node, data: Array, scale: Array, offset: Array, axis: int) -> tuple[Array, Array, Array]:
    numerator, denominator = int(scale[2 * axis]), int(scale[2 * axis + 1])
    at = np.arange(node.shape[1 + axis]) * denominator + int(offset[axis])
    first = at // numerator
    last = data.shape[1 + axis] - 1
    return np.clip(first, 0, last), np.clip(first + 1, 0, last), at - first * numerator
