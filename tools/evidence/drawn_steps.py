"""The steps by which drawn ONNX networks grow: a node or a few, from a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from tools.evidence.drawn_graph import CONTRIB, InvalidNodeError, Network

Step = Callable[[Network, str], object]
Entry = tuple[Step, Sequence[int], str]
"""A step, the ranks of its value, and the types as letters of NumPy's kinds."""


def _one_of(network: Network, *names: str) -> str:
    return str(network.rng.choice(names))


def _axis(network: Network, value: str, first: int = 1) -> int:
    """An axis of a value; seldom the batch."""
    rank = len(network.shape(value))
    return int(network.rng.integers(first if rank > first and network.rng.random() < 0.9 else 0, max(rank, 1)))


def _convolution(network: Network, value: str) -> None:
    _, channels, *image = network.shape(value)
    rng = network.rng
    kernel = [int(rng.integers(1, min(max(extent, 1), 4) + 1)) for extent in image]
    stride, pad = int(rng.integers(1, 3)), int(rng.integers(0, 2))
    groups = int(rng.choice([1, 1, channels]))
    results = channels * int(rng.integers(1, 3)) if groups > 1 else int(rng.integers(1, 20))
    weights = network.weights(results, channels // max(groups, 1), *kernel)
    bias = [network.weights(results)] if rng.random() < 0.7 else []
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [stride] * len(image),
        "pads": [pad] * 2 * len(image),
    }
    network.add("Conv", [value, weights, *bias], group=groups, **attributes)


def _pool(network: Network, value: str) -> None:
    kernel = [int(network.rng.integers(1, min(max(extent, 1), 3) + 1)) for extent in network.shape(value)[2:]]
    network.add(_one_of(network, "MaxPool", "AveragePool"), [value], kernel_shape=kernel)


def _global_pool(network: Network, value: str) -> None:
    network.add("GlobalAveragePool", [value])


def _product(network: Network, value: str) -> None:
    results = int(network.rng.integers(1, 20))
    product = network.add("MatMul", [value, network.weights(network.shape(value)[-1], results)])
    network.add("Add", [product, network.weights(results)])


def _gemm(network: Network, value: str) -> None:
    results = int(network.rng.integers(1, 20))
    operands = [value, network.weights(results, network.shape(value)[-1]), network.weights(results)]
    network.add("Gemm", operands, transB=1)


def _attention(network: Network, value: str) -> None:
    """Scores of each row with each, and their sums."""
    scores = network.add("MatMul", [value, network.add("Transpose", [value], perm=[0, 2, 1])])
    network.add("MatMul", [network.add("Softmax", [scores], axis=-1), value])


def _function(network: Network, value: str) -> None:
    kinds = (
        *("Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Softplus", "Gelu", "Erf"),
        *("Abs", "Neg", "Mish", "Selu", "Sin", "Exp"),
    )
    network.add(_one_of(network, *kinds), [value])


def _clip(network: Network, value: str) -> None:
    network.add("Clip", [value, *(network.number(network.dtype(value), bound) for bound in (0, 6))])


def _other(network: Network, value: str) -> str:
    """An earlier value of the same type and shape, or a number for each element, each of the last extent, or all."""
    shape, dtype, rng = network.shape(value), network.dtype(value), network.rng
    others = [name for name in network.values if (network.shape(name), network.dtype(name)) == (shape, dtype)]
    if rng.random() < 0.6 or dtype.kind == "V":
        return str(rng.choice(others))
    return network.operand(network.array(dtype, [shape[-1:], (1,) * len(shape), (), shape][int(rng.integers(4))]))


def _pair(network: Network, value: str) -> None:
    network.add(_one_of(network, "Add", "Mul", "Sub", "Max", "Min"), [value, _other(network, value)])


def _concat(network: Network, value: str) -> None:
    network.add("Concat", [value, _other(network, value)], axis=_axis(network, value))


