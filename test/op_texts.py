"""The text of one op, taken from its round-trip test and changed: what the verifier must accept or refuse."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_graphs import copied
from numpy.typing import NDArray

from qdialect import targets
from qdialect.dialect import QnnOp
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.diagnostics import Diagnostic, ParseError, Severity

CONTEXT = make_context()
_ROUND_TRIPS = Path(__file__).resolve().parent / "lit" / "dialect"


@dataclass(frozen=True)
class OpText:
    """An op in MLIR's generic form: types of operands and results, and attributes, as texts."""

    name: str
    operands: tuple[str, ...]
    attributes: Mapping[str, str]
    results: tuple[str, ...]

    def __str__(self) -> str:
        """A function with the op alone, at line 3 and column 1."""
        names = [f"%{index}" for index in range(len(self.operands))]
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, self.operands, strict=True))
        attributes = ", ".join(f"{name} = {value}" for name, value in self.attributes.items())
        assigned = f"%r:{len(self.results)} =" if self.results else ""
        types = f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"
        op = f'"{self.name}"({", ".join(names)}) {{{attributes}}} : {types}'
        return f"func.func @f({arguments}) {{\n{assigned}\n{op}\nreturn\n}}\n"

    def with_attributes(self, **values: str) -> OpText:
        return replace(self, attributes={**self.attributes, **values})

    def without(self, *names: str) -> OpText:
        kept = {name: value for name, value in self.attributes.items() if name not in names}
        return replace(self, attributes=kept)

    def with_operand(self, index: int, type_: str) -> OpText:
        return replace(self, operands=(*self.operands[:index], type_, *self.operands[index + 1 :]))

    def with_result(self, type_: str) -> OpText:
        return replace(self, results=(type_,))


@dataclass(frozen=True)
class Change:
    """Other types of operands, of the result, and other attributes; operands and attributes by their names.

    Operands that an op lacks are passed over, so that one change is for several ops.
    """

    operands: Mapping[str, str] = field(default_factory=dict[str, str])
    result: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, op_class: type[QnnOp], text: OpText) -> OpText:
        """`text`, of an op of `op_class`, with this change."""
        for index, declared in enumerate(op_class.operand_fields[: len(text.operands)]):
            text = text.with_operand(index, self.operands.get(declared.name, text.operands[index]))
        text = text.with_attributes(**self.attributes)
        return text if self.result is None else text.with_result(self.result)


@cache
def example(op_class: type[QnnOp]) -> OpText:
    """The op with the most operands in the round-trip test of `op_class`."""
    name = op_class.OPERATION_NAME
    module = parse(_ROUND_TRIPS / f"{name.removeprefix('qnn.')}.mlir", CONTEXT)
    found = [op for function in module.body.operations for op in function.regions[0].blocks[0] if op.name == name]
    return _text_of(max(found, key=lambda op: len(op.operation.operands)).operation)


def _text_of(op: ir.Operation) -> OpText:
    return OpText(
        op.name,
        tuple(str(value.type) for value in op.operands),
        {name: str(value) for name, value in op.attributes.items()},
        tuple(str(value.type) for value in op.results),
    )


@contextmanager
def read(text: OpText) -> Generator[QnnOp, None, None]:
    """The op that `text` is; the bindings free it with its module, which lives as long as the `with` statement."""
    module = parse(str(text), CONTEXT)
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert isinstance(op, QnnOp)
    yield op


def assert_refused(text: OpText, message: str) -> None:
    """`text` is refused by one error, at the op, of this message after the op's name."""
    with pytest.raises(ParseError) as caught:
        parse(str(text), CONTEXT, file_name="op.mlir")
    wanted = Diagnostic(Severity.ERROR, f"'{text.name}' op {message}", "op.mlir", 3, 1)
    assert caught.value.diagnostics == (wanted,)


# The functions of a lit test, each as a module, and their variants.


def functions(text: str) -> Iterator[tuple[str, ir.Module]]:
    """Each function as the main one of a module of its own."""
    for op in parse(text).body.operations:
        name = ir.StringAttr(op.attributes["sym_name"]).value
        module = ir.Module.parse(str(op).replace(f"@{name}(", "@main(", 1), op.context)
        yield name, module


def all_ops(module: ir.Module) -> list[ir.OpView]:
    return list(module.body.operations[0].regions[0].blocks[0].operations)


def with_choices(module: ir.Module) -> Iterator[ir.Module]:
    """The module with each value of each attribute that is a choice, in all ops that have the attribute."""
    declared = (op.attribute_fields.items() for op in all_ops(module) if isinstance(op, QnnOp))
    kinds = {(name, field.kind.description) for fields in declared for name, field in fields}
    choices = ((name, words) for name, words in sorted(kinds) if words.startswith("one of "))
    for name, value in ((name, value) for name, words in choices for value in re.findall(r'"(\w+)"', words)):
        changed = copied(module)
        with changed.context:
            for op in all_ops(changed):
                if isinstance(op, QnnOp) and f'"{value}"' in _words(op, name):
                    op.operation.attributes[name] = ir.StringAttr.get(value)
        with suppress(ir.MLIRError):
            changed.operation.verify()
            yield changed


