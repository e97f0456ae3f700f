"""The meanings of a graph's names while the import is planned; nothing is built yet.

A quantized graph alternates between quantized values and the f32 values they stand for.  An f32 value is not computed:
it waits for the quantization that asks for its quantized values, and then the QDQ group becomes one integer op.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar
from weakref import ref

import numpy as np

from qdialect import arithmetic
from qdialect.arithmetic import ElementFunction, FloatArray, QuantParams
from qdialect.arithmetic.choices import BlockActivations
from qdialect.arithmetic.profiles import Profile
from qdialect.dialect import ClipOp, DequantizeOp, F32MatmulOp, LutOp, QuantizeOp
from qdialect.dialect.type_constraints import ELEMENT_NAMES, ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Budget, Shape, UnsupportedError, check_shape, require
from qdialect.frontends.planning.emitter import Demands, Emission, Emitted, Emitter, Value
from qdialect.ir._mlir import ir

ComputedValue = TypeVar("ComputedValue", bound=Value)
Floats = tuple[float, ...]
Integers = tuple[int, ...]

EIGHT_BIT = ("i8", "ui8")
SIXTEEN_BIT = ("i16", "ui16")


BuildOrdered = Callable[[Emitter, list[ir.Value]], ir.Value]


@dataclass
class Plan:
    """The values to emit, in order."""

    values: list[Value] = field(default_factory=list[Value])
    budget: Budget = field(default_factory=Budget)
    """Of constants that are made while the model is read."""
    limit: int | None = None
    """How many values and evaluations the plan may take in all; None: any number."""
    counted: int = 0
    activations: BlockActivations | None = None
    """In which form data are multiplied by packed weights; None: as each node of the model states."""

    def __post_init__(self) -> None:
        self._demands = Demands(self.values)
        self.may_be_nan = dict[F32Tensor, bool]()
        """Answers of `F32Tensor.may_be_nan`."""

    def ask(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The cached result of `compute` for `key`; raises `UnsupportedError` if `compute` does."""
        return self._demands.ask(key, compute)

    def forget(self) -> None:
        """Drop everything: what values are made of refers to the plan, and weights would stay until Python looks."""
        self.values.clear()
        self.may_be_nan.clear()
        self._demands = Demands(self.values)

    def allow(self, count: int) -> None:
        """Count more values and evaluations."""
        self.limit = None if self.limit is None else self.limit + count

    def count(self) -> None:
        """One value or evaluation more; raises `UnsupportedError` where there are too many."""
        self.counted += 1
        holds = self.limit is None or self.counted <= self.limit
        require(holds, f"program must not take more than {self.limit} ops and evaluations")

    def compute(self, name: str, shape: Shape, element: str, emission: Emission) -> Value:
        """A value that `emission` builds; raises `UnsupportedError` for a shape that no tensor can have."""
        return self.add(Value(name, shape, element, emission=emission))

    def ordered(self, name: str, shape: Shape, element: str, values: Sequence[Value], build: BuildOrdered) -> Value:
        """The result of `build` for values that have the model's order of dimensions."""
        return self.compute(
            name, shape, element, lambda emitter: (build(emitter, [*map(emitter.to_channels_first, values)]), False)
        )

    def pointwise(self, name: str, value: Value, element: str, build: Callable[[Emitter, ir.Value], ir.Value]) -> Value:
        """The result of an element-wise `build` for a value, with its dimensions in the order in which it is held."""

        def emit(emitter: Emitter) -> Emitted:
            held, is_channels_last = emitter.either(value)
            return build(emitter, held), is_channels_last

        return self.compute(name, value.shape, element, emit)

    def add(self, value: ComputedValue) -> ComputedValue:
        """`value`, which its emission builds; raises as `compute`."""
        self.count()
        check_shape(value.shape, "result")
        self.values.append(value)
        return value


@dataclass(frozen=True, eq=False)
class Constant:
    """Known integers or f32 values."""

    array: Array

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.array.shape


