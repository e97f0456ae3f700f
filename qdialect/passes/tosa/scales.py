"""A scale for every value of a function, such that the multipliers of its sums are ratios of scales.

Data movement keeps a scale, a sum of quantized values fixes the ratios of three, and contractions and other rescales
fix none: their weights' scales take what is left.  So scales spread along sums and data movement from the values whose
types or interfaces give one, and from any value where none does.  Where two contradict each other the first counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import is_scale
from qdialect.passes.quant_types import parameters_of
from qdialect.passes.tosa.binary import Sum, sum_of
from qdialect.passes.tosa.conversion import Conversion

_KEEPS_SCALE = (
    "tosa.avg_pool2d",
    "tosa.cast",
    "tosa.clamp",
    "tosa.concat",
    "tosa.identity",
    "tosa.max_pool2d",
    "tosa.pad",
    "tosa.reduce_max",
    "tosa.reduce_min",
    "tosa.reshape",
    "tosa.reverse",
    "tosa.slice",
    "tosa.tile",
    "tosa.transpose",
)

_Links = dict[ir.Value, list[tuple[ir.Value, float]]]


def give_scales(conversion: Conversion, function: ir.Operation) -> None:
    """Tell `conversion` the scale of every value of `function` that is linked to another or has a known one."""
    block = function.regions[0].blocks[0]
    links: _Links = {}
    for op in block.operations:
        for one, other, ratio in _linked(conversion, op.operation):
            links.setdefault(one, []).append((other, ratio))
            links.setdefault(other, []).append((one, 1 / ratio))
    known = dict(_known(function))
    for value, scale in [*known.items(), *((value, 1.0) for value in links)]:
        _spread(conversion, links, value, scale)


def _spread(conversion: Conversion, links: _Links, start: ir.Value, scale: float) -> None:
    pending = [(start, scale)]
    while pending:
        value, found = pending.pop()
        if value in conversion.scales or not is_scale(found):
            continue
        conversion.scales[value] = found
        pending += [(other, found * ratio) for other, ratio in links.get(value, ())]


def _linked(conversion: Conversion, op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value, float]]:
    """Pairs of values with the ratio of the second's scale to the first's."""
    if op.name in _KEEPS_SCALE:
        operands = list(op.operands) if op.name == "tosa.concat" else [op.operands[0]]
        for operand in operands:
            yield operand, op.results[0], 1.0
    found = sum_of(conversion, op) if op.name == "tosa.rescale" else None
    if isinstance(found, Sum):
        yield found.lhs, found.rhs, found.rhs_multiplier / found.lhs_multiplier
        yield found.lhs, op.results[0], 1 / (found.lhs_multiplier * found.scaling.multipliers[0])


def _known(function: ir.Operation) -> Iterator[tuple[ir.Value, float]]:
    block = function.regions[0].blocks[0]
    *body, last = [op.operation for op in block.operations]
    for name, values in (("arg_attrs", list(block.arguments)), ("res_attrs", list(last.operands))):
        noted = list(ir.ArrayAttr(function.attributes[name])) if name in function.attributes else []
        # Without notes there are no pairs.
        for value, attributes in zip(values, map(ir.DictAttr, noted), strict=False):
            if "qnn.scale" in attributes:
                yield value, ir.FloatAttr(attributes["qnn.scale"]).value
    for value in (*block.arguments, *(result for op in body for result in op.results)):
        parameters = parameters_of(value.type)
        if parameters is not None:
            yield value, parameters.scale
