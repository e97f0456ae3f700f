"""Steps of drawn TFLite networks on numbers that stand for themselves, between types, and at indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import tflite

from qdialect.frontends.tflite.flatbuffer.writer import Quantization, options
from tools.evidence.case import Array
from tools.evidence.tflite_network import Network

Step = Callable[[Network, int], "int | None"]
"""Adds one value that reads the given one; None where it does not fit."""
_CASTS = ("float32", "int32", "int64", "bool", "int8", "uint8", "int16", "float16")
_INTEGERS = ("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
_FLOATS = ("DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW")
_DISCRETE = ("FLOOR_DIV", "FLOOR_MOD")
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
# With the options that their kernels read.
_OPTIONS = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}


def _other(network: Network, value: int, quantization: Quantization | None = None) -> int:
    """Another value of the shape and type, or a tensor that is repeated along some axes."""
    shape = network.shapes[value]
    if network.chance(0.4):
        return network.choice(*network.others(shape, network.quantization[value]))
    extents = [extent if network.chance(0.7) else 1 for extent in shape]
    return network.given(network.numbers(extents[network.choice(0, 0, 1) :]), quantization)


def _pair(network: Network, value: int) -> int | None:
    kind = network.choice(*(_FLOATS if network.is_float else _INTEGERS))
    other = _other(network, value)
    if kind in _DISCRETE and not network.inexact.isdisjoint((value, other)):
        return None
    inputs = [value, other] if network.chance(0.7) else [other, value]
    option = options(_OPTIONS[kind]) if kind in _OPTIONS else ()
    return network.add(kind, inputs, network.shapes[value], None, *option)


def _of_one(network: Network, value: int) -> int | None:
    if not network.is_float:
        return network.same(network.choice("ABS", "NEG", "SIGN"), [value], network.shapes[value])
    exact = network.choice("ABS", "NEG", "SQRT", "SQUARE", "RELU")
    decides = network.choice("FLOOR", "CEIL", "ROUND", "SIGN")
    # XNNPACK's functions differ at the ends of their ranges.
    inexact = () if network.is_delegated else ("LOG", "RSQRT", "SIN", "COS")
    kind = network.choice(exact, *inexact, decides)
    is_unsure = kind == decides and value in network.inexact
    return None if is_unsure else network.same(kind, [value], network.shapes[value])


def _bits(network: Network, value: int) -> int | None:
    if network.dtype == np.int64:
        return None
    kind = network.choice("BITWISE_XOR", "RIGHT_SHIFT")
    return network.add(kind, [value, _other(network, value)], network.shapes[value], None)


def _compared(network: Network, value: int) -> int | None:
    other = _other(network, value, network.quantization[value])
    if not network.inexact.isdisjoint((value, other)):
        return None
    return network.plain(network.choice(*_COMPARISONS), [value, other], network.shapes[value], np.bool_)


def _logic(network: Network, value: int) -> int:
    shape, kind = network.shapes[value], network.choice("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")
    return network.same(kind, [value] if kind == "LOGICAL_NOT" else [value, _other(network, value)], shape)


def _selected(network: Network, value: int) -> int:
    shape, known = network.shapes[value], network.quantization[value]
    held = [one for one, found in network.shapes.items() if found == shape and network.types[one].kind == "b"]
    condition = network.choice(*held) if held else network.given(network.numbers(shape, np.bool_))
    kind = network.choice("SELECT", "SELECT_V2")
    other = _other(network, value, known) if kind == "SELECT_V2" else network.choice(*network.others(shape, known))
    sides = [value, other] if network.chance(0.5) else [other, value]
    return network.same(kind, [condition, *sides], shape)


def _cast(network: Network, value: int) -> int | None:
    target = np.dtype(network.choice(*_CASTS[:4], *_CASTS))
    if network.is_float and (target.kind != "f" and value in network.inexact):
        return None
    return network.plain("CAST", [value], network.shapes[value], target, *options("CastOptions"))


def _requantized(network: Network, value: int) -> int | None:
    """From floats or quantized values to quantized values, of any type."""
    # The reference kernel gives an end of the range for infinity that its own value does not decide.
    if value in network.inexact or (network.is_special and network.is_float):
        return None
    network.dtype = np.dtype(network.choice("int8", "uint8", "int16"))
    return network.add("QUANTIZE", [value], network.shapes[value], network.drawn())


def _dequantized(network: Network, value: int) -> int:
    return network.plain("DEQUANTIZE", [value], network.shapes[value], np.float32)


def _hybrid(network: Network, value: int) -> int | None:
    """A layer of floats with weights of 8 bits, whose inputs are quantized when the network runs."""
    shape, rng = network.shapes[value], network.rng
    if value in network.inexact or len(shape) not in (2, 3, 4) or 0 in shape or network.is_special:
        return None
    count = int(rng.integers(1, 40))
    by_channel = network.chance(0.5) or len(shape) == 4
    scales = tuple(rng.uniform(0.003, 0.02, count if by_channel else 1).tolist())
    window = (3, 3) if len(shape) == 4 else ()
    content = rng.integers(-127, 128, (count, *window, shape[-1])).astype(np.int8)
    weights = network.constant(content, Quantization(scales, (0,) * len(scales)))
    bias = [network.constant(network.numbers([count]))] if network.chance(0.7) else []
    is_asymmetric = int(by_channel or network.chance(0.5))
    if len(shape) == 4:
        option = options("Conv2DOptions", StrideW=1, StrideH=1)
        return network.add("CONV_2D", [value, weights, *bias], (*shape[:-1], count), None, *option)
    name = "FullyConnectedOptions"
    option = options(name, KeepNumDims=int(len(shape) != 2), AsymmetricQuantizeInputs=is_asymmetric)
    return network.add("FULLY_CONNECTED", [value, weights, *bias], (*shape[:-1], count), None, *option)


# What is found: where an extreme stands, the largest ones, sums on the way, the reductions of plain numbers.


def _extreme_index(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if value in network.inexact or not shape or 0 in shape:
        return None
    axis, kind = int(network.rng.integers(len(shape))), network.choice("MAX", "MIN")
    dtype = network.choice(np.int32, np.int64)
    number = tflite.TensorType.INT32 if dtype == np.int32 else tflite.TensorType.INT64
    option = options(f"Arg{kind.capitalize()}Options", OutputType=number)
    given = network.integers(network.choice(axis, axis - len(shape)))
    return network.plain(f"ARG_{kind}", [value, given], shape[:axis] + shape[axis + 1 :], dtype, *option)


def _largest(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    # Between NaNs LiteRT's order depends on their places.
    is_unsure = value in network.inexact or (network.is_special and network.is_float)
    if is_unsure or not shape or 0 in shape or network.dtype.kind == "b":
        return None
    count = int(network.rng.integers(1, shape[-1] + 1))
    found = (*shape[:-1], count)
    results = [network.tensor(found, network.quantization[value]), network.tensor(found, None, np.int32)]
    network.node("TOPK_V2", [value, network.constant(np.array(count, np.int32))], results, *options("TopKV2Options"))
    return results[0]


def _cumulated(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if not shape or 0 in shape:
        return None
    option = options("CumsumOptions", Exclusive=network.choice(0, 1), Reverse=network.choice(0, 1))
    axis = network.constant(np.array(int(network.rng.integers(-len(shape), len(shape))), np.int32))
    return network.same("CUMSUM", [value, axis], shape, *option)


def _reduced(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if not shape or 0 in shape:
        return None
    axes = sorted(set(network.rng.integers(0, len(shape), 2).tolist()))
    keeps = network.choice(0, 1)
    result = [1 if axis in axes else n for axis, n in enumerate(shape) if keeps or axis not in axes]
    kinds = ("REDUCE_ANY", "REDUCE_ALL") if network.dtype.kind == "b" else ("SUM", "MEAN", "REDUCE_PROD")
    kind = network.choice(*kinds, *(("REDUCE_MAX", "REDUCE_MIN") if network.dtype.kind != "b" else ()))
    inputs = [value, network.integers(*(network.choice(axis, axis - len(shape)) for axis in axes))]
    return network.same(kind, inputs, result, *options("ReducerOptions", KeepDims=keeps))


# Elements at indices, which the file has or the caller gives.


def _positions(network: Network, shape: Sequence[int], extent: int, *, is_sorted: bool = False) -> int:
    found: Array = network.rng.integers(0, extent, shape).astype(network.choice(np.int32, np.int32, np.int64))
    return network.given(np.sort(found) if is_sorted else found)


def _gathered(network: Network, value: int) -> int | None:
    shape, rank = network.shapes[value], len(network.shapes[value])
    if not shape or 0 in shape:
        return None
    axis = int(network.rng.integers(rank))
    shared = int(network.rng.integers(axis + 1)) if network.chance(0.3) else 0
    picked = tuple(network.rng.integers(1, 4, int(network.rng.integers(0 if not shared else 1, 3))).tolist())
    where = _positions(network, (*shape[:shared], *picked), shape[axis])
    option = options("GatherOptions", Axis=network.choice(axis, axis - rank), BatchDims=shared)
    result = (*shape[:axis], *picked, *shape[axis + 1 :])
    return network.same("GATHER", [value, where], result, *option) if prod(result) < 1 << 15 else None


def _nd_positions(network: Network, shape: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """Indices of elements of the first dimensions, how many these are, and of what shape."""
    depth = int(network.rng.integers(1, len(shape) + 1))
    leading = tuple(int(network.rng.integers(1, 4)) for _ in range(network.choice(1, 1, 2)))
    dtype = network.choice(np.int32, np.int64)
    columns = [network.rng.integers(0, extent, leading).astype(dtype) for extent in shape[:depth]]
    return network.given(np.stack(columns, -1)), depth, leading


def _gathered_nd(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if not shape or 0 in shape:
        return None
    where, depth, leading = _nd_positions(network, shape)
    return network.same("GATHER_ND", [value, where], (*leading, *shape[depth:]), *options("GatherNdOptions"))


def _scattered(network: Network, value: int) -> int | None:
    """What is scattered are the values; those with equal indices are added up."""
    shape = network.shapes[value]
    if not shape or 0 in shape or (network.is_special and network.is_float):
        return None
    depth = int(network.rng.integers(1, 3))
    result = (*(int(n) for n in network.rng.integers(1, 5, depth)), *shape[1:])
    dtype = network.choice(np.int32, np.int64)
    columns = [network.rng.integers(0, extent, shape[:1]).astype(dtype) for extent in result[:depth]]
    where = network.given(np.stack(columns, -1))
    wanted = network.constant(np.array(result, dtype))
    return network.same("SCATTER_ND", [where, value, wanted], result, *options("ScatterNdOptions"))


def _segments(network: Network, value: int) -> int | None:
    shape, kinds = network.shapes[value], ("MAX", "MIN", "PROD", "SUM")
    if not shape or 0 in shape:
        return None
    count = int(network.rng.integers(1, 5))
    ids: Array = np.sort(network.rng.integers(0, count, shape[:1])).astype(np.int32)
    if network.chance(0.4):
        rows = (int(ids[-1]) + 1, *shape[1:])
        return network.same("SEGMENT_SUM", [value, network.constant(ids)], rows, *options("SegmentSumOptions"))
    kind = network.choice(*kinds)
    inputs = [value, network.given(network.rng.permutation(ids)), network.constant(np.array(count, np.int32))]
    name = f"UnsortedSegment{kind.capitalize()}Options"
    return network.same(f"UNSORTED_SEGMENT_{kind}", inputs, (count, *shape[1:]), *options(name))


def _one_hot(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if prod(shape) > 2000:
        return None
    axis, depth = int(network.rng.integers(-1, len(shape) + 1)), int(network.rng.integers(1, 9))
    along = len(shape) if axis == -1 else axis
    dtype = np.dtype(network.choice("float32", "int32", "int64", "bool", "int8"))
    on, off = (network.constant(network.numbers((), dtype)) for _ in range(2))
    inputs = [value, network.constant(np.array(depth, np.int32)), on, off]
    result = (*shape[:along], depth, *shape[along:])
    return network.plain("ONE_HOT", inputs, result, dtype, *options("OneHotOptions", Axis=axis))


def _embedded(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if len(shape) < 2 or 0 in shape:
        return None
    where = network.rng.integers(0, shape[0], int(network.rng.integers(1, 5))).astype(np.int32)
    return network.add(
        "EMBEDDING_LOOKUP", [network.given(where), value], (len(where), *shape[1:]), network.quantization[value]
    )


def _reversed(network: Network, value: int) -> int | None:
    shape, rank = network.shapes[value], len(network.shapes[value])
    if not shape or 0 in shape:
        return None
    axis = int(network.rng.integers(rank))
    if rank < 2 or network.chance(0.5):
        return network.same("REVERSE_V2", [value, network.integers(network.choice(axis, axis - rank))], shape)
    batch = int(network.choice(*(one for one in range(rank) if one != axis)))
    lengths = network.rng.integers(0, shape[axis] + 1, shape[batch]).astype(network.choice(np.int32, np.int64))
    option = options("ReverseSequenceOptions", SeqDim=axis, BatchDim=batch)
    return network.same("REVERSE_SEQUENCE", [value, network.given(lengths)], shape, *option)


def _sliced(network: Network, value: int) -> int | None:
    """By bounds of both signs, in and out of range, and masks."""
    shape = network.shapes[value]
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    entries: list[tuple[int, int, int]] = []
    result: list[int] = []
    for axis, extent in enumerate(shape):
        if network.chance(0.1):
            masks["NewAxisMask"] |= 1 << len(entries)
            entries.append((0, 0, 1))
            result.append(1)
        if network.chance(0.15) and not masks["EllipsisMask"]:
            masks["EllipsisMask"] |= 1 << len(entries)
            entries.append((0, 0, 1))
            result += shape[axis : axis + (left := int(network.rng.integers(0, len(shape) - axis + 1)))]
            rest = shape[axis + left :]
            entries += [(0, n, 1) for n in rest]
            result += rest
            break
        if extent and network.chance(0.2):
            masks["ShrinkAxisMask"] |= 1 << len(entries)
            begin = int(network.rng.integers(-extent, extent))
            entries.append((begin, begin + 1, 1))
            continue
        begin, end = (int(one) for one in network.rng.integers(-extent - 2, extent + 3, 2))
        step = network.choice(1, 1, 1, 2, -1, -2)
        first, last = network.choice(None, begin), network.choice(None, None, end)
        masks["BeginMask"] |= (first is None) << len(entries)
        masks["EndMask"] |= (last is None) << len(entries)
        entries.append((begin, end, step))
        result.append(len(range(extent)[slice(first, last, step)]))
    bounds = [network.integers(*one) for one in zip(*entries, strict=True)] if entries else []
    if not bounds or (0 in result and network.chance(0.8)):
        return None
    return network.same("STRIDED_SLICE", [value, *bounds], result, *options("StridedSliceOptions", **masks))


def _updated(network: Network, value: int) -> int | None:
    shape = network.shapes[value]
    if not shape or 0 in shape:
        return None
    extents = list(shape)
    axis = int(network.rng.integers(len(shape)))
    extents[axis] = int(network.rng.integers(1, extents[axis] + 1))
    update = network.given(network.numbers(extents), network.quantization[value])
    starts = network.rng.integers(-3, max(shape) + 3, len(shape)).astype(network.choice(np.int32, np.int64))
    option = options("DynamicUpdateSliceOptions")
    return network.same("DYNAMIC_UPDATE_SLICE", [value, update, network.given(starts)], shape, *option)


# Other shapes.


def _spread(network: Network, value: int) -> int | None:
    shape, rank = network.shapes[value], len(network.shapes[value])
    known: dict[str, Callable[[], tuple[list[int], Sequence[int], Any]]] = {
        "EXPAND_DIMS": lambda: (
            [value, network.integers(axis := int(network.rng.integers(rank + 1)))],
            (*shape[:axis], 1, *shape[axis:]),
            options("ExpandDimsOptions"),
        ),
        "TILE": lambda: (
            [value, network.integers(*(times := [network.choice(1, 1, 2) for _ in shape]))],
            [n * one for n, one in zip(shape, times, strict=True)],
            options("TileOptions"),
        ),
        "BROADCAST_TO": lambda: ([value, network.integers(2, *shape)], (2, *shape), ()),
        "PACK": lambda: (
            [value, network.choice(*network.others(shape, network.quantization[value]))],
            (*shape[: (at := int(network.rng.integers(rank + 1)))], 2, *shape[at:]),
            options("PackOptions", ValuesCount=2, Axis=at),
        ),
        "ADD_N": lambda: (
            [value, *network.others(shape, network.quantization[value])][:3],
            shape,
            options("AddNOptions"),
        ),
        "ZEROS_LIKE": lambda: ([value], shape, options("ZerosLikeOptions")),
        "MATRIX_DIAG": lambda: ([value], (*shape, *shape[-1:]), options("MatrixDiagOptions")),
        "SQUEEZE": lambda: ([value], [n for n in shape if n != 1], options("SqueezeOptions")),
        "SHAPE": lambda: ([value], (rank,), options("ShapeOptions", OutType=tflite.TensorType.INT32)),
    }
    kind = network.choice(*known)
    if prod(shape) > 5000 or not shape or (kind == "ADD_N" and network.dtype.name not in ("float32", "int32")):
        return None
    if kind in ("EXPAND_DIMS", "PACK", "BROADCAST_TO", "MATRIX_DIAG") and rank > 4:
        return None
    inputs, result, option = known[kind]()
    if kind == "SHAPE":
        return network.plain(kind, inputs, result, np.int32, *option)
    return network.same(kind, inputs, result, *option)


def _filled(network: Network, value: int) -> int | None:
    """A number of the caller's everywhere."""
    shape = network.choice((3,), (2, 3), ())
    element = network.given(network.numbers(()), network.quantization[value])
    return network.add(
        "FILL", [network.integers(*shape), element], shape, network.quantization[value], *options("FillOptions")
    )


