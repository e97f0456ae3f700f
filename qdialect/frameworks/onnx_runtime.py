"""ONNX Runtime on the CPU, with its own operators alone: no library of custom operators is ever loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from qdialect.diagnostics import ImportModelError, InputError
from qdialect.frameworks.framework import Framework

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]

FRAMEWORK = Framework("ONNX Runtime", "onnxruntime")
_ERRORS_ONLY = 3


def load(
    content: bytes, inputs: Sequence[str], outputs: Sequence[str], threads: int
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A model as a function of its inputs, by name; arrays are read and given where they lie.

    Raises `ImportModelError` for a model that ONNX Runtime does not take. The function raises `InputError` where it
    fails.
    """
    session = _session(content, threads, is_optimized=True)
    names = list(outputs)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        try:
            return session.run(names, dict(zip(inputs, arrays, strict=True)))
        except Exception as error:
            raise InputError(f"{FRAMEWORK.name} cannot run its part of the model: {_reason(error)}") from error

    return call


def types(content: Callable[[], bytes]) -> list[onnx.ValueInfoProto]:
    """Types and shapes of all outputs of a model as ONNX Runtime infers them; none of one that it does not take."""
    from onnx import TensorProto, helper

    try:
        session = _session(content(), 1, is_optimized=False)
    except ImportModelError:
        return []
    numbers = {name.lower(): number for name, number in TensorProto.DataType.items()}
    found: list[onnx.ValueInfoProto] = []
    for node in session.get_outputs():
        held = str(node.type).removeprefix("tensor(").removesuffix(")")
        if held in numbers:
            found.append(helper.make_tensor_value_info(node.name, numbers[held], node.shape))
    return found


def _session(content: bytes, threads: int, *, is_optimized: bool) -> Any:
    package = FRAMEWORK.load()
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    levels = package.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_optimized else levels.ORT_DISABLE_ALL
    try:
        return package.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # Its exceptions have no base of their own.
    except Exception as error:
        raise ImportModelError(f"{FRAMEWORK.name} does not take it: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())
