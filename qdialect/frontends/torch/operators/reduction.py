"""Sums, products, extremes and variances over dimensions, in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect.arithmetic.expressions import Input, Number
from qdialect.dialect import F32MaxOp, F32SumOp
from qdialect.frontends.building.checks import Shape, axes_in, require
from qdialect.frontends.building.op_builder import reduced, reduced_numbers
from qdialect.frontends.planning.elementwise import element_type, value_of_tensor
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.reduction import centred, mean_of, reduced_shape, reduced_value
from qdialect.frontends.planning.tensors import Computation, Tensor
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.ir._mlir import ir

_SCALE = Input().where_positive(Input(), Number(1.0))
"""The largest size; 1 of zeros, and of a row with NaN."""
_NARROW = ("i1", "i8", "ui8", "i16")
"""Reduced as i32, of which the low bits are the same; of booleans there are extremes alone."""


@imports(
    *("amax.default", "amin.default", "max.default", "min.default", "prod.default", "prod.dim_int", "sum.default"),
    "sum.dim_IntList",
)
def _reduce(call: Call) -> Result:
    """Over some dimensions or all; integers in the type of the result, as which they wrap around."""
    source, element = call.tensor("self"), element_of_result(call)
    axes, keeps = axes_of(call, len(source.shape)), bool(call.argument("keepdim"))
    return reduce_over(call, as_element(call, source, element), axes, keeps, call.node.kind.split(".")[1])


def reduce_over(call: Call, source: Tensor, axes: Shape, keeps: bool, kind: str) -> Tensor:
    """The reduction `kind` (``"amax"``) over `axes`, which stay as extents of 1 where `keeps`."""
    shape, kind = reduced_shape(source.shape, axes, keeps), kind.removeprefix("a")
    element = element_type(source)
    if element in _NARROW:
        wide = _integers(call, as_element(call, source, "i32"), axes, keeps, kind)
        return as_element(call, wide, element)
    if element != "f32":
        return _integers(call, source, axes, keeps, kind)

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return reduced_numbers(emitter, kind, operands[0], axes, keeps) if axes else operands[0]

    return Computation(shape, (as_f32("self", source),), build, name=call.name)


def _integers(call: Call, source: Tensor, axes: Shape, keeps: bool, kind: str) -> Value:
    value = value_of_tensor(call, source)
    require(value.element in ("i32", "i64"), f"integers must be i32 or i64, but got {value.element}")
    if not axes:
        return value
    return reduced_value(call, value, kind, axes, keeps)


@imports("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _quantifier(call: Call) -> Result:
    """Whether some element is not zero, or each: the largest or the smallest of their truth values."""
    truth = as_element(call, as_element(call, call.tensor("self"), "i1"), "i32")
    axes, keeps = axes_of(call, len(truth.shape)), bool(call.argument("keepdim"))
    kind = "max" if ".any." in call.node.kind else "min"
    # PyTorch gives booleans, but for uint8 its type of old: uint8.
    return as_element(call, _integers(call, truth, axes, keeps, kind), element_of_result(call))


def axes_of(call: Call, rank: int) -> Shape:
    """The dimensions that an operator names in ``dim``, ascending; all of `rank` where it names none."""
    given = call.argument("dim")
    dims = tuple(range(rank)) if given is None or given == () else call.dimensions("dim")
    axes = tuple(sorted(axes_in(dims, rank, "dim")))
    require(len(set(axes)) == len(axes), f"dim must have no dimension twice, but got {list(dims)}")
    return axes


@imports("var.correction", "var_mean.correction", "std.correction", "std_mean.correction")
def _variance(call: Call) -> Result:
    """``(sum(d^2) - sum(d)^2 / n) / (n - correction)`` with d = x - mean, or the root, and the mean.

    PyTorch sums in float64.  What the mean has lost is in the sum of d, and no square of d overflows or is lost, since
    d is divided by the largest of its size.
    """
    source = call.f32("self")
    axes = axes_of(call, len(source.shape))
    require(len(axes) >= 1, "input must have at least 1 dimension, but got 0")
    keeps = bool(call.argument("keepdim"))
    shape = reduced_shape(source.shape, axes, keeps)
    correction = call.argument("correction")
    count = math.prod(source.shape[axis] for axis in axes) - (1 if correction is None else correction)
    require(count > 0, f"correction must be less than the {count + (correction or 1)} elements")

    elements, is_root = math.prod(source.shape[axis] for axis in axes), "std" in call.node.kind

    def variance(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        s = emitter.f32
        below = centred(emitter, operands[0], axes)
        size = reduced(emitter, F32MaxOp, s("absf", below), axes, keep_dims=True)
        scale = emitter.expression(_SCALE, size)
        share = s("divf", below, scale)
        total, lost = (
            reduced(emitter, F32SumOp, one, axes, keep_dims=True) for one in (s("mulf", share, share), share)
        )
        squares = s("subf", total, s("divf", s("mulf", lost, lost), float(elements)))
        found = s("divf", squares, float(count))
        found = s("mulf", s("sqrt", found), scale) if is_root else s("mulf", s("mulf", found, scale), scale)
        return emitter.reshape(found, shape)

    def mean(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return emitter.reshape(mean_of(emitter, operands[0], axes), shape)

    result = Computation(shape, (source,), variance, name=call.name)
    if "_mean" not in call.node.kind:
        return result
    return result, Computation(shape, (source,), mean, name=call.name)