_ALL = (0, 1, 2, 3, 4, 5)
_SOME = _ALL[1:]
STEPS: Sequence[tuple[Step, Sequence[int], str]] = (
    *((_pair, _ALL, "fi"), (_pair, _ALL, "i"), (_of_one, _ALL, "fi"), (_bits, _ALL, "in"), (_compared, _ALL, "fqibn")),
    *((_logic, _ALL, "b"), (_selected, _ALL, "fqibn"), (_cast, _ALL, "fibn"), (_requantized, _ALL, "fq")),
    *((_dequantized, _ALL, "q"), (_hybrid, (2, 3, 4), "f"), (_extreme_index, _SOME, "fqibn"), (_largest, _SOME, "fqi")),
    *((_cumulated, _SOME, "fi"), (_reduced, _SOME, "fib"), (_gathered, _SOME, "fqibn"), (_gathered_nd, _SOME, "fqibn")),
    *((_scattered, _SOME, "fi"), (_segments, _SOME, "fi"), (_one_hot, (0, 1, 2, 3), "i"), (_embedded, _SOME, "fqi")),
    *((_reversed, _SOME, "fqibn"), (_sliced, _SOME, "fqibn"), (_updated, _SOME, "fqibn"), (_spread, _ALL, "fqibn")),
    (_filled, _ALL, "fqibn"),
)
"""Each with the numbers of dimensions that it takes, and what: floats, quantized values, integers, booleans, and plain
numbers of other types."""