def _slice(network: Network, value: str) -> None:
    axis = _axis(network, value)
    extent = network.shape(value)[axis]
    start, step = int(network.rng.integers(0, max(extent, 1))), int(network.rng.integers(1, 3))
    bounds = (start, extent, step) if network.rng.random() < 0.8 else (start - extent, -(2**63), -step)
    network.add("Slice", [value, *(network.integers(number) for number in (*bounds[:2], axis, bounds[2]))])


def _pad(network: Network, value: str) -> None:
    rank, axis = len(network.shape(value)), _axis(network, value)
    pads = np.zeros(2 * rank, np.int64)
    pads[axis], pads[axis + rank] = network.rng.integers(0, 3, 2)
    network.add("Pad", [value, network.constant(pads)], mode=_one_of(network, "constant", "edge"))


def _transpose(network: Network, value: str) -> None:
    network.add("Transpose", [value], perm=[0, *(1 + network.rng.permutation(len(network.shape(value)) - 1)).tolist()])


def _flat(network: Network, value: str) -> None:
    network.add("Flatten", [value], axis=1)


def _reshape(network: Network, value: str) -> None:
    batch, *inner = network.shape(value)
    shape = (int(np.prod(inner)), 1) if network.rng.random() < 0.5 else (1, *inner)
    network.add("Reshape", [value, network.integers(0, *shape)], allowzero=int(not batch))


def _reduced(network: Network, value: str) -> None:
    kinds = ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
    if network.dtype(value).itemsize == 8 and np.abs(network.values[value].numpy()).max(initial=0) > 2**40:
        raise InvalidNodeError("ONNX Runtime adds int64 in float64")
    network.add(_one_of(network, *kinds), [value, network.integers(_axis(network, value))], keepdims=1)


def _softmax(network: Network, value: str) -> None:
    network.add("Softmax", [value], axis=-1)


def _normalized(network: Network, value: str) -> None:
    inner = network.shape(value)[-1]
    network.add("LayerNormalization", [value, network.weights(inner), network.weights(inner)], axis=-1)


def _resized(network: Network, value: str) -> None:
    scales = network.constant(np.array([1, 1, 2, 2], np.float32))
    network.add("Resize", [value, "", scales], mode=_one_of(network, "nearest", "linear"))


_ANY, _ALL = (2, 3, 4), (0, 1, 2, 3, 4, 5)
_MANY = (1, 2, 3, 4, 5)
_F32, _NUMBERS, _TYPES = "f4", "fiu", "fiubV"
STEPS: Sequence[Entry] = (
    *((_convolution, (3, 4), _F32), (_convolution, (3, 4), _F32), (_pool, (3, 4), _F32), (_global_pool, (3, 4), _F32)),
    *((_product, _ANY, _F32), (_gemm, (2,), _F32), (_gemm, (2,), _F32), (_attention, (3,), _F32)),
    *((_function, _ANY, _F32), (_function, _ANY, _F32), (_clip, _ANY, _NUMBERS), (_pair, _ANY, _NUMBERS)),
    *((_pair, _ANY, _NUMBERS), (_concat, _ANY, _TYPES), (_slice, _ANY, _TYPES), (_pad, _ANY, _TYPES)),
    *((_transpose, (3, 4), _TYPES), (_flat, (3, 4), _TYPES), (_reshape, (2, 3), _TYPES), (_reduced, _ANY, _NUMBERS)),
    *((_softmax, _ANY, "f"), (_normalized, _ANY, _F32), (_resized, (4,), _F32)),
)


def _binary(network: Network, value: str) -> None:
    """Operators of two values of a type, which most types have."""
    kinds = {"b": "And Or Xor Equal", "i": "BitwiseAnd BitwiseOr BitwiseXor", "u": "BitwiseAnd BitwiseOr BitwiseXor"}
    compared = "Equal Less LessOrEqual Greater GreaterOrEqual Max Min"
    drawn = kinds.get(network.dtype(value).kind, "")
    operands = [value, _other(network, value)]
    network.add(_one_of(network, *(drawn if drawn.startswith("And") else f"{drawn} {compared}").split()), operands)


