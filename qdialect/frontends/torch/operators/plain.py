"""Integers, booleans and floats that stand for themselves: conversions, comparisons, logic, choices and arithmetic.

Operands of several types become one before they meet, as PyTorch promotes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Shape, UnsupportedError, check_shape, require
from qdialect.frontends.planning import elementwise
from qdialect.frontends.planning.block_weights import whole_numbers
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.frontends.torch.operators.registry import Call, imports, imports_plain
from qdialect.frontends.torch.program.pytorch_operators import widened
from qdialect.ir._mlir import ir

# In the order of PyTorch's promotion, within a kind by width.
_RANKS = ("i1", "ui8", "i8", "i16", "i32", "i64", "f32")


def element_of_result(call: Call) -> str:
    """The element type that PyTorch gives the node's first result."""
    return call.node.outputs[0].element


def as_element(call: Call, tensor: Tensor, element: str) -> Tensor:
    """A tensor converted to `element`; itself where it is of this type."""
    found = elementwise.element_type(tensor)
    if found == element:
        return tensor
    require(element in NUMPY_DTYPES, f"result must be of a type of the dialect, but got {element}")
    if isinstance(tensor, Constant):
        if element == "f32" and tensor.array.dtype.name in ("int8", "uint8") and tensor.array.ndim == 2:
            return whole_numbers(tensor.array)
        return Constant(elementwise.cast_array(widened(tensor.array), element))
    value = elementwise.value_of_tensor(call, tensor)
    return elementwise.tensor_of(
        elementwise.unary(call, value, element, lambda s, x: elementwise.converted(s, x, found, element))
    )


def value_as(call: Call, name: str, element: str) -> Value:
    """An argument, a tensor or a number, as a value of `element`."""
    return elementwise.value_of_tensor(call, as_element(call, call.tensor(name), element))


def repeated(call: Call, tensor: Tensor, shape: Shape) -> Tensor:
    """A tensor that broadcasts to `shape`, of that shape."""
    if tensor.shape == shape:
        return tensor
    if isinstance(tensor, Constant):
        call.plan.budget.spend_constant(shape, tensor.array.dtype.itemsize)
        return Constant(np.broadcast_to(tensor.array, shape))
    value = elementwise.value_of_tensor(call, tensor)
    return elementwise.tensor_of(
        call.plan.ordered(call.name, shape, value.element, [value], lambda emitter, x: emitter.broadcast(x[0], shape))
    )


def promoted(call: Call, *names: str) -> str:
    """The common element type of operands; of numbers among tensors only the kind counts."""
    tensors = [elementwise.element_type(call.tensor(name)) for name in names if call.reads(name) is not None]
    numbers = [call.argument(name) for name in names if call.reads(name) is None]
    for element in tensors:
        require(element in _RANKS, f"operands must be one of {', '.join(_RANKS)}, but got {element}")
    if any(isinstance(number, float) for number in numbers):
        return "f32"
    floor = "i1" if all(isinstance(number, bool) for number in numbers) else "i64"
    widest = max(tensors, key=_RANKS.index, default=floor)
    return floor if widest == "i1" else widest


@imports("to.dtype", "to.dtype_layout", "to.device", "to.other", "_to_copy.default", "type_as.default")
def _to(call: Call) -> Result:
    """Other devices and layouts hold the same elements."""
    return as_element(call, call.tensor("self"), element_of_result(call))


@imports("copy.default")
def _copy(call: Call) -> Result:
    """The elements of ``src`` in the shape and type of ``self``."""
    call.ignore("self")
    return repeated(call, as_element(call, call.tensor("src"), element_of_result(call)), call.node.outputs[0].shape)


_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


