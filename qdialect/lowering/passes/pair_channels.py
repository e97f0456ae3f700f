"""`qnn-pair-channels`: channels inside of a network are reordered so that sums of two products fit 16 bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.channel_sets import ChannelSet, Contraction, channel_sets
from qdialect.lowering.functions import functions, has_body
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.operands.packing import center, clip_outliers
from qdialect.lowering.tiling.pair_order import conflicts, paired_order
from qdialect.passes.matching import producer, users
from qdialect.passes.outlined import is_handed_off
from qdialect.passes.pass_base import Pass
from qdialect.passes.registry import register

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
        own = [function for function in functions(module) if has_body(function) and not is_handed_off(function)]
        blocks = [block for function in own for block in function.regions[0].blocks]
        with module.context:
            for found in [one for block in blocks for one in channel_sets(block)]:
                order = _order_of(found)
                if order is not None:
                    _reorder(found, order)


def _order_of(found: ChannelSet) -> NDArray[np.int64] | None:
    """The order of the channels in which fewer K groups have a conflict; None where it is as good as it is."""
    readers = [op for op in found.readers if math.prod(shape_of(op.data.type)[:-1]) >= _FEWEST_PIXELS]
    fits = _FEWEST_CHANNELS <= found.channels <= _MOST_CHANNELS and found.channels % 2 == 0
    conflict = conflicts(_filters(readers), found.channels) if fits and readers else None
    return None if conflict is None else paired_order(conflict)


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
