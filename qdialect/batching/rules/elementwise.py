"""Functions of one element each, whose operands broadcast as in NumPy where their op allows it."""

from __future__ import annotations

from qdialect.batching.site import RULES, Site
from qdialect.dialect import QnnOp
from qdialect.dialect.elementwise_ops import BinaryOp, ClipOp
from qdialect.dialect.fixed_point_ops import FixedPointFunctionOp
from qdialect.dialect.i16_ops import I16RequantizeOp
from qdialect.dialect.interpolation_ops import InterpolatedLutOp
from qdialect.dialect.op_base import Qnn
from qdialect.dialect.quantize_ops import DequantizeOp, QuantizeOp, RequantizeOp
from qdialect.dialect.range_ops import RangeOp
from qdialect.dialect.unary_ops import EightBitFunction
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS


def _names(*bases: type[QnnOp]) -> list[str]:
    """The ops that are of one of these classes."""
    return [op.OPERATION_NAME for op in Qnn.operations if issubclass(op, bases)]


@RULES.register(*_names(BinaryOp, ClipOp, EightBitFunction, FixedPointFunctionOp, InterpolatedLutOp))
def broadcasting(site: Site) -> int:
    """Operands are aligned at the last dimension; those of extent 1 are repeated."""
    rank = len(site.result)
    pairs = list(zip(site.axes, site.shapes, strict=True))
    found = {axis + rank - len(shape) for axis, shape in pairs if axis is not None}
    if len(found) > 1:
        site.refuse("its operands have the batch in different dimensions")
    axis = found.pop()
    for index, (own, shape) in enumerate(pairs):
        at = axis - rank + len(shape)
        if own is not None and shape[at] != site.result[axis]:
            site.refuse(f"operand {index} is repeated along dimension {at}, which has the batch")
        if own is None and at >= 0 and shape[at] > 1:
            site.grown[index] = at
    return axis


@RULES.register(*SCALAR_OPS, *_names(RangeOp))
def of_one_shape(site: Site) -> int:
    """All operands have the shape of the result."""
    axis = next(axis for axis in site.axes if axis is not None)
    for index, own in enumerate(site.axes):
        if own is None:
            site.grown[index] = axis
        elif own != axis:
            site.refuse("its operands have the batch in different dimensions")
    return axis


@RULES.register(*_names(QuantizeOp, DequantizeOp, RequantizeOp))
def of_channels(site: Site) -> int:
    """Parameters may differ along a dimension."""
    axis, values = site.first(), site.view.attribute_values()
    counts = [len(value) for name, value in values.items() if name.endswith(("scales", "zero_points"))]
    if max(counts) > 1:
        site.refuse_axis(axis, values["axis"], "its parameters differ along")
    return axis


@RULES.register(*_names(I16RequantizeOp))
def of_last_channels(site: Site) -> int:
    """Parameters may differ along the last dimension."""
    axis = site.first()
    if len(site.view.weight_scales) > 1:
        site.refuse_axis(axis, len(site.result) - 1, "its parameters differ along")
    return axis
