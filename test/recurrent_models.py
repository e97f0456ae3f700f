"""A .tflite model with a loop, as Keras writes recurrent layers: a counter, a list of rows, a state and a sequence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_graphs import Option, options, options_of

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization, Subgraph, write_model
from qdialect.frontends.tflite.flatbuffer.writer import options as named_options

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]
_WIDTH = 3


@dataclass(frozen=True)
class Changed:
    def but(self, **changes: Any) -> Self:
        """With other fields."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Loop(Changed):
    """``h = tanh(h + x[i])``, row i of the list, for i below a limit."""

    trips: int = 5
    is_result: bool = False
    """Whether the list is the model's result as it is; otherwise it is negated."""
    reads_limit: bool = False
    """Whether the limit is an input of the model."""
    unsupported: bool = False
    """Whether the body normalizes the state by an operator that nobody takes."""

    def inputs(self) -> list[Array]:
        """Drawn for its inputs."""
        x = np.random.default_rng(0).normal(size=(self.trips, 1, _WIDTH)).astype(np.float32)
        return [x, np.array([self.trips], np.int32)] if self.reads_limit else [x]

    def content(self) -> bytes:
        """The model's file."""
        main = ModelWriter("a loop")
        given = self._values(main)
        x = given[3]
        zero = main.constant("zero", np.array([0], np.int32))
        rows = main.constant("rows", np.zeros((self.trips, 1, _WIDTH), np.float32))
        start = main.constant("start", np.zeros((1, _WIDTH), np.float32))
        limit = given[4] if self.reads_limit else main.constant("limit", np.array([self.trips], np.int32))
        results = self._values(main)
        how = options(1, 2)
        main.operator(KIND.WHILE, [zero, rows, start, x, limit], results, OPTIONS.WhileOptions, how)
        output = results[1]
        if not self.is_result:
            output = main.tensor("y", (self.trips, 1, _WIDTH), np.float32)
            main.operator(KIND.NEG, [results[1]], output, *options_of("Neg"))
        inputs = [x, limit] if self.reads_limit else [x]
        return write_model([Subgraph(main, inputs, [output]), self._condition(), self._body()])

    def _values(self, writer: ModelWriter) -> list[int]:
        counter = writer.tensor("i", (1,), np.int32)
        rows = writer.tensor("rows", (self.trips, 1, _WIDTH), np.float32)
        state, x = writer.tensor("h", (1, _WIDTH), np.float32), writer.tensor("x", (self.trips, 1, _WIDTH), np.float32)
        return [counter, rows, state, x, writer.tensor("limit", (1,), np.int32)]

    def _condition(self) -> Subgraph:
        writer = ModelWriter("condition")
        values = self._values(writer)
        verdict = writer.tensor("verdict", (1,), np.bool_)
        writer.operator(KIND.LESS, [values[0], values[4]], verdict, *options_of("Less"))
        return Subgraph(writer, values, [verdict])

    def _body(self) -> Subgraph:
        writer = ModelWriter("body")
        values = self._values(writer)
        counter, rows, state, x, limit = values
        one = writer.constant("one", np.array([1], np.int32))
        after = writer.tensor("next", (1,), np.int32)
        writer.operator(KIND.ADD, [counter, one], after, *options_of("Add"))
        row = writer.tensor("row", (1, 1, _WIDTH), np.float32)
        writer.operator(KIND.GATHER, [x, counter], row, *options_of("Gather"))
        total, hidden = (writer.tensor(name, (1, 1, _WIDTH), np.float32) for name in ("sum", "tanh"))
        writer.operator(KIND.ADD, [row, state], total, *options_of("Add"))
        writer.operator(KIND.TANH, [total], hidden)
        if self.unsupported:
            angle = writer.tensor("angle", (1, 1, _WIDTH), np.float32)
            writer.operator(KIND.ATAN2, [hidden, total], angle)
            hidden = angle
        flat = writer.tensor("flat", (1, _WIDTH), np.float32)
        self._reshaped(writer, hidden, flat, (1, _WIDTH))
        written = self._written(writer, rows, hidden, counter, after)
        return Subgraph(writer, values, [after, written, flat, x, limit])

    def _reshaped(self, writer: ModelWriter, source: int, result: int, shape: tuple[int, ...]) -> None:
        extents = writer.constant(f"shape of {result}", np.array(shape, np.int32))
        writer.operator(KIND.RESHAPE, [source, extents], result, *options_of("Reshape"))

    def _written(self, writer: ModelWriter, rows: int, row: int, counter: int, after: int) -> int:
        """The list with another row: what precedes it, the row, what follows."""
        zero = writer.constant("no offset", np.zeros(3, np.int32))
        rest = writer.constant("no end", np.full(3, -1, np.int32))
        tails = [writer.constant(f"tail {number}", np.full(2, number, np.int32)) for number in (-1, 0)]
        size, begin = (writer.tensor(name, (3,), np.int32) for name in ("size", "begin"))
        for first, tail, result in ((counter, tails[0], size), (after, tails[1], begin)):
            kind = OPTIONS.ConcatenationOptions
            writer.operator(KIND.CONCATENATION, [first, tail], result, kind, options())
        parts = [writer.tensor(name, (1, 1, _WIDTH), np.float32, signature=(-1, 1, _WIDTH)) for name in ("low", "high")]
        writer.operator(KIND.SLICE, [rows, zero, size], parts[0], *options_of("Slice"))
        writer.operator(KIND.SLICE, [rows, begin, rest], parts[1], *options_of("Slice"))
        joined = writer.tensor("list", (self.trips, 1, _WIDTH), np.float32)
        inputs = [parts[0], row, parts[1]]
        writer.operator(KIND.CONCATENATION, inputs, joined, *options_of("Concatenation"))
        return joined


