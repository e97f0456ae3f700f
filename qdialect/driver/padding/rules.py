"""Which ops compute entries of an open extent alone, and what the others must read in place of padding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

from qdialect.dialect.constants import constant_value
from qdialect.dialect.elementwise_ops import BinaryOp, ClipOp
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16RequantizeOp, InterpolatedLutOp
from qdialect.dialect.op_base import Qnn
from qdialect.dialect.quantize_ops import DequantizeOp, QuantizeOp, RangeOp, RequantizeOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.dialect.unary_ops import EightBitFunction
from qdialect.driver.batching.rules import OpSite
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import op_error
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.support.registry import Registry

# A network of the largest extents computes a smaller one with entries of padding before or behind those that count.
#
# Padding holds any number but where it is known to be 0. An entry that counts must depend on no padding.

Axes = frozenset[int]
"""The dimensions of a value whose extents vary."""


class Side(Enum):
    """Where padding is: behind the entries that count, or before them."""

    BACK = "back"
    FRONT = "front"


@dataclass
class Site(OpSite):
    """An op of a network, and the same op of a smaller one."""

    other: ir.Operation
    side: Side
    axes: Sequence[Axes]
    """Of the operands."""
    results: Sequence[Axes]
    is_zero: Sequence[bool]
    """Whether the padding of an operand is 0."""
    most: int
    """The largest number of entries of padding."""
    difference: int
    """Entries that the smaller network has less."""
    masked: list[tuple[int, tuple[int, ...], float]] = field(default_factory=list[tuple[int, tuple[int, ...], float]])
    """Operands in whose dimensions padding must be a number, where it is not."""
    gives_zero: bool = False
    """Whether the padding of the result is 0."""

    def check_attributes(self, *varying: str) -> None:
        """Refuse attributes that differ between the networks, but for those that are `varying`."""
        found = [
            {name: str(value) for name, value in dict(one.attributes.items()).items() if name not in varying}
            for one in (self.op, self.other)
        ]
        if found[0] != found[1]:
            self.refuse("its attributes depend on the extent")

    def refuse(self, reason: str) -> NoReturn:
        """Raise `CompileError`: `reason` is what stands against padding."""
        raise op_error(self.op, f"must compute each entry of an open extent alone, but {reason}")

    def refuse_axes(self, axes: Sequence[int], what: str) -> None:
        """Refuse dimensions of the first operand that vary."""
        for axis in sorted(self.axes[0].intersection(axes)):
            self.refuse(f"{what} dimension {axis}, which varies")

    def expect(self, axes: Axes) -> None:
        """Refuse a result in which other dimensions vary than `axes`."""
        if axes != self.results[0]:
            self.refuse(f"dimensions {sorted(self.results[0])} of its result vary in place of {sorted(axes)}")


Rule = Callable[[Site], None]
"""Raises `CompileError` where an entry of the result would depend on padding."""

RULES = Registry[Rule]("padding rule")

_KEEP_ZERO = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.select"),
    *("arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp", "arith.fptosi", "tensor.bitcast"),
)


def _names(*bases: type[Any]) -> list[str]:
    """The ops that are of one of these classes."""
    return [op.OPERATION_NAME for op in Qnn.operations if issubclass(op, bases)]


def _qnn(*names: str) -> list[str]:
    return [f"qnn.{name}" for name in names]


@RULES.register(*SCALAR_OPS, *_names(RangeOp))
def of_one_shape(site: Site) -> None:
    """All operands have the shape of the result."""
    site.check_attributes()
    if any(axes != site.results[0] for axes in site.axes):
        site.refuse("its operands vary in different dimensions")
    numbers = site.is_zero[1:] if site.op.name == "arith.select" else site.is_zero
    site.gives_zero = site.op.name in _KEEP_ZERO and all(numbers)


@RULES.register(*_names(BinaryOp, ClipOp, EightBitFunction, FixedPointFunctionOp, InterpolatedLutOp))
def broadcasting(site: Site) -> None:
    """Operands are aligned at the last dimension; those of extent 1 are repeated."""
    site.check_attributes()
    _aligned(site)


@RULES.register("qnn.broadcast")
def broadcast(site: Site) -> None:
    """Dimensions of extent 1 are repeated, and new ones come first."""
    site.check_attributes("shape")
    _aligned(site)
    site.gives_zero = site.is_zero[0] and len(site.axes[0]) in (0, len(site.results[0]))


def _aligned(site: Site) -> None:
    rank = len(site.result)
    for axes, shape in zip(site.axes, site.shapes, strict=True):
        moved = {axis + rank - len(shape) for axis in axes}
        repeated = {
            axis for axis in site.results[0] if axis < rank - len(shape) or shape[axis - rank + len(shape)] == 1
        }
        if not moved <= site.results[0] or not site.results[0] <= moved | repeated:
            site.refuse("its operands vary in different dimensions")


@RULES.register(*_names(QuantizeOp, DequantizeOp, RequantizeOp, I16RequantizeOp))
def of_channels(site: Site) -> None:
    """Parameters may differ along a dimension."""
    site.check_attributes()
    values = site.view.attribute_values()
    counts = [len(value) for name, value in values.items() if name.endswith(("scales", "zero_points"))]
    if max(counts) > 1:
        site.refuse_axes([values.get("axis", len(site.result) - 1)], "its parameters differ along")
    if any(site.axes[1:]):
        site.refuse("its parameters vary")
    site.expect(site.axes[0])


# Movement.


@RULES.register("qnn.reshape")
def reshape(site: Site) -> None:
    """Elements keep their order: as many lie before, between and behind the dimensions that vary."""
    site.check_attributes("shape")
    if _between(site.shapes[0], site.axes[0]) != _between(site.result, site.results[0]):
        site.refuse(f"its result {list(site.result)} has extents of {list(site.shapes[0])} inside of others")
    site.gives_zero = site.is_zero[0]


def _between(shape: Sequence[int], axes: Axes) -> list[int]:
    """The extents that vary, and the elements before, between and behind them."""
    found, last = list[int](), 0
    for axis in sorted(axes):
        found += [math.prod(shape[last:axis]), shape[axis]]
        last = axis + 1
    return [*found, math.prod(shape[last:])]


@RULES.register("qnn.transpose")
def transpose(site: Site) -> None:
    """Dimensions change their order."""
    site.check_attributes()
    site.expect(frozenset(at for at, axis in enumerate(site.view.permutation) if axis in site.axes[0]))
    site.gives_zero = site.is_zero[0]


@RULES.register("qnn.slice")
def slice_of(site: Site) -> None:
    """Entries of the side without padding, or all of them."""
    views: list[Any] = [site.view, site.other.opview]
    site.check_attributes("begin", "size")
    for axis, extent in enumerate(site.shapes[0]):
        pairs: list[tuple[int, int]] = [(view.begin[axis], view.size[axis]) for view in views]
        if axis not in site.axes[0]:
            if pairs[0] != pairs[1]:
                site.refuse("what it takes depends on the extent")
            continue
        if views[0].strides[axis] != 1 or not _takes_entries(site, axis, extent, *pairs):
            site.refuse(f"it takes a part of dimension {axis}, which varies")
    site.gives_zero = site.is_zero[0]


def _takes_entries(site: Site, axis: int, extent: int, own: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether what a slice takes are the same entries that count for each number of entries of padding."""
    ends = [begin + size for begin, size in (own, other)]
    if axis in site.results[0]:
        # The end with the padding stays.
        if site.side is Side.FRONT:
            return own[0] == other[0] == 0 and extent - ends[0] == extent - site.difference - ends[1]
        return own[0] == other[0] and ends[0] == extent and ends[1] == extent - site.difference
    if site.side is Side.FRONT:
        return own[0] - other[0] == site.difference and own[1] == other[1] and own[0] >= site.most
    return own == other and ends[0] <= extent - site.most


