"""The base of every `qnn` op: typed fields, a verifier that cannot crash, shared checks, one builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from qdialect.dialect.fields import (
    BOOL,
    INTEGERS,
    AnyOperandField,
    AttributeField,
    Field,
    OptionalOperandField,
    ResultField,
    VariadicOperandField,
    attribute,
    attribute_violations,
    names_text,
)
from qdialect.dialect.type_constraints import ELEMENT_RANGES, MAX_ELEMENTS, element_of, range_of, shape_of
from qdialect.ir._mlir import ext, ir, irdl, register_dialect, register_op_adaptor, register_operation
from qdialect.support.registry import note_foreign

# An op class states its fields as class attributes::
#
#     class ClipOp(QnnOp, name="clip"):
#         input = operand(EIGHT_BIT)
#         min = attribute(I64)
#         output = result(EIGHT_BIT)
#
# `QnnOp` turns them into an op of the bindings' extensible dialect, and into typed accessors: ``op.min`` is an ``int``.
# The bindings run a Python verifier before they count operands, accept unknown attributes and drop the location of an
# exception; so the verifier here checks arity, names and kinds itself, and every finding becomes one located error.

Shape = tuple[int, ...]

MAX_VARIADIC = 16
"""The largest number of values of a variadic operand.

The bindings want all values of a variadic operand to be of one type. So it is declared to them as this many optional
operands, and an op with one carries MLIR's own attribute that counts the values of each.
"""

SEGMENTS = "operandSegmentSizes"


class ConstraintError(Exception):
    """A labelled constraint does not hold; the label stands in the op's docstring."""

    def __init__(self, label: str, message: str) -> None:
        super().__init__(message)
        self.label = label


class BuildError(TypeError):
    """An operand, an attribute or the result of an op that is being built is not of the declared kind."""


def require(condition: bool, label: str, message: str) -> None:
    """Raise `ConstraintError` with `label` and `message` unless `condition` holds."""
    if not condition:
        raise ConstraintError(label, message)


class Qnn(ext.Dialect, name="qnn"):
    """Quantized neural networks on integer tensors, quantization parameters as attributes."""

    @classmethod
    def load(cls) -> None:
        """Load the dialect into the current context; several Python threads may do so at once.

        The bindings' own method leaves the description of the dialect in an attribute of this class before it reads it
        again: a second thread replaces it by one of another context in between, and the process crashes.
        """
        operations = tuple(cast("list[type[QnnOp]]", cls.operations))
        irdl.load_dialects(ir.Module.parse(cls._description(operations)))
        for op in operations:
            op.attach_traits()

    @classmethod
    @lru_cache(maxsize=1)
    def _description(cls, operations: tuple[type[QnnOp], ...]) -> bytes:
        """The IRDL module with these ops as bytecode, which a context reads in less time than it takes to build."""
        bytecode = BytesIO()
        cls._emit_module().operation.write_bytecode(bytecode)
        return bytecode.getvalue()


register_dialect(Qnn)


