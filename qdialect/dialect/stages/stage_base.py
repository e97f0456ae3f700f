"""The base of the stages of an epilogue: a name and attributes, with constraints, between two kinds of values.

A stage is a frozen dataclass, registered under its name::

    @stage("clamp")
    @dataclass(frozen=True, kw_only=True)
    class ClampStage(Stage):
        takes: ClassVar[Domain] = Domain.QUANTIZED
        leaves: ClassVar[Domain] = Domain.QUANTIZED
        min: int = field(metadata=kind(I64))

Its fields are its attributes; one with a default may be left out of the text, and is where it has that value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Self, TypeVar

from qdialect.dialect.fields import ELEMENT_TYPE, I64, SCALE, AttributeKind, attribute_violations
from qdialect.dialect.op_base import require
from qdialect.dialect.type_constraints import ELEMENT_RANGES, QuantizedType
from qdialect.ir._mlir import ir


class Domain(StrEnum):
    """The kinds of values between two stages."""

    ACCUMULATORS = "accumulators"
    """i32, with the product of the input's and the weights' scales."""
    F32 = "f32 values"
    """The numbers themselves, as float32."""
    QUANTIZED = "quantized values"
    """8-bit, with a scale and a zero point."""


@dataclass(frozen=True)
class StagePosition:
    """Where a stage stands in its op, for its constraints."""

    path: str
    """The name of the stage in messages: ``epilogue[1] 'clamp'``."""
    before: QuantizedType | None
    """The quantization of the stage's input; None if it is not quantized."""
    residual: str | None
    """Element type of the residual operand, None without one."""
    is_channels_last: bool


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Base of all stages."""

    name: ClassVar[str]
    takes: ClassVar[Domain]
    leaves: ClassVar[Domain]
    reads_residual: ClassVar[bool] = False

    def check(self, position: StagePosition) -> None:
        """Check the labelled constraints of the docstring; raise `ConstraintError` at the first that fails."""

    def resolved(self, output: QuantizedType) -> Self:
        """The stage with the fields filled in that the op's `output` implies."""
        return self

    def shortened(self, output: QuantizedType) -> Self:
        """The stage without the fields that the op's `output` implies."""
        return self

    def meaning(self, before: QuantizedType | None) -> QuantizedType | None:
        """The quantization of a resolved stage's output; None if it is not quantized."""
        return before if self.leaves is Domain.QUANTIZED else None


@dataclass(frozen=True, kw_only=True)
class QuantizedStage(Stage):
    """A stage that leaves quantized values of its own scale, zero point and element type, saturated to that type.

    Each of the three may be left out where it is that of the op's result.

    Constraints:
      C1: zero_point must lie in the range of element
    """

    leaves: ClassVar[Domain] = Domain.QUANTIZED
    scale: float | None = None
    zero_point: int | None = None
    element: str | None = None

    def check(self, position: StagePosition) -> None:
        after = self.quantized
        low, high = after.range
        found = after.zero_point
        text = f"{position.path} zero_point must be in [{low}, {high}], but got {found}"
        require(low <= found <= high, "C1", text)

    def resolved(self, output: QuantizedType) -> Self:
        return replace(self, **{name: getattr(output, name) for name in _OUTPUT_KINDS if getattr(self, name) is None})

    def shortened(self, output: QuantizedType) -> Self:
        implied = [name for name in _OUTPUT_KINDS if getattr(self, name) == getattr(output, name)]
        return replace(self, **dict.fromkeys(implied))

    def meaning(self, before: QuantizedType | None) -> QuantizedType:
        return self.quantized

    @property
    def quantized(self) -> QuantizedType:
        """The quantization of a resolved stage's output."""
        assert self.scale is not None, "resolved"
        assert self.zero_point is not None, "resolved"
        assert self.element is not None, "resolved"
        return QuantizedType(self.scale, self.zero_point, self.element)


def check_residual_zero_point(label: str, position: StagePosition, zero_point: int) -> None:
    """The zero point of the residual lies in its range."""
    assert position.residual is not None, "the op's own constraints come first"
    low, high = ELEMENT_RANGES[position.residual]
    text = f"{position.path} residual_zero_point must be in [{low}, {high}], but got {zero_point}"
    require(low <= zero_point <= high, label, text)


@dataclass(frozen=True)
class StageAttribute:
    """An attribute of a stage: its kind, and whether it must be written."""

    kind: AttributeKind[Any]
    default: Any
    is_required: bool


S = TypeVar("S", bound=type[Stage])

STAGES: dict[str, type[Stage]] = {}
"""Every stage by its name."""

_OUTPUT_KINDS: dict[str, AttributeKind[Any]] = {"scale": SCALE, "zero_point": I64, "element": ELEMENT_TYPE}


def stage(name: str) -> Callable[[S], S]:
    """Class decorator: register a stage under `name`.

    Raises `ValueError` where another stage has the name.
    """

    def register(stage_class: S) -> S:
        if name in STAGES:
            raise ValueError(f"stage '{name}' is registered already, by {STAGES[name].__qualname__}")
        stage_class.name = name
        STAGES[name] = stage_class
        return stage_class

    return register


def kind(value: AttributeKind[Any]) -> dict[str, AttributeKind[Any]]:
    """The metadata of a dataclass field that make it an attribute of this kind."""
    return {"kind": value}


def attributes_of(stage_class: type[Stage]) -> dict[str, StageAttribute]:
    """The attributes of a stage by name."""
    declared = {one: one.metadata.get("kind") or _OUTPUT_KINDS[one.name] for one in fields(stage_class)}
    return {one.name: StageAttribute(own, one.default, one.default is MISSING) for one, own in declared.items()}


def encoded(one: Stage) -> ir.Attribute:
    """``{name = {attributes}}``, ``{name}`` without any; default values are omitted."""
    found: dict[str, ir.Attribute] = {}
    for name, attribute in attributes_of(type(one)).items():
        value = getattr(one, name)
        if attribute.is_required or value != attribute.default:
            found[name] = attribute.kind.to_attribute(value)
    return ir.DictAttr.get({one.name: ir.DictAttr.get(found) if found else ir.UnitAttr.get()})


def is_stage(attribute: ir.Attribute) -> bool:
    """Whether an attribute has the form of `encoded`, whatever the names and kinds in it."""
    if not isinstance(attribute, ir.DictAttr) or len(attribute) != 1:
        return False
    return isinstance(attribute[0].attr, ir.DictAttr | ir.UnitAttr)


def decoded(attribute: ir.Attribute) -> Stage:
    """The stage that an attribute without violations is."""
    name, found = _named(attribute)
    declared = attributes_of(STAGES[name])
    return STAGES[name](**{key: declared[key].kind.from_attribute(value) for key, value in found.items()})


def violations(attribute: ir.Attribute) -> Iterator[str]:
    """The problem with the names and kinds in an attribute that has the form of a stage."""
    name, found = _named(attribute)
    if name not in STAGES:
        yield f"must be one of {', '.join(sorted(STAGES))}, but got '{name}'"
        return
    for text in attribute_violations(found, attributes_of(STAGES[name])):
        yield f"'{name}' {text}"


def _named(attribute: ir.Attribute) -> tuple[str, dict[str, ir.Attribute]]:
    """The name of a stage and its attributes."""
    (entry,) = ir.DictAttr(attribute)
    attributes = ir.DictAttr(entry.attr) if isinstance(entry.attr, ir.DictAttr) else ()
    return entry.name, {one.name: one.attr for one in attributes}