@RULES.register("qnn.concat", "tensor.concat")
def concat(site: Site) -> None:
    """Tensors one after the other: along a dimension that varies, padding must stay at its side."""
    site.check_attributes()
    dim = site.op.attributes["dim"] if "dim" in site.op.attributes else site.op.attributes["axis"]
    along = ir.IntegerAttr(dim).value
    if any(axes - {along} != site.results[0] - {along} for axes in site.axes):
        site.refuse("its operands vary in different dimensions")
    varying = [index for index, axes in enumerate(site.axes) if along in axes]
    if len(varying) > 1:
        site.refuse(f"it joins tensors along dimension {along}, which varies in several")
    is_at_side = not varying or varying[0] == (0 if site.side is Side.FRONT else len(site.axes) - 1)
    # Zeros behind zeros may be anywhere among them.
    others = list(site.op.operands)[1:]
    if not is_at_side and (site.side is Side.FRONT or varying[0] != 0 or not all(map(_holds_zeros, others))):
        site.refuse(f"it joins tensors along dimension {along}, so that padding would lie between them")
    if not is_at_side and not site.is_zero[0]:
        site.refuse("what lies before zeros is no padding of zeros")
    site.gives_zero = all(is_zero or not axes for is_zero, axes in zip(site.is_zero, site.axes, strict=True))


def _holds_zeros(value: ir.Value) -> bool:
    """Whether a value is a constant of zeros."""
    array = constant_value(value)
    return array is not None and not array.any()


@RULES.register("qnn.gather")
def gather(site: Site) -> None:
    """Elements of one dimension, at known indices."""
    site.check_attributes()
    site.refuse_axes([site.view.axis], "it takes elements of")
    site.expect(site.axes[0])


