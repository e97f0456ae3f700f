"""RNN and SVDF .tflite models of one operator, drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
TANH = tflite.ActivationFunctionType.TANH
Array = NDArray[Any]


def table(fields: Mapping[int, tuple[str, float]], count: int) -> Callable[[Builder], int]:
    """An options table of `count` fields: by slot the method that writes it, and its value."""

    def write(builder: Builder) -> int:
        builder.StartObject(count)
        for slot, (kind, value) in fields.items():
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        return builder.EndObject()

    return write


class Drawn(ModelWriter):
    """A writer that draws constants."""

    def __init__(self, description: str, seed: int) -> None:
        super().__init__(description)
        self.random = np.random.default_rng(seed)

    def floats(self, name: str, *shape: int) -> int:
        return self.constant(name, (self.random.normal(size=shape) * 0.5).astype(np.float32))

    def matrix(self, name: str, weights: type[np.generic], *shape: int) -> int:
        if weights is np.float32:
            return self.floats(name, *shape)
        scale = Quantization((float(np.float32(self.random.uniform(0.004, 0.009))),), (0,))
        return self.constant(name, self.random.integers(-127, 128, shape).astype(np.int8), scale)


@dataclass(frozen=True)
class Rnn:
    """An operator of the RNN family; `weights` is the type of its weights, float32 or int8."""

    kind: str = "UNIDIRECTIONAL_SEQUENCE_RNN"
    weights: type[np.generic] = np.float32
    steps: int = 5
    batch: int = 1
    depth: int = 7
    units: int = 9
    is_time_major: bool = False
    is_asymmetric: bool = False
    is_merged: bool = False
    has_auxiliary: bool = False
    activation: int = TANH
    seed: int = 0

    def but(self, **changes: Any) -> "Rnn":
        """With other fields."""
        return replace(self, **changes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        if self.kind == "RNN":
            return self.batch, self.depth
        return (*((self.steps, self.batch) if self.is_time_major else (self.batch, self.steps)), self.depth)

    def inputs(self) -> list[Array]:
        """Drawn for its inputs."""
        random = np.random.default_rng(self.seed + 1)
        return [random.normal(size=self.input_shape).astype(np.float32) for _ in range(1 + self.has_auxiliary)]

    def content(self) -> bytes:
        """The model's file."""
        writer = Drawn("simple recurrent cells", self.seed)
        data = writer.tensor("x", self.input_shape, np.float32)
        other = [writer.tensor("auxiliary", self.input_shape, np.float32)] if self.has_auxiliary else []
        is_both = self.kind.startswith("BIDIRECTIONAL")
        inputs = [data, *self._direction(writer)]
        inputs += [*self._direction(writer), *(other or [-1]), -1, -1] if is_both else []
        is_pair = is_both and not self.is_merged
        shape = (*self.input_shape[:-1], self.units * (2 if self.is_merged else 1))
        outputs = [writer.tensor(f"y{i}", shape, np.float32) for i in range(2 if is_pair else 1)]
        writer.operator(getattr(KIND, self.kind), inputs, outputs, *self._options())
        return writer.finish([data, *other], outputs)

    def _direction(self, writer: Drawn) -> list[int]:
        weight = writer.matrix("w", self.weights, self.units, self.depth)
        recurrence = writer.matrix("r", self.weights, self.units, self.units)
        state = writer.variable("h", (self.batch, self.units), np.float32)
        return [weight, recurrence, writer.floats("b", self.units), state]

    def _options(self) -> tuple[int, Callable[[Builder], int]]:
        time, merged, ways = ("Bool", self.is_time_major), ("Bool", self.is_merged), ("Bool", self.is_asymmetric)
        function = ("Int8", self.activation)
        if self.kind == "RNN":
            return OPTIONS.RNNOptions, table({0: function, 1: ways}, 2)
        if self.kind == "UNIDIRECTIONAL_SEQUENCE_RNN":
            return OPTIONS.SequenceRNNOptions, table({0: time, 1: function, 2: ways}, 3)
        return OPTIONS.BidirectionalSequenceRNNOptions, table({0: time, 1: function, 2: merged, 3: ways}, 4)


@dataclass(frozen=True)
class Svdf:
    """An SVDF; `data` is the type of its activations, `weights` that of its weights."""

    data: type[np.generic] = np.int8
    weights: type[np.generic] = np.int8
    batch: int = 2
    depth: int = 13
    units: int = 8
    rank: int = 2
    memory: int = 6
    has_bias: bool = True
    is_asymmetric: bool = False
    activation: int = tflite.ActivationFunctionType.RELU
    time: type[np.generic] = np.int16
    """The type of an integer operator's time weights."""
    seed: int = 0

    def but(self, **changes: Any) -> "Svdf":
        """With other fields."""
        return replace(self, **changes)

    def inputs(self) -> list[Array]:
        """Drawn for its input."""
        random = np.random.default_rng(self.seed + 1)
        shape = (self.batch, self.depth)
        if self.data is np.float32:
            return [random.normal(size=shape).astype(np.float32)]
        return [random.integers(-128, 128, shape).astype(np.int8)]

    def content(self) -> bytes:
        """The model's file."""
        writer = Drawn("SVDF", self.seed)
        filters, is_integer = self.units * self.rank, self.data is not np.float32
        byte, word, ends = Quantization((0.03,), (-5,)), Quantization((2.0**-10,), (0,)), Quantization((0.06,), (-20,))
        data = writer.tensor("x", (self.batch, self.depth), self.data, byte if is_integer else None)
        feature = writer.matrix("feature", self.weights, filters, self.depth)
        time = self._time(writer, filters) if is_integer else writer.matrix("time", self.weights, filters, self.memory)
        bias = -1
        if self.has_bias and is_integer:
            bias = writer.constant("bias", writer.random.integers(-2000, 2000, self.units).astype(np.int32))
        elif self.has_bias:
            bias = writer.floats("bias", self.units)
        kind = np.int16 if is_integer else np.float32
        state = writer.variable("state", (self.batch, self.memory * filters), kind, word if is_integer else None)
        output = writer.tensor("y", (self.batch, self.units), self.data, ends if is_integer else None)
        how = table({0: ("Int32", self.rank), 1: ("Int8", self.activation), 2: ("Bool", self.is_asymmetric)}, 3)
        writer.operator(KIND.SVDF, [data, feature, time, bias, state], output, OPTIONS.SVDFOptions, how)
        return writer.finish([data], [output])

    def _time(self, writer: Drawn, filters: int) -> int:
        limit = 2**15 if self.time is np.int16 else 2**7
        values = writer.random.integers(-limit, limit, (filters, self.memory)).astype(self.time)
        return writer.constant("time", values, Quantization((0.5 / limit,), (0,)))