def _unary(network: Network, value: str) -> None:
    kinds = {
        "b": "Not",
        "i": "BitwiseNot Abs Neg Sign",
        "u": "BitwiseNot Abs",
        "f": "Floor Ceil Round IsNaN IsInf Sign Abs Neg Sqrt Reciprocal Softsign Atan Asinh ThresholdedRelu Shrink",
    }
    network.add(_one_of(network, *kinds[network.dtype(value).kind].split()), [value])


def _divided(network: Network, value: str) -> None:
    """By numbers that are neither 0 nor -1, of which ONNX Runtime's process dies."""
    dtype, rng = network.dtype(value), network.rng
    divisor = np.abs(network.array(dtype, network.shape(value)[-1:])) // 2 + 1
    kind = _one_of(network, "Div", "Mod")
    fmod: dict[str, Any] = {"fmod": int(dtype.kind == "f" or rng.random() < 0.3)} if kind == "Mod" else {}
    network.add(kind, [value, network.operand(divisor.astype(dtype))], **fmod)


def _shifted(network: Network, value: str) -> None:
    shift = network.rng.integers(0, 8, network.shape(value)[-1:]).astype(network.dtype(value))
    network.add("BitShift", [value, network.operand(shift)], direction=_one_of(network, "LEFT", "RIGHT"))


def _power(network: Network, value: str) -> None:
    network.add("Pow", [value, network.number(network.dtype(value), int(network.rng.integers(2, 4)))])


_CAST_TYPES = (
    *("FLOAT", "FLOAT", "FLOAT", "FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64", "BOOL"),
    *("UINT32", "UINT64", "DOUBLE"),
)


def _cast(network: Network, value: str) -> None:
    network.add("Cast", [value], to=int(getattr(TensorProto, _one_of(network, *_CAST_TYPES))))


def _where(network: Network, value: str) -> None:
    """By a truth value of the network, or a drawn one."""
    shape = network.shape(value)
    known = [name for name in network.values if network.dtype(name).kind == "b" and network.shape(name) == shape]
    condition = str(network.rng.choice(known)) if known else network.operand(network.array(bool, shape[-1:]))
    network.add("Where", [condition, value, _other(network, value)])


def _best(network: Network, value: str) -> None:
    axis, rng = _axis(network, value), network.rng
    if rng.random() < 0.5:
        last: dict[str, Any] = {"select_last_index": int(rng.integers(2)), "keepdims": int(rng.integers(2))}
        network.add(_one_of(network, "ArgMax", "ArgMin"), [value], axis=axis, **last)
        return
    count = network.integers(int(rng.integers(1, max(network.shape(value)[axis], 1) + 1)))
    network.add("TopK", [value, count], results=2, axis=axis, largest=int(rng.integers(2)))


def _cumulated(network: Network, value: str) -> None:
    exclusive, reverse = network.rng.integers(0, 2, 2).tolist()
    axis = network.integers(_axis(network, value))
    network.add("CumSum", [value, network.add("Squeeze", [axis])], exclusive=exclusive, reverse=reverse)


def _one_hot(network: Network, value: str) -> None:
    dtype = _one_of(network, "float32", "int64", "uint8", "int8", "bool")
    values = network.constant(network.array(dtype, (2,)))
    network.add("OneHot", [value, network.integers(int(network.rng.integers(1, 9))), values], axis=-1)


def _triangle(network: Network, value: str) -> None:
    network.add(
        "Trilu", [value, network.integers(int(network.rng.integers(-3, 4)))], upper=int(network.rng.integers(2))
    )


def _indices(network: Network, extent: int, shape: Sequence[int]) -> str:
    """Of elements of a dimension, from either end."""
    if extent < 1:
        raise InvalidNodeError("there is no element")
    return network.operand(network.rng.integers(-extent, extent, shape).astype(_one_of(network, "int64", "int32")))


