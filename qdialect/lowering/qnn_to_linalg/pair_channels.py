"""`qnn-pair-channels`: channels inside of a network are reordered so that sums of two products fit 16 bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.register_tiles import LARGEST_PAIR
from qdialect.lowering.ir.functions import functions, has_body, required_constant
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import center, clip_outliers
from qdialect.passes.outlined import is_extern
from qdialect.passes.pattern import producer, users
from qdialect.passes.registry import Pass, register

_FEWEST_CHANNELS, _MOST_CHANNELS = 8, 2048
_FEWEST_PIXELS = 4
"""Weights that meet fewer are read once or twice: then the bytes of the weights count, not the products."""
_PER_CHANNEL = ("weight_scales", "weight_zero_points")


@register
@dataclass(frozen=True)
class PairChannelsPass(Pass):
    """Reorder the channels of tensors inside of a network so that products of neighbours can be summed in pairs.

    `vpmaddubsw` adds two products to 16 bits, which hold the sum where the weights of one sign of two neighbouring
    channels add up to at most 128. Where channels can be paired so that fewer of them exceed that, the weights and the
    parameters of the ops around the tensor are reordered. No result changes. It is run for targets that sum in pairs.
    """

    name: ClassVar[str] = "qnn-pair-channels"
    dependent_dialects = ()

    def run(self, module: ir.Module) -> None:
        own = [function for function in functions(module) if has_body(function) and not is_extern(function)]
        blocks = [block for function in own for block in function.regions[0].blocks]
        with module.context:
            for found in [one for block in blocks for one in channel_sets(block)]:
                # The order of the channels in which fewer K groups have a conflict; None where it is as good as it is.
                readers = [op for op in found.readers if math.prod(shape_of(op.data.type)[:-1]) >= _FEWEST_PIXELS]
                fits = _FEWEST_CHANNELS <= found.channels <= _MOST_CHANNELS and found.channels % 2 == 0
                conflict = _conflicts(_filters(readers), found.channels) if fits and readers else None
                order = None if conflict is None else _paired_order(conflict)
                if order is not None:
                    _reorder(found, order)


def _filters(readers: Sequence[Contraction]) -> Iterator[NDArray[np.int16]]:
    """Every filter that is multiplied by the channels, [taps, channels]."""
    for op in readers:
        weight = required_constant("weight", op.weight)
        centered, remainder = clip_outliers(center(weight, op.weight_zero_points))
        for values, beyond in zip(centered.values, remainder, strict=True):
            yield (values.astype(np.int16) + beyond).reshape(-1, weight.shape[-1])


def _reorder(found: ChannelSet, order: NDArray[np.int64]) -> None:
    """Give the weights and parameters of the ops around `found` the order."""
    for op in found.readers:
        _replace(op, "weight", required_constant("weight", op.weight)[..., order])
    for op in found.makers:
        _replace(op, "weight", required_constant("weight", op.weight)[order])
        if op.bias is not None:
            _replace(op, "bias", required_constant("bias", op.bias)[order])
        for name in _PER_CHANNEL:
            values: Sequence[Any] = getattr(op, name)
            if len(values) > 1:
                kind = op.attribute_fields[name].kind
                op.operation.attributes[name] = kind.to_attribute(tuple(values[index] for index in order))


def _replace(op: Contraction, name: str, array: NDArray[Any]) -> None:
    """Make `array` the operand `name` of `op`; the constant before goes where nothing else uses it."""
    index = next(field.index for field in op.operand_fields if field.name == name)
    before = producer(op.operation.operands[index])
    assert before is not None, "a constant was read"
    with ir.InsertionPoint(op), before.operation.location:
        op.operation.operands[index] = constant(array)
    if not users(before.operation.results[0]):
        before.operation.erase()


# Tensors whose channels may be in another order, as long as all of them have the same one.
#
# The results of a network do not depend on the order of the channels of a tensor inside of it: what makes the channels
# has its weights and parameters in another order, and so has what sums over them.  Depthwise convolutions, residuals,
# element-wise functions, pools and means of windows pass the order on.  Of other ops, and of the arguments and results
# of a function, the order is given.

Contraction = qnn.Conv2DOp | qnn.DenseOp | qnn.FusedConv2DOp | qnn.FusedDenseOp
_FUNCTIONS = (qnn.UnaryOp, qnn.LutOp, qnn.ClipOp, qnn.MaxPool2DOp, qnn.AvgPool2DOp)


@dataclass(frozen=True)
class ChannelSet:
    """Tensors with one order of channels, by the contractions around them."""

    channels: int
    makers: Sequence[Contraction]
    """Those whose output channels they are; of depthwise convolutions the input channels, too."""
    readers: Sequence[Contraction]
    """Those that sum over the channels."""


@dataclass
class _Class:
    makers: list[Contraction] = field(default_factory=list[Contraction])
    readers: list[Contraction] = field(default_factory=list[Contraction])
    uses: dict[ir.Value, int] = field(default_factory=dict[ir.Value, int])
    """The tensors, and how many of the uses of each are known to keep to the order."""
    is_given: bool = False


def channel_sets(block: ir.Block) -> Iterator[ChannelSet]:
    """The tensors of `block` whose channels may be reordered, and are read by a contraction."""
    classes = _Classes()
    for op in block.operations:
        classes.add(op)
    for one in classes.distinct():
        is_free = not one.is_given and all(len(list(value.uses)) == known for value, known in one.uses.items())
        if is_free and one.makers and one.readers:
            yield ChannelSet(shape_of(next(iter(one.uses)).type)[-1], one.makers, one.readers)


class _Classes:
    """Classes of tensors, merged as ops are added."""

    def __init__(self) -> None:
        self._of: dict[ir.Value, _Class] = {}

    def distinct(self) -> list[_Class]:
        """Every class once."""
        return list({id(one): one for one in self._of.values()}.values())

    def add(self, op: ir.OpView) -> None:
        """Merge what `op` links; nothing else is known of its operands and results."""
        if isinstance(op, Contraction):
            self._add_contraction(op)
        elif (linked := _linked(op)) is not None:
            operands, output = linked
            self._merge(operands, output)
        else:
            for value in op.operation.results:
                self._class_of(value).is_given = True

    def _add_contraction(self, op: Contraction) -> None:
        output, residual = (
            op.operation.results[0],
            op.residual if isinstance(op, qnn.FusedConv2DOp | qnn.FusedDenseOp) else None,
        )
        made = self._merge([residual] if residual is not None else [], output)
        if not has_constants(op):
            made.is_given = True
        elif is_depthwise(op):
            made = self._merge([op.data], output)
            made.makers.append(op)
        elif _groups(op) == 1:
            made.makers.append(op)
            read = self._class_of(op.data)
            read.readers.append(op)
            read.uses[op.data] += 1
        else:
            made.is_given = True

    def _merge(self, operands: Sequence[ir.Value], output: ir.Value) -> _Class:
        """The one class of `operands`, each used once, and of `output`."""
        merged = self._class_of(output)
        for value in operands:
            other = self._class_of(value)
            other.uses[value] += 1
            if other is merged:
                continue
            merged.makers += other.makers
            merged.readers += other.readers
            merged.uses |= other.uses
            merged.is_given |= other.is_given
            self._of.update(dict.fromkeys(other.uses, merged))
        return merged

    def _class_of(self, value: ir.Value) -> _Class:
        if value not in self._of:
            self._of[value] = _Class(uses={value: 0}, is_given=isinstance(value.owner, ir.Block))
        return self._of[value]


def is_depthwise(op: Contraction) -> bool:
    """Whether every output channel is the one filter of an input channel."""
    shapes = [shape_of(value.type)[-1] for value in (op.data, op.operation.results[0])]
    return _groups(op) > 1 and shapes == [_groups(op)] * 2


def has_constants(op: Contraction) -> bool:
    """Whether weights and bias are known."""
    operands = [op.weight, *([op.bias] if op.bias is not None else [])]
    return all(constant_value(value) is not None for value in operands)


def _groups(op: Contraction) -> int:
    return op.groups if isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp) else 1


def _linked(op: ir.OpView) -> tuple[list[ir.Value], ir.Value] | None:
    """Operands and result of an op that computes each channel from the same channel of its operands."""
    operands, results = list(op.operation.operands), list(op.operation.results)
    if isinstance(op, _FUNCTIONS) or (isinstance(op, qnn.MeanOp) and len(shape_of(op.input.type)) - 1 not in op.axes):
        return operands[:1], results[0]
    if not isinstance(op, BinaryOp):
        return None
    tensors = [value for value in operands if constant_value(value) is None]
    channels = shape_of(results[0].type)[-1:]
    known = [value for value in operands if value not in tensors]
    is_alike = all(shape_of(value.type)[-1:] == channels for value in tensors)
    is_shared = all(shape_of(value.type)[-1:] in ((), (1,)) for value in known)
    return (tensors, results[0]) if channels and is_alike and is_shared else None


# An order of channels in which the weights of neighbours keep the bound of products that are summed in pairs.
#
# Two channels conflict where any filter has weights of them at one tap that exceed the bound of `register_tiles`.
# Channels without a conflict are the edges of a graph, and a matching of it is an order: the two of each edge become
# neighbours.  It is found by a greedy search, the channels with the fewest partners first, and augmented by paths of
# three edges, which leaves few channels over where each has several partners.

_FEW_PARTNERS = 4
"""Partners of a channel on average, below which many find none."""
_BETWEEN_CHECKS = 16
"""Filters."""
_K_GROUP = 4


def _conflicts(filters: Iterable[NDArray[np.int16]], channels: int) -> NDArray[np.bool_] | None:
    """Which channels conflict, bool[channels, channels], for filters of int16[taps, channels]; None if nearly all."""
    found = np.zeros((channels, channels), np.bool_)
    for index, taps in enumerate(filters):
        _mark(found, taps.clip(min=0))
        _mark(found, (-taps).clip(min=0))
        if index % _BETWEEN_CHECKS == 0 and (~found).sum() < _FEW_PARTNERS * channels:
            return None
    return found | found.T


def _mark(found: NDArray[np.bool_], magnitudes: NDArray[np.int16]) -> None:
    # One of two that exceed the bound exceeds half of it.
    for row in magnitudes[magnitudes.max(axis=1) > LARGEST_PAIR // 2]:
        large = np.flatnonzero(row > LARGEST_PAIR // 2)
        found[large] |= row > (LARGEST_PAIR - row[large])[:, None]


def _paired_order(conflict: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The channels in an order with fewer K groups that have a conflict than there are; None where it has not fewer.

    `conflict` is symmetric, bool[channels, channels] of an even number.
    """
    own = np.arange(len(conflict))
    now = _conflicting_k_groups(conflict, own)
    if not now:
        return None
    mates = _matching(~conflict & ~np.eye(len(conflict), dtype=np.bool_))
    firsts = np.flatnonzero(mates > own)
    # Those without a partner stand together, so that few K groups have them.
    order = np.concatenate([np.stack([firsts, mates[firsts]], axis=-1).ravel(), np.flatnonzero(mates < 0)])
    return order if _conflicting_k_groups(conflict, order) < now else None


