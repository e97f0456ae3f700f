"""Hypothesis strategies for quantization parameters and data, and the frame of a drawn module."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from drawn_graphs import graph
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import (
    AddArithmetic,
    Division,
    FloatRounding,
    Multiplier,
    NanPolicy,
    PairArithmetic,
    Rounding,
    Scaling,
    SubArithmetic,
)
from qdialect.arithmetic.choices import Coordinates, Interpolation, SoftmaxArithmetic
from qdialect.dialect.constants import constant
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, element_of, shape_of
from qdialect.ir._mlir import ir

T = TypeVar("T")
EIGHT_BIT = ("i8", "ui8")
# Around every width that kernels have: 4 and 8 lanes, whole vectors, register tiles.
CHANNELS = (*range(1, 18), 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 67)


@dataclass(frozen=True)
class Draw:
    """What a module is drawn from: choices that hypothesis shrinks, and random content from a seed."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    rng: np.random.Generator

    def integer(self, minimum: int, maximum: int) -> int:
        return self.draw(st.integers(minimum, maximum))

    def one_of(self, values: Sequence[T]) -> T:
        return self.draw(st.sampled_from(values))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def element(self) -> str:
        return self.one_of(EIGHT_BIT)

    def channels(self) -> int:
        return self.one_of(CHANNELS)

    def scale(self, minimum: float = 1e-3, maximum: float = 1.0) -> float:
        """A double, which few times is a float32 number: the arithmetic says where it is narrowed."""
        position = self.draw(st.floats(0, 1))
        return minimum * (maximum / minimum) ** position

    def zero_point(self, element: str) -> int:
        """A quantized value, with both ends and the usual ones likely."""
        low, high = ELEMENT_RANGES[element]
        return self.draw(st.sampled_from((low, high, (low + high + 1) // 2)) | st.integers(low, high))

    def bounds(self, element: str) -> tuple[int, int]:
        low, high = ELEMENT_RANGES[element]
        if self.flag():
            return low, high
        first, second = self.integer(low, high), self.integer(low, high)
        return min(first, second), max(first, second)

    def rounding(self) -> Rounding:
        return self.one_of(tuple(Rounding))

    def multiplier(self) -> Multiplier:
        return self.one_of(tuple(Multiplier))

    def quantized(self, element: str, shape: Sequence[int]) -> NDArray[Any]:
        low, high = ELEMENT_RANGES[element]
        return self.rng.integers(low, high, shape, dtype=NUMPY_DTYPES[element], endpoint=True)

    def values_constant(self, element: str, shape: Sequence[int]) -> ir.Value:
        return constant(self.quantized(element, shape))

    def table(self) -> NDArray[np.uint8]:
        return self.rng.integers(0, 256, 256, dtype=np.uint8)

    def scales(self, count: int) -> tuple[float, ...]:
        """One scale, or `count` of them."""
        spread = self.rng.uniform(0.2, 1.0, count if self.flag() else 1)
        return tuple((spread * 0.01).tolist())

    def zero_points(self, element: str, count: int) -> tuple[int, ...]:
        """The symmetric one, one of any value, or `count` of them with both ends among them."""
        low, high = ELEMENT_RANGES[element]
        kind = self.integer(0, 2)
        if kind == 0:
            return ((low + high + 1) // 2,)
        if kind == 1:
            return (self.zero_point(element),)
        values = self.rng.integers(low, high + 1, count)
        values[: min(count, 2)] = (low, high)[:count]
        return tuple(int(value) for value in values)


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


Build = Callable[[Sequence[ir.Value]], ir.Value | list[ir.Value]]
"""Builds a body on the arguments of a function, and gives what it returns."""


def drawn_module(of: Callable[[Draw], tuple[Sequence[str], Build]]) -> st.SearchStrategy[str]:
    """Texts of modules: `of` draws the types of the inputs and the function that builds the body on them."""

    @st.composite
    def module(draw: st.DrawFn) -> str:
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        types, body = of(Draw(draw, rng))

        def on_arguments(*arguments: ir.Value) -> ir.Value | list[ir.Value]:
            return body(arguments)

        return str(graph(types, on_arguments))

    return module()


# Drawn modules of ops other than contractions.

Drawn = tuple[Sequence[str], Build]


def drawn_shape(d: Draw, minimum: int = 0) -> tuple[int, ...]:
    rank = d.integer(minimum, 4)
    return (*(d.integer(1, 7) for _ in range(rank - 1)), d.channels()) if rank else ()


def _image(d: Draw) -> tuple[int, ...]:
    return d.integer(1, 2), d.integer(1, 19), d.integer(1, 19), d.channels()


def _quantization(d: Draw, name: str, element: str) -> dict[str, Any]:
    return {f"{name}_scale": d.scale(0.01, 0.1), f"{name}_zero_point": d.zero_point(element)}


def broadcast_to(d: Draw, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`: the same, some extents 1, or fewer of them."""
    kind = d.integer(0, 2)
    if kind == 0:
        return tuple(shape)
    kept = tuple(extent if d.flag() else 1 for extent in shape)
    return kept if kind == 1 else kept[d.integer(0, len(shape)) :]


def _binary(d: Draw, op: type[BinaryOp], **more: Any) -> Drawn:
    shape = drawn_shape(d)
    shapes = [shape, broadcast_to(d, shape)]
    if d.flag():
        shapes.reverse()
    left, right, element = d.element(), d.element(), d.element()
    attributes = _quantization(d, "lhs", left) | _quantization(d, "rhs", right) | _quantization(d, "output", element)
    low, high = d.bounds(element)
    attributes |= {"output_min": low, "output_max": high, **more}
    types = [tensor(shapes[0], left), tensor(shapes[1], right)]
    if d.integer(0, 3) == 0:
        # One operand known at compile time.
        return types[
            :1
        ], lambda v: qnn.build(op, v[0], d.values_constant(right, shapes[1]), element=element, **attributes).output
    return types, lambda v: qnn.build(op, v[0], v[1], element=element, **attributes).output


def _requantization(d: Draw) -> dict[str, Any]:
    return {"rounding": d.rounding(), "multiplier": d.multiplier()}


def _add(d: Draw) -> Drawn:
    return _binary(d, qnn.AddOp, arithmetic=d.one_of(tuple(AddArithmetic)), **_requantization(d))


def _mul(d: Draw) -> Drawn:
    return _binary(d, qnn.MulOp, **_requantization(d))


def _pair(d: Draw) -> Drawn:
    """The other functions of two tensors."""
    op, arithmetic = (
        d.one_of((qnn.SubOp, qnn.DivOp, qnn.MaximumOp, qnn.MinimumOp, qnn.SquaredDifferenceOp, qnn.PreluOp)),
        None,
    )
    if op in (qnn.DivOp, qnn.PreluOp):
        arithmetic = d.one_of(tuple(PairArithmetic))
    if op is qnn.SubOp:
        arithmetic = d.one_of(tuple(SubArithmetic))
    more = {} if arithmetic is None else {"arithmetic": arithmetic}
    return _binary(d, op, **more, **(_requantization(d) if op is qnn.SubOp else {}))


def _pool(d: Draw, op: type[qnn.MaxPool2DOp] | type[qnn.AvgPool2DOp], element: str, **more: Any) -> Drawn:
    image = _image(d)
    kernel = [d.integer(1, 4), d.integer(1, 4)]
    padding = [d.integer(0, kernel[i % 2] - 1) for i in range(4)]
    for axis in range(2):
        if image[1 + axis] + padding[axis] + padding[axis + 2] < kernel[axis]:
            kernel[axis], padding[axis], padding[axis + 2] = 1, 0, 0
    if d.integer(0, 3) == 0:
        kernel, padding = [image[1], image[2]], [0] * 4
    low, high = d.bounds(element)
    strides = (d.integer(1, 3), d.integer(1, 3))
    attributes: dict[str, Any] = {"kernel": tuple(kernel), "strides": strides, "padding": tuple(padding)}
    attributes |= {"output_min": low, "output_max": high, **more}
    return [tensor(image, element)], lambda v: qnn.build(op, v[0], element=element, **attributes).output


def _max_pool(d: Draw) -> Drawn:
    return _pool(d, qnn.MaxPool2DOp, d.element())


def _avg_pool(d: Draw) -> Drawn:
    element = d.element()
    more = {"zero_point": d.zero_point(element), "count_include_pad": d.flag(), "division": d.one_of(tuple(Division))}
    return _pool(d, qnn.AvgPool2DOp, element, **more)


def _mean(d: Draw) -> Drawn:
    shape, source, element = drawn_shape(d, minimum=1), d.element(), d.element()
    axes = tuple(axis for axis in range(len(shape)) if d.flag()) or (d.integer(0, len(shape) - 1),)
    attributes = _quantization(d, "input", source) | _quantization(d, "output", element)
    attributes |= {"axes": axes, "keep_dims": d.flag(), "rounding": d.rounding(), "multiplier": d.multiplier()}
    return [tensor(shape, source)], lambda v: qnn.build(qnn.MeanOp, v[0], element=element, **attributes).output


def _reduction(d: Draw) -> Drawn:
    shape, source, op = drawn_shape(d, minimum=1), d.element(), d.one_of((qnn.SumOp, qnn.ReduceMaxOp, qnn.ReduceMinOp))
    axes = tuple(axis for axis in range(len(shape)) if d.flag()) or (d.integer(0, len(shape) - 1),)
    attributes: dict[str, Any] = {"axes": axes, "keep_dims": d.flag()}
    element = d.element() if op is qnn.SumOp else source
    if op is qnn.SumOp:
        attributes |= _quantization(d, "input", source) | _quantization(d, "output", element) | _requantization(d)
    return [tensor(shape, source)], lambda v: qnn.build(op, v[0], element=element, **attributes).output


def _l2_normalize(d: Draw) -> Drawn:
    shape, element = drawn_shape(d, minimum=1), d.element()
    zero_point = d.zero_point(element)

    def body(v: Sequence[ir.Value]) -> ir.Value:
        return qnn.build(qnn.L2NormalizeOp, v[0], element=element, input_zero_point=zero_point).output

    return [tensor(shape, element)], body


def _arg(d: Draw) -> Drawn:
    """Few distinct quantized values, so that many are equal."""
    shape, source, element = drawn_shape(d, minimum=1), d.element(), d.one_of(("i32", "i64"))
    op = d.one_of((qnn.ArgMaxOp, qnn.ArgMinOp))
    attributes: dict[str, Any] = {"axis": d.integer(0, len(shape) - 1), "keep_dims": d.flag(), "last": d.flag()}
    low = ELEMENT_RANGES[source][0]

    def body(v: Sequence[ir.Value]) -> ir.Value:
        values = qnn.build(qnn.ClipOp, v[0], element=source, min=low + 126, max=low + 129).output
        return qnn.build(op, values, element=element, **attributes).output

    return [tensor(shape, source)], body


def _softmax(d: Draw) -> Drawn:
    shape, source = drawn_shape(d, minimum=1), d.element()
    arithmetic = d.one_of(tuple(SoftmaxArithmetic))
    is_fixed = arithmetic is SoftmaxArithmetic.TFLITE_FIXED
    element = source if is_fixed else d.element()
    attributes: dict[str, Any] = {"axis": d.integer(0, len(shape) - 1), "input_scale": d.scale(), "beta": d.scale()}
    if is_fixed:
        attributes |= {"output_scale": 1 / 256, "output_zero_point": ELEMENT_RANGES[element][0]}
    else:
        attributes |= _quantization(d, "output", element)
    attributes["arithmetic"] = arithmetic
    return [tensor(shape, source)], lambda v: qnn.build(qnn.SoftmaxOp, v[0], element=element, **attributes).output


def _concat(d: Draw) -> Drawn:
    shape = drawn_shape(d, minimum=1)
    axis, element = d.integer(0, len(shape) - 1), d.element()
    count = d.integer(1, 4)
    extents = [d.channels() if axis == len(shape) - 1 else d.integer(1, 5) for _ in range(count)]
    sources = [d.element() for _ in range(count)]
    shapes = [(*shape[:axis], extent, *shape[axis + 1 :]) for extent in extents]
    same = d.flag()
    attributes = _quantization(d, "output", element)
    scale, zero_point = attributes["output_scale"], attributes["output_zero_point"]
    if same:
        sources = [element] * count
    attributes |= {
        "input_scales": [scale if same else d.scale(0.01, 0.1) for _ in sources],
        "input_zero_points": [zero_point if same else d.zero_point(source) for source in sources],
        "axis": axis,
        "rounding": d.rounding(),
        "multiplier": d.multiplier(),
    }
    types = [tensor(one, source) for one, source in zip(shapes, sources, strict=True)]
    return types, lambda v: qnn.build(qnn.ConcatOp, *v, element=element, **attributes).output


def _requantize(d: Draw) -> Drawn:
    shape, source, element = drawn_shape(d), d.one_of(tuple(ELEMENT_RANGES)), d.one_of(("i8", "ui8", "i16", "ui16"))
    axis = d.integer(0, max(len(shape) - 1, 0))
    channels = shape[axis] if shape else 1
    wide = source == "i32"
    attributes = _quantization(d, "output", element)
    attributes |= {
        "input_scale": d.scale(1e-10, 1e-7) if wide else d.scale(0.01, 0.1),
        "weight_scales": d.scales(channels) if wide else (1.0,),
        "input_zero_points": (d.integer(-5, 5) if wide else d.zero_point(source),),
        "axis": axis,
        "rounding": d.rounding(),
        "multiplier": d.multiplier(),
    }
    return [tensor(shape, source)], lambda v: qnn.build(qnn.RequantizeOp, v[0], element=element, **attributes).output


def _table(d: Draw) -> Drawn:
    """A look-up, a function that becomes one, or a clamp; the first two between any types."""
    shape, source = drawn_shape(d), d.element()
    kind = d.integer(0, 3)
    if kind == 3:
        low, high = d.bounds(source)
        return [tensor(shape, source)], lambda v: qnn.build(qnn.ClipOp, v[0], element=source, min=low, max=high).output
    element = d.element()
    attributes = _quantization(d, "input", source) | _quantization(d, "output", element)
    if kind == 0:
        attributes["table"] = d.table()
    op = (qnn.LutOp, qnn.TanhOp, qnn.HardswishOp)[kind]
    return [tensor(shape, source)], lambda v: qnn.build(op, v[0], element=element, **attributes).output


def channel_parameters(d: Draw, shape: Sequence[int], element: str) -> dict[str, Any]:
    axis = d.integer(0, max(len(shape) - 1, 0))
    channels = shape[axis] if shape else 1
    return {"axis": axis, "scales": d.scales(channels), "zero_points": d.zero_points(element, channels)}


def _quantize(d: Draw) -> Drawn:
    shape, element = drawn_shape(d), d.one_of(tuple(ELEMENT_RANGES))
    attributes = channel_parameters(d, shape, element)
    attributes |= {
        "rounding": d.one_of(tuple(FloatRounding)),
        "scaling": d.one_of(tuple(Scaling)),
        "nan": d.one_of(tuple(NanPolicy)),
    }
    return [tensor(shape, "f32")], lambda v: qnn.build(qnn.QuantizeOp, v[0], element=element, **attributes).output


def _dequantize(d: Draw) -> Drawn:
    shape, source = drawn_shape(d), d.one_of(tuple(ELEMENT_RANGES))
    attributes = channel_parameters(d, shape, source)
    return [tensor(shape, source)], lambda v: qnn.build(qnn.DequantizeOp, v[0], element="f32", **attributes).output


def _pad(d: Draw, x: ir.Value) -> ir.Value:
    low, high = ([d.integer(0, 2) for _ in shape_of(x.type)] for _ in range(2))
    element = element_of(x.type)
    low_value, high_value = (0, 1) if element == "i1" else (-(2**24), 2**24)
    value = d.zero_point(element) if element in ELEMENT_RANGES else d.integer(low_value, high_value)
    return qnn.build(qnn.PadOp, x, element=element, low=low, high=high, value=value).output


def _slice(d: Draw, x: ir.Value) -> ir.Value:
    begin = [d.integer(0, extent - 1) for extent in shape_of(x.type)]
    strides = [d.integer(1, 3) for _ in begin]
    maximum = [-(-(n - first) // step) for n, first, step in zip(shape_of(x.type), begin, strides, strict=True)]
    size = [d.integer(1, count) for count in maximum]
    return qnn.build(qnn.SliceOp, x, element=element_of(x.type), begin=begin, size=size, strides=strides).output


def _gather(d: Draw, x: ir.Value) -> ir.Value:
    shape = shape_of(x.type)
    if not shape:
        return x
    axis = d.integer(0, len(shape) - 1)
    indices = [d.integer(0, shape[axis] - 1) for _ in range(d.integer(1, 9))]
    return qnn.build(qnn.GatherOp, x, element=element_of(x.type), axis=axis, indices=indices).output


def _transpose(d: Draw, x: ir.Value) -> ir.Value:
    order = [int(axis) for axis in d.rng.permutation(len(shape_of(x.type)))]
    return qnn.build(qnn.TransposeOp, x, element=element_of(x.type), permutation=order).output


def _reshape(d: Draw, x: ir.Value) -> ir.Value:
    size = int(np.prod(shape_of(x.type)))
    divisors = [extent for extent in range(1, size + 1) if size % extent == 0]
    outer = d.one_of(divisors)
    shape = d.one_of(((size,), (outer, size // outer), (1, outer, 1, size // outer)))
    return qnn.build(qnn.ReshapeOp, x, element=element_of(x.type), shape=shape).output


def _broadcast(d: Draw) -> Drawn:
    shape, element = drawn_shape(d), d.one_of(tuple(NUMPY_DTYPES))
    before = broadcast_to(d, shape)
    return [tensor(before, element)], lambda v: qnn.build(qnn.BroadcastOp, v[0], element=element, shape=shape).output


def _resize_bilinear(d: Draw) -> Drawn:
    shape, arithmetic = _image(d), d.one_of(tuple(Interpolation))
    is_fixed = arithmetic in (Interpolation.TFLITE_FIXED, Interpolation.XNNPACK_FIXED)
    f32 = ("ui8", "f32") if arithmetic is Interpolation.TFLITE_FLOAT else ("i8", "ui8", "f32")
    element = d.element() if is_fixed else d.one_of(f32)
    fixed = (Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS)
    coordinates = d.one_of(fixed if is_fixed else tuple(Coordinates))
    attributes: dict[str, Any] = {"size": (d.integer(1, 23), d.integer(1, 23)), "coordinates": coordinates}
    attributes["arithmetic"] = arithmetic
    return [
        tensor(shape, element)
    ], lambda v: qnn.build(qnn.ResizeBilinearOp, v[0], element=element, **attributes).output


def _movement(d: Draw) -> Drawn:
    """Up to three movements of data after one another."""

    def body(v: Sequence[ir.Value]) -> ir.Value:
        x = v[0]
        for _ in range(d.integer(1, 3)):
            x = d.one_of((_pad, _transpose, _reshape, _slice, _gather))(d, x)
        return x

    return [tensor(drawn_shape(d), d.one_of(tuple(NUMPY_DTYPES)))], body


OTHERS = {
    "add": drawn_module(_add),
    "mul": drawn_module(_mul),
    "pair": drawn_module(_pair),
    "max_pool2d": drawn_module(_max_pool),
    "avg_pool2d": drawn_module(_avg_pool),
    "mean": drawn_module(_mean),
    "arg": drawn_module(_arg),
    "l2_normalize": drawn_module(_l2_normalize),
    "reduction": drawn_module(_reduction),
    "softmax": drawn_module(_softmax),
    "concat": drawn_module(_concat),
    "requantize": drawn_module(_requantize),
    "table": drawn_module(_table),
    "quantize": drawn_module(_quantize),
    "dequantize": drawn_module(_dequantize),
    "broadcast": drawn_module(_broadcast),
    "resize_bilinear": drawn_module(_resize_bilinear),
    "movement": drawn_module(_movement),
}