def _gathered(network: Network, value: str) -> None:
    shape, axis = list(network.shape(value)), _axis(network, value)
    kind = _one_of(network, "Gather", "GatherElements", "GatherND")
    if kind == "GatherND":
        found = network.rng.integers(0, min(shape), (shape[0], 2, 1)) if min(shape) else np.zeros((shape[0], 0, 1))
        network.add(kind, [value, network.operand(found.astype(np.int64))], batch_dims=int(network.rng.integers(2)))
        return
    count = int(network.rng.integers(1, 5))
    drawn = [(), (count,), (2, count)][int(network.rng.integers(3))]
    drawn = drawn if kind == "Gather" else (*shape[:axis], count, *shape[axis + 1 :])
    network.add(kind, [value, _indices(network, shape[axis], drawn)], axis=axis)


def _scattered(network: Network, value: str) -> None:
    shape, dtype, axis = list(network.shape(value)), network.dtype(value), _axis(network, value)
    reduction: dict[str, Any] = {"reduction": _one_of(network, "none", "none", "add", "mul", "max", "min")}
    if network.rng.random() < 0.5:
        rows = network.constant(network.rng.permutation(shape[0])[: max(shape[0] - 1, 1), None])
        updates = network.operand(network.array(dtype, (max(shape[0] - 1, 1), *shape[1:])))
        network.add("ScatterND", [value, rows, updates], **reduction)
        return
    shape[axis] = int(network.rng.integers(1, 4))
    indices = _indices(network, network.shape(value)[axis], shape)
    network.add(
        "ScatterElements", [value, indices, network.operand(network.array(dtype, shape))], axis=axis, **reduction
    )


def _reversed_rows(network: Network, value: str) -> None:
    batch, rows, *_ = network.shape(value)
    lengths = network.operand(network.rng.integers(1, rows + 1, batch))
    network.add("ReverseSequence", [value, lengths], batch_axis=0, time_axis=1)


def _compressed(network: Network, value: str) -> None:
    axis = _axis(network, value)
    kept = network.constant(network.array(bool, (network.shape(value)[axis],)))
    network.add("Compress", [value, kept], axis=axis)


def _by_shape(network: Network, value: str) -> None:
    """What exporters write: extents that are read from a value at run time."""
    shape = network.add("Shape", [value])
    kind = _one_of(network, "Expand", "Reshape", "ConstantOfShape", "Range", "Slice")
    first = network.add("Gather", [shape, network.integers(0)], axis=0)
    if kind == "Expand":
        network.add("Expand", [value, network.add("Concat", [network.integers(2), shape], axis=0)])
    elif kind == "Reshape":
        network.add("Reshape", [value, network.add("Concat", [first, network.integers(-1)], axis=0)])
    elif kind == "ConstantOfShape":
        dtype = network.dtype(value)
        fill = helper.make_tensor("", helper.np_dtype_to_tensor_dtype(dtype), [1], [1])
        network.add("Add", [value, network.add("ConstantOfShape", [shape], value=fill)])
    elif kind == "Range":
        bounds = [network.number(np.int64, 0), network.add("Squeeze", [first]), network.number(np.int64, 1)]
        network.add("Range", bounds)
    else:
        network.add("Slice", [value, network.integers(0), network.add("Sub", [first, network.integers(1)])])


def _einsum(network: Network, value: str) -> None:
    *_, rows, inner = network.shape(value)
    if 0 in network.shape(value):
        raise InvalidNodeError("ONNX Runtime's process dies of it")
    equation, shape = (("...ij,jk->...ik", (inner, 3)), ("...ij,kj->...ki", (4, inner)), ("...ij,i->...j", (rows,)))[
        int(network.rng.integers(3))
    ]
    network.add("Einsum", [value, network.constant(network.array(network.dtype(value), shape))], equation=equation)


