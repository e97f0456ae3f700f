"""ONNX models that nobody means well: any operator, with any inputs and any attributes, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, TensorProto, defs, helper, numpy_helper
from onnx_graphs import ModelBuilder

Array = NDArray[Any]

HUGE = 2**62
_INTEGERS = (0, 1, -1, 2, 3, 4, 7, -2, 1000, 2**31, -(2**31), HUGE, -HUGE)
_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("nan"), float("inf"), float("-inf"))
_TEXTS = ("", "constant", "nearest", "linear", "SAME_UPPER", "VALID", "edge", "reflect", "CRD", "tanh", "\x1b[2J")
_SHAPES: tuple[tuple[int, ...], ...] = ((1, 4, 8, 8), (1, 4, 8), (4, 8), (8,), (), (1, 1, 1, 1), (2, 4, 8, 8), (1,) * 6)
# What operators of the contributed domain may ask for; those of the standard domain declare it.
_NAMES = (
    "axis",
    "alpha",
    "beta",
    "channels_last",
    "opset",
    "transA",
    "transB",
    "kernel_shape",
    "strides",
    "pads",
    "group",
)


class Drawing:
    """Draws the parts of a model; equal seeds draw equal models."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = ModelBuilder()

    def one_of(self, entries: Sequence[Any]) -> Any:
        return entries[int(self.random.integers(len(entries)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def model(self, kind: str) -> bytes:
        """A graph around a node of operator `kind`."""
        builder = self.builder
        is_good = self.chance(0.6)
        inputs = [self._input(kind, i, is_good) for i in range(self._arity(kind))]
        count = self.one_of((*(1,) * 16, 2, 3))
        outputs = [f"out{i}" for i in range(count)]
        builder.node_of_many(kind, inputs, outputs)
        builder.nodes[-1].attribute.extend(self._attributes(kind))
        results = [self._used(name) for name in outputs]
        return builder.finish(*results, version=self.one_of((9, 11, 13, 17, 17, 17, 17, 17, 19, 21)))

    def _arity(self, kind: str) -> int:
        schema = _schema(kind)
        if schema is None and self.chance(0.8):
            return len(_ROLES.get(kind, "x"))
        if schema is None or self.chance(0.05):
            return self.one_of((0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
        minimum, maximum = int(schema.min_input), int(schema.max_input)
        return int(self.random.integers(minimum, min(maximum, 9) + 1))

    def _input(self, kind: str, index: int, is_good: bool) -> str:
        """An input that the operator may be meant to have, or any."""
        if is_good and not self.chance(0.15):
            return self._meant(_role(kind, index), index)
        return self._any(index)

    def _meant(self, role: str, index: int) -> str:
        if role == "values":
            return self.builder.input(f"x{index}", (1, 4, 8, 8), np.uint8)
        if role == "scale":
            return self.builder.constant(self._filled(0.5).astype(np.float32))
        if role == "zero_point":
            return self.builder.constant(self._filled(3).astype(np.uint8))
        if role == "weight":
            shape: tuple[int, ...] = self.one_of(((4, 4, 3, 3), (8, 8), (4, 1, 3, 3)))
            return self.builder.constant(np.ones(shape, np.uint8))
        if role == "entries":
            entries = [
                self.one_of((1, 1, 2, 0, 3, -1, 4, 8, *_INTEGERS)) for _ in range(self.one_of((1, 1, 2, 4, 4, 8)))
            ]
            return self.builder.constant(np.array(entries, np.int64))
        if role == "floats":
            count: int = self.one_of((4, 4, 1))
            return self.builder.constant(np.full(count, float(self.one_of((1, 2, 0.5))), np.float32))
        if self.chance(0.2):
            return self.builder.input(f"x{index}", self._shape(), np.float32)
        return self._quantized(index)

    def _filled(self, number: float) -> NDArray[np.float64]:
        """A parameter of the whole tensor or of each of four channels."""
        shape: tuple[int, ...] = self.one_of(((), (), (4,)))
        return np.full(shape, number)

    def _any(self, index: int) -> str:
        makers: tuple[tuple[float, Callable[[int], str]], ...] = (
            (0.45, self._quantized),
            (0.15, self._given),
            (0.35, self._constant),
            (0.05, lambda _: ""),
        )
        drawn = float(self.random.random())
        for share, maker in makers:
            drawn -= share
            if drawn < 0:
                return maker(index)
        return ""

    def _shape(self) -> tuple[int, ...]:
        if self.chance(0.8):
            return (1, 4, 8, 8)
        return self.one_of((*_SHAPES, (1, 4, 2**20, 2**20), (2**31, 1), (HUGE, 4), (1, 4, 40000, 8000)))

    def _given(self, index: int) -> str:
        dtype = self.one_of((np.uint8, np.int8, np.float32, np.float32, np.int32, np.int64, np.uint16, np.bool_))
        return self.builder.input(f"x{index}", self._shape(), dtype)

    def _quantized(self, index: int) -> str:
        dtype: type[np.generic] = self.one_of((np.uint8, np.uint8, np.int8, np.int16))
        if self.chance(0.3):
            shape: tuple[int, ...] = self.one_of(((4, 4, 3, 3), (8, 8), (4, 1, 3, 3), (0, 4), (4,), (1, 4, 8, 8)))
            weight = self.builder.constant(np.ones(shape, np.int64).astype(dtype))
            return self.builder.dequantize(weight, (0.5, 3), dtype)
        return self.builder.dequantize(self.builder.input(f"x{index}", self._shape(), dtype), (0.5, 3), dtype)

    def _constant(self, _: int) -> str:
        return self.builder.constant(self._array())

    def _array(self) -> Array:
        shape: tuple[int, ...] = self.one_of(
            ((), (1,), (2,), (4,), (8,), (0,), (1, 4, 1, 1), (4, 4), (2, 2, 2), (1, 4, 8, 8))
        )
        kind = self.one_of("ifsx")
        if kind == "i":
            entries = [self.one_of(_INTEGERS) for _ in range(int(np.prod(shape)))]
            dtype = self.one_of((np.int64, np.int64, np.int32, np.uint8, np.int8, np.bool_, np.uint64))
            return np.array(entries, dtype=np.int64).astype(dtype).reshape(shape)
        if kind == "f":
            entries = [self.one_of(_FLOATS) for _ in range(int(np.prod(shape)))]
            with np.errstate(all="ignore"):
                return (
                    np.array(entries, dtype=np.float64)
                    .astype(self.one_of((np.float32, np.float32, np.float64, np.float16)))
                    .reshape(shape)
                )
        if kind == "s":
            return np.array([1, 2, 1, 1][: self.one_of((1, 2, 4))], dtype=np.int64)
        return np.ones(shape, dtype=self.one_of((np.float32, np.uint8, np.int8, np.int64)))

    def _attributes(self, kind: str) -> list[AttributeProto]:
        schema = _schema(kind)
        declared = {} if schema is None else {n: str(a.type).rpartition(".")[2] for n, a in schema.attributes.items()}
        names = list(_NAMES) if schema is None else list(declared)
        found: list[AttributeProto] = []
        for name in names:
            required = schema is not None and bool(schema.attributes[name].required)
            if not self.chance(0.95 if required else 0.15):
                continue
            wanted: str = declared.get(name) or self.one_of(("INT", "FLOAT", "INTS"))
            type_name: str = (
                wanted
                if self.chance(0.93)
                else self.one_of(("INT", "FLOAT", "STRING", "INTS", "FLOATS", "TENSOR", "GRAPH", "STRINGS"))
            )
            found.append(self._attribute(name, type_name))
        return found

    def _attribute(self, name: str, type_name: str) -> AttributeProto:
        length = self.one_of((0, 1, 2, 2, 2, 4, 4, 8))
        values: Mapping[str, Callable[[], Any]] = {
            "INT": lambda: self.one_of((0, 1, 1, 2, *_INTEGERS)),
            "FLOAT": lambda: self.one_of(_FLOATS),
            "STRING": lambda: self.one_of(_TEXTS),
            "INTS": lambda: self._extents(length),
            "FLOATS": lambda: [self.one_of(_FLOATS) for _ in range(length)],
            "STRINGS": lambda: ["a"] * length,
            "TENSOR": lambda: self._tensor(),
            "GRAPH": lambda: GraphProto(name="g"),
        }
        if type_name not in values:
            type_name = "INT"
        number = AttributeProto.AttributeType.Value(type_name)
        return helper.make_attribute(name, values[type_name](), attr_type=number)

    def _extents(self, count: int) -> list[int]:
        if self.chance(0.6):
            return [self.one_of((1, 2, 0, 3))] * count
        return [self.one_of((1, 1, 1, 2, 0, *_INTEGERS)) for _ in range(count)]

    def _tensor(self) -> TensorProto:
        if self.chance(0.1):
            return TensorProto(name="t", data_type=TensorProto.STRING, dims=[1], string_data=[b"abc"])
        return numpy_helper.from_array(self._array(), "t")

    def _used(self, name: str) -> str:
        """The name itself, or what a quantization makes of it."""
        if self.chance(0.3):
            return name
        return self.builder.quantize(name, (0.25, 5), self.one_of((np.uint8, np.int8)))


_QLINEAR = ("values", "scale", "zero_point", "weight", "scale", "zero_point", "scale", "zero_point")
_QUANTIZED = ("values", "scale", "zero_point", "scale", "zero_point")
_CONCATENATED = ("scale", "zero_point", "values", "scale", "zero_point", "values", "scale", "zero_point")
_ROLES: dict[str, Sequence[str]] = {
    "QLinearConv": _QLINEAR,
    "QLinearMatMul": _QLINEAR,
    "ConvInteger": ("values", "weight", "zero_point", "zero_point"),
    "MatMulInteger": ("values", "weight", "zero_point", "zero_point"),
    "com.microsoft.QGemm": _QLINEAR,
    "com.microsoft.QLinearAdd": _QLINEAR,
    "com.microsoft.QLinearMul": _QLINEAR,
    "com.microsoft.QLinearConcat": _CONCATENATED,
    **{
        f"com.microsoft.QLinear{kind}": _QUANTIZED
        for kind in ("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid")
    },
    "com.microsoft.QLinearSoftmax": _QUANTIZED,
    "DequantizeLinear": ("values", "scale", "zero_point"),
    "com.microsoft.DequantizeLinear": ("values", "scale", "zero_point"),
    "QuantizeLinear": ("data", "scale", "zero_point"),
    "com.microsoft.QuantizeLinear": ("data", "scale", "zero_point"),
    "BatchNormalization": ("data", "floats", "floats", "floats", "floats"),
    "Resize": ("data", "floats", "floats", "entries"),
    "Upsample": ("data", "floats"),
    "Gather": ("data", "entries"),
}
_LISTS = ("axes", "shape", "pads", "starts", "ends", "steps", "repeats", "split", "sizes", "axis")


def _role(kind: str, index: int) -> str:
    """What input `index` of an operator is meant to be."""
    known = _ROLES.get(kind, ())
    if index < len(known):
        return known[index]
    schema = _schema(kind)
    name = schema.inputs[index].name if schema is not None and index < len(schema.inputs) else ""
    return "entries" if name in _LISTS else "data"


def _schema(kind: str) -> Any:
    try:
        return defs.get_schema(kind, 17, "")
    except defs.SchemaError:
        return None
