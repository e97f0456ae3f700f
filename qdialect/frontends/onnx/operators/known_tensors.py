"""EyeLike, Compress and Range: what depends on a shape, or on something that is known when the model is read."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.model import element_name
from qdialect.frontends.onnx.operators.data_movement import moved, normalized_axes
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.movement import Gathering, Reshaping, move
from qdialect.frontends.planning.plain import element_type
from qdialect.frontends.planning.tensors import Constant, Tensor


@imports("EyeLike")
def _eye_like(call: Call) -> Tensor:
    """Ones on the k-th diagonal of a matrix that is as large as input 0."""
    call.count(1)
    shape = call.tensor(0).shape
    require(len(shape) == 2, f"input must have 2 dimensions, but got {len(shape)}")
    given = call.attribute("dtype", 0)
    element = element_name(given) if given else element_type(call.tensor(0))
    require(element in NUMPY_DTYPES, f"dtype must be one of {', '.join(NUMPY_DTYPES)}, but is {element}")
    diagonal = min(max(call.attribute("k", 0), -shape[0]), shape[1])
    call.plan.budget.spend_constant(shape, NUMPY_DTYPES[element].itemsize)
    return Constant(np.eye(*shape, k=diagonal, dtype=NUMPY_DTYPES[element]))


@imports("Compress")
def _compress(call: Call) -> Tensor:
    """The elements along an axis, or of all, for which a known condition holds."""
    call.count(2)
    condition, source = call.constant(1), call.tensor(0)
    require(condition.dtype == np.bool_, f"condition must be i1, but got {condition.dtype}")
    axis = 0
    if "axis" in call.node.attributes:
        (axis,) = normalized_axes([call.attribute("axis", 0)], len(source.shape))
    else:
        source = moved(call, Reshaping((math.prod(source.shape),)))
    extent, indices = source.shape[axis], np.flatnonzero(condition.ravel())
    require(condition.size <= extent, f"condition must have at most {extent} entries, but got {condition.size}")
    require(indices.size >= 1, "condition must hold for at least 1 element")
    call.plan.budget.spend_indices(indices.size)
    return move(call.plan, call.name, source, Gathering.of(source.shape, axis, indices.tolist()))


@imports("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Range")
def _evaluated(call: Call) -> Tensor:
    """Evaluated when the model is read: what comes here reads something that is not known then."""
    for index in range(len(call.inputs)):
        call.constant(index)
    raise UnsupportedError(f"must have 1 output, but got {len(call.node.outputs)}")
