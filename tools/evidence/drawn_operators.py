"""A table of ONNX operators for drawn networks: what each reads besides a value, and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from tools.evidence.drawn_graph import CONTRIB, InvalidNodeError, Network
from tools.evidence.drawn_steps import Entry, Step

Operands = Sequence[str]
Attributes = dict[str, Any]
Draw = Callable[[Network, str], tuple[Operands, Attributes]]
"""What a node reads, and its attributes; `results` is how many it gives."""


def _one(n: Network, *values: Any) -> Any:
    return values[int(n.rng.integers(len(values)))]


def _is(n: Network, share: float = 0.5) -> bool:
    return bool(n.rng.random() < share)


def _some(n: Network, **attributes: Any) -> Attributes:
    """Each attribute at times, of those that have several values one of these."""
    return {name: _one(n, *values) for name, values in attributes.items() if _is(n)}


def _f32(n: Network, *shape: int) -> str:
    return n.operand(n.array(np.float32, shape))


def _whole(n: Network, low: int, high: int, shape: Sequence[int], dtype: Any = np.int64) -> str:
    """Integers from `low` to below `high`."""
    return n.operand(n.rng.integers(low, high, shape).astype(dtype))


def _bytes(n: Network, dtype: Any, shape: Sequence[int]) -> Any:
    """Weights: of int8 those whose products ONNX Runtime does not saturate on CPUs without a byte dot product."""
    return n.rng.integers(-64, 64, shape, dtype) if np.dtype(dtype).kind == "i" else n.array(dtype, shape)


def _scale(n: Network, *shape: int) -> str:
    return n.constant((2.0 ** n.rng.uniform(-9, -1, shape)).astype(np.float32))


def _point(n: Network, dtype: Any, *shape: int) -> str:
    return n.constant(n.array(dtype, shape))


def _heads(n: Network, width: int) -> int:
    return int(_one(n, *[count for count in (1, 2, 3, 4, 8) if width % count == 0]))


# Attention.


def _attention(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Of the standard: rows of heads, with fewer heads of keys, masks of both types, and caches."""
    batch, steps, width = n.shape(x)
    heads = _heads(n, width)
    kinds = [count for count in (1, 2, 4, 8) if heads % count == 0]
    few, size, length = int(_one(n, *kinds)), width // heads, int(_one(n, steps, 1, 5, 9))
    past = int(_one(n, 0, 0, 3, 6))
    value_size = size if _is(n) else int(n.rng.integers(1, 9))
    key, value = _f32(n, batch, length, few * size), _f32(n, batch, length, few * value_size)
    total = past + length
    mask_shape = _one(n, (steps, total), (batch, 1, steps, total), (1, heads, steps, total))
    mask = _one(n, "", n.operand(n.array(_one(n, bool, np.float32), mask_shape)))
    caches = [_f32(n, batch, few, past, size), _f32(n, batch, few, past, value_size)] if past else []
    attributes = _some(n, is_causal=[0, 1], scale=[0.3, 1.0], softcap=[2.0, 30.0], qk_matmul_output_mode=[0, 1, 2, 3])
    attributes |= {"q_num_heads": heads, "kv_num_heads": few, "results": _one(n, 3, 4) if past else 1}
    return [x, key, value, *([mask] if mask or past else []), *caches], attributes