# Recurrent .tflite models of one operator, drawn.

TANH = tflite.ActivationFunctionType.TANH


@dataclass(frozen=True)
class Lstm(Changed):
    """A UNIDIRECTIONAL_SEQUENCE_LSTM; `weights` is the type of its weights, float32 or int8."""

    data: type[np.generic] = np.int8
    weights: type[np.generic] = np.int8
    steps: int = 5
    batch: int = 1
    depth: int = 7
    cells: int = 9
    width: int = 0
    """Of a projection, 0 for none."""
    is_coupled: bool = False
    """Whether the gate i is left out."""
    has_peepholes: bool = False
    has_norms: bool = False
    gate_scales: tuple[float, float, float, float] = (0.9, 0.9, 0.9, 0.9)
    """Of the sums of normalized gates, in 2^-12."""
    has_bias: bool = True
    is_time_major: bool = False
    is_asymmetric: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    cell_exponent: int = -11
    activation: int = TANH
    seed: int = 0

    def content(self) -> bytes:
        """The model's file."""
        return _Writer(self).content()

    def inputs(self) -> list[Array]:
        """Drawn for its input."""
        shape = self.input_shape
        random = np.random.default_rng(self.seed + 1)
        if self.data is np.float32:
            return [random.normal(size=shape).astype(np.float32)]
        return [random.integers(-128, 128, shape).astype(np.int8)]

    @property
    def input_shape(self) -> tuple[int, int, int]:
        outer = (self.steps, self.batch) if self.is_time_major else (self.batch, self.steps)
        return (*outer, self.depth)


@dataclass(frozen=True)
class BidirectionalLstm:
    """A BIDIRECTIONAL_SEQUENCE_LSTM, both directions of one kind."""

    direction: Lstm
    is_merged: bool = True
    has_auxiliary: bool = False
    """Whether the backward direction reads another input."""

    def content(self) -> bytes:
        """The model's file."""
        return _Writer(self.direction).both(self.is_merged, self.has_auxiliary)

    def inputs(self) -> list[Array]:
        """Drawn for its inputs."""
        first = self.direction.inputs()
        return [*first, *self.direction.but(seed=99).inputs()] if self.has_auxiliary else first


