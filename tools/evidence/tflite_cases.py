"""Models of one TFLite operator of each type, beside LiteRT's reference kernels and its XNNPACK delegate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from zlib import crc32

import numpy as np
import tflite
from tflite_graphs import Given, Option, Result, one_operator

from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.writer import Quantization, options
from tools.evidence.case import Array, Case, InvalidCaseError, Key, Source

_TYPES = ("float32", "int8", "uint8", "int16", "int32", "int64", "bool")
# The profile whose numbers a model is asked for, by who gives them.
_FORMS = {"reference kernels": "tflite", "XNNPACK": "tflite-xnnpack"}
_QUANTIZATION = {"int8": (0.05, 3), "uint8": (0.05, 125), "int16": (0.001, 0)}
_IMAGE, _ROWS = (1, 6, 5, 4), (3, 8)
# The reference kernel sums i8 and i16 in their own type, which overflows; the compiler sums them as ui8.
_FAULTS_OF_REFERENCE = ("SUM",)


class Made:
    """What draws the tensors of one case."""

    def __init__(self, dtype: str, rng: np.random.Generator) -> None:
        self.dtype, self.rng = np.dtype(dtype), rng
        found = _QUANTIZATION.get(dtype)
        self.quantization = Quantization((found[0],), (found[1],)) if found else None

    def given(self, shape: Sequence[int], *, positive: bool = False) -> Given:
        """An input of the type, with the ends of its range among the quantized values."""
        if self.dtype.kind == "f":
            data = self.rng.normal(scale=2, size=shape)
            data = np.abs(data) + 0.1 if positive else data
        elif self.dtype.kind == "b" or self.quantization is None:
            low = 0 if self.dtype.kind == "b" else 1 if positive else -9
            data = self.rng.integers(low, 2 if self.dtype.kind == "b" else 10, shape)
        else:
            info = np.iinfo(self.dtype)
            low = self.quantization.zero_points[0] + 1 if positive else int(info.min)
            data = self.rng.integers(low, int(info.max) + 1, shape)
        return Given(np.asarray(data).astype(self.dtype), quantization=self.quantization)

    def same(self, shape: Sequence[int]) -> Result:
        """A result of the type and quantization of the inputs."""
        return Result(tuple(shape), self.dtype.type, self.quantization)

    def scaled(self, shape: Sequence[int], scale: float, zero_point: int | None = None) -> Result:
        """A result of the type, quantized otherwise where it is."""
        if self.quantization is None:
            return self.same(shape)
        point = self.quantization.zero_points[0] if zero_point is None else zero_point
        return Result(tuple(shape), self.dtype.type, Quantization((scale * self.quantization.scales[0],), (point,)))

    def weights(self, shape: Sequence[int], axis: int | None) -> Given:
        """A constant: int8 with a scale per channel, uint8 with one, or f32."""
        if self.dtype.kind == "f":
            return Given(self.rng.normal(size=shape).astype(np.float32), is_constant=True)
        if self.dtype == np.uint8:
            data = self.rng.integers(0, 256, shape).astype(np.uint8)
            return Given(data, is_constant=True, quantization=Quantization((0.01,), (121,)))
        scales = tuple(self.rng.uniform(0.005, 0.02, 1 if axis is None else shape[axis]).tolist())
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        return Given(data, is_constant=True, quantization=Quantization(scales, (0,) * len(scales), axis or 0))

    def bias(self, count: int, weights: Given) -> Given:
        """Of the scales of the input and the weights."""
        if self.quantization is None or weights.quantization is None:
            return Given(self.rng.normal(size=count).astype(np.float32), is_constant=True)
        dtype = np.int64 if self.dtype == np.int16 else np.int32
        scales = tuple(self.quantization.scales[0] * scale for scale in weights.quantization.scales)
        data = self.rng.integers(-500, 500, count).astype(dtype)
        return Given(data, is_constant=True, quantization=Quantization(scales, (0,) * len(scales)))


_Parts = tuple[Sequence[Given], Sequence[Result], Option | None]
_Maker = Callable[[Made], _Parts]


def _constant(*numbers: int) -> Given:
    return Given(np.array(numbers, np.int32), is_constant=True)


def _unary(
    scale: float, zero_point: int | None = None, *, positive: bool = False, option: Option | None = None
) -> _Maker:
    def make(made: Made) -> _Parts:
        return [made.given(_IMAGE, positive=positive)], [made.scaled(_IMAGE, scale, zero_point)], option

    return make


def _fixed(scale: float, points: Mapping[str, int], option: Option | None = None) -> _Maker:
    """A function whose result must have one quantization."""

    def make(made: Made) -> _Parts:
        result = made.same(_ROWS)
        if made.quantization is not None:
            one = scale if made.dtype != np.int16 else 1 / 32768
            result = Result(_ROWS, made.dtype.type, Quantization((one,), (points.get(made.dtype.name, 0),)))
        return [made.given(_ROWS)], [result], option

    return make


def _pair(name: str | None, *, positive: bool = False, activation: int = 0) -> _Maker:
    option = options(name, FusedActivationFunction=activation) if name else None

    def make(made: Made) -> _Parts:
        other = made.given(_IMAGE[-1:] if activation == 0 else _IMAGE, positive=positive)
        return [made.given(_IMAGE), other], [made.scaled(_IMAGE, 1.7)], option

    return make


def _same_pair(made: Made) -> _Parts:
    return [made.given(_IMAGE), made.given(_IMAGE)], [made.same(_IMAGE)], None


def _compared(made: Made) -> _Parts:
    return [made.given(_IMAGE), made.given(_IMAGE)], [Result(_IMAGE, np.bool_)], None


def _reduced(*, keeps: bool, axes: Sequence[int], scale: float = 1.0) -> _Maker:
    def make(made: Made) -> _Parts:
        shape = [1 if axis in axes else extent for axis, extent in enumerate(_IMAGE) if keeps or axis not in axes]
        return (
            [made.given(_IMAGE), _constant(*axes)],
            [made.scaled(shape, scale)],
            options("ReducerOptions", KeepDims=keeps),
        )

    return make


def _index(name: str) -> _Maker:
    def make(made: Made) -> _Parts:
        return (
            [made.given(_IMAGE), _constant(3)],
            [Result(_IMAGE[:3], np.int32)],
            options(name, OutputType=tflite.TensorType.INT32),
        )

    return make


def _pool(scale: float = 1.0, *, padding: int = 0) -> _Maker:
    option = options("Pool2DOptions", Padding=padding, StrideW=2, StrideH=2, FilterWidth=3, FilterHeight=3)
    shape = (1, 3, 3, 4) if padding == 0 else (1, 2, 2, 4)

    def make(made: Made) -> _Parts:
        return [made.given(_IMAGE)], [made.scaled(shape, scale)], option

    return make


def _convolution(*, depthwise: bool, per_channel: bool, activation: int = 0) -> _Maker:
    def make(made: Made) -> _Parts:
        weights = (
            made.weights((1, 3, 3, 4), 3 if per_channel else None)
            if depthwise
            else made.weights((7, 3, 3, 4), 0 if per_channel else None)
        )
        channels = 4 if depthwise else 7
        name = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        multiplier = {"DepthMultiplier": 1} if depthwise else {}
        option = options(name, StrideW=2, StrideH=2, **multiplier, FusedActivationFunction=activation)
        inputs = [made.given(_IMAGE), weights, made.bias(channels, weights)]
        return inputs, [made.scaled((1, 3, 3, channels), 4.0)], option

    return make


def _dense(*, per_channel: bool, activation: int = 0) -> _Maker:
    def make(made: Made) -> _Parts:
        weights = made.weights((5, 8), 0 if per_channel else None)
        option = options("FullyConnectedOptions", FusedActivationFunction=activation)
        return [made.given(_ROWS), weights, made.bias(5, weights)], [made.scaled((3, 5), 2.0)], option

    return make


def _batched(made: Made) -> _Parts:
    option = options("BatchMatMulOptions", AdjY=True)
    return [made.given((2, 3, 8)), made.given((2, 5, 8))], [made.scaled((2, 3, 5), 9.0)], option


def _transposed(made: Made) -> _Parts:
    weights = made.weights((6, 3, 3, 4), 0)
    option = options("TransposeConvOptions", StrideW=2, StrideH=2)
    return [_constant(1, 12, 10, 6), weights, made.given(_IMAGE)], [made.scaled((1, 12, 10, 6), 4.0)], option


def _moved(
    result: Sequence[int], constants: Sequence[Sequence[int]], option: Option | None = None, count: int = 1
) -> _Maker:
    def make(made: Made) -> _Parts:
        inputs = [made.given(_IMAGE) for _ in range(count)]
        return [*inputs, *(_constant(*one) for one in constants)], [made.same(result)], option

    return make


def _pads(made: Made) -> _Parts:
    pads = Given(np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32), is_constant=True)
    return [made.given(_IMAGE), pads], [made.same((1, 9, 6, 4))], None


def _mirrored(made: Made) -> _Parts:
    inputs, results, _ = _pads(made)
    return inputs, results, options("MirrorPadOptions")


def _resized(name: str, **fields: bool) -> _Maker:
    return _moved((1, 9, 11, 4), [(9, 11)], options(name, **fields))


def _selected(made: Made) -> _Parts:
    condition = Given(made.rng.integers(0, 2, _IMAGE).astype(np.bool_))
    return [condition, made.given(_IMAGE), made.given(_IMAGE)], [made.same(_IMAGE)], None


def _split(made: Made) -> _Parts:
    return [_constant(3), made.given(_IMAGE)], [made.same((1, 6, 5, 2))] * 2, options("SplitOptions", NumSplits=2)


def _requantized(made: Made) -> _Parts:
    target = np.int8 if made.dtype != np.int8 else np.uint8
    return [made.given(_IMAGE)], [Result(_IMAGE, target, Quantization((0.07,), (5,)))], None


def _dequantized(made: Made) -> _Parts:
    return [made.given(_IMAGE)], [Result(_IMAGE, np.float32)], None


def _cast(made: Made) -> _Parts:
    return [Given(made.given(_IMAGE).data)], [Result(_IMAGE, np.float32 if made.dtype.kind != "f" else np.int32)], None


_ZERO_POINTS = {"int8": -128}
_SYMMETRIC = {"uint8": 128}
_MAKERS: Mapping[str, _Maker] = {
    **dict.fromkeys(("ABS", "NEG", "SQUARE", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ELU"), _unary(1.0)),
    **dict.fromkeys(("EXP", "SIN", "COS", "CEIL", "FLOOR", "ROUND", "SIGN", "HARD_SWISH"), _unary(1.0)),
    **dict.fromkeys(("LOG", "SQRT", "RSQRT"), _unary(0.3, positive=True)),
    "GELU": _unary(1.0, option=options("GeluOptions")),
    "GELU approximate": _unary(1.0, option=options("GeluOptions", Approximate=True)),
    "LEAKY_RELU": _unary(0.9, option=options("LeakyReluOptions", Alpha=0.1)),
    "LOGISTIC": _fixed(1 / 256, _ZERO_POINTS),
    "TANH": _fixed(1 / 128, _SYMMETRIC),
    "SOFTMAX": _fixed(1 / 256, _ZERO_POINTS, options("SoftmaxOptions", Beta=1.0)),
    "LOG_SOFTMAX": _fixed(16 / 256, {"int8": 127, "uint8": 255}),
    "L2_NORMALIZATION": _fixed(1 / 128, _SYMMETRIC, options("L2NormOptions")),
    "LOGICAL_NOT": lambda made: ([made.given(_IMAGE)], [made.same(_IMAGE)], None),
    **{f"{kind}": _pair(f"{kind.capitalize()}Options") for kind in ("ADD", "SUB", "MUL")},
    **{f"{kind} relu": _pair(f"{kind.capitalize()}Options", activation=1) for kind in ("ADD", "SUB", "MUL")},
    "DIV": _pair("DivOptions", positive=True),
    **dict.fromkeys(("FLOOR_DIV", "FLOOR_MOD"), _pair(None, positive=True)),
    **dict.fromkeys(("SQUARED_DIFFERENCE", "POW"), _pair(None, positive=True)),
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "LOGICAL_AND", "LOGICAL_OR", "BITWISE_XOR"), _same_pair),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"), _compared),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), _reduced(keeps=True, axes=(1, 2))),
    **{f"{kind} of channels": _reduced(keeps=False, axes=(3,)) for kind in ("MEAN", "SUM", "REDUCE_MAX")},
    **dict.fromkeys(("REDUCE_ANY", "REDUCE_ALL", "REDUCE_PROD"), _reduced(keeps=False, axes=(1,))),
    "ARG_MAX": _index("ArgMaxOptions"),
    "ARG_MIN": _index("ArgMinOptions"),
    "MAX_POOL_2D": _pool(),
    "AVERAGE_POOL_2D": _pool(),
    "AVERAGE_POOL_2D valid": _pool(padding=1),
    "L2_POOL_2D": _pool(),
    "CONV_2D": _convolution(depthwise=False, per_channel=True),
    "CONV_2D per tensor": _convolution(depthwise=False, per_channel=False),
    "CONV_2D relu6": _convolution(depthwise=False, per_channel=True, activation=3),
    "DEPTHWISE_CONV_2D": _convolution(depthwise=True, per_channel=True),
    "DEPTHWISE_CONV_2D per tensor": _convolution(depthwise=True, per_channel=False),
    "FULLY_CONNECTED": _dense(per_channel=True),
    "FULLY_CONNECTED per tensor": _dense(per_channel=False),
    "FULLY_CONNECTED relu": _dense(per_channel=False, activation=1),
    "BATCH_MATMUL": _batched,
    "TRANSPOSE_CONV": _transposed,
    "RESHAPE": _moved((6, 20), [(6, 20)]),
    "TRANSPOSE": _moved((1, 4, 6, 5), [(0, 3, 1, 2)]),
    "SLICE": _moved((1, 3, 5, 2), [(0, 2, 0, 1), (1, 3, 5, 2)]),
    "STRIDED_SLICE": _moved((1, 3, 5, 2), [(0, 0, 0, 1), (1, 6, 5, 4), (1, 2, 1, 2)], options("StridedSliceOptions")),
    "TILE": _moved((1, 12, 5, 4), [(1, 2, 1, 1)]),
    "EXPAND_DIMS": _moved((1, 6, 1, 5, 4), [(2,)]),
    "BROADCAST_TO": _moved((3, 6, 5, 4), [(3, 6, 5, 4)]),
    "REVERSE_V2": _moved(_IMAGE, [(1,)]),
    "GATHER": _moved((1, 3, 5, 4), [(5, 0, 2)], options("GatherOptions", Axis=1)),
    "CUMSUM": _moved(_IMAGE, [(1,)], options("CumsumOptions")),
    "CONCATENATION": _moved((1, 6, 5, 8), [], options("ConcatenationOptions", Axis=3), 2),
    "PACK": _moved((2, *_IMAGE), [], options("PackOptions", ValuesCount=2), 2),
    "DEPTH_TO_SPACE": _moved((1, 12, 10, 1), [], options("DepthToSpaceOptions", BlockSize=2)),
    "SPACE_TO_DEPTH": lambda made: (
        [made.given((1, 6, 4, 2))],
        [made.same((1, 3, 2, 8))],
        options("SpaceToDepthOptions", BlockSize=2),
    ),
    "RESIZE_BILINEAR": _resized("ResizeBilinearOptions", HalfPixelCenters=True),
    "RESIZE_BILINEAR align": _resized("ResizeBilinearOptions", AlignCorners=True),
    "RESIZE_NEAREST_NEIGHBOR": _resized("ResizeNearestNeighborOptions", HalfPixelCenters=True),
    "PAD": _pads,
    "MIRROR_PAD": _mirrored,
    "SELECT": _selected,
    "SELECT_V2": _selected,
    "SPLIT": _split,
    "QUANTIZE": _requantized,
    "DEQUANTIZE": _dequantized,
    "CAST": _cast,
}
"""By operator, and after a blank what is special of the form."""


class TfliteCases(Source):
    """The form is whose numbers are asked for."""

    name = "tflite"

    def rows(self) -> Iterator[Key]:
        for name in _MAKERS:
            for dtype in _TYPES:
                for form in _FORMS:
                    yield Key(name.partition(" ")[0], dtype, form, name)

    def case(self, key: Key) -> Case:
        made = Made(key.types, np.random.default_rng(crc32(f"{key.origin} {key.types}".encode())))
        try:
            inputs, outputs, option = _MAKERS[key.origin](made)
            kind = getattr(tflite.BuiltinOperator, key.operator)
            content = one_operator(kind, inputs, outputs, option)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise InvalidCaseError(f"there is no such model: {error}") from error
        arrays = tuple(one.data for one in inputs if not one.is_constant)
        wanted = _framework(content, arrays, key.form)
        others = (_framework(content, arrays, "XNNPACK"),) if key.operator in _FAULTS_OF_REFERENCE else ()
        return Case(".tflite", content, arrays, wanted, profile=_FORMS[key.form], alternatives=others)


def _framework(content: bytes, arrays: Sequence[Array], form: str) -> tuple[Array, ...]:
    try:
        return tuple(frameworks.load_litert(content, 1, is_reference=form == "reference kernels")(arrays))
    except Exception as error:
        raise InvalidCaseError(str(error)) from error
