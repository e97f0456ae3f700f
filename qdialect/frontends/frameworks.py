"""The frameworks that run uncompiled parts: each an optional package, loaded when it is needed.

Each runs its own operators alone: no delegate and no library of custom operators is ever loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdialect.support.diagnostics import ImportModelError, InputError

if TYPE_CHECKING:
    import onnx


# A framework as an optional package.


@dataclass(frozen=True)
class Framework:
    """`name` is what messages call it, `package` the module that is imported."""

    name: str
    package: str

    def is_installed(self) -> bool:
        """Whether the package is there; it is not loaded."""
        return find_spec(self.package.partition(".")[0]) is not None

    def load(self) -> Any:
        """The module; raises `ImportModelError` where it cannot be imported."""
        try:
            return import_module(self.package)
        except ImportError as error:
            raise ImportModelError(f"{self.name} cannot be loaded: {error}; {self.hint}") from error

    @property
    def hint(self) -> str:
        """The package to install."""
        return f"the extra 'fallback' brings {self.name}: pip install 'qdialect[fallback]'"


# ONNX Runtime on the CPU, with its own operators alone: no library of custom operators is ever loaded.

Array = NDArray[Any]

ONNX_RUNTIME = Framework("ONNX Runtime", "onnxruntime")
_ERRORS_ONLY = 3


def load_onnx_runtime(
    content: bytes, inputs: Sequence[str], outputs: Sequence[str], threads: int
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A model as a function of its inputs, by name; arrays are read and given where they lie.

    Sums of two products of bytes do not saturate on CPUs without VNNI, where ONNX Runtime can avoid it. A model that
    only its optimizer fails on runs as it is written.  Raises `ImportModelError` for one that ONNX Runtime
    does not take. The function raises `InputError` where it fails.
    """
    session = _first_session(content, threads)
    names = list(outputs)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        try:
            return session.run(names, dict(zip(inputs, arrays, strict=True)))
        except Exception as error:
            raise InputError(f"{ONNX_RUNTIME.name} cannot run its part of the model: {_reason(error)}") from error

    return call


def _first_session(content: bytes, threads: int) -> Any:
    """The first that is taken: without saturation (not where several nodes read a weight), optimized, as written."""
    try:
        return _session(content, threads, is_exact=True)
    except ImportModelError:
        pass
    try:
        return _session(content, threads)
    except ImportModelError as error:
        refusal = error
    try:
        session = _session(content, threads, is_optimized=False)
    except ImportModelError:
        raise refusal from None
    getLogger("qdialect").info("ONNX Runtime runs its part of the model without optimization: %s", refusal.message)
    return session


def onnx_runtime_types(content: Callable[[], bytes]) -> list[onnx.ValueInfoProto]:
    """Types and shapes of all outputs of a model as ONNX Runtime infers them; empty for a model that it refuses."""
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
    """Those of `names` that are known to have no dimension: ONNX Runtime reports the same for an unknown rank.

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


def _session(content: bytes, threads: int, *, is_optimized: bool = True, is_exact: bool = False) -> Any:
    package = ONNX_RUNTIME.load()
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.x64quantprecision", str(int(is_exact)))
    levels = package.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_optimized else levels.ORT_DISABLE_ALL
    try:
        return package.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # Its exceptions have no base of their own.
    except Exception as error:
        raise ImportModelError(f"{ONNX_RUNTIME.name} does not take it: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())


# LiteRT's interpreter, with its own operators alone: no delegate or library of custom operators is ever loaded.
#
# Among its own are the custom operators that it registers itself, such as ``TFLite_Detection_PostProcess``.

LITERT = Framework("LiteRT", "ai_edge_litert.interpreter")
_SCHEMA = "ai_edge_litert.schema_py_generated"


def litert_schema() -> Any:
    """The classes of the flatbuffer schema, those that write among them."""
    LITERT.load()
    return import_module(_SCHEMA)


def load_litert(
    content: bytes, threads: int, *, is_reference: bool, needs_delegate: bool = False
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A model as a function of its inputs, in its order; with `is_reference` by the reference kernels.

    Else it is run as LiteRT runs it by default, by XNNPACK's delegate where that takes operators, or without it where
    it fails, unless the model `needs_delegate`.

    Raises `ImportModelError` for a model that LiteRT does not take. The function raises `InputError` where it fails.
    """
    kinds = LITERT.load().OpResolverType
    try:
        interpreter = _interpreter(content, threads, kinds.BUILTIN_REF if is_reference else kinds.AUTO)
    except ImportModelError:
        if is_reference or needs_delegate:
            raise
        interpreter = _interpreter(content, threads, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    inputs = [details["index"] for details in interpreter.get_input_details()]
    outputs = [details["index"] for details in interpreter.get_output_details()]
    # An interpreter has one set of tensors.
    lock = Lock()

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        try:
            with lock:
                for index, array in zip(inputs, arrays, strict=True):
                    interpreter.set_tensor(index, np.asarray(array, order="C"))
                # Operators with state start anew in each call.
                interpreter.reset_all_variables()
                interpreter.invoke()
                return [interpreter.get_tensor(index) for index in outputs]
        except Exception as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{LITERT.name} cannot run its part of the model: {reason}") from error

    return call


def _interpreter(content: bytes, threads: int, resolver: Any) -> Any:
    package = LITERT.load()
    try:
        interpreter = package.Interpreter(
            model_content=content, num_threads=threads, experimental_op_resolver_type=resolver
        )
        interpreter.allocate_tensors()
    # Its exceptions have no base of their own.
    except Exception as error:
        raise ImportModelError(f"{LITERT.name} does not take it: {' '.join(str(error).split())}") from error
    return interpreter


# PyTorch's own operators, one after the other.

PYTORCH = Framework("PyTorch", "torch")
