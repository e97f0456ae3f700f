"""Reductions that answer with something else than a mean: where the largest code of each row is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.attribute_kinds import BOOL, I64
from qdialect.dialect.constraints import check_axis
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape
from qdialect.dialect.type_constraints import EIGHT_BIT, INDEX


class ArgOp(QnnOp):
    """Where along `axis` an extreme code is; codes compare as the numbers they stand for, so no parameters enter."""

    input = operand(EIGHT_BIT)
    axis = attribute(I64)
    keep_dims = attribute(BOOL, False)
    last = attribute(BOOL, False)
    output = result(INDEX)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        axis: int = attributes["axis"]
        check_axis("C1", axis, shapes[0])
        kept = (1,) if attributes["keep_dims"] else ()
        return (*shapes[0][:axis], *kept, *shapes[0][axis + 1 :])


class ArgMaxOp(ArgOp, name="arg_max"):
    """Index along `axis` of the largest code; of equal ones the first, or the last with `last`.

    Constraints:
      C1: axis must name a dimension of the input
    """


class ArgMinOp(ArgOp, name="arg_min"):
    """Index along `axis` of the smallest code; of equal ones the first, or the last with `last`.

    Constraints:
      C1: axis must name a dimension of the input
    """