def _multi_head(n: Network, x: str) -> tuple[Operands, Attributes]:
    batch, steps, width = n.shape(x)
    heads, length = _heads(n, width), int(_one(n, steps, 1, 5))
    past = int(_one(n, 0, 0, 4))
    total = past + length
    bias = _one(n, "", _f32(n, 3 * width))
    padding = _one(n, "", "", _whole(n, 0, 2, (batch, total), np.int32), _whole(n, 1, total + 1, (batch,), np.int32))
    added = _one(n, "", _f32(n, _one(n, 1, batch), _one(n, 1, heads), steps, total))
    caches = [_f32(n, batch, heads, past, width // heads) for _ in range(2)] if past else []
    attributes = _some(n, scale=[0.3, 1.0], unidirectional=[0, 1], mask_filter_value=[-1e4, -5.0])
    operands = [x, _f32(n, batch, length, width), _f32(n, batch, length, width), bias, padding, added, *caches]
    return operands, {"num_heads": heads, "results": 3 if past else 1, **attributes}


def _grouped(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Of queries as wide as the value, with caches that may be longer than what counts."""
    batch, steps, _ = n.shape(x)
    size = int(_one(n, 8, 16, 32))
    few, past = int(_one(n, 1, 2)), int(_one(n, 0, 3, 8))
    heads = few * int(_one(n, 1, 2, 3))
    query = n.add("MatMul", [x, n.weights(n.shape(x)[2], heads * size)])
    total = past + steps
    lengths = np.full(batch, total - 1) if _is(n) or past == 0 else n.rng.integers(steps - 1, total, batch)
    is_rotary = _is(n)
    angles = n.array(np.float32, (total + 4, size // 2))
    tables = [n.constant(np.cos(angles)), n.constant(np.sin(angles))] if is_rotary else []
    attributes = _some(n, scale=[0.3], softcap=[5.0], local_window_size=[-1, 2, 4], smooth_softmax=[0, 1])
    attributes |= {"do_rotary": int(is_rotary), "rotary_interleaved": int(is_rotary and _is(n))}
    operands = [query, _f32(n, batch, steps, few * size), _f32(n, batch, steps, few * size)]
    operands += [n.operand(n.array(np.float32, (batch, few, past, size))) for _ in range(2)]
    operands += [n.operand(lengths.astype(np.int32)), n.constant(np.array(total, np.int32)), *tables]
    return operands, {"num_heads": heads, "kv_num_heads": few, "results": 3, **attributes}


def _packed_attention(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Attention of ONNX Runtime, which multiplies by the weights itself."""
    batch, steps, width = n.shape(x)
    hidden = 4 * int(_one(n, 1, 2, 4))
    mask = _one(n, "", "", _whole(n, 0, 2, (batch, steps), np.int32), _whole(n, 1, steps + 1, (batch,), np.int32))
    attributes = _some(n, scale=[0.3], unidirectional=[0, 1], mask_filter_value=[-1e4])
    return [x, n.weights(width, 3 * hidden), n.weights(3 * hidden), mask], {"num_heads": _one(n, 1, 2, 4), **attributes}


def _quantized_attention(n: Network, x: str) -> tuple[Operands, Attributes]:
    _, _, width = n.shape(x)
    hidden = 4 * int(_one(n, 1, 2, 4))
    weights = _bytes(n, _one(n, np.int8, np.uint8), (width, 3 * hidden))
    points = [_point(n, n.dtype(x)), _point(n, weights.dtype)]
    operands = [x, n.constant(weights), n.weights(3 * hidden), _scale(n), _scale(n), "", *points]
    return operands, {"num_heads": _one(n, 1, 2, 4), **_some(n, unidirectional=[0, 1])}


def _rotated(n: Network, x: str) -> tuple[Operands, Attributes]:
    batch, steps, width = n.shape(x)
    heads = _heads(n, width)
    half = width // heads // 2
    if not half:
        raise InvalidNodeError("a head has one column")
    part: Attributes = {}
    if _is(n):
        half = int(n.rng.integers(1, half + 1))
        part["rotary_embedding_dim"] = 2 * half
    has_places = _is(n)
    angles = n.array(np.float32, (steps + 3, half) if has_places else (batch, steps, half))
    places = [_whole(n, 0, steps + 3, (batch, steps))] if has_places else []
    tables = [n.operand(np.cos(angles)), n.operand(np.sin(angles))]
    return [x, *tables, *places], {"num_heads": heads, "interleaved": int(_is(n)), **part}


def _written(n: Network, x: str) -> tuple[Operands, Attributes]:
    batch, heads, length, size = n.shape(x)
    count, mode = int(n.rng.integers(1, length + 1)), _one(n, "linear", "circular")
    first = _whole(n, 0, length - count + 1 if mode == "linear" else length, (batch,))
    return [x, _f32(n, batch, heads, count, size), *([first] if _is(n, 0.8) else [])], {"mode": mode, "axis": 2}


# Windows, images and cells.


def _pooled(n: Network, x: str) -> tuple[Operands, Attributes]:
    rank = len(n.shape(x)) - 2
    kernel: list[int] = n.rng.integers(1, 4, rank).tolist()
    pads = [int(n.rng.integers(0, size)) for size in kernel] * 2
    steps = {"strides": [n.rng.integers(1, 3, rank).tolist()], "dilations": [n.rng.integers(1, 3, rank).tolist()]}
    return [x], {"kernel_shape": kernel, **_some(n, ceil_mode=[0, 1], pads=[pads], **steps)}


def _averaged(n: Network, x: str) -> tuple[Operands, Attributes]:
    operands, attributes = _pooled(n, x)
    return operands, {**attributes, **_some(n, count_include_pad=[0, 1])}


def _best_places(n: Network, x: str) -> tuple[Operands, Attributes]:
    operands, attributes = _pooled(n, x)
    return operands, {**attributes, "results": 2}


def _transposed(n: Network, x: str) -> tuple[Operands, Attributes]:
    _, channels, *image = n.shape(x)
    kernel, groups = [int(n.rng.integers(1, 4)) for _ in image], int(_one(n, 1, channels))
    steps = n.rng.integers(1, 3, len(image)).tolist()
    weights = n.weights(channels, int(n.rng.integers(1, 5)), *kernel)
    padded = [[int(n.rng.integers(0, size)) for size in kernel] * 2]
    attributes = _some(n, pads=padded, output_padding=[[step - 1 for step in steps]])
    return [x, weights], {"strides": steps, "group": groups, **attributes}


def _integer_convolution(n: Network, x: str) -> tuple[Operands, Attributes]:
    _, channels, *image = n.shape(x)
    weights = _bytes(n, _one(n, np.int8, np.uint8), (int(n.rng.integers(1, 9)), channels, *[2] * len(image)))
    points = [_point(n, n.dtype(x)), _point(n, weights.dtype)]
    return [x, n.constant(weights), *points], _some(n, pads=[[1] * 2 * len(image)], strides=[[2] * len(image)])


def _quantized_convolution(n: Network, x: str) -> tuple[Operands, Attributes]:
    (data, weights, point, own), attributes = _integer_convolution(n, x)
    count = n.constants[weights].dims[0]
    bias = [n.constant(n.rng.integers(-999, 999, count).astype(np.int32))] if _is(n) else []
    scales = _scale(n, *_one(n, (), (count,)))
    if n.constants[scales].dims:
        own = n.constant(np.zeros(count, helper.tensor_dtype_to_np_dtype(n.constants[own].data_type)))
    return [data, _scale(n), point, weights, scales, own, _scale(n), _point(n, n.dtype(x)), *bias], attributes


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def _resized(n: Network, x: str) -> tuple[Operands, Attributes]:
    shape, mode = n.shape(x), _one(n, "nearest", "linear", "cubic")
    factors = [1.0, 1.0, *[float(_one(n, 0.5, 1, 1.5, 2, 2.6)) for _ in shape[2:]]]
    sizes = [n.integers(*[max(1, int(e * f)) for e, f in zip(shape, factors, strict=True)])]
    extents = [n.constant(np.array(factors, np.float32))] if _is(n) else ["", *sizes]
    attributes = _some(n, coordinate_transformation_mode=_COORDINATES, exclude_outside=[0, 1], antialias=[0, 1])
    if mode == "nearest":
        modes = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        attributes = _some(n, coordinate_transformation_mode=_COORDINATES, nearest_mode=modes)
    return [x, "", *extents], {"mode": mode, **attributes}


def _sampled(n: Network, x: str) -> tuple[Operands, Attributes]:
    batch, rank = n.shape(x)[0], len(n.shape(x)) - 2
    grid = n.operand(n.rng.uniform(-1.3, 1.3, (batch, *n.rng.integers(1, 6, rank), rank)).astype(np.float32))
    modes = ("linear", "nearest", "cubic") if rank == 2 else ("linear", "nearest")
    return [x, grid], _some(n, mode=modes, padding_mode=["zeros", "border", "reflection"], align_corners=[0, 1])


def _cell(gates: int, results: int) -> Draw:
    """A recurrent layer over the first dimension."""

    def draw(n: Network, x: str) -> tuple[Operands, Attributes]:
        steps, batch, width = n.shape(x)
        hidden, direction = int(n.rng.integers(1, 9)), _one(n, "forward", "reverse", "bidirectional")
        count = 2 if direction == "bidirectional" else 1
        weights = [n.weights(count, gates * hidden, width), n.weights(count, gates * hidden, hidden)]
        bias = _one(n, "", n.weights(count, 2 * gates * hidden))
        lengths = _one(n, "", "", _whole(n, 1, steps + 1, (batch,), np.int32))
        first = [_f32(n, count, batch, hidden)] if _is(n, 0.4) else []
        reset = _some(n, linear_before_reset=[0, 1]) if gates == 3 else {}
        own = {"hidden_size": hidden, "direction": direction, "results": results, **reset, **_some(n, clip=[0.7])}
        return [x, *weights, bias, lengths, *first], own

    return draw


# Products.


def _blocked(n: Network, x: str) -> tuple[Operands, Attributes]:
    """By weights of few bits in blocks along the terms, or with a scale for each column."""
    inner, columns = n.shape(x)[-1], int(n.rng.integers(1, 20))
    dtype = _one(n, ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8)
    low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    weights = n.rng.integers(low, high + 1, (inner, columns)).astype(dtype)
    block = int(_one(n, 0, 2, 16, 32))
    shape = (-(-inner // block), columns) if block else (columns,)
    points = [n.constant(n.rng.integers(low, high + 1, shape).astype(dtype))] if _is(n) else []
    blocks: Attributes = {"block_size": block, "axis": 0} if block else {"axis": 1}
    operands = [n.constant(weights), _scale(n, *shape), *points]
    return [x, n.add("DequantizeLinear", operands, **blocks)], {}


def _dynamic_product(n: Network, x: str) -> tuple[Operands, Attributes]:
    inner, columns = n.shape(x)[-1], int(n.rng.integers(1, 20))
    weights = _bytes(n, _one(n, np.int8, np.uint8), (inner, columns))
    shape = _one(n, (), (1,), (columns,))
    point = _one(n, "", n.constant(n.array(weights.dtype, shape)))
    return [x, n.constant(weights), _scale(n, *shape), point, *([n.weights(columns)] if _is(n) else [])], {}


def _scaled_product(n: Network, x: str) -> tuple[Operands, Attributes]:
    _, weights, scale, point, *bias = _dynamic_product(n, x)[0]
    return [x, weights, _scale(n), scale, _point(n, n.dtype(x)), point, *bias], {}


def _quantized_gemm(n: Network, x: str) -> tuple[Operands, Attributes]:
    inner, columns, is_transposed = n.shape(x)[-1], int(n.rng.integers(1, 20)), _is(n)
    weights = _bytes(n, n.dtype(x), (columns, inner) if is_transposed else (inner, columns))
    bias = _one(n, "", n.constant(n.rng.integers(-999, 999, columns).astype(np.int32)))
    result = [_scale(n), _point(n, n.dtype(x))] if _is(n, 0.7) else []
    operands = [x, _scale(n), _point(n, n.dtype(x)), n.constant(weights), _scale(n), _point(n, weights.dtype), bias]
    return [*operands, *result], {"transB": int(is_transposed), **_some(n, alpha=[0.5, 1.0])}


def _fused_product(n: Network, x: str) -> tuple[Operands, Attributes]:
    *outer, rows, inner = n.shape(x)
    flags: Attributes = {name: int(_is(n)) for name in ("transA", "transB")}
    inner = rows if flags["transA"] else inner
    columns = int(n.rng.integers(1, 9))
    other = (columns, inner) if flags["transB"] else (inner, columns)
    return [x, _f32(n, *(outer if _is(n) else []), *other)], {**flags, **_some(n, alpha=[0.5])}


def _equation(n: Network, x: str) -> tuple[Operands, Attributes]:
    shape = n.shape(x)
    if 0 in shape:
        raise InvalidNodeError("ONNX Runtime's process dies of it")
    letters = "abcd"[: len(shape)]
    kept = [letter for letter in letters if _is(n, 0.7)]
    n.rng.shuffle(kept)
    if _is(n):
        return [x], {"equation": f"{letters}->{''.join(kept)}"}
    other = [letter for letter in letters if _is(n, 0.6)]
    operand = n.operand(n.array(n.dtype(x), [shape[letters.index(one)] for one in other] + [3]))
    return [x, operand], {"equation": f"{letters},{''.join(other)}z->{''.join(kept)}z"}


# Normalizations.


def _last(*counts: int) -> Draw:
    """A value and so many numbers for each of its last extent; one of `counts`."""

    def draw(n: Network, x: str) -> tuple[Operands, Attributes]:
        return [x, *[n.weights(n.shape(x)[-1]) for _ in range(_one(n, *counts))]], {}

    return draw


def _skipped(*counts: int) -> Draw:
    def draw(n: Network, x: str) -> tuple[Operands, Attributes]:
        weights = [n.weights(n.shape(x)[-1]) for _ in range(_one(n, *counts))]
        return [x, n.operand(n.array(np.float32, n.shape(x))), *weights], _some(n, epsilon=[1e-3])

    return draw


def _channels(*counts: int, **attributes: Sequence[Any]) -> Draw:
    """A value and numbers for each channel."""

    def draw(n: Network, x: str) -> tuple[Operands, Attributes]:
        return [x, *[n.weights(n.shape(x)[1]) for _ in range(_one(n, *counts))]], _some(n, **attributes)

    return draw


def _batch_norm(n: Network, x: str) -> tuple[Operands, Attributes]:
    channels = n.shape(x)[1]
    variance = n.constant(np.abs(n.rng.normal(size=channels)).astype(np.float32))
    return [x, *[n.weights(channels) for _ in range(3)], variance], _some(n, epsilon=[1e-3])


def _grouped_norm(n: Network, x: str) -> tuple[Operands, Attributes]:
    channels = n.shape(x)[1]
    return [x, n.weights(channels), n.weights(channels)], {"num_groups": _heads(n, channels)}


def _with_statistics(n: Network, x: str) -> tuple[Operands, Attributes]:
    first = int(n.rng.integers(0, len(n.shape(x))))
    shape = n.shape(x)[first:]
    biases = [n.weights(*shape)] if _is(n) else []
    return [x, n.weights(*shape), *biases], {"axis": first, "results": _one(n, 1, 3)}


# Anything of one value.


def _plain(count: int = 1, **attributes: Sequence[Any]) -> Draw:
    """A value `count` times, and attributes at times."""

    def draw(n: Network, x: str) -> tuple[Operands, Attributes]:
        others = [n.operand(n.array(n.dtype(x), n.shape(x)[-1:])) for _ in range(count - 1)]
        return [x, *others], _some(n, **attributes)

    return draw


def _reduced(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Over any axes: none is all of them, or no reduction."""
    if n.dtype(x).itemsize == 8 and np.abs(n.values[x].numpy()).max(initial=0) > 2**20:
        raise InvalidNodeError("ONNX Runtime adds int64 in float64")
    rank = len(n.shape(x))
    axes = [one - rank * _is(n) for one in range(rank) if _is(n)]
    attributes = _some(n, keepdims=[0, 1], noop_with_empty_axes=[0, 1])
    return [x, *([n.integers(*axes)] if axes or _is(n, 0.3) else [])], attributes


def _cut(n: Network, x: str) -> tuple[Operands, Attributes]:
    rank = len(n.shape(x))
    axes = [one for one in range(rank) if _is(n)] or [rank - 1]
    return [x, n.integers(*n.rng.integers(1, 9, len(axes)))], {"axes": axes}


def _around(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Padding on some axes, which may take away."""
    shape = n.shape(x)
    axes = [one for one in range(len(shape)) if _is(n)] or [len(shape) - 1]
    limits = [max(min(2, shape[one] - 1), 0) for one in axes] * 2
    amounts = n.integers(*[int(n.rng.integers(-min(1, most), most + 1)) for most in limits])
    mode = _one(n, "constant", "reflect", "edge", "wrap")
    fill = n.number(n.dtype(x), 1) if mode == "constant" and _is(n) else ""
    return [x, amounts, fill, n.integers(*axes)], {"mode": mode}


def _in_few_bits(n: Network, x: str) -> tuple[Operands, Attributes]:
    """Quantized along an axis, or to a type without a zero point."""
    axis = int(n.rng.integers(0, len(n.shape(x))))
    kinds = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.INT4, TensorProto.UINT4)
    shape = _one(n, (), (n.shape(x)[axis],))
    return [x, _scale(n, *shape)], {"axis": axis, "output_dtype": _one(n, *kinds)}


def _neutral(n: Network, x: str) -> tuple[Operands, Attributes]:
    return [x, n.number(n.dtype(x), 0)], {}


ROWS: Sequence[tuple[str, Sequence[int], str, Draw]] = (
    ("Attention", (3,), "f4", _attention),
    (f"{CONTRIB}.MultiHeadAttention", (3,), "f4", _multi_head),
    (f"{CONTRIB}.GroupQueryAttention", (3,), "f4", _grouped),
    (f"{CONTRIB}.Attention", (3,), "f4", _packed_attention),
    (f"{CONTRIB}.QAttention", (3,), "iu", _quantized_attention),
    ("RotaryEmbedding", (3,), "f4", _rotated),
    ("TensorScatter", (4,), "f4", _written),
    ("AveragePool", (3, 4), "f4", _averaged),
    ("MaxPool", (3, 4), "f4iu", _pooled),
    ("MaxPool", (3, 4), "f4", _best_places),
    ("LpPool", (3, 4), "f4", _pooled),
    ("GlobalMaxPool", (3, 4), "f4", _plain()),
    ("ConvTranspose", (3, 4), "f4", _transposed),
    ("ConvInteger", (3, 4), "iu", _integer_convolution),
    ("QLinearConv", (3, 4), "iu", _quantized_convolution),
    ("Resize", (3, 4), "fiu", _resized),
    ("Resize", (4,), "f4", _resized),
    ("GridSample", (4,), "f4", _sampled),
    ("LSTM", (3,), "f4", _cell(4, 3)),
    ("GRU", (3,), "f4", _cell(3, 2)),
    ("RNN", (3,), "f4", _cell(1, 2)),
    ("MatMul", (2, 3, 4), "f4", _blocked),
    (f"{CONTRIB}.DynamicQuantizeMatMul", (2, 3), "f4", _dynamic_product),
    (f"{CONTRIB}.MatMulIntegerToFloat", (2, 3), "iu", _scaled_product),
    (f"{CONTRIB}.QGemm", (2,), "iu", _quantized_gemm),
    (f"{CONTRIB}.FusedMatMul", (2, 3, 4), "f4", _fused_product),
    ("Einsum", (2, 3, 4), "fi", _equation),
    (f"{CONTRIB}.BiasGelu", (2, 3), "f4", _last(1)),
    (f"{CONTRIB}.FastGelu", (2, 3), "f4", _last(0, 1)),
    (f"{CONTRIB}.QuickGelu", (2, 3, 4), "f4", _plain(alpha=[1.0, 1.702])),
    ("RMSNormalization", (2, 3, 4), "f4", _last(1)),
    ("SimplifiedLayerNormalization", (2, 3), "f4", _last(1)),
    ("LayerNormalization", (2, 3, 4), "f4", _with_statistics),
    (f"{CONTRIB}.SkipLayerNormalization", (3,), "f4", _skipped(1, 2, 3)),
    (f"{CONTRIB}.SkipSimplifiedLayerNormalization", (3,), "f4", _skipped(1, 2)),
    ("InstanceNormalization", (3, 4), "f4", _channels(2, epsilon=[1e-3])),
    ("GroupNormalization", (3, 4), "f4", _grouped_norm),
    ("BatchNormalization", (2, 3, 4), "f4", _batch_norm),
    ("LpNormalization", (2, 3, 4), "f4", _plain(p=[1, 2], axis=[0, 1, -1])),
    ("MeanVarianceNormalization", (4,), "f4", _plain()),
    (
        "LRN",
        (4,),
        "f4",
        lambda n, x: ([x], {"size": _one(n, 1, 3, 4), **_some(n, alpha=[0.5], beta=[0.5], bias=[2.0])}),
    ),
    ("LogSoftmax", (2, 3, 4), "f4", _plain(axis=[0, 1, -1])),
    ("Softmax", (2, 3, 4), "f4", _plain(axis=[0, 1, -1])),
    ("Hardmax", (2, 3), "f4", _plain(axis=[0, 1, -1])),
    ("PRelu", (2, 3, 4), "f4", _plain(2)),
    ("Celu", (2, 3, 4), "f4", _plain(alpha=[0.5, 2.0])),
    ("Swish", (2, 3, 4), "f4", _plain(alpha=[0.5, 2.0])),
    ("ThresholdedRelu", (2, 3, 4), "f4", _plain(alpha=[0.5, 2.0])),
    ("HardSigmoid", (2, 3, 4), "f4", _plain(alpha=[0.5], beta=[0.1])),
    ("Gelu", (2, 3, 4), "f4", _plain(approximate=["none", "tanh"])),
    *((kind, (1, 2, 3, 4), "f4", _plain(count)) for kind in ("Sum", "Mean", "Max", "Min") for count in (2, 3)),
    *(
        (kind, (1, 2, 3, 4), "fiu", _reduced)
        for kind in (
            *("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2"),
            *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
        )
    ),
    ("CenterCropPad", (2, 3, 4), "fiub", _cut),
    ("Pad", (2, 3, 4), "fiub", _around),
    ("SpaceToDepth", (4,), "fiub", lambda n, x: ([x], {"blocksize": 2})),
    ("DepthToSpace", (4,), "fiub", lambda n, x: ([x], {"blocksize": 2, **_some(n, mode=["DCR", "CRD"])})),
    ("EyeLike", (2,), "fiub", _plain(k=[-1, 1])),
    ("QuantizeLinear", (2, 3, 4), "f4", _in_few_bits),
    ("Cast", (2, 3), "fiub", lambda n, x: ([x], {"to": _one(n, TensorProto.INT4, TensorProto.UINT4)})),
    ("Dropout", (2, 3, 4), "f4", _plain()),
    ("Identity", (1, 2, 3, 4), "fiub", _plain()),
    *((kind, (2, 3, 4), "f4", _neutral) for kind in ("Add", "Sub")),
    ("NonMaxSuppression", (3,), "f4", lambda n, x: ([x, _f32(n, n.shape(x)[0], 1, n.shape(x)[1])], {})),
)
"""Operators with the ranks and the types of values, in the letters of `Entry`, that they are drawn for."""


def _step(kind: str, draw: Draw) -> Step:
    domain, _, operator = kind.rpartition(".")

    def step(network: Network, value: str) -> None:
        operands, attributes = draw(network, value)
        network.add(operator, operands, domain=domain, **attributes)

    return step


def _graph(name: str, given: Sequence[ValueInfoProto], nodes: Sequence[Any], results: Sequence[str]) -> Any:
    return helper.make_graph(nodes, name, given, [ValueInfoProto(name=one) for one in results])


def _looped(n: Network, x: str) -> None:
    """A Loop that adds a value around it to what it carries, and collects that."""
    name = f"{x}_{len(n.nodes)}"
    element, carried = helper.np_dtype_to_tensor_dtype(n.dtype(x)), f"{name}_carried"
    given = [
        helper.make_tensor_value_info(f"{name}_at", TensorProto.INT64, []),
        helper.make_tensor_value_info(f"{name}_on", TensorProto.BOOL, []),
        helper.make_tensor_value_info(carried, element, n.shape(x)),
    ]
    nodes = [
        helper.make_node("Add", [carried, x], [f"{name}_next"]),
        helper.make_node("Identity", [f"{name}_on"], [f"{name}_still"]),
        helper.make_node("Neg", [f"{name}_next"], [f"{name}_row"]),
    ]
    body = _graph("body", given, nodes, [f"{name}_still", f"{name}_next", f"{name}_row"])
    n.add("Loop", [n.integers(3), "", x], reads=[x], results=2, body=body)


def _scanned(n: Network, x: str) -> None:
    """A Scan that adds up the rows of a value."""
    name, shape = f"{x}_{len(n.nodes)}", n.shape(x)
    element = helper.np_dtype_to_tensor_dtype(n.dtype(x))
    given = [helper.make_tensor_value_info(f"{name}_{one}", element, shape[1:]) for one in ("sum", "row")]
    nodes = [
        helper.make_node("Add", [f"{name}_sum", f"{name}_row"], [f"{name}_next"]),
        helper.make_node("Identity", [f"{name}_next"], [f"{name}_result"]),
    ]
    body = _graph("body", given, nodes, [f"{name}_next", f"{name}_result"])
    n.add("Scan", [_f32(n, *shape[1:]), x], results=2, body=body, num_scan_inputs=1)


OPERATOR_STEPS: Sequence[Entry] = (
    *((_step(kind, draw), ranks, kinds) for kind, ranks, kinds, draw in ROWS),
    (_looped, (2, 3), "f4"),
    (_scanned, (2, 3), "f4"),
)
