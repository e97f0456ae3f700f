"""A quantized ONNX graph in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from qdialect.bench.frameworks import Array, Runner, imported
from qdialect.bench.truth import NoTruthError
from qdialect.bench.truth.onnx_operators import OPERATORS


def load(path: str) -> Runner:
    """The model at `path`, whose outputs are float64; raises `NoTruthError` for an operator without an evaluator."""
    return in_double(imported("onnx").load(path))


def in_double(model: ModelProto) -> Runner:
    """The same of a model in memory, which is changed."""
    _widen(model)
    # Omitted outputs too: what the evaluator keeps under the empty name, it would give to omitted inputs.
    for index, node in enumerate(model.graph.node):
        for position, name in enumerate(node.output):
            node.output[position] = name or f"omitted.{index}.{position}"
    try:
        evaluator: Any = ReferenceEvaluator(model, new_ops=list(OPERATORS))
    # onnx names the operator that it lacks in errors of several kinds.
    except (NotImplementedError, RuntimeError, TypeError, ModuleNotFoundError) as error:
        raise NoTruthError(str(error).splitlines()[0]) from error
    names = [one.name for one in model.graph.input]

    def run(inputs: Sequence[Array]) -> list[Array]:
        found = evaluator.run(None, dict(zip(names, map(_wide, inputs), strict=True)))
        return [np.asarray(array, np.float64) for array in found]

    return run


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _widen(model: ModelProto) -> None:
    """Float32 constants as float64, so that NumPy's promotion keeps every intermediate value in float64."""
    for tensor in model.graph.initializer:
        _widen_tensor(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                _widen_tensor(attribute.t)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), name))
