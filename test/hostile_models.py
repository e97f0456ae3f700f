"""ONNX models that nobody means well: any operator, with any inputs and any attributes, drawn from a seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, TensorProto, defs, helper, numpy_helper
from onnx_graphs import ModelBuilder
from tflite_graphs import HALF

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization

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


class Chance:
    """What is drawn from a seed: equal seeds draw equal models."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def one_of(self, entries: Sequence[Any]) -> Any:
        return entries[int(self.random.integers(len(entries)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)


class Drawing(Chance):
    """Draws the parts of a model."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.builder = ModelBuilder()

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


# TFLite models that nobody means well: any operator, with any tensors and any options, drawn from a seed.

_TFLITE_SHAPES: tuple[tuple[int, ...], ...] = (
    (1, 8, 8, 4),
    (8, 4),
    (4,),
    (),
    (1, 1, 1, 1),
    (2, 8, 8, 4),
    (1,) * 6,
    (0, 4),
)
_LARGE: tuple[tuple[int, ...], ...] = ((1, 20000, 20000, 4), (1, 2**15, 2**15, 1), (2**31 - 1,))
_NUMBERS = (0, 1, 1, 1, 2, 2, 3, -1, 4, 127, 1000, 2**31 - 1, -(2**31))
_QUANTIZATIONS = (
    HALF,
    HALF,
    HALF,
    Quantization((1 / 256,), (-128,)),
    Quantization((1 / 128,), (0,)),
    Quantization((1e-30,), (0,)),
    Quantization((0.0,), (0,)),
    Quantization((float("inf"),), (0,)),
    Quantization((0.5,), (2**40,)),
    Quantization((0.5,) * 4, (0,) * 4, 3),
    None,
)
_PAIRS = (
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MAXIMUM",
    "MINIMUM",
    "SQUARED_DIFFERENCE",
    "PRELU",
    "BATCH_MATMUL",
    "CONCATENATION",
)
_INDEXED = ("ARG_MAX", "ARG_MIN", "BROADCAST_TO", "GATHER", "MIRROR_PAD", "PAD", "RESHAPE", "RESIZE_BILINEAR", "SPLIT")
_REDUCED = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REVERSE_V2", "RESIZE_NEAREST_NEIGHBOR", "TILE")
_MANY = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "PADV2", "SLICE", "SPLIT_V")
_BLOCKS = ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
_ARITIES = {
    **dict.fromkeys((*_PAIRS, *_INDEXED, *_REDUCED, "EXPAND_DIMS", "PACK", "BATCH_MATMUL", "TRANSPOSE"), 2),
    **dict.fromkeys((*_MANY, *_BLOCKS), 3),
    "STRIDED_SLICE": 4,
}
OPTIONS = {value: name for name, value in vars(tflite.BuiltinOptions).items() if isinstance(value, int)}


class TfliteDrawing(Chance):
    """Draws the parts of a model."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.writer = ModelWriter("drawn")

    def model(self, kind: str, options_type: int) -> bytes:
        """A graph of one node of operator `kind`, with options of the type `options_type`, mostly."""
        dtype = self.one_of((np.int8, np.int8, np.uint8, np.float32))
        x = self._tensor("x", dtype)
        count = _ARITIES.get(kind, 1) if self.chance(0.85) else self.one_of((1, 2, 3, 4, 5))
        inputs = [x if i == 0 and self.chance(0.8) else self._input(i, dtype) for i in range(count)]
        outputs = [self._output(f"y{i}", dtype) for i in range(self.one_of((*(1,) * 9, 2, 3)))]
        if self.chance(0.1):
            options_type = self.one_of(list(OPTIONS))
        self.writer.operator(getattr(tflite.BuiltinOperator, kind), inputs, outputs, options_type, self._options())
        return self.writer.finish([x, *(i for i in inputs if i >= 0 and i != x and self.chance(0.2))], outputs[:1])

    def _output(self, name: str, dtype: type[np.generic]) -> int:
        """Mostly without a shape, which the operator then gives."""
        if self.chance(0.7):
            return self.writer.tensor(name, (), dtype, self._quantization())
        return self._tensor(name, dtype)

    def _quantization(self) -> Quantization | None:
        return HALF if self.chance(0.7) else self.one_of(_QUANTIZATIONS)

    def _tensor(self, name: str, dtype: type[np.generic]) -> int:
        shape = (1, 8, 8, 4) if self.chance(0.75) else self.one_of((*_TFLITE_SHAPES[:-1], *_LARGE))
        if self.chance(0.05):
            dtype = self.one_of((np.int16, np.int32, np.int64, np.float32, np.uint8))
        return self.writer.tensor(name, shape, dtype, self._quantization())

    def _input(self, index: int, dtype: type[np.generic]) -> int:
        if self.chance(0.05):
            return -1
        if self.chance(0.2):
            return self._tensor(f"x{index}", dtype)
        if self.chance(0.6):
            return self.writer.constant(f"c{index}", self._integers())
        weight: NDArray[Any] = np.ones(self._weight_shape(), dtype)
        return self.writer.constant(f"c{index}", weight, self._quantization())

    def _weight_shape(self) -> tuple[int, ...]:
        return self.one_of(((4, 3, 3, 4), (1, 3, 3, 4), (4, 4), (1, 8, 8, 4), (), (4,), (2, 2, 2, 4)))

    def _integers(self) -> NDArray[Any]:
        count = self.one_of((0, 1, 1, 2, 3, 4, 4, 4, 8))
        entries = np.array(
            [self.one_of(_NUMBERS) for _ in range(count)], dtype=self.one_of((np.int32, np.int32, np.int64))
        )
        if count == 1 and self.chance(0.3):
            return entries.reshape(())
        return entries.reshape(4, 2) if count == 8 else entries

    def _options(self) -> Callable[[Builder], int] | None:
        """A table of any numbers: in every schema these are fields of 1 to 4 bytes, or offsets."""
        if self.chance(0.05):
            return None
        entries = [self.one_of((0, 0, 1, 1, 1, *_NUMBERS)) for _ in range(9)]
        plain = self.chance(0.7)

        def write(builder: Builder) -> int:
            builder.StartObject(len(entries))
            for slot, entry in enumerate(entries):
                builder.PrependInt32Slot(slot, min(abs(entry), 2) if plain else entry, 0)
            return builder.EndObject()

        return write


def options_of(kind: str) -> int:
    """The number of the options' type that an operator is meant to have, 0 where its name does not say."""
    words = "".join(word.capitalize() for word in kind.split("_"))
    special = {"Conv2d": "Conv2D", "DepthwiseConv2d": "DepthwiseConv2D", "Mean": "Reducer", "Sum": "Reducer"}
    special |= {"ReduceMax": "Reducer", "ReduceMin": "Reducer", "ReduceProd": "Reducer", "BatchMatmul": "BatchMatMul"}
    special |= {"AveragePool2d": "Pool2D", "MaxPool2d": "Pool2D", "L2Normalization": "L2Norm", "SplitV": "SplitV"}
    name = f"{special.get(words, words)}Options"
    return int(getattr(tflite.BuiltinOptions, name, 0))