class QnnOp(Qnn.Operation):
    """Base of all `qnn` ops; see the module docstring."""

    @classmethod
    def attach_traits(cls) -> None:
        """Make the verifier and the traits of this class those of the op in the current context."""
        cls._attach_traits()

    if TYPE_CHECKING:  # At run time the bindings would take these annotations for fields of the op.
        operand_fields: ClassVar[tuple[AnyOperandField[Any], ...]]
        attribute_fields: ClassVar[dict[str, AttributeField[Any]]]
        result_fields: ClassVar[tuple[ResultField, ...]]

    @classmethod
    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        shape: Callable[[Sequence[Shape], Mapping[str, Any]], Shape] | None = None,
        **kwargs: Any,
    ) -> None:
        # Families share fields through nameless base classes, so the whole MRO is read, bases first.
        declared = {key: value for base in reversed(cls.__mro__) for key, value in vars(base).items()}
        fields = {key: cast("Field[Any]", f) for key, f in declared.items() if isinstance(f, Field)}
        operands = [f for f in fields.values() if isinstance(f, AnyOperandField)]
        attributes = {key: f for key, f in fields.items() if isinstance(f, AttributeField)}
        results = [f for f in fields.values() if isinstance(f, ResultField)]
        if not name:
            cls.__annotations__ = {}
            super().__init_subclass__(**kwargs)
            return
        operands.sort(key=lambda f: isinstance(f, OptionalOperandField | VariadicOperandField))
        for index, operand_field in enumerate(operands):
            operand_field.index = index
        cls.__annotations__ = {key: kind for f in operands for key, kind in _operand_annotations(f).items()}
        # The bindings require everything that is declared to them: only the verifier knows optional fields.
        cls.__annotations__ |= {key: Any for key, f in attributes.items() if f.is_required}
        cls.__annotations__ |= {results[0].name: ext.Result[Any]}
        # The bindings refuse class attributes they do not know and put untyped properties instead of the fields:
        # take the fields out of their sight, and put them back.
        for key in fields.keys() & vars(cls).keys():
            delattr(cls, key)
        super().__init_subclass__(name=name, traits=[ext.Pure], **kwargs)
        functions = {} if shape is None else {"infer_shape": staticmethod(shape)}
        for key, member in (fields | functions).items():
            setattr(cls, key, member)
        cls.operand_fields = tuple(operands)
        cls.attribute_fields = attributes
        cls.result_fields = (results[0],)
        # Once for all contexts: the bindings keep classes for the process.
        register_operation(Qnn, replace=True)(cls)
        register_op_adaptor(cls, replace=True)(cls.Adaptor)
        note_foreign(cls)
        for bases, follow in _FOLLOWERS:
            if issubclass(cls, bases):
                follow(cls)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        """Result shape from operand shapes and attribute values; the builder and the verifier share it.

        Several ops have one by ``class ConvOp(QnnOp, name="conv", shape=function)``.

        Raises `ConstraintError` where the op has no meaning on these shapes.
        """
        return shapes[0]

    def check(self) -> None:
        """Check the labelled constraints of the op's docstring; raise `ConstraintError` at the first that fails."""

    def attribute_values(self) -> dict[str, Any]:
        """Every declared attribute as a Python value, defaults for those left out."""
        attributes = self.operation.attributes
        return {name: field.value_in(attributes) for name, field in self.attribute_fields.items()}

    def operand_shapes(self) -> list[Shape]:
        """Shapes of all operands, in order."""
        return [shape_of(value.type) for value in self.operation.operands]

    def verify_invariants(self) -> bool:
        """The hook that the bindings call: false after one located error, true otherwise."""
        try:
            message = next(self._violations(), None)
        except Exception as error:  # An exception would lose the location: the bindings drop it.
            message = f"cannot be verified: {error!r}"
        if message is None:
            return True
        self.operation.location.emit_error(f"'{self.operation.name}' op {message}")
        return False

    def _violations(self) -> Iterator[str]:
        yield from self._arity_violations()
        yield from self._attribute_violations()
        yield from self._type_violations()
        try:
            self.check()
            values = _LateValues(self.attribute_fields, self.operation.attributes)
            expected = self.infer_shape(self.operand_shapes(), values)
        except ConstraintError as error:
            yield str(error)
            return
        found = shape_of(self.operation.results[0].type)
        if expected != found:
            yield f"result shape must be {_shape_text(expected)}, but got {_shape_text(found)}"

    def _arity_violations(self) -> Iterator[str]:
        minimum, maximum = _arity(self.operand_fields)
        count = len(self.operation.operands)
        if not minimum <= count <= maximum:
            yield f"must have {_count_text(minimum, maximum)}, but got {count}"
        if len(self.operation.results) != 1:
            yield f"must have 1 result, but got {len(self.operation.results)}"

    def _attribute_violations(self) -> Iterator[str]:
        found = dict(self.operation.attributes.items())
        if _is_variadic(self.operand_fields):
            segments, wanted = found.pop(SEGMENTS, None), _segments(len(self.operation.operands))
            if not isinstance(segments, ir.DenseI32ArrayAttr) or list(segments) != wanted:
                yield f"{SEGMENTS} must be array<i32: {', '.join(map(str, wanted))}>, but got {segments or 'none'}"
        yield from attribute_violations(found, self.attribute_fields)

    def _type_violations(self) -> Iterator[str]:
        for index, value in enumerate(self.operation.operands):
            field = self.operand_fields[min(index, len(self.operand_fields) - 1)]
            problem = field.constraint.problem(value.type)
            if problem:
                yield f"operand '{field.name}' must be {problem}, but got {value.type}"
        field, found = self.result_fields[0], self.operation.results[0].type
        problem = field.constraint.problem(found)
        if problem:
            yield f"result '{field.name}' must be {problem}, but got {found}"


