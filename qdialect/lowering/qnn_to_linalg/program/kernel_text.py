"""Writing a kernel function at the linalg level.

A kernel takes flat buffers and scalars, reads the buffers through strided views, and computes with `linalg.generic` on
tensors; results go to their destination in place.  `qnn.*` attributes on the ops tell later steps which micro-kernel an
op belongs to, its role there, and the tile sizes that the strategy chose.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.ir.views import View
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value

SCRATCH, PAIR_SUMS_FIT = "qnn.scratch", "qnn.pair_sums_fit"
"""Argument attributes. `qnn.scratch`: memory private to one iteration. `qnn.pair_sums_fit`: weights of which any two
consecutive bytes satisfy the bound of `qdialect.lowering.cost.register_tiles`."""
NORMAL_SUMS = "qnn.normal_sums"
"""An attribute of a `math.fma` whose addend is another one: no number that they read or give is subnormal."""


@dataclass(frozen=True)
class Buffer:
    """A flat buffer argument of a kernel."""

    name: str
    element: str
    length: int
    start: Value | None = None
    """An index of a loop's block that is added to whatever is read or written."""

    @property
    def type(self) -> str:
        return f"memref<{self.length}x{self.element}>"


@dataclass(frozen=True)
class Tensor:
    """An SSA tensor of a kernel."""

    name: str
    sizes: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        return tensor_type(self.sizes, self.element)


@dataclass(frozen=True)
class Operand:
    """A tensor as an operand of a generic: the loops that index it, in order (``"0"`` for a constant index)."""

    tensor: Tensor
    loops: tuple[str, ...]


@dataclass(frozen=True)
class Loops:
    """The loops of a generic, outermost first."""

    parallel: tuple[str, ...]
    reduction: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    """Parallel loops inside the reductions: a vector of one round of a reduction ends with them, not with that one."""

    def map_to(self, results: Sequence[str]) -> str:
        return f"affine_map<({', '.join(self.parallel + self.reduction + self.lanes)}) -> ({', '.join(results)})>"

    @property
    def iterators(self) -> str:
        kinds = ['"parallel"'] * len(self.parallel) + ['"reduction"'] * len(self.reduction)
        kinds += ['"parallel"'] * len(self.lanes)
        return f"[{', '.join(kinds)}]"


@dataclass(frozen=True)
class Tag:
    """The attributes of an op for the vector step: its micro-kernel, its role there, and its tile sizes.

    An op of no micro-kernel is a tile already.
    """

    micro_kernel: int | None
    role: str = ""
    tiles: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """As an attribute dictionary."""
        if self.micro_kernel is None:
            return "{}"
        tiles = f", qnn.tiles = array<i64: {', '.join(map(str, self.tiles))}>" if self.tiles else ""
        return f'{{qnn.micro_kernel = {self.micro_kernel} : i64, qnn.role = "{self.role}"{tiles}}}'


WHOLE = Tag(None)
"""Of an op that is a tile by itself."""

Carried = TypeVar("Carried", Value, Tensor)
"""The values that a loop carries from round to round."""


@dataclass
class Walk(Generic[Carried]):
    """A loop's index and the values that it carries; after the loop, those that the last round left."""

    index: Value
    values: list[Carried]

    @property
    def value(self) -> Carried:
        return self.values[0]

    @value.setter
    def value(self, value: Carried) -> None:
        self.values = [value]


def tensor_type(sizes: Sequence[int], element: str) -> str:
    """A ranked tensor type."""
    return f"tensor<{'x'.join([*map(str, sizes), element])}>"


@dataclass
class _Header:
    """The state that the parts of one function share: its arguments, its constants and its counters of names."""

    arguments: dict[str, str] = field(default_factory=dict[str, str])
    constants: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    tables: dict[bytes, tuple[Buffer, Tensor]] = field(default_factory=dict[bytes, "tuple[Buffer, Tensor]"])
    seen: dict[Buffer, set[View | None]] = field(default_factory=dict[Buffer, "set[View | None]"])
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    micro_kernels: Iterator[int] = field(default_factory=count)