@RULES.register("qnn.dynamic_gather")
def dynamic_gather(site: Site) -> None:
    """Elements of one dimension at indices, whose dimensions replace it."""
    site.check_attributes()
    along, added = site.view.axis, len(site.shapes[1])
    site.refuse_axes([along], "it takes elements of")
    kept = {axis if axis < along else axis + added - 1 for axis in site.axes[0]}
    site.expect(frozenset(kept | {along + axis for axis in site.axes[1]}))


@RULES.register("qnn.block_gather")
def block_gather(site: Site) -> None:
    """Rows of weights at indices, whose dimensions come first."""
    site.check_attributes()
    if any(site.axes[1:]):
        site.refuse("its weights vary")
    site.expect(site.axes[0])


# Sums and extremes.

_NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@RULES.register(*_qnn(*(f"{kind}_{name}" for kind in ("f32", "int") for name in _NEUTRAL)))
def over_axes(site: Site) -> None:
    """Padding that is reduced is the number that changes nothing."""
    site.check_attributes()
    view, axes = site.view, site.axes[0]
    reduced = tuple(sorted(axes.intersection(view.axes)))
    name = site.op.name.rpartition("_")[2]
    if reduced and not (name == "sum" and site.is_zero[0]):
        site.masked.append((0, reduced, 0.0 if getattr(view, "from_zero", False) else _neutral(site, name)))
    left = sorted(axes - set(reduced))
    gone = () if view.keep_dims else view.axes
    site.expect(frozenset(axis - sum(other < axis for other in gone) for axis in left))


def _neutral(site: Site, name: str) -> float:
    number, element = _NEUTRAL[name], element_of(site.op.operands[0].type)
    if math.isfinite(number) or element == "f32":
        return number
    if element not in ELEMENT_RANGES:
        site.refuse(f"no number of {element} is passed over by its extreme")
    return ELEMENT_RANGES[element][number > 0]


@RULES.register("qnn.softmax", "qnn.top_k", "qnn.arg_max", "qnn.arg_min")
def along(site: Site) -> None:
    """Each element depends on all along a dimension."""
    site.check_attributes()
    site.refuse_axes([site.view.axis], "its elements depend on each other along")
    kept = site.op.name in ("qnn.softmax", "qnn.top_k") or site.view.keep_dims
    site.expect(frozenset(axis - (not kept and axis > site.view.axis) for axis in site.axes[0]))


@RULES.register("qnn.cumsum")
def running_sum(site: Site) -> None:
    """Zeros before the first term change nothing, and neither do terms behind an element."""
    site.check_attributes()
    view = site.view
    is_behind = (site.side is Side.BACK) != view.reverse
    if view.axis in site.axes[0] and not is_behind and not site.is_zero[0]:
        site.masked.append((0, (view.axis,), 0.0))
    site.expect(site.axes[0])


# Products.


@RULES.register("qnn.f32_matmul")
def products(site: Site) -> None:
    """Of rows by columns: padding that is summed up must be 0 in both."""
    site.check_attributes()
    (data, matrix), ranks = site.axes[:2], [len(shape) for shape in site.shapes[:2]]
    rank, summed = max(ranks), (ranks[0] - 1, ranks[1] - 2)
    pairs = zip((data, matrix), ranks, strict=True)
    batches = [{axis + rank - own for axis in axes if axis < own - 2} for axes, own in pairs]
    if batches[0] != batches[1]:
        site.refuse("its operands vary in different dimensions")
    for index, axis in enumerate(summed):
        if axis in site.axes[index] and not site.is_zero[index]:
            site.masked.append((index, (axis,), 0.0))
    rows = {rank - 2} if ranks[0] - 2 in data else set[int]()
    columns = {rank - 1} if ranks[1] - 1 in matrix else set[int]()
    site.expect(frozenset(batches[0] | rows | columns))


@RULES.register(
    *_qnn("dense", "i16_dense", "matmul", "i16_matmul", "dynamic_dense", "block_dense", "block_dynamic_dense")
)
def rows(site: Site) -> None:
    """Rows by weights, the last dimension is summed up."""
    site.check_attributes()
    site.refuse_axes([len(site.shapes[0]) - 1], "it sums up")
    for index, (axes, shape) in enumerate(zip(site.axes[1:], site.shapes[1:], strict=True), 1):
        if axes and (axes != site.axes[0] or index not in (2, 3) or shape != (*site.shapes[0][:-1], 1)):
            site.refuse(f"operand {index} varies")
    site.expect(site.axes[0])


@RULES.register("qnn.l2_normalize", "qnn.i16_layer_norm")
def along_the_last(site: Site) -> None:
    """Each element depends on all along the last dimension."""
    site.check_attributes()
    site.refuse_axes([len(site.result) - 1], "its elements depend on each other along")
    site.expect(site.axes[0])