@dataclass(frozen=True, eq=False)
class F32Tensor:
    """f32 values of `shape`; `name` is the model's for them, else they have that of who asks first."""

    shape: Shape
    name: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_shape(self.shape, "result")
        # Operands come first, so that a table is made of tables that are known, however long the chain.
        self.table()

    def quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        """Their quantized values, once for all readers; raises `UnsupportedError` where no op computes them."""
        return plan.ask((self, to), lambda: self._quantized(plan, name, to))

    def f32(self, plan: Plan, name: str) -> Value:
        """Themselves as an f32 value, once for all readers; raises `UnsupportedError` as `quantized`."""
        return plan.ask((self, None), lambda: self._f32(plan, self.name or name))

    @property
    def is_known(self) -> bool:
        """Whether `f32_values` gives them."""
        return False

    def may_be_nan(self, plan: Plan) -> bool:
        """Whether one of what is quantized may be NaN."""
        # Parts come first, however long the chain.
        known, waiting = plan.may_be_nan, [self]
        while waiting:
            found = waiting[-1].nan_of(plan)
            parts = () if isinstance(found, bool) else found
            missing = [part for part in parts if part not in known]
            waiting += missing
            if not missing:
                known[waiting.pop()] = found is True or any(known[part] for part in parts)
        return known[self]

    def nan_of(self, plan: Plan) -> bool | Sequence[F32Tensor]:
        """The same, or the tensors of which one must be NaN for it.

        Every f32 value may be that no quantized values stand for.
        """
        return type(self)._quantized is F32Tensor._quantized

    def f32_values(self) -> Array | None:
        """Themselves, where they are known when the model is read; they are made anew by each call."""
        return None

    def table(self) -> Table | None:
        """Themselves as a function of one 8-bit tensor, where they are one."""
        return self._known_table

    @cached_property
    def _known_table(self) -> Table | None:
        return self._table()

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return quantize(plan, name, self.f32(plan, name), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("result must be quantized by a QuantizeLinear, but it is used as a float")

    def _table(self) -> Table | None:
        return None


Tensor = Constant | Value | F32Tensor
"""The meaning of a name: something known, quantized values, or f32 values."""


@dataclass(frozen=True, eq=False)
class Quantized(F32Tensor):
    """The f32 values of quantized values, by one scale and zero point or by those of each index of `axis`."""

    profile: ClassVar[Profile]
    values: Value
    scales: Floats
    zero_points: Integers
    axis: int = 0

    @property
    def is_eight_bit(self) -> bool:
        """Whether it is quantized per tensor to 8 bits."""
        return len(self.scales) == 1 and self.values.element in EIGHT_BIT

    @property
    def parameters(self) -> QuantizedTensorType:
        """Of quantized values that are quantized per tensor; raises `UnsupportedError` where they are not."""
        require(len(self.scales) == 1, f"tensor must have one scale, but got {len(self.scales)}")
        return QuantizedTensorType.full_range(self.profile, self.values.element, self.scales[0], self.zero_points[0])

    @property
    def key(self) -> tuple[Value, Floats, Integers]:
        """Equal for tensors that hold the same numbers: a graph may dequantize a tensor once for each reader."""
        return self.values, self.scales, self.zero_points

    @property
    def is_known(self) -> bool:
        return self.values.data is not None

    def f32_values(self) -> Array | None:
        if self.values.data is None:
            return None
        return arithmetic.dequantize_array(self.values.data, self.scales, self.zero_points, self.axis)

    def with_values(self, values: Value) -> Self:
        """Other quantized values with the same parameters."""
        return replace(self, shape=values.shape, values=values)

    def table(self) -> Table | None:
        if not self.is_eight_bit or self.values.data is not None:
            return None
        known = self._own_table[-1]() if self._own_table else None
        if known is None:
            known = Table(self.shape, self, lambda f32_values: f32_values)
            self._own_table[:] = [ref(known)]
        return known

    @cached_property
    def _own_table(self) -> list[ref[Table]]:
        """The table while somebody has it: it has `self`, so that both, weights and all, would wait for a search."""
        return []

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        f32_values = self.f32_values()
        if f32_values is not None:
            return Value(name, self.shape, to.element, data=to.quantize(f32_values))
        if not self.is_eight_bit or to.element not in EIGHT_BIT:
            return quantize(plan, name, self.f32(plan, name), to)
        if self.parameters.same_meaning(to):
            return limit(plan, name, self.values, to)
        return look_up(plan, name, self, to, lambda f32_values: f32_values)

    def _f32(self, plan: Plan, name: str) -> Value:
        if self.values.data is not None:
            plan.budget.spend_constant(self.shape, np.dtype(np.float32).itemsize)
            return Value(name, self.shape, "f32", data=self.f32_values())

        def emit(emitter: Emitter) -> Emitted:
            values, is_channels_last = emitter.either(self.values)
            axis = stored_axis(self.axis, len(self.shape), is_channels_last)
            parameters = {"scales": self.scales, "zero_points": self.zero_points, "axis": axis}
            return emitter.build(DequantizeOp, values, element="f32", **parameters), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@dataclass(frozen=True, eq=False)
class Computed(F32Tensor):
    """An f32 value of the module."""

    value: Value

    def _f32(self, plan: Plan, name: str) -> Value:
        return self.value


@dataclass(frozen=True, eq=False)
class Table(F32Tensor):
    """A function of an 8-bit tensor, evaluated in float32 on each of its quantized values."""

    source: Quantized
    function: ElementFunction

    @cached_property
    def entries(self) -> FloatArray:
        """The function of the f32 value of each of the 256 quantized values."""
        return evaluate(self.function, self.source)

    def then(self, function: ElementFunction) -> Table:
        """`function` of these numbers."""
        return self.of_entries(self.shape, function, self.entries)

    def of_entries(self, shape: Shape, function: Callable[..., FloatArray], *entries: FloatArray) -> Table:
        """`function` of arrays with an entry for each quantized value of the same source."""
        with np.errstate(all="ignore"):
            result = function(*entries)
        return Table(shape, self.source, lambda _: result)

    def nan_of(self, plan: Plan) -> bool:
        return bool(np.isnan(self.entries).any())

    def table(self) -> Table:
        # Not kept as `_known_table`: a tensor that has itself waits for a search for garbage.
        return self

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        return look_up(plan, name, self.source, to, self.function)


def is_known(tensor: Tensor | None) -> bool:
    """Whether `known_array` gives an array, without making it."""
    return isinstance(tensor, Constant) or (isinstance(tensor, F32Tensor) and tensor.is_known)


def known_array(tensor: Tensor | None) -> Array | None:
    """The known content of a tensor: a constant, or the f32 values of constant quantized values."""
    if isinstance(tensor, Constant):
        return tensor.array
    return tensor.f32_values() if isinstance(tensor, F32Tensor) else None


def known(name: str, array: Array) -> Value:
    """A value that holds a constant; raises `UnsupportedError` for a type that no tensor of the dialect has."""
    require(array.dtype in ELEMENT_NAMES, f"constant must be of a type of the dialect, but got {array.dtype}")
    return Value(name, array.shape, ELEMENT_NAMES[array.dtype], data=array)


def filled(plan: Plan, name: str, shape: Shape, fill: int, element: str) -> Value:
    """The constant `fill` in all elements; raises `UnsupportedError` where it exceeds the budget."""
    dtype = NUMPY_DTYPES[element]
    plan.budget.spend_constant(shape, dtype.itemsize)
    return Value(name, shape, element, data=np.full(shape, fill, dtype))


def stored_axis(axis: int, rank: int, is_channels_last: bool) -> int:
    """Where dimension `axis` of the model lies, given whether the channels come last."""
    return (0, rank - 1, *range(1, rank - 1))[axis] if is_channels_last else axis


def clip(plan: Plan, name: str, values: Value, minimum: int, maximum: int) -> Value:
    """`values` clipped to [`minimum`, `maximum`]; themselves where that is the range of their type."""
    if (minimum, maximum) == ELEMENT_RANGES[values.element]:
        return values
    how: dict[str, Any] = {"element": values.element, "min": minimum, "max": maximum}
    return plan.pointwise(name, values, values.element, lambda emitter, held: emitter.build(ClipOp, held, **how))


def limit(plan: Plan, name: str, values: Value, to: QuantizedTensorType) -> Value:
    """`values`, of the parameters `to`, between its bounds."""
    return clip(plan, name, values, to.minimum, to.maximum) if to.is_narrow else values


def quantize(plan: Plan, name: str, value: Value, to: QuantizedTensorType) -> Value:
    """The quantized values of an f32 value, by the rounding of the profile of `to`."""
    attributes = {"scales": (to.scale,), "zero_points": (to.zero_point,), **to.profile.quantization}
    return limit(plan, name, quantize_along(plan, name, value, to.element, 0, attributes), to)


def quantize_along(
    plan: Plan, name: str, value: Value, element: str, axis: int, attributes: Mapping[str, Any]
) -> Value:
    """The quantized values of an f32 value; several scales lie along dimension `axis` of the model."""

    def emit(emitter: Emitter) -> Emitted:
        stored, is_channels_last = emitter.either(value)
        along = stored_axis(axis, len(value.shape), is_channels_last)
        return emitter.build(QuantizeOp, stored, element=element, axis=along, **attributes), is_channels_last

    return plan.compute(name, value.shape, element, emit)


def evaluate(function: ElementFunction, source: Quantized) -> FloatArray:
    """`function` of the f32 value of each of the 256 quantized values of `source`: f32 of shape [256]."""
    before = source.parameters
    require(before.element in EIGHT_BIT, f"input must be i8 or ui8, but got {before.element}")
    with np.errstate(all="ignore"):
        return function(before.dequantize(arithmetic.table_values(NUMPY_DTYPES[before.element]))).astype(np.float32)


def look_up(plan: Plan, name: str, source: Quantized, to: QuantizedTensorType, function: ElementFunction) -> Value:
    """The quantized values of `function` of 8-bit numbers: a table whose entries are quantized as f32 values are."""
    require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
    table = to.quantize(evaluate(function, source)).view(np.uint8)
    how: dict[str, Any] = {"element": to.element, "table": table, **mapping(source.parameters, to)}
    return plan.pointwise(name, source.values, to.element, lambda emitter, held: emitter.build(LutOp, held, **how))


class _Quantization(Protocol):
    @property
    def scale(self) -> float: ...

    @property
    def zero_point(self) -> int: ...


def mapping(before: _Quantization, to: _Quantization) -> Mapping[str, Any]:
    """The attributes that name both quantizations of an 8-bit function."""
    return {
        "input_scale": before.scale,
        "input_zero_point": before.zero_point,
        "output_scale": to.scale,
        "output_zero_point": to.zero_point,
    }


# How a tensor is quantized per tensor, with the arithmetic of a runtime.


@dataclass(frozen=True)
class QuantizedTensorType:
    """``q = clip(round(x / scale) + zero_point, minimum, maximum)`` with the rounding and division of `profile`.

    `element` is the dialect's name of the quantized type (``"ui8"``).
    """

    profile: Profile
    element: str
    params: QuantParams
    minimum: int
    maximum: int

    @classmethod
    def full_range(cls, profile: Profile, element: str, scale: float, zero_point: int) -> Self:
        """Parameters whose bounds are those of the element type."""
        return cls(profile, element, QuantParams(scale, zero_point), *ELEMENT_RANGES[element])

    @property
    def scale(self) -> float:
        """That of `params`."""
        return self.params.scale

    @property
    def zero_point(self) -> int:
        """That of `params`."""
        return self.params.zero_point

    @property
    def is_narrow(self) -> bool:
        """Whether the quantized values leave out some of the type's."""
        return (self.minimum, self.maximum) != ELEMENT_RANGES[self.element]

    def same_meaning(self, other: QuantizedTensorType) -> bool:
        """Whether a quantized value stands for the same f32 value in both."""
        same_points = (self.element, self.zero_point) == (other.element, other.zero_point)
        return same_points and arithmetic.same_scale(self.scale, other.scale)

    def quantize(self, f32_values: Array) -> Array:
        """The quantized values of f32 values, of the same shape."""
        how = (self.profile.float_rounding, self.profile.scaling, self.profile.nan)
        dtype = NUMPY_DTYPES[self.element]
        values = arithmetic.quantize_array(f32_values.astype(np.float32), self.scale, self.zero_point, 0, dtype, *how)
        return np.clip(values, self.minimum, self.maximum)

    def quantize_scalar(self, f32_value: float) -> int:
        """The quantized value of one f32 value."""
        return int(self.quantize(np.array([f32_value], dtype=np.float32))[0])

    def dequantize(self, values: Array) -> Array:
        """The f32 values of quantized values: ``float32(q - zero_point) * float32(scale)``."""
        return arithmetic.dequantize_array(values, self.scale, self.zero_point, 0)


# Floats of 16 bits, f16 and bf16, are values of their type that are computed with as f32 numbers.


def in_f32(plan: Plan, value: Value) -> Computed:
    """The f32 numbers of a value of small floats, once for all readers."""

    def widen() -> Value:
        return plan.pointwise(
            value.name, value, "f32", lambda emitter, held: emitter.convert("arith.extf", held, "f32")
        )

    return Computed(value.shape, plan.ask((value, "f32"), widen))


def in_small_float(plan: Plan, name: str, value: Value, element: str) -> Value:
    """An f32 value rounded half to even to one of the type `element`."""
    return plan.pointwise(name, value, element, lambda emitter, held: emitter.convert("arith.truncf", held, element))


# Results that are computed in float32 of float32 operands, whatever becomes of them.

Build = Callable[[Emitter, Sequence[ir.Value]], ir.Value]
"""``build(emitter, operands)`` gives the result, all with the model's order of dimensions."""


@dataclass(frozen=True, eq=False)
class Computation(F32Tensor):
    """The result of `build` on f32 operands; with their channels last if `is_channels_last`."""

    operands: tuple[F32Tensor, ...]
    build: Build
    is_channels_last: bool = False

    def _f32(self, plan: Plan, name: str) -> Value:
        values = [operand.f32(plan, name) for operand in self.operands]

        def emit(emitter: Emitter) -> Emitted:
            held = [emitter.last(one) if self.is_channels_last else emitter.to_channels_first(one) for one in values]
            return self.build(emitter, held), self.is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def product(source: F32Tensor, matrix: Array) -> Computation:
    """``x W`` in float32: x [..., K] times a constant [K, N]."""

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return emitter.build(F32MatmulOp, operands[0], emitter.constant(matrix), element="f32")

    return Computation((*source.shape[:-1], matrix.shape[1]), (source,), build)
