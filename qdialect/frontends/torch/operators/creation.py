"""Tensors of one number, whose shape and type are those of another tensor or arguments: constants of the program.

Memory that PyTorch does not fill is zeros here.
"""

from __future__ import annotations

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.budget import check_shape
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant
from qdialect.frontends.torch.operators.plain import element_of_result
from qdialect.frontends.torch.operators.registry import Call, imports

_FORMS = ("{}_like", "new_{}")


@imports(*(f"{form.format(kind)}.default" for form in _FORMS for kind in ("zeros", "empty")), "zero.default")
@imports("empty.memory_format", "new_empty_strided.default", "empty_strided.default")
def _zeros(call: Call) -> Result:
    return _filled(call, 0)


@imports(*(f"{form.format('ones')}.default" for form in _FORMS))
def _ones(call: Call) -> Result:
    return _filled(call, 1)


@imports("full_like.default", "new_full.default")
def _full(call: Call) -> Result:
    return _filled(call, call.argument("fill_value"))


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