def _parameters(network: Network, dtype: Any) -> list[str]:
    """Scale and zero point of a tensor."""
    has_point = network.rng.random() < 0.5 and np.dtype(dtype).itemsize < 4
    point = network.array(dtype, ()) if has_point else np.zeros((), dtype)
    return [network.number(np.float32, 2.0 ** network.rng.uniform(-9, 0)), network.constant(point)]


def _quantize(network: Network, value: str) -> None:
    """To 4, 8 or 16 bits and at times back, or with a range of the data."""
    if network.rng.random() < 0.2:
        network.add("DynamicQuantizeLinear", [value], results=3)
        return
    name = _one_of(network, "uint8", "int8", "uint16", "int16", "UINT4", "INT4")
    scale, point = _parameters(network, name if name.islower() else "int8")
    if not name.islower():
        point = network.add("Cast", [network.number(np.int8, 0)], to=int(getattr(TensorProto, name)))
    found = network.add("QuantizeLinear", [value, scale, point])
    if network.rng.random() < 0.5 or not name.islower():
        network.add("DequantizeLinear", [found, scale, point])


def _dequantize(network: Network, value: str) -> None:
    network.add("DequantizeLinear", [value, *_parameters(network, network.dtype(value))])


def _quantized_operator(network: Network, value: str) -> None:
    """An operator of ONNX Runtime on quantized values."""
    dtype = network.dtype(value)
    first, last = [value, *_parameters(network, dtype)], _parameters(network, dtype)
    second = [_other(network, value), *_parameters(network, dtype)]
    kinds = ("Add", "Mul", "Sigmoid", "LeakyRelu", "Concat", "Softmax", "GlobalAveragePool", "AveragePool", "Where")
    kind = _one_of(network, *kinds, "MatMul")
    name, rng = f"QLinear{kind}", network.rng
    if kind in ("Add", "Mul"):
        network.add(name, [*first, *second, *last], domain=CONTRIB)
    elif kind in ("Sigmoid", "LeakyRelu"):
        network.add(name, [*first, *last], domain=CONTRIB)
    elif kind == "Concat":
        network.add(name, [*last, *first, *second], domain=CONTRIB, axis=-1)
    elif kind == "Softmax":
        scale = [network.number(np.float32, 1 / 256), network.number(dtype, 0)]
        network.add(name, [*first, *scale], domain=CONTRIB, axis=-1, opset=13)
    elif kind == "GlobalAveragePool":
        network.add(name, [*first, *last], domain=CONTRIB, channels_last=int(rng.integers(2)))
    elif kind == "AveragePool":
        kernel = [2] * (len(network.shape(value)) - 2)
        network.add(name, [*first, *last], domain=CONTRIB, kernel_shape=kernel, count_include_pad=int(rng.integers(2)))
    elif kind == "Where":
        condition = network.operand(network.array(bool, network.shape(value)[-1:]))
        network.add(name, [condition, *first, *second, *last], domain=CONTRIB)
    else:
        weights = network.array(_one_of(network, "int8", "uint8"), (network.shape(value)[-1], 5))
        point = network.number(weights.dtype, 0)
        network.add(name, [*first, network.constant(weights), network.number(np.float32, 0.02), point, *last])


def _integer_product(network: Network, value: str) -> None:
    weights = network.array(_one_of(network, "int8", "uint8"), (network.shape(value)[-1], 5))
    points = [
        network.constant(network.array(network.dtype(value), ())),
        network.constant(network.array(weights.dtype, ())),
    ]
    network.add("MatMulInteger", [value, network.constant(weights), *points])


