"""Functions element by element of one tensor or more: clamps, tables, integer sums and products, and float ops.

A function of one quantized tensor, however many operators it is made of, is a table that PyTorch itself fills in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.arithmetic import BinaryQuantization, elementwise, quantized_range
from qdialect.arithmetic.expressions import Expression
from qdialect.arithmetic.profiles import PYTORCH
from qdialect.dialect import AddOp, MulOp
from qdialect.dialect.elementwise_ops import binary_attributes
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.elementwise import Clamped, Pointwise
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import (
    EIGHT_BIT,
    Computed,
    Constant,
    F32Tensor,
    Plan,
    QuantizedTensorType,
    limit,
    look_up,
)
from qdialect.frontends.torch.operators.plain import as_element, element_of_result
from qdialect.frontends.torch.operators.registry import Call, as_f32
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.frontends.torch.program.folding import evaluate
from qdialect.frontends.torch.program.model import Node
from qdialect.frontends.torch.program.pytorch_operators import widened

Leaf = tuple[Any, ...]
"""`Quantized.key`, by which quantized tensors are told apart."""

# Of the 65536 pairs of quantized values, how many an integer op may round otherwise than PyTorch: one in 10000.
_FEW = 6


@dataclass(frozen=True, eq=False)
class Evaluated(Pointwise):
    """The result of `node`, element by element; `parts` are the tensors that it reads, by name.

    `operands` are the same tensors in order with numbers among them.  Tables are filled in by PyTorch itself.
    """

    node: Node
    parts: Mapping[str, F32Tensor]
    leaves: Mapping[Leaf, Quantized] | None = field(init=False)
    """The only tensor, a quantized one, on which this depends, single numbers aside; None if it depends on others."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", _leaves(self.parts.values()))

    def _table(self) -> None:
        """Not by the formula."""

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = self._single(to)
        if source is not None:
            key = source.key
            return look_up(plan, name, source, to, lambda f32_values: self.values(plan, {key: f32_values}))
        return self._joined(plan, name, to) or super()._quantized(plan, name, to)

    def _single(self, to: QuantizedTensorType) -> Quantized | None:
        """The one quantized tensor of which this is a function."""
        if self.leaves is None or len(self.leaves) != 1 or to.element not in EIGHT_BIT:
            return None
        source = next(iter(self.leaves.values()))
        return source if source.is_eight_bit and source.shape == self.shape else None

    def _joined(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value | None:
        """Quantized values of a sum or product of two quantized tensors."""
        pair = [operand for operand in self.operands if isinstance(operand, Quantized) and operand.is_eight_bit]
        joins = _JOINS.get(self.node.kind.split(".")[1])
        if joins is None or len(pair) != 2 or len(self.parts) != 2 or to.element not in EIGHT_BIT:
            return None
        joined = _Joined(joins, pair[0], pair[1], to)
        wanted = to.quantize(self.values(plan, {side.key: joined.grid(i) for i, side in enumerate(pair)}))
        if np.count_nonzero(joined.results() != wanted) > _FEW:
            return None
        return limit(plan, name, plan.compute(name, self.shape, to.element, joined.emit), to)

    def values(self, plan: Plan, numbers: Mapping[Leaf, Array]) -> Array:
        """PyTorch's result for f32 `numbers` in place of `leaves`."""
        return _Evaluation(plan, numbers).of(self)


@dataclass
class _Evaluation:
    """The elements of every tensor that others are computed of, each evaluated once for all its readers."""

    plan: Plan
    numbers: Mapping[Leaf, Array]
    found: dict[F32Tensor, Array] = field(default_factory=dict["F32Tensor", Array])

    def of(self, part: F32Tensor) -> Array:
        """The elements of `part`."""
        if part not in self.found:
            self.found[part] = self._evaluated(part)
        return self.found[part]

    def _evaluated(self, part: F32Tensor) -> Array:
        if isinstance(part, Quantized):
            return self.numbers[part.key]
        if isinstance(part, Clamped):
            return part.clamp(self.of(part.source))
        if isinstance(part, Evaluated):
            self.plan.count()
            return evaluate(part.node, {name: self.of(below) for name, below in part.parts.items()})
        assert isinstance(part, Computed)
        assert part.value.data is not None
        return part.value.data.reshape(())


def _leaves(parts: Iterable[F32Tensor]) -> Mapping[Leaf, Quantized] | None:
    """The one quantized tensor below `parts`, or none; None where there are several, or others than quantized ones."""
    found: dict[Leaf, Quantized] = {}
    for part in parts:
        below = _leaves_of(part)
        if below is None:
            return None
        found.update(below)
    return found if len(found) <= 1 else None


def _leaves_of(part: F32Tensor) -> Mapping[Leaf, Quantized] | None:
    while isinstance(part, Clamped):
        part = part.source
    if isinstance(part, Quantized):
        return {part.key: part}
    if isinstance(part, Evaluated):
        return part.leaves
    is_number = isinstance(part, Computed) and part.value.data is not None and part.value.data.size == 1
    return {} if is_number else None


@dataclass(frozen=True)
class _Joined:
    """A sum or product in integers; PyTorch's float region differs in few pairs of quantized values, if in any."""

    op_class: type[AddOp | MulOp]
    lhs: Quantized
    rhs: Quantized
    to: QuantizedTensorType

    def _all_values(self, side: int) -> Array:
        operand = (self.lhs, self.rhs)[side]
        minimum, maximum = quantized_range(NUMPY_DTYPES[operand.values.element])
        return np.arange(minimum, maximum + 1).reshape((256, 1) if side == 0 else (1, 256))

    def grid(self, side: int) -> Array:
        """The f32 values of all quantized values of one operand, along a dimension of their own."""
        return (self.lhs, self.rhs)[side].parameters.dequantize(self._all_values(side))

    @property
    def _quantization(self) -> BinaryQuantization:
        bounds = (self.to.minimum, self.to.maximum)
        return BinaryQuantization(self.lhs.parameters.params, self.rhs.parameters.params, self.to.params, bounds)

    def results(self) -> Array:
        """The results of the integer op for all pairs of quantized values."""
        quantization = self._quantization
        operands = (self._all_values(0), self._all_values(1), quantization)
        if self.op_class is AddOp:
            # Rounding and multiplier do not enter a sum of floats.
            return elementwise.add(*operands, PYTORCH.addition, PYTORCH.rounding, PYTORCH.multiplier)
        return elementwise.mul(*operands, PYTORCH.rounding, PYTORCH.multiplier)

    def emit(self, emitter: Emitter) -> Emitted:
        """Build the op."""
        operands, is_channels_last = emitter.alike((self.lhs.values, self.rhs.values))
        attributes, to = binary_attributes(self._quantization), self.to
        how = PYTORCH.rescale
        if self.op_class is AddOp:
            how = {"arithmetic": PYTORCH.addition}
        return emitter.build(self.op_class, *operands, element=to.element, **attributes, **how), is_channels_last


_JOINS: Mapping[str, type[AddOp | MulOp]] = {"add": AddOp, "mul": MulOp}


def pointwise(call: Call, names: Sequence[str], formula: Expression | None) -> Evaluated:
    """The node's function of the arguments `names`, tensors or numbers; integers become f32 first, as in PyTorch."""
    operands: list[F32Tensor] = []
    parts: dict[str, F32Tensor] = {}
    for name in names:
        tensor, read = call.tensor(name), call.reads(name)
        if isinstance(tensor, Constant) and tensor.array.ndim == 0:
            with np.errstate(over="ignore"):
                tensor = Constant(widened(tensor.array).astype(np.float32))
        elif element_of_result(call) == "f32":
            tensor = as_element(call, tensor, "f32")
        operands.append(as_f32(name, tensor))
        if read is not None:
            parts[read] = operands[-1]
    return Evaluated(_broadcast(operands), tuple(operands), formula, call.node, parts, name=call.name)


def _broadcast(operands: Sequence[F32Tensor]) -> Shape:
    shapes = [operand.shape for operand in operands]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise UnsupportedError(f"shapes must broadcast, but got {[list(shape) for shape in shapes]}") from error


def clamped(call: Call, minimum: float, maximum: float) -> Clamped:
    """The argument ``self`` between two bounds."""
    require(minimum <= maximum, f"bounds must be ordered, but got {minimum} and {maximum}")
    source = call.f32("self")
    return Clamped(source.shape, source, minimum, maximum, name=call.name)
