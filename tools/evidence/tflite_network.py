"""A TFLite graph that grows value by value, and what LiteRT gives for it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tflite

from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from tools.evidence.case import Array, InvalidCaseError

_SCALES = (0.02, 0.05, 0.1, 1 / 64, 0.003, 1.0, 1e-4)
_FULL = {"int8": -128, "uint8": 0}
_QUANTIZED = ("int8", "uint8", "int16")
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-45, 3e38, -3e38, 2.0**31, 2.0**63, 0.5, -2.5)
# Their last bits on floats are not those of LiteRT, or only for some shapes.
_INEXACT = (
    *("AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "COS", "CUMSUM", "DEPTHWISE_CONV_2D", "ELU", "EXP", "GELU"),
    *("FULLY_CONNECTED", "HARD_SWISH", "L2_NORMALIZATION", "LOG", "LOGISTIC", "LOG_SOFTMAX", "MEAN", "POW"),
    *("REDUCE_PROD", "RESIZE_BILINEAR", "RSQRT", "SEGMENT_SUM", "SIN", "SOFTMAX", "SUM", "TANH", "TRANSPOSE_CONV"),
)


@dataclass
class Network:
    """A graph that grows: its writer, and the shape, type and quantization of each value by its index."""

    rng: np.random.Generator
    dtype: np.dtype[Any]
    """Of the value that the next step reads first, and of what it makes if it does not say otherwise."""
    writer: ModelWriter = field(default_factory=lambda: ModelWriter("drawn"))
    inputs: dict[int, Array] = field(default_factory=dict[int, Array])
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    types: dict[int, np.dtype[Any]] = field(default_factory=dict[int, "np.dtype[Any]"])
    quantization: dict[int, Quantization | None] = field(default_factory=dict[int, Quantization | None])
    inexact: set[int] = field(default_factory=set[int])
    """Floats whose last bits depend on the order of a sum or on an approximation: nothing decides by them."""
    constants: int = 0
    is_dyadic: bool = False
    """Whether scales are powers of two, or three of them, so that many products lie between two quantized values."""
    is_delegated: bool = False
    """Whether its results are to be those of XNNPACK."""
    is_special: bool = False
    """Whether floats are infinite, no number or subnormal at times."""

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_quantized(self) -> bool:
        return self.dtype.name in _QUANTIZED

    def choice(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def drawn(self) -> Quantization | None:
        """A scale, seldom an extreme one, and a zero point, at times at an end; none for plain numbers."""
        if not self.is_quantized:
            return None
        scale = float(np.float32(self.choice(*_SCALES) * self.rng.uniform(0.7, 1.5)))
        scale = self.dyadic(-7, 2) if self.is_dyadic else scale
        if self.dtype == np.int16:
            return Quantization((scale / 128,), (0,))
        low = int(np.iinfo(self.dtype).min)
        return Quantization((scale,), (self.choice(int(self.rng.integers(low, low + 256)), low + 128, low, low + 255),))

    def dyadic(self, low: int, high: int) -> float:
        return 2.0 ** int(self.rng.integers(low, high)) * self.choice(1.0, 1.0, 1.0, 1.5)

    def fixed(self, scale: float, offset: int, of_words: float = 1 / 32768) -> Quantization | None:
        """What a function demands of its result: `offset` is that of the zero point from the lowest value."""
        if self.dtype == np.int16:
            return Quantization((of_words,), (0,))
        return None if self.is_float else Quantization((scale,), (_FULL[self.dtype.name] + offset,))

    def numbers(self, shape: Sequence[int], dtype: Any = None) -> Array:
        """Quantized values of the whole range; small integers and extreme ones; floats, special ones among them."""
        kind, rng = np.dtype(dtype or self.dtype), self.rng
        if kind.kind == "b":
            return rng.integers(0, 2, shape).astype(kind)
        if kind.kind == "f":
            found = np.asarray(rng.normal(size=shape)).astype(kind)
            with np.errstate(over="ignore"):
                special = np.array(_SPECIAL, np.float32).astype(kind)
            return np.where(rng.random(shape) < 0.1, rng.choice(special, shape), found) if self.is_special else found
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        found = np.asarray(rng.integers(low, high, shape, kind, endpoint=True))
        if kind.name in _QUANTIZED:
            return found
        ends = rng.choice(np.array((low, low + 1, -1, 0, 1, high - 1, high), kind), shape)
        small = rng.integers(-9, 10, shape).astype(kind)
        return np.choose(rng.choice(3, shape, p=(0.6, 0.2, 0.2)), (small, ends, found)).astype(kind)

    def constant(self, value: Array, quantization: Quantization | None = None) -> int:
        self.constants += 1
        return self.writer.constant(f"c{self.constants}", value, quantization)

    def integers(self, *numbers: int) -> int:
        return self.constant(np.array(numbers, np.int32))

    def given(self, value: Array, quantization: Quantization | None = None) -> int:
        """A tensor that the caller fills with this content, or that the file has."""
        if self.inputs and self.chance(0.4):
            return self.constant(value, quantization)
        index = self.writer.tensor(f"x{len(self.inputs)}", value.shape, value.dtype.type, quantization)
        self.inputs[index] = value
        return index

    def value(self, content: Array, quantization: Quantization | None) -> int:
        """`given`, as a value that steps read."""
        index = self.given(content, quantization)
        self.shapes[index], self.types[index], self.quantization[index] = content.shape, content.dtype, quantization
        return index

    def tensor(self, shape: Sequence[int], quantization: Quantization | None, dtype: Any = None) -> int:
        """A new value, by default of the type of the one that the step reads."""
        kind = np.dtype(dtype or self.dtype)
        index = self.writer.tensor(f"v{len(self.shapes)}", shape, kind.type, quantization)
        self.shapes[index], self.types[index], self.quantization[index] = tuple(shape), kind, quantization
        return index

    def node(self, kind: str, inputs: Sequence[int], results: Sequence[int], *option: Any) -> None:
        """An operator that makes new values of others."""
        self.writer.operator(getattr(tflite.BuiltinOperator, kind), inputs, results, *option)
        floats = [one for one in results if self.types[one].kind == "f"]
        if (self.is_float and kind in _INEXACT) or not self.inexact.isdisjoint(inputs):
            self.inexact.update(floats)

    def add(
        self, kind: str, inputs: Sequence[int], shape: Sequence[int], given: Quantization | None, *option: Any
    ) -> int:
        result = self.tensor(shape, given)
        self.node(kind, inputs, [result], *option)
        return result

    def plain(self, kind: str, inputs: Sequence[int], shape: Sequence[int], dtype: Any, *option: Any) -> int:
        """Of another type than the first input, which stands for itself."""
        result = self.tensor(shape, None, dtype)
        self.node(kind, inputs, [result], *option)
        return result

    def same(self, kind: str, inputs: Sequence[int], shape: Sequence[int], *option: Any) -> int:
        """Of the quantization of the first input that is a value."""
        value = next(one for one in inputs if one in self.shapes)
        return self.add(kind, inputs, shape, self.quantization[value], *option)

    def weighted(self, value: int, shape: Sequence[int], axis: int) -> list[int]:
        """A constant of weights of the value's products and, at times without, a bias."""
        count, rng = shape[axis], self.rng
        if self.is_float:
            bias = [self.constant(self.numbers([count]))] if rng.random() < 0.8 else []
            return [self.constant(self.numbers(shape) * np.float32(0.3)), *bias]
        wide = np.int64 if self.dtype == np.int16 else np.int32
        scales = rng.uniform(0.003, 0.02, self.choice(1, count, count) if self.dtype != np.uint8 else 1).tolist()
        scales = [self.dyadic(-9, -4) for _ in scales] if self.is_dyadic else scales
        point = int(rng.integers(100, 150)) if self.dtype == np.uint8 else 0
        of_weights = Quantization(tuple(scales), (point,) * len(scales), axis if len(scales) > 1 else 0)
        weights = self.numbers(shape, np.uint8 if self.dtype == np.uint8 else np.int8)
        known = self.quantization[value]
        assert known is not None
        of_bias = Quantization(tuple(known.scales[0] * one for one in scales), (0,) * len(scales))
        bias = self.constant(rng.integers(-3000, 3000, count).astype(wide), of_bias)
        return [
            self.constant(np.maximum(weights, weights.dtype.type(np.iinfo(weights.dtype).min + 1)), of_weights),
            bias,
        ]

    def others(self, shape: Sequence[int], quantization: Quantization | bool | None = True) -> list[int]:
        """The values of this shape and of the current type, and of this quantization if one is given."""
        fitting = [one for one, found in self.shapes.items() if found == tuple(shape) and self.types[one] == self.dtype]
        return [one for one in fitting if quantization is True or self.quantization[one] == quantization]

    def size(self, value: int) -> int:
        return prod(self.shapes[value])


def litert(content: bytes, arrays: Sequence[Array], *, is_reference: bool) -> tuple[Array, ...]:
    """What LiteRT gives, in a process of its own: some of its kernels read outside of their memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            found: Any = tuple(frameworks.load_litert(content, 1, is_reference=is_reference)(arrays))
        except Exception as error:
            found = str(error)
        with os.fdopen(writer, "wb") as file:
            pickle.dump(found, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    found = pickle.loads(answer) if answer else "LiteRT ends the process"
    if isinstance(found, str):
        raise InvalidCaseError(found)
    return found
