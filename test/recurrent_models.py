"""Recurrent .tflite models of one operator, drawn."""

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Lstm:
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

    def but(self, **changes: Any) -> "Lstm":
        """With other fields."""
        return replace(self, **changes)


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
        kind = OPTIONS.BidirectionalSequenceLSTMOptions
        writer.operator(KIND.BIDIRECTIONAL_SEQUENCE_LSTM, inputs, outputs, kind, self.options_of_both(is_merged))
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

        def write(builder: Builder) -> int:
            tflite.UnidirectionalSequenceLSTMOptionsStart(builder)
            tflite.UnidirectionalSequenceLSTMOptionsAddFusedActivationFunction(builder, model.activation)
            tflite.UnidirectionalSequenceLSTMOptionsAddCellClip(builder, model.cell_clip)
            tflite.UnidirectionalSequenceLSTMOptionsAddProjClip(builder, model.projection_clip)
            tflite.UnidirectionalSequenceLSTMOptionsAddTimeMajor(builder, model.is_time_major)
            tflite.UnidirectionalSequenceLSTMOptionsAddAsymmetricQuantizeInputs(builder, model.is_asymmetric)
            return tflite.UnidirectionalSequenceLSTMOptionsEnd(builder)

        return write

    def options_of_both(self, is_merged: bool) -> Callable[[Builder], int]:
        model = self.model

        def write(builder: Builder) -> int:
            tflite.BidirectionalSequenceLSTMOptionsStart(builder)
            tflite.BidirectionalSequenceLSTMOptionsAddFusedActivationFunction(builder, model.activation)
            tflite.BidirectionalSequenceLSTMOptionsAddMergeOutputs(builder, is_merged)
            tflite.BidirectionalSequenceLSTMOptionsAddTimeMajor(builder, model.is_time_major)
            tflite.BidirectionalSequenceLSTMOptionsAddAsymmetricQuantizeInputs(builder, model.is_asymmetric)
            return tflite.BidirectionalSequenceLSTMOptionsEnd(builder)

        return write

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
