"""Pow where a base or an exponent is integers; the exponent of integers must be known."""

from __future__ import annotations

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports_integers, value_of
from qdialect.frontends.planning.plain import common_element, tensor_of, unary
from qdialect.frontends.planning.tensors import Tensor
from qdialect.frontends.planning.whole_power import whole_power


@imports_integers("Pow")
def _power(call: Call) -> Tensor:
    """The type is that of the base; products wrap around."""
    call.count(2)
    value, exponent = value_of(call, 0), call.number(1)
    common_element([value], ("i32", "i64"))
    is_whole = exponent.is_integer() and 0 <= exponent < np.iinfo(np.int32).max
    require(is_whole, f"exponent of integers must be a whole number of at least 0, but got {exponent}")

    return tensor_of(unary(call, value, value.element, lambda s, x: whole_power(s, x, int(exponent))))
