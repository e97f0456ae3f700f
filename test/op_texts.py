"""The text of one op, taken from its round-trip test and changed: what the verifier must accept or refuse."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from qdialect.dialect import QnnOp
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
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