_FOLLOWERS: list[tuple[tuple[type[QnnOp], ...], Callable[[type[Any]], object]]] = []


def for_each_op(*bases: type[QnnOp]) -> Callable[[Callable[[type[Any]], object]], None]:
    """Call the decorated function with every op of these classes, and with those that are defined later, by plugins."""

    def call(follow: Callable[[type[Any]], object]) -> None:
        for op in cast("list[type[QnnOp]]", Qnn.operations):
            if issubclass(op, bases):
                follow(op)
        _FOLLOWERS.append((bases, follow))

    return call


class _LateValues(Mapping[str, Any]):
    """Attributes as Python values that are made when they are asked for: shapes depend on few, and scales are many."""

    def __init__(self, fields: Mapping[str, AttributeField[Any]], attributes: ir.OpAttributeMap) -> None:
        self._fields, self._attributes = fields, attributes

    def __getitem__(self, name: str) -> Any:
        return self._fields[name].value_in(self._attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


Op = TypeVar("Op", bound=QnnOp)


def build(
    op_class: type[Op],
    *operands: ir.Value | None,
    element: ir.Type | str,
    loc: ir.Location | None = None,
    **attributes: Any,
) -> Op:
    """Create an op at the current insertion point; its result shape is inferred::

        clipped = build(ClipOp, x, element="ui8", min=0, max=200).output

    `operands` in declared order, ``None`` for a missing optional one; `element` is the result's element type, as a type
    or its text (``"ui8"``); `attributes` are Python values. Those that are not given, or equal their default, are left
    out.

    Raises `ConstraintError` where the shapes have no meaning, and `BuildError` for operands, attributes or results that
    are missing, unknown or not of the declared kind. The other constraints are the verifier's.
    """
    values = _checked_operands(op_class, operands)
    complete = _complete(op_class, attributes)
    encoded = {name: _encoded(op_class, name, value) for name, value in complete.items()}
    encoded = {name: one for name, one in encoded.items() if not op_class.attribute_fields[name].is_default(one)}
    shape = op_class.infer_shape([shape_of(value.type) for value in values], complete)
    if _is_variadic(op_class.operand_fields):
        encoded[SEGMENTS] = ir.DenseI32ArrayAttr.get(_segments(len(values)))
    created = ir.Operation.create(
        op_class.OPERATION_NAME,
        results=[_result_type(op_class, shape, element)],
        operands=values,
        attributes=encoded,
        loc=loc,
    )
    return cast("Op", created.opview)


def _checked_operands(op_class: type[QnnOp], operands: Sequence[ir.Value | None]) -> list[ir.Value]:
    fields = op_class.operand_fields
    minimum, maximum = _arity(fields)
    # Only what is missing at the end is missing; a hole would move the operands behind it.
    values = [value for value in operands if value is not None]
    has_hole = any(value is None for value in operands[: len(values)])
    if has_hole or not minimum <= len(values) <= maximum:
        found = f"{len(values)} with a gap" if has_hole else len(values)
        raise BuildError(f"'{op_class.OPERATION_NAME}' op must have {_count_text(minimum, maximum)}, but got {found}")
    for index, value in enumerate(values):
        field = fields[min(index, len(fields) - 1)]
        _raise_problem(op_class, f"operand '{field.name}'", field.constraint.problem(value.type), value.type)
    return values


def _encoded(op_class: type[QnnOp], name: str, value: Any) -> ir.Attribute:
    kind = op_class.attribute_fields[name].kind
    try:
        encoded = kind.to_attribute(value)
    except (TypeError, ValueError) as error:
        message = f"'{op_class.OPERATION_NAME}' op {name} must be {kind.description}, but got {value!r}"
        raise BuildError(message) from error
    _raise_problem(op_class, name, kind.problem(encoded), encoded)
    return encoded


def _result_type(op_class: type[QnnOp], shape: Shape, element: ir.Type | str) -> ir.Type:
    element_type = ir.Type.parse(element) if isinstance(element, str) else element
    # The bindings cannot even form a type with an extent beyond an i64.
    extents = [min(extent, MAX_ELEMENTS + 1) for extent in shape]
    found = ir.RankedTensorType.get(extents, element_type)
    field = op_class.result_fields[0]
    _raise_problem(op_class, f"result '{field.name}'", field.constraint.problem(found), found)
    return found


def _raise_problem(op_class: type[QnnOp], what: str, problem: str | None, found: object) -> None:
    if problem:
        raise BuildError(f"'{op_class.OPERATION_NAME}' op {what} must be {problem}, but got {found}")


def _complete(op_class: type[QnnOp], attributes: Mapping[str, Any]) -> dict[str, Any]:
    unknown = attributes.keys() - op_class.attribute_fields.keys()
    if unknown:
        raise BuildError(f"'{op_class.OPERATION_NAME}' has no attribute {names_text(sorted(unknown))}")
    complete = {name: attributes.get(name, field.default) for name, field in op_class.attribute_fields.items()}
    missing = [name for name, value in complete.items() if value is None]
    if missing:
        raise BuildError(f"'{op_class.OPERATION_NAME}' needs attribute {names_text(missing)}")
    return complete


def _operand_annotations(field: AnyOperandField[Any]) -> dict[str, Any]:
    if isinstance(field, OptionalOperandField):
        return {field.name: ext.Operand[Any] | None}
    if isinstance(field, VariadicOperandField):
        return {f"{field.name}_{index}": ext.Operand[Any] | None for index in range(MAX_VARIADIC)}
    return {field.name: ext.Operand[Any]}


def _is_variadic(fields: Sequence[AnyOperandField[Any]]) -> bool:
    return len(fields) > 0 and isinstance(fields[-1], VariadicOperandField)


def _segments(count: int) -> list[int]:
    return [1] * count + [0] * (MAX_VARIADIC - count)


def _arity(fields: Sequence[AnyOperandField[Any]]) -> tuple[int, int]:
    if _is_variadic(fields):
        return len(fields), len(fields) - 1 + MAX_VARIADIC
    optional = sum(isinstance(f, OptionalOperandField) for f in fields)
    return len(fields) - optional, len(fields)


def _count_text(minimum: int, maximum: int) -> str:
    number = str(minimum) if minimum == maximum else f"{minimum} {'or' if maximum == minimum + 1 else 'to'} {maximum}"
    return f"{number} operand{'s' * (maximum != 1)}"


def _shape_text(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"


# Checks that several ops share; each raises `ConstraintError` under the caller's label.


def check_element(label: str, result: ir.Value, operand: ir.Value) -> None:
    """The result has the element type of an operand."""
    found, wanted = element_of(result.type), element_of(operand.type)
    require(found == wanted, label, f"result element type must be {wanted}, but got {found}")


def check_axis(label: str, axis: int, shape: Shape) -> None:
    """`axis` names a dimension of `shape`; a scalar has none."""
    rank = len(shape)
    require(0 <= axis < rank, label, f"axis must be in [0, {rank}), but got {axis}")


def channel_count(label: str, axis: int, shape: Shape) -> int:
    """Extent of `shape` along `axis`; a scalar counts as one channel, whose axis is 0."""
    extents = shape or (1,)
    check_axis(label, axis, extents)
    return extents[axis]


def check_channel_parameters(label: str, channels: int, **parameters: Sequence[float]) -> None:
    """Each parameter list has one entry for the tensor or one for each channel."""
    for name, values in parameters.items():
        wanted = "1 entry" if channels == 1 else f"1 or {channels} entries"
        require(len(values) in (1, channels), label, f"{name} must have {wanted}, but got {len(values)}")


def check_row_parameters(label: str, data: ir.Value, **parameters: ir.Value) -> None:
    """Each parameter has one element for the tensor or one for each row."""
    rows = [*shape_of(data.type)[:-1], 1]
    for name, value in parameters.items():
        found = list(shape_of(value.type))
        holds = prod(found) == 1 or found == rows
        require(holds, label, f"{name} must have 1 element or the shape {rows}, but got {found}")


def check_zero_points(label: str, name: str, zero_points: Sequence[int], type_: ir.Type) -> None:
    """Every zero point lies in the range of the tensor it belongs to."""
    low, high = ELEMENT_RANGES[element_of(type_)]
    for value in zero_points:
        require(low <= value <= high, label, f"{name} must be in [{low}, {high}], but got {value}")


def check_bounds(label: str, names: tuple[str, str], low: int, high: int, type_: ir.Type) -> None:
    """A clamp is not empty and lies in the range of the tensor it clamps."""
    minimum, maximum = range_of(type_)
    holds = minimum <= low <= high <= maximum
    wanted = f"{names[0]} and {names[1]} must be ordered and in [{minimum}, {maximum}]"
    require(holds, label, f"{wanted}, but got {low} and {high}")


def check_positive(label: str, name: str, values: Sequence[int], count: int, minimum: int = 1) -> None:
    """A list of `count` integers, each at least `minimum`."""
    holds = len(values) == count and all(value >= minimum for value in values)
    plural = "" if count == 1 else "s"
    require(holds, label, f"{name} must be {count} integer{plural} of at least {minimum}, but got {list(values)}")


def window_extent(label: str, what: str, size: int, padding: int, window: int, stride: int) -> int:
    """Number of windows along one dimension of `size` elements with `padding` elements added."""
    require(size + padding >= window, label, f"{what} must be at least {window} with padding, but got {size + padding}")
    return (size + padding - window) // stride + 1


def broadcast_shape(label: str, what: str, lhs: Shape, rhs: Shape) -> Shape:
    """The shape that two shapes broadcast to by NumPy's rules."""
    rank = max(len(lhs), len(rhs))
    left = (1,) * (rank - len(lhs)) + lhs
    right = (1,) * (rank - len(rhs)) + rhs
    fits = all(a == b or 1 in (a, b) for a, b in zip(left, right, strict=True))
    require(fits, label, f"{what} must broadcast, but got {list(lhs)} and {list(rhs)}")
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


class ReduceOp(QnnOp):
    """A reduction over `axes`, which stay as extents of 1 with `keep_dims`."""

    axes = attribute(INTEGERS)
    keep_dims = attribute(BOOL, False)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        [shape], axes, keep_dims = shapes, attributes["axes"], attributes["keep_dims"]
        rank = len(shape)
        holds = len(axes) > 0 and list(axes) == sorted(set(axes)) and axes[0] >= 0 and axes[-1] < rank
        require(holds, "C1", f"axes must be distinct, ascending and in [0, {rank}), but got {list(axes)}")
        return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep_dims or i not in axes)