@imports(*(f"{name}.{overload}" for name in _PREDICATES for overload in ("Tensor", "Scalar")))
def _comparison(call: Call) -> Result:
    """Of floats no comparison with NaN holds but "not equal"."""
    element = promoted(call, "self", "other")
    predicate = call.node.kind.split(".")[1]
    values = [value_as(call, name, element) for name in ("self", "other")]
    return elementwise.binary(call, values, "i1", lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


@imports("isnan.default")
def _is_nan(call: Call) -> Result:
    return elementwise.unary(call, value_as(call, "self", "f32"), "i1", lambda s, x: s.compare("ne", x, x))


@imports("isinf.default")
def _is_infinite(call: Call) -> Result:
    value = value_as(call, "self", "f32")
    return elementwise.unary(call, value, "i1", lambda s, x: s.compare("eq", s.op("math.absf", x), np.inf))


_LOGIC = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}


@imports(
    *(f"bitwise_{name}.{overload}" for name in _LOGIC for overload in ("Tensor", "Scalar")),
    *(f"__{name}__.{overload}" for name in _LOGIC for overload in ("Tensor", "Scalar")),
    *(f"logical_{name}.default" for name in _LOGIC),
)
def _logic(call: Call) -> Result:
    kind = call.node.kind.split(".")[1]
    op = _LOGIC[kind.removeprefix("bitwise_").removeprefix("logical_").strip("_")]
    element = "i1" if kind.startswith("logical") else promoted(call, "self", "other")
    values = [value_as(call, name, element) for name in ("self", "other")]
    return elementwise.binary(call, values, element, lambda s, lhs, rhs: s.op(op, lhs, rhs))


@imports("bitwise_not.default", "logical_not.default")
def _not(call: Call) -> Result:
    element = "i1" if "logical" in call.node.kind else elementwise.element_type(call.tensor("self"))
    ones = 1 if element == "i1" else -1
    return elementwise.unary(call, value_as(call, "self", element), element, lambda s, x: s.op("arith.xori", x, ones))


_CHOICES = {"where": ("condition", "self", "other"), "masked_fill": ("mask", "value", "self")}