class KernelText:
    """Collects arguments and ops of one kernel function."""

    def __init__(self, whole: KernelText | None = None) -> None:
        """With `whole` it is a part of that function, and its ops stand where `whole` puts them with `insert`."""
        self._header = whole._header if whole else _Header()
        self._lines: list[str] = []

    def insert(self, part: KernelText) -> None:
        """The ops of a part of this function."""
        self._lines += part._lines

    def fresh(self) -> str:
        return f"%v{next(self._header.numbers)}"

    def next_micro_kernel(self) -> int:
        return next(self._header.micro_kernels)

    def buffer(self, name: str, element: str, length: int, *, attribute: str = "") -> Buffer:
        """Declare a flat buffer argument, with an argument attribute."""
        name = self._argument_name(name)
        found = Buffer(f"%{name}", element, length)
        attributes = f" {{{attribute}}}" if attribute else ""
        self._header.arguments[name] = f'{found.name}: {found.type}{attributes} loc("{name}")'
        self._header.seen[found] = set()
        return found

    def moved(self, buffer: Buffer, start: Value) -> Buffer:
        """`buffer` as it is seen from the element at the index `start` on."""
        found = replace(buffer, start=self.sum(buffer.start, start) if buffer.start else start)
        self._header.seen[found] = set()
        return found

    def as_numbers(self, buffer: Buffer, element: str, length: int) -> Buffer:
        """A buffer of bytes as one of `length` numbers of another type."""
        found = Buffer(f"%m{next(self._header.numbers)}", element, length)
        start = buffer.start or self.constant(0, "index")
        self._lines.append(f"{found.name} = memref.view {buffer.name}[{start}][] : {buffer.type} to {found.type}")
        self._header.seen[found] = set()
        return found

    def scalar(self, name: str, type_: str) -> Value:
        name = self._argument_name(name)
        self._header.arguments[name] = f'%{name}: {type_} loc("{name}")'
        return Value(f"%{name}", type_)

    def _argument_name(self, name: str) -> str:
        """`name`, with a number behind it where another part of the function has an argument of this name."""
        taken = self._header.arguments
        return name if name not in taken else f"{name}_{len(taken)}"

    def constant(self, value: float, type_: str) -> Value:
        literal = number_text(value, type_)
        constants = self._header.constants
        if (literal, type_) not in constants:
            constants[literal, type_] = f"%c{len(constants)}"
        return Value(constants[literal, type_], type_)

    @contextmanager
    def loop(self, count: int | Value) -> Generator[Value]:
        """A loop around the code written inside the `with`; gives its index, 0 to `count` - 1."""
        zero, one, end = self._bounds(count)
        index = Value(self.fresh(), "index")
        self._lines.append(f"scf.for {index} = {zero} to {end} step {one} {{")
        yield index
        self._lines.append("}")

    def _bounds(self, count: int | Value) -> tuple[Value, Value, Value]:
        """First index, step and end of a loop."""
        first, step = (self.constant(value, "index") for value in (0, 1))
        return first, step, self.constant(count, "index") if isinstance(count, int) else count

    def entry(self, table: Buffer, index: Value) -> Value:
        """The entry of a constant table at a loop's index."""
        self._header.seen[table].add(None)
        return self._define(f"memref.load {table.name}[{index}] : {table.type}", table.element)

    def position(self, table: Buffer, index: Value) -> Value:
        """An entry of a table of integers as an index."""
        entry = self.entry(table, index)
        return self._define(f"arith.index_cast {entry} : {table.element} to index", "index")

    def row(self, table: Buffer, index: Value, extent: int) -> Value:
        """An entry of a table of integers as one of `extent` rows: from the end if negative, the nearest if outside."""
        entry = self.position(table, index)
        zero, last = self.constant(0, "index"), self.constant(extent - 1, "index")
        is_negative = self._define(f"arith.cmpi slt, {entry}, {zero} : index", "i1")
        behind = self.sum(entry, self.constant(extent, "index"))
        row = self._define(f"arith.select {is_negative}, {behind}, {entry} : index", "index")
        row = self._define(f"arith.maxsi {row}, {zero} : index", "index")
        return self._define(f"arith.minsi {row}, {last} : index", "index")

    def sum(self, lhs: Value, rhs: Value) -> Value:
        return self._define(f"arith.addi {lhs}, {rhs} : index", "index")

    def multiple(self, index: Value, factor: int) -> Value:
        return self._define(f"arith.muli {index}, {self.constant(factor, 'index')} : index", "index")

    def address(self, buffer: Buffer) -> Value:
        """Where a buffer starts, as an i64; whoever gets it may read and write all of the buffer."""
        self._header.seen[buffer].add(None)
        start = self._define(f"memref.extract_aligned_pointer_as_index {buffer.name} : {buffer.type} -> index", "index")
        return self._define(f"arith.index_cast {start} : index to i64", "i64")

    def offset(self, address: Value, count: int) -> Value:
        """The address `count` bytes behind `address`."""
        return self._define(f"arith.addi {address}, {self.constant(count, 'i64')} : i64", "i64")

    def prefetch(self, buffer: Buffer, index: Value) -> None:
        """Fetch the cache line with an element of a buffer, or one behind it."""
        self._lines.append(f"memref.prefetch {buffer.name}[{index}], read, locality<3>, data : {buffer.type}")

    def put(self, table: Buffer, index: int | Value, value: Value) -> None:
        """Write an entry of a table."""
        at = self.constant(index, "index") if isinstance(index, int) else index
        self._header.seen[table].add(None)
        self._lines.append(f"memref.store {value}, {table.name}[{at}] : {table.type}")

    def binary(self, name: str, lhs: Value, rhs: Value) -> Value:
        return self._define(f"{name} {lhs}, {rhs} : {lhs.type}", lhs.type)

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> Value:
        return self._define(f"arith.cmpi {predicate}, {lhs}, {rhs} : {lhs.type}", "i1")

    def select(self, condition: Value, lhs: Value, rhs: Value) -> Value:
        return self._define(f"arith.select {condition}, {lhs}, {rhs} : {lhs.type}", lhs.type)

    def cast(self, value: Value, type_: str) -> Value:
        """An index or a signed integer as another one of them, which holds it."""
        if value.type == type_:
            return value
        name = "arith.trunci" if (value.type, type_) == ("i64", "i32") else "arith.extsi"
        name = "arith.index_cast" if "index" in (value.type, type_) else name
        return self._define(f"{name} {value} : {value.type} to {type_}", type_)

    @contextmanager
    def walk(self, count: int | Value, *starts: Carried) -> Generator[Walk[Carried]]:
        """A loop of `count` rounds; each begins with the values that the one before left, the first with `starts`."""
        zero, one, end = self._bounds(count)
        results, own = ([replace(start, name=self.fresh()) for start in starts] for _ in range(2))
        walk = Walk(Value(self.fresh(), "index"), own)
        pairs = ", ".join(f"{inner.name} = {start.name}" for inner, start in zip(own, starts, strict=True))
        names, types = ", ".join(result.name for result in results), ", ".join(start.type for start in starts)
        head = f"scf.for {walk.index} = {zero} to {end} step {one}"
        self._lines.append(f"{names} = {head} iter_args({pairs}) -> ({types}) {{")
        yield walk
        self._lines.append(f"scf.yield {', '.join(value.name for value in walk.values)} : {types}\n}}")
        walk.values = results

    @contextmanager
    def repeat(self, condition: Callable[[Sequence[Value]], Value], *starts: Value) -> Generator[Walk[Value]]:
        """A loop as long as `condition` of the values holds; each round begins with those that the one before left."""
        results, given, own = ([replace(start, name=self.fresh()) for start in starts] for _ in range(3))
        pairs = ", ".join(f"{inner} = {start}" for inner, start in zip(given, starts, strict=True))
        types = ", ".join(start.type for start in starts)
        self._lines.append(f"{', '.join(map(str, results))} = scf.while ({pairs}) : ({types}) -> ({types}) {{")
        holds = condition(given)
        self._lines.append(f"scf.condition({holds}) {', '.join(map(str, given))} : {types}\n}} do {{")
        self._lines.append(f"^bb0({', '.join(f'{value}: {value.type}' for value in own)}):")
        walk = Walk(own[0], own)
        yield walk
        self._lines.append(f"scf.yield {', '.join(map(str, walk.values))} : {types}\n}}")
        walk.values = results

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """A branch around the code written inside the `with`, which runs if `condition` holds."""
        self._lines.append(f"scf.if {condition} {{")
        yield
        self._lines.append("}")

    def external_call(self, symbol: str, arguments: Sequence[Value]) -> Value:
        """Call a C function of another library, which returns an int; it as an i64."""
        types = ", ".join(argument.type for argument in arguments)
        names = ", ".join(map(str, arguments))
        result = self._define(f"func.call @{symbol}({names}) : ({types}) -> i32", "i32")
        return self._define(f"arith.extsi {result} : i32 to i64", "i64")

    def _define(self, text: str, type_: str) -> Value:
        name = self.fresh()
        self._lines.append(f"{name} = {text}")
        return Value(name, type_)

    def read(self, buffer: Buffer, view: View, start: Value | None = None) -> Tensor:
        """The tensor behind a view of an input buffer; `start` is an index that replaces the view's offset."""
        return self._tensor_of(buffer, view, "restrict", start)[0]

    def flat_tensor(self, buffer: Buffer) -> Tensor:
        """All elements of an input buffer, a tensor of one dimension."""
        tensor = Tensor(self.fresh(), (buffer.length,), buffer.element)
        self._header.seen[buffer].add(None)
        self._lines.append(
            f"{tensor.name} = bufferization.to_tensor {buffer.name} restrict : {buffer.type} to {tensor.type}"
        )
        return tensor

    def table(self, values: NDArray[np.float32]) -> Tensor:
        """A tensor of constants, which is declared once, before everything else."""
        tables = self._header.tables
        if values.tobytes() not in tables:
            buffer = self.table_buffer(values)
            tables[values.tobytes()] = buffer, Tensor(self.fresh(), (buffer.length,), buffer.element)
            self._header.seen[buffer].add(None)
        return tables[values.tobytes()][1]

    def table_buffer(self, values: NDArray[np.float32]) -> Buffer:
        """Declare the argument that constants are passed as."""
        return self.buffer("table", "f32", len(values))

    def write(self, buffer: Buffer, view: View, start: Value | None = None) -> tuple[Tensor, str]:
        """The destination tensor behind a view of an output buffer, and the name of the view to write back to."""
        return self._tensor_of(buffer, view, "restrict writable", start)

    def _tensor_of(self, buffer: Buffer, view: View, how: str, start: Value | None) -> tuple[Tensor, str]:
        """The tensor behind a view, and the name of the view with its type."""
        if buffer.start:
            start = self.sum(buffer.start, start or self.constant(view.offset, "index"))
        type_ = _view_type(buffer, view, start)
        # A view with a dynamic offset is assumed to cover the whole buffer.
        self._header.seen[buffer].add(None if start else view)
        memref_name = f"%m{next(self._header.numbers)}"
        sizes, strides = list(view.sizes), list(view.strides)
        self._lines.append(
            f"{memref_name} = memref.reinterpret_cast {buffer.name} to offset: [{start or view.offset}], "
            f"sizes: {sizes}, strides: {strides} : {buffer.type} to {type_}"
        )
        tensor = Tensor(self.fresh(), view.sizes, buffer.element)
        self._lines.append(f"{tensor.name} = bufferization.to_tensor {memref_name} {how} : {type_} to {tensor.type}")
        return tensor, f"{memref_name} : {type_}"

    def store(self, result: Tensor, destination: str) -> None:
        """Write `result` at the place that `write` returned."""
        name, type_ = destination.split(" : ", 1)
        self._lines.append(
            f"bufferization.materialize_in_destination {result.name} in restrict writable {name} : "
            f"({result.type}, {type_}) -> ()"
        )

    def touched(self) -> list[tuple[Buffer, int]]:
        """How many elements of each buffer are read or written; elements of two views count twice."""
        return [
            (buffer, min(buffer.length, sum(view.covered if view else buffer.length for view in views)))
            for buffer, views in self._header.seen.items()
        ]

    def empty(self, sizes: tuple[int, ...], element: str) -> Tensor:
        """A tensor whose elements are still to be written."""
        tensor = Tensor(self.fresh(), sizes, element)
        self._lines.append(f"{tensor.name} = tensor.empty() : {tensor.type}")
        return tensor

    def slice(self, tensor: Tensor, offsets: Sequence[int | Value], sizes: Sequence[int], dropped: int = 0) -> Tensor:
        """The part of `tensor` from `offsets` on, without its first `dropped` dimensions, whose size is 1."""
        found = Tensor(self.fresh(), tuple(sizes[dropped:]), tensor.element)
        at, extents, ones = (", ".join(map(str, values)) for values in (offsets, sizes, [1] * len(sizes)))
        self._lines.append(
            f"{found.name} = tensor.extract_slice {tensor.name}[{at}] [{extents}] [{ones}] "
            f": {tensor.type} to {found.type}"
        )
        return found

    def filled(self, sizes: tuple[int, ...], element: str, value: float, tag: Tag = WHOLE) -> Tensor:
        """A tensor of one value, the start of an accumulation."""
        return self.fill(self.empty(sizes, element), value, tag)

    def fill(self, output: Tensor, value: float, tag: Tag = WHOLE) -> Tensor:
        scalar, full = self.constant(value, output.element), replace(output, name=self.fresh())
        self._lines.append(
            f"{full.name} = linalg.fill {tag.text} ins({scalar} : {scalar.type}) outs({output.name} : {output.type}) "
            f"-> {full.type}"
        )
        return full

    def body(self, inputs: Sequence[Operand] = (), output: Operand | None = None) -> Body:
        values = [Value(f"%x{i}", operand.tensor.element) for i, operand in enumerate(inputs)]
        return Body(self, values, Value("%o", output.tensor.element) if output else None)

    def generic(
        self, loops: Loops, inputs: Sequence[Operand], output: Operand, body: Body, result: Value, tag: Tag = WHOLE
    ) -> Tensor:
        """A `linalg.generic` whose body yields `result`; raises `TypeError` where it has not the output's type."""
        element = output.tensor.element
        if result.type != element:
            raise TypeError(f"a generic with an output of {element} must yield it, but got {result.type}")
        operands = [*inputs, output]
        maps = ", ".join(loops.map_to(operand.loops) for operand in operands)
        names = ", ".join(operand.tensor.name for operand in inputs)
        types = ", ".join(operand.tensor.type for operand in inputs)
        ins = f"ins({names} : {types}) " if inputs else ""
        parameters = [f"%x{i}: {operand.tensor.element}" for i, operand in enumerate(inputs)]
        block = ", ".join([*parameters, f"%o: {element}"])
        value = Tensor(self.fresh(), output.tensor.sizes, element)
        self._lines += [
            f"{value.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = {loops.iterators}}} {ins}"
            f"outs({output.tensor.name} : {output.tensor.type}) attrs = {tag.text} {{",
            f"^bb0({block}):",
            *body.lines,
            f"linalg.yield {result} : {element}",
            f"}} -> {value.type}",
        ]
        return value

    def map(
        self, loops: tuple[str, ...], inputs: Sequence[Operand], to: tuple[Tensor, str], emit: Emit, tag: Tag = WHOLE
    ) -> None:
        """Write what `emit` makes of the elements of `inputs` at the place that `write` returned."""
        body, output = self.body(inputs), Operand(to[0], loops)
        self.store(self.generic(Loops(loops), inputs, output, body, emit(body, body.inputs), tag), to[1])

    def copy(self, loops: Loops, source: Operand, output: Operand, tag: Tag) -> Tensor:
        """The generic that writes the elements of `source`, broadcast along the loops that do not index it."""
        body = self.body([source], output)
        return self.generic(loops, [source], output, body, body.inputs[0], tag)

    def render(self, name: str) -> str:
        """The function's text under `name`."""
        constants = [
            f"{ssa} = arith.constant {value} : {type_}" for (value, type_), ssa in self._header.constants.items()
        ]
        tables = [
            f"{tensor.name} = bufferization.to_tensor {buffer.name} restrict : {buffer.type} to {tensor.type}"
            for buffer, tensor in self._header.tables.values()
        ]
        lines = "\n  ".join([*constants, *tables, *self._lines, "return"])
        return f"func.func private @{name}({', '.join(self._header.arguments.values())}) {{\n  {lines}\n}}"


def _view_type(buffer: Buffer, view: View, start: Value | None) -> str:
    shape = "x".join([*map(str, view.sizes), buffer.element])
    strides = ", ".join(map(str, view.strides))
    return f"memref<{shape}, strided<[{strides}], offset: {'?' if start else view.offset}>>"


# Numbers as MLIR reads them.

# Of a number in scientific notation, after the first digit.
_DIGITS = {"f32": 9, "f64": 17}
_PACKED = {"f32": ">f", "f64": ">d"}


def number_text(value: float, type_: str) -> str:
    """A number in MLIR's syntax: floats with enough digits to round-trip, infinities and NaN as bits."""
    if not type_.startswith("f"):
        return str(int(value))
    if not math.isfinite(value):
        return f"0x{struct.pack(_PACKED[type_], value).hex().upper()}"
    return f"{value:.{_DIGITS[type_]}e}"
