"""A .tflite model with a loop, as Keras writes recurrent layers: a counter, a list of rows, a state and a sequence."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray
from simple_recurrent_models import table

from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Subgraph, write_model

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]
_WIDTH = 3


@dataclass(frozen=True)
class Loop:
    """``h = tanh(h + x[i])``, row i of the list, for i below a limit."""

    trips: int = 5
    is_result: bool = False
    """Whether the list is the model's result as it is; otherwise it is negated."""
    reads_limit: bool = False
    """Whether the limit is an input of the model."""
    unsupported: bool = False
    """Whether the body normalizes the state by an operator that nobody takes."""

    def but(self, **changes: Any) -> "Loop":
        """With other fields."""
        return replace(self, **changes)

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
        how = table({0: ("Int32", 1), 1: ("Int32", 2)}, 2)
        main.operator(KIND.WHILE, [zero, rows, start, x, limit], results, OPTIONS.WhileOptions, how)
        output = results[1]
        if not self.is_result:
            output = main.tensor("y", (self.trips, 1, _WIDTH), np.float32)
            main.operator(KIND.NEG, [results[1]], output, OPTIONS.NegOptions, table({}, 0))
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
        writer.operator(KIND.LESS, [values[0], values[4]], verdict, OPTIONS.LessOptions, table({}, 0))
        return Subgraph(writer, values, [verdict])

    def _body(self) -> Subgraph:
        writer = ModelWriter("body")
        values = self._values(writer)
        counter, rows, state, x, limit = values
        one = writer.constant("one", np.array([1], np.int32))
        after = writer.tensor("next", (1,), np.int32)
        writer.operator(KIND.ADD, [counter, one], after, OPTIONS.AddOptions, table({}, 2))
        row = writer.tensor("row", (1, 1, _WIDTH), np.float32)
        writer.operator(KIND.GATHER, [x, counter], row, OPTIONS.GatherOptions, table({}, 2))
        total, hidden = (writer.tensor(name, (1, 1, _WIDTH), np.float32) for name in ("sum", "tanh"))
        writer.operator(KIND.ADD, [row, state], total, OPTIONS.AddOptions, table({}, 2))
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
        writer.operator(KIND.RESHAPE, [source, extents], result, OPTIONS.ReshapeOptions, table({}, 1))

    def _written(self, writer: ModelWriter, rows: int, row: int, counter: int, after: int) -> int:
        """The list with another row: what precedes it, the row, what follows."""
        zero = writer.constant("no offset", np.zeros(3, np.int32))
        rest = writer.constant("no end", np.full(3, -1, np.int32))
        tails = [writer.constant(f"tail {number}", np.full(2, number, np.int32)) for number in (-1, 0)]
        size, begin = (writer.tensor(name, (3,), np.int32) for name in ("size", "begin"))
        for first, tail, result in ((counter, tails[0], size), (after, tails[1], begin)):
            kind = OPTIONS.ConcatenationOptions
            writer.operator(KIND.CONCATENATION, [first, tail], result, kind, table({}, 2))
        parts = [writer.tensor(name, (1, 1, _WIDTH), np.float32, signature=(-1, 1, _WIDTH)) for name in ("low", "high")]
        writer.operator(KIND.SLICE, [rows, zero, size], parts[0], OPTIONS.SliceOptions, table({}, 0))
        writer.operator(KIND.SLICE, [rows, begin, rest], parts[1], OPTIONS.SliceOptions, table({}, 0))
        joined = writer.tensor("list", (self.trips, 1, _WIDTH), np.float32)
        inputs = [parts[0], row, parts[1]]
        writer.operator(KIND.CONCATENATION, inputs, joined, OPTIONS.ConcatenationOptions, table({}, 2))
        return joined