class _Writer:
    def __init__(self, model: Lstm) -> None:
        self.model = model
        self.writer = ModelWriter("long short-term memory")
        self.random = np.random.default_rng(model.seed)
        self.is_integer = model.data is not np.float32

    def content(self) -> bytes:
        model, writer = self.model, self.writer
        data = writer.tensor("x", model.input_shape, model.data, self.activation(0.03, -3))
        norms = [self.norm(f"n{i}") if self.has(i) and model.has_norms else -1 for i in range(4)]
        output = writer.tensor("y", self.output_shape(1), model.data, self.activation(0.008, 5))
        inputs = [data, *self.direction(), *self.states(), *norms]
        kind = OPTIONS.UnidirectionalSequenceLSTMOptions
        between = self.intermediates() if self.is_integer else ()
        writer.operator(KIND.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, output, kind, self.options(), between)
        return writer.finish([data], [output])

    def both(self, is_merged: bool, has_auxiliary: bool) -> bytes:
        model, writer = self.model, self.writer
        data = writer.tensor("x", model.input_shape, model.data)
        other = [writer.tensor("auxiliary", model.input_shape, model.data)] if has_auxiliary else []
        directions = [*self.direction(), *self.direction()]
        inputs = [data, *directions, *self.states(), *self.states(), *(other or [-1]), *(-1,) * 8]
        shapes = [self.output_shape(2)] if is_merged else [self.output_shape(1)] * 2
        outputs = [writer.tensor(f"y{i}", shape, model.data) for i, shape in enumerate(shapes)]
        writer.operator(KIND.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs, *self.options_of_both(is_merged))
        return writer.finish([data, *other], outputs)

    def has(self, gate: int) -> bool:
        return gate > 0 or not self.model.is_coupled

    @property
    def width(self) -> int:
        return self.model.width or self.model.cells

    def output_shape(self, directions: int) -> tuple[int, ...]:
        return (*self.model.input_shape[:2], directions * self.width)

    def direction(self) -> list[int]:
        """Weights, peepholes, biases and projection."""
        model, gates = self.model, range(4)
        weights = [self.matrix(f"w{i}", model.cells, model.depth) if self.has(i) else -1 for i in gates]
        recurrences = [self.matrix(f"r{i}", model.cells, self.width) if self.has(i) else -1 for i in gates]
        peepholes = [self.peephole(f"p{i}") if model.has_peepholes and self.has(i) else -1 for i in (0, 1, 3)]
        biases = [self.bias(f"b{i}", model.cells) if self.has(i) and model.has_bias else -1 for i in gates]
        projection = [-1, -1]
        if model.width:
            projection = [self.matrix("projection", model.width, model.cells), self.bias("start", model.width)]
        return [*weights, *recurrences, *peepholes, *biases, *projection]

    def states(self) -> list[int]:
        model = self.model
        hidden = self.writer.variable("h", (model.batch, self.width), model.data, self.activation(0.008, 5))
        shape = (model.batch, model.cells)
        if not self.is_integer:
            return [hidden, self.writer.variable("c", shape, np.float32)]
        scale = Quantization((2.0**model.cell_exponent,), (0,))
        return [hidden, self.writer.variable("c", shape, np.int16, scale)]

    def options(self) -> Callable[[Builder], int]:
        model = self.model
        clips = float(model.cell_clip), float(model.projection_clip)
        return options(model.activation, *clips, model.is_time_major, model.is_asymmetric)

    def options_of_both(self, is_merged: bool) -> Option:
        """By name: the schema takes `TimeMajor` for true where it is left out."""
        model = self.model
        ways = {"TimeMajor": model.is_time_major, "AsymmetricQuantizeInputs": model.is_asymmetric}
        name, function = "BidirectionalSequenceLSTMOptions", model.activation
        return named_options(name, FusedActivationFunction=function, MergeOutputs=is_merged, **ways)

    def activation(self, scale: float, zero_point: int) -> Quantization | None:
        return Quantization((scale,), (zero_point,)) if self.is_integer else None

    def intermediates(self) -> Sequence[int]:
        scales = [Quantization((2.0**-12 * factor,), (0,)) for factor in self.model.gate_scales]
        words = scales if self.model.has_norms else [None] * 4
        found = [self.writer.tensor(f"m{i}", (1,), np.int16, word) for i, word in enumerate(words)]
        hidden = Quantization((0.007,), (-4,)) if self.model.width else self.activation(0.008, 5)
        return [*found, self.writer.tensor("hidden", (1,), np.int8, hidden)]

    def matrix(self, name: str, rows: int, columns: int) -> int:
        if self.model.weights is np.float32:
            return self.writer.constant(name, self.normal(rows, columns))
        return self.writer.constant(name, self.bytes(rows, columns), self.drawn_scale())

    def drawn_scale(self, scale: float = 0.006) -> Quantization:
        return Quantization((float(np.float32(self.random.uniform(0.5, 1.5) * scale)),), (0,))

    def bytes(self, *shape: int) -> Array:
        return self.random.integers(-127, 128, shape).astype(np.int8)

    def normal(self, *shape: int) -> Array:
        return (self.random.normal(size=shape) * 0.5).astype(np.float32)

    def vector(self, name: str, largest: int) -> int:
        """A vector of each cell: i16 of an integer operator, f32 else."""
        values = self.random.integers(-largest, largest, self.model.cells).astype(np.int16)
        return self.writer.constant(name, values, self.drawn_scale(2.0**-15))

    def peephole(self, name: str) -> int:
        if self.is_integer:
            return self.vector(name, 2**15)
        if self.model.weights is np.float32:
            return self.writer.constant(name, self.normal(self.model.cells))
        return self.writer.constant(name, self.bytes(self.model.cells), self.drawn_scale())

    def norm(self, name: str) -> int:
        if self.is_integer:
            return self.vector(name, 2**15)
        return self.writer.constant(name, self.normal(self.model.cells))

    def bias(self, name: str, count: int) -> int:
        if self.is_integer:
            return self.writer.constant(name, self.random.integers(-3000, 3000, count).astype(np.int32))
        return self.writer.constant(name, self.normal(count))


# RNN and SVDF .tflite models of one operator, drawn.


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
class Rnn(Changed):
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
        head = [] if self.kind == "RNN" else [self.is_time_major]
        merged = [self.is_merged] if self.kind == "BIDIRECTIONAL_SEQUENCE_RNN" else []
        names = {"RNN": "RNNOptions", "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions"}
        name = names.get(self.kind, "BidirectionalSequenceRNNOptions")
        return getattr(OPTIONS, name), options(*head, self.activation, *merged, self.is_asymmetric)


@dataclass(frozen=True)
class Svdf(Changed):
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
        how = options(self.rank, self.activation, self.is_asymmetric)
        writer.operator(KIND.SVDF, [data, feature, time, bias, state], output, OPTIONS.SVDFOptions, how)
        return writer.finish([data], [output])

    def _time(self, writer: Drawn, filters: int) -> int:
        limit = 2**15 if self.time is np.int16 else 2**7
        values = writer.random.integers(-limit, limit, (filters, self.memory)).astype(self.time)
        return writer.constant("time", values, Quantization((0.5 / limit,), (0,)))