def _words(op: QnnOp, name: str) -> str:
    """What an attribute may be, nothing where the op lacks it."""
    return op.attribute_fields[name].kind.description if name in op.attribute_fields else ""


# Functions of rows of float32 numbers as text: softmax, layer normalization, products.

Array = NDArray[Any]


def f32(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


class Text:
    """The text of a function of f32 tensors, op by op."""

    def __init__(self, *arguments: tuple[int, ...]) -> None:
        self.shapes = {f"%x{i}": shape for i, shape in enumerate(arguments)}
        self.arguments = dict(self.shapes)
        self.lines: list[str] = []

    def _new(self, shape: tuple[int, ...], line: str) -> str:
        name = f"%v{len(self.lines)}"
        self.shapes[name] = shape
        self.lines.append(f"{name} = {line}")
        return name

    def float_op(self, op: str, *operands: str) -> str:
        shape = self.shapes[operands[0]]
        return self._new(shape, f"{op} {', '.join(operands)} : {f32(*shape)}")

    def qnn(self, op: str, operand: str, shape: tuple[int, ...], attributes: str) -> str:
        return self._new(
            shape, f'"qnn.{op}"({operand}) {{{attributes}}} : ({f32(*self.shapes[operand])}) -> {f32(*shape)}'
        )

    def reduced(self, op: str, operand: str, axis: int = -1) -> str:
        """A reduction along an axis, repeated to the shape that it had."""
        shape = self.shapes[operand]
        axis %= len(shape)
        one = self.qnn(
            op, operand, (*shape[:axis], 1, *shape[axis + 1 :]), f"axes = array<i64: {axis}>, keep_dims = true"
        )
        return self.repeated(one, shape)

    def repeated(self, operand: str, shape: tuple[int, ...]) -> str:
        return self.qnn("broadcast", operand, shape, f"shape = array<i64: {', '.join(map(str, shape))}>")

    def constant(self, value: float, shape: tuple[int, ...]) -> str:
        return self._new(shape, f"arith.constant dense<{value:e}> : {f32(*shape)}")

    def softmax(self, x: str, axis: int = -1) -> str:
        powers = self.float_op("math.exp", self.float_op("arith.subf", x, self.reduced("f32_max", x, axis)))
        return self.float_op("arith.divf", powers, self.reduced("f32_sum", powers, axis))

    def layer_norm(self, x: str) -> str:
        shape = self.shapes[x]
        count = self.constant(shape[-1], shape)
        centred = self.float_op("arith.subf", x, self.float_op("arith.divf", self.reduced("f32_sum", x), count))
        squares = self.reduced("f32_sum", self.float_op("arith.mulf", centred, centred))
        variance = self.float_op("arith.addf", self.float_op("arith.divf", squares, count), self.constant(1e-5, shape))
        return self.float_op("arith.divf", centred, self.float_op("math.sqrt", variance))

    def product(self, data: str, matrix: str) -> str:
        before, after = self.shapes[data], self.shapes[matrix]
        shape = (*before[:-1], after[-1])
        types = f"({f32(*before)}, {f32(*after)}) -> {f32(*shape)}"
        return self._new(shape, f'"qnn.f32_matmul"({data}, {matrix}) : {types}')

    def finish(self, *results: str) -> str:
        arguments = ", ".join(f"{name}: {f32(*shape)}" for name, shape in self.arguments.items())
        types = [f32(*self.shapes[name]) for name in results]
        lines = [*self.lines, f"return {', '.join(results)} : {', '.join(types)}"]
        body = "\n  ".join(lines)
        return f"func.func @main({arguments}) -> ({', '.join(types)}) {{\n  {body}\n}}"


def labels(text: str) -> list[str]:
    found = lower(parse(text), targets.GENERIC, Phase.LINALG).labels
    return [label for label in found if not label.startswith(("input", "output"))]


def numbers(shape: Sequence[int], seed: int = 0) -> Array:
    """Numbers of every size; the first rows are masked by minus infinity, in part or as a whole, or have a NaN."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape).astype(np.float32) * rng.choice([1, 30], size=shape).astype(np.float32)
    rows = found.reshape(-1, shape[-1])
    rows[-1] *= np.float32(1e36)
    rows[0, : shape[-1] // 2] = -np.inf
    rows[1 % len(rows), -1:] = np.nan
    rows[2 % len(rows)] = -np.inf
    return found