def _packed_product(network: Network, value: str) -> None:
    """MatMulNBits, of weights in blocks."""
    rng, inner = network.rng, network.shape(value)[-1]
    results, bits, block = int(rng.integers(1, 20)), int(rng.choice([2, 4, 4, 8])), int(rng.choice([16, 32, 64]))
    blocks = -(-inner // block)
    weights = rng.integers(0, 256, (results, blocks, block * bits // 8), np.uint8)
    scales = network.constant(network.array(np.float32, (results * blocks,)) * np.float32(0.1))
    points = [network.constant(rng.integers(0, 256, results * -(-blocks * bits // 8), np.uint8))]
    operands = [value, network.constant(weights), scales, *(points if rng.random() < 0.5 else [])]
    attributes: dict[str, Any] = {
        "K": inner,
        "N": results,
        "bits": bits,
        "block_size": block,
        "accuracy_level": int(rng.choice([0, 4])),
    }
    network.add("MatMulNBits", operands, domain=CONTRIB, **attributes)


def _branches(network: Network, value: str) -> None:
    """An If that reads values around it, by a condition of the data."""
    condition = network.operand(network.array(bool, ()))
    graphs = [
        helper.make_graph(
            [helper.make_node(kind, [value, _other(network, value)], [f"{value}_{kind}"])],
            kind,
            [],
            [ValueInfoProto(name=f"{value}_{kind}")],
        )
        for kind in ("Add", "Mul")
    ]
    reads = [name for graph in graphs for name in graph.node[0].input]
    network.add("If", [condition], reads=reads, then_branch=graphs[0], else_branch=graphs[1])


def _moved(network: Network, value: str) -> None:
    """Movements that any type has."""
    shape, axis = network.shape(value), _axis(network, value)
    kind = _one_of(network, "Tile", "Expand", "Squeeze", "Unsqueeze", "Split", "Identity", "DepthToSpace")
    if kind == "Tile":
        repeats = [1 + int(one == axis) for one in range(len(shape))]
        network.add(kind, [value, network.integers(*repeats)])
    elif kind == "Expand":
        network.add(kind, [value, network.integers(*[2] * (len(shape) < 4), *shape)])
    elif kind == "Unsqueeze":
        network.add(kind, [value, network.integers(axis)])
    elif kind == "Split":
        network.add(kind, [value], results=2, axis=axis, num_outputs=2)
    else:
        blocks: dict[str, Any] = {"blocksize": 2} if kind == "DepthToSpace" else {}
        network.add(kind, [value], **blocks)


def _of_data(network: Network, value: str) -> None:
    """Results whose shape the data decides."""
    network.add(_one_of(network, "NonZero", "Unique"), [value])


TYPED_STEPS: Sequence[Entry] = (
    *((_binary, _ALL, "fiub"), (_binary, _ALL, "fiub"), (_unary, _ALL, "fiub"), (_divided, _MANY, _NUMBERS)),
    *((_shifted, _MANY, "u"), (_power, _ALL, _NUMBERS), (_cast, _ALL, _TYPES), (_cast, _ALL, _TYPES)),
    *((_where, _MANY, _TYPES), (_where, _MANY, _TYPES), (_best, _MANY, _NUMBERS), (_cumulated, _MANY, _NUMBERS)),
    *((_one_hot, (0, 1, 2, 3), "iu"), (_triangle, _ANY, _TYPES), (_gathered, _MANY, _TYPES)),
    *((_gathered, _MANY, _TYPES), (_scattered, _MANY, "fiub"), (_reversed_rows, _ANY, _TYPES)),
    *((_compressed, _MANY, _TYPES), (_by_shape, _MANY, "fiub"), (_einsum, _ANY, _NUMBERS), (_quantize, _ALL, _F32)),
    *((_quantize, _ALL, _F32), (_dequantize, _ALL, "iu"), (_quantized_operator, _ANY, "iu")),
    *((_quantized_operator, _ANY, "iu"), (_integer_product, _ANY, "iu"), (_packed_product, _ANY, _F32)),
    *(
        (_branches, _ANY, _F32),
        (_branches, _ANY, "iu"),
        (_moved, _MANY, _TYPES),
        (_moved, _MANY, _TYPES),
        (_of_data, (1, 2), _NUMBERS),
    ),
)
