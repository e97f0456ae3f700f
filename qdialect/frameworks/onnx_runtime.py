"""ONNX Runtime on the CPU, with its own operators alone: no library of custom operators is ever loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import getLogger
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

    A model that only its optimizer fails on runs as it is written.  Raises `ImportModelError` for one that ONNX Runtime
    does not take. The function raises `InputError` where it
    fails.
    """
    try:
        session = _session(content, threads, is_optimized=True)
    except ImportModelError as error:
        session = _unoptimized(content, threads, error)
    names = list(outputs)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        try:
            return session.run(names, dict(zip(inputs, arrays, strict=True)))
        except Exception as error:
            raise InputError(f"{FRAMEWORK.name} cannot run its part of the model: {_reason(error)}") from error

    return call


def _unoptimized(content: bytes, threads: int, error: ImportModelError) -> Any:
    """A session without optimization; raises `error` where there is none either."""
    try:
        session = _session(content, threads, is_optimized=False)
    except ImportModelError:
        raise error from None
    getLogger("qdialect").info("ONNX Runtime runs its part of the model without optimization: %s", error.message)
    return session


def types(content: Callable[[], bytes]) -> list[onnx.ValueInfoProto]:
    """Types and shapes of all outputs of a model as ONNX Runtime infers them; none of one that it does not take."""
    from onnx import TensorProto, helper

    try:
        whole = content()
        outputs = _session(whole, 1, is_optimized=False).get_outputs()
        scalars = _scalars(whole, [node.name for node in outputs if not node.shape])
    except ImportModelError:
        return []
    numbers = {name.lower(): number for name, number in TensorProto.DataType.items()}
    found: list[onnx.ValueInfoProto] = []
    for node in outputs:
        held = str(node.type).removeprefix("tensor(").removesuffix(")")
        if held in numbers:
            is_known = node.shape or node.name in scalars
            found.append(helper.make_tensor_value_info(node.name, numbers[held], node.shape if is_known else None))
    return found


def _scalars(content: bytes, names: Sequence[str]) -> set[str]:
    """Those of `names` that are known to have no dimension: ONNX Runtime says the same of an unknown rank.

    The shape of a scalar is a tensor without elements, that of another tensor a tensor of some elements.
    """
    import onnx

    if not names:
        return set()
    model = onnx.ModelProto()
    model.ParseFromString(content)
    shapes = {f"shape of {name}": name for name in names}
    for shape, name in shapes.items():
        model.graph.node.append(onnx.helper.make_node("Shape", [name], [shape]))
        model.graph.output.append(onnx.helper.make_tensor_value_info(shape, onnx.TensorProto.INT64, None))
    session = _session(model.SerializeToString(), 1, is_optimized=False)
    return {shapes[node.name] for node in session.get_outputs() if node.name in shapes and node.shape == [0]}


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