def _conflicting_k_groups(conflict: NDArray[np.bool_], order: NDArray[Any]) -> int:
    pairs = conflict[order[0::2], order[1::2]]
    return int(np.pad(pairs, (0, len(pairs) % 2)).reshape(-1, _K_GROUP // 2).any(axis=-1).sum())


def _matching(fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The partner of each channel, -1 for those without one."""
    mates = np.full(len(fits), -1, np.int64)
    partners = fits.sum(axis=1)
    for channel in np.argsort(partners, kind="stable").tolist():
        free = np.flatnonzero(fits[channel] & (mates < 0))
        if mates[channel] < 0 and free.size:
            _join(mates, channel, int(free[np.argmin(partners[free])]))
    for channel in np.flatnonzero(mates < 0).tolist():
        if mates[channel] < 0:
            _augment(fits, mates, channel)
    return mates


def _augment(fits: NDArray[np.bool_], mates: NDArray[np.int64], channel: int) -> None:
    """Pair `channel` and another one that is left with the two of a pair, if both pairs fit."""
    matched = np.flatnonzero(mates >= 0)
    for other in np.flatnonzero(mates < 0).tolist():
        between = matched[fits[channel, matched] & fits[other, mates[matched]]]
        if other != channel and between.size:
            first = int(between[0])
            _join(mates, other, int(mates[first]))
            _join(mates, channel, first)
            return


def _join(mates: NDArray[np.int64], first: int, second: int) -> None:
    mates[first], mates[second] = second, first