@imports("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
@imports("masked_fill.Scalar", "masked_fill.Tensor")
def _where(call: Call) -> Result:
    """Elements of one tensor or another."""
    element, names = element_of_result(call), _CHOICES[call.node.kind.split(".")[1]]
    values = [value_as(call, name, kind) for name, kind in zip(names, ("i1", element, element), strict=True)]
    return elementwise.tensor_of(
        elementwise.ternary(call, values, element, lambda s, holds, lhs, rhs: s.select(holds, lhs, rhs))
    )


@imports(
    *(f"__{name}__.{overload}" for name in ("lshift", "rshift") for overload in ("Tensor", "Scalar")),
    *(
        f"bitwise_{side}_shift.{overload}"
        for side in ("left", "right")
        for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")
    ),
)
def _shift(call: Call) -> Result:
    """Distances outside of the type's width shift everything out, negative ones too."""
    is_left = call.node.kind.startswith(("aten.__lshift__", "aten.bitwise_left"))
    element = promoted(call, "self", "other")
    require(element != "f32", "operands must be integers")
    last = 8 * NUMPY_DTYPES[element].itemsize - 1

    def shifted(s: elementwise.Arithmetic, x: ir.Value, distance: ir.Value) -> ir.Value:
        held = s.op("arith.minui", distance, last)
        if not is_left and not element.startswith("u"):
            return s.op("arith.shrsi", x, held)
        moved = s.op("arith.shli" if is_left else "arith.shrui", x, held)
        return s.select(s.compare("eq", held, distance), moved, 0)

    return elementwise.binary(call, [value_as(call, name, element) for name in ("self", "other")], element, shifted)


_BOOLEANS: dict[str, elementwise.OfTwo] = {
    **elementwise.PAIRS_OF_INTEGERS,
    "add": lambda s, lhs, rhs: s.op("arith.ori", lhs, rhs),
    "maximum": lambda s, lhs, rhs: s.op("arith.ori", lhs, rhs),
    "minimum": lambda s, lhs, rhs: s.op("arith.andi", lhs, rhs),
}
_FLOATS: dict[str, elementwise.OfTwo] = {
    "add": lambda s, lhs, rhs: s.op("arith.addf", lhs, rhs),
    "div": lambda s, lhs, rhs: s.op("arith.divf", lhs, rhs),
    "maximum": lambda s, lhs, rhs: s.op("arith.maximumf", lhs, rhs),
    "minimum": lambda s, lhs, rhs: s.op("arith.minimumf", lhs, rhs),
    "mul": lambda s, lhs, rhs: s.op("arith.mulf", lhs, rhs),
    "rsub": lambda s, lhs, rhs: s.op("arith.subf", rhs, lhs),
    "sub": lambda s, lhs, rhs: s.op("arith.subf", lhs, rhs),
}


@imports_plain(
    *(f"{name}.{overload}" for name in ("add", "div", "mul", "rsub", "sub") for overload in ("Tensor", "Scalar")),
    *("maximum.default", "minimum.default"),
)
def arithmetic(call: Call) -> Result:
    """In the type of the result; integers wrap around."""
    kind, element = call.node.kind.split(".")[1], element_of_result(call)
    mode = call.argument("rounding_mode")
    if mode is not None and element != "f32":
        kind = {"floor": "floor_divide", "trunc": "trunc_divide"}.get(mode, kind)
    alpha = call.argument("alpha")
    require(alpha in (None, 1), f"argument 'alpha' must be 1, but got {alpha}")
    functions = _FLOATS if element == "f32" else _BOOLEANS if element == "i1" else elementwise.PAIRS_OF_INTEGERS
    require(kind in functions, f"operands must not be integers, for a result of {element}")
    return elementwise.tensor_of(
        elementwise.binary(
            call, [value_as(call, name, element) for name in ("self", "other")], element, functions[kind]
        )
    )


@imports_plain("ceil.default", "floor.default", "round.default", "trunc.default")
def _whole(call: Call) -> Result:
    """Integers are whole."""
    return call.tensor("self")


@imports_plain("neg.default", "abs.default", "clamp.default", "sign.default")
def _of_one(call: Call) -> Result:
    element, kind = element_of_result(call), call.node.kind
    value = value_as(call, "self", element)
    require(element != "f32", "operand must be integers")
    if kind == "aten.sign.default" and element == "i1":
        return value
    if kind != "aten.clamp.default":
        return elementwise.unary(call, value, element, elementwise.OF_ONE_INTEGER[kind.split(".")[1]])
    bounds = [(name, call.argument(bound)) for name, bound in (("max", "min"), ("min", "max"))]
    return elementwise.unary(call, value, element, lambda s, x: _clamped(s, x, bounds))


def _clamped(s: elementwise.Arithmetic, value: ir.Value, bounds: Sequence[tuple[str, int | None]]) -> ir.Value:
    for name, bound in bounds:
        value = value if bound is None else s.op(f"arith.{name}{{s}}i", value, bound)
    return value


# Tensors of one number, whose shape and type are those of another tensor or arguments: constants of the program.
#
# Memory that PyTorch does not fill is zeros here.

_FORMS = ("{}_like", "new_{}")


@imports(*(f"{form.format(kind)}.default" for form in _FORMS for kind in ("zeros", "empty", "ones", "full")))
@imports("zero.default", "empty.memory_format", "new_empty_strided.default", "empty_strided.default")
def _of_one_number(call: Call) -> Result:
    return _filled(call, call.argument("fill_value") if "full" in call.node.kind else int("ones" in call.node.kind))


@imports("fill.Scalar", "fill.Tensor")
def _fill(call: Call) -> Result:
    value = call.constant("value")
    require(value.size == 1, f"argument 'value' must have 1 entry, but got {value.size}")
    return _filled(call, value.ravel()[0].item())


def _filled(call: Call, number: object) -> Constant:
    """A constant of the shape and type of the node's result."""
    call.ignore("self", "stride")
    (output,) = call.node.outputs
    element = element_of_result(call)
    require(element in NUMPY_DTYPES, f"result must be of a type of the dialect, but got {element}")
    if not isinstance(number, int | float):
        raise UnsupportedError(f"elements must be a number, but got {number}")
    check_shape(output.shape, "result")
    call.plan.budget.spend_constant(output.shape, NUMPY_DTYPES[element].itemsize)
    return Constant(np.full(output.shape, number, NUMPY_DTYPES[element]))
