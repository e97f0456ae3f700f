"""Float functions of transformers on rows of float32 numbers: F1 to F8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.transcendental import NUMPY
from qdialect.bench.cases import Case, Source, write_form
from qdialect.bench.onnx_writer import CONTRIB, GraphWriter
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, options

KIND = "function"
ROWS, COLUMNS = 64, 512
TOLERANCE = 4e-6
"""How far a number may be from the float64 answer, as a share of it or of 1, whichever is larger."""

_ALPHA, EPSILON = 1.702, 1e-5

F64 = NDArray[np.float64]
Parameters = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class FloatFunction:
    """A function in the words of ONNX, of TFLite where it has it, and of NumPy in float64."""

    operator: str
    answer: Callable[..., F64]
    attributes: Mapping[str, Any]
    parameters: int = 0
    """Vectors of numbers, one for each column, that are inputs of the operator."""
    builtin: int | None = None
    """Of `tflite.BuiltinOperator`."""
    options: tuple[int, Callable[[Builder], int] | None] = (tflite.BuiltinOptions.NONE, None)
    """Of `tflite.BuiltinOptions`, and what writes them."""


def _logistic(x: F64) -> F64:
    return 1 / (1 + np.exp(-x))


def softmax(x: F64) -> F64:
    """Along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def erf(x: F64) -> F64:
    """Of each number."""
    return transcendental.erf(NUMPY, x)


def _gelu(x: F64) -> F64:
    return x / 2 * (1 + erf(x * np.sqrt(0.5)))


def _quick_gelu(x: F64) -> F64:
    return x * _logistic(_ALPHA * x)


def normalized(x: F64, scale: NDArray[Any], bias: NDArray[Any]) -> F64:
    """LayerNormalization of the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + EPSILON) * scale + bias


FUNCTIONS: Mapping[str, FloatFunction] = {
    "F1": FloatFunction("Gelu", _gelu, {}, builtin=tflite.BuiltinOperator.GELU, options=options("GeluOptions")),
    "F2": FloatFunction("Erf", erf, {}),
    "F3": FloatFunction("Exp", np.exp, {}, builtin=tflite.BuiltinOperator.EXP),
    "F4": FloatFunction("Tanh", np.tanh, {}, builtin=tflite.BuiltinOperator.TANH),
    "F5": FloatFunction("Sigmoid", _logistic, {}, builtin=tflite.BuiltinOperator.LOGISTIC),
    "F6": FloatFunction(
        "Softmax",
        softmax,
        {"axis": -1},
        builtin=tflite.BuiltinOperator.SOFTMAX,
        options=options("SoftmaxOptions", Beta=1.0),
    ),
    "F7": FloatFunction(f"{CONTRIB}.QuickGelu", _quick_gelu, {"alpha": _ALPHA}),
    "F8": FloatFunction("LayerNormalization", normalized, {"axis": -1, "epsilon": EPSILON}, parameters=2),
}
"""By the name of the workload."""


def function_sources() -> list[Source]:
    """Each function of a tensor of `ROWS` x `COLUMNS`."""
    return [Source(name, KIND, partial(prepare, name, (ROWS, COLUMNS))) for name in FUNCTIONS]


def prepare(name: str, shape: tuple[int, int], folder: Path) -> Case:
    """Write the workload for a tensor of `shape` into `folder`."""
    function, rng = FUNCTIONS[name], np.random.default_rng(int(name[1:]))
    data = rng.normal(size=shape).astype(np.float32)
    parameters: Parameters = tuple(rng.normal(size=shape[1]).astype(np.float32) for _ in range(function.parameters))
    wanted = function.answer(*(array.astype(np.float64) for array in (data, *parameters))).astype(np.float32)
    files = {"function_onnx": ("onnx", write_onnx(function, shape, parameters))}
    if function.builtin is not None:
        files["function_tflite"] = ("tflite", _tflite(function, function.builtin, shape))
    forms = {
        form: write_form(folder / f"{name}_{form}.{suffix}", content, [data], [wanted])
        for form, (suffix, content) in files.items()
    }
    text = f"{function.operator.rpartition('.')[2]} of float32 {shape[0]} x {shape[1]}"
    return Case(name, KIND, text, 0, 2 * data.nbytes, 0, forms, tolerance=TOLERANCE)


def write_onnx(function: FloatFunction, shape: tuple[int, int], parameters: Parameters) -> bytes:
    """The function as a model of one node."""
    writer = GraphWriter()
    inputs = ["x", *(writer.constant(array) for array in parameters)]
    result = writer.node(function.operator, inputs, **function.attributes)
    return writer.model([("x", shape, "FLOAT")], [(result, shape, "FLOAT")], opset=20)


def _tflite(function: FloatFunction, builtin: int, shape: tuple[int, int]) -> bytes:
    writer = ModelWriter("float function")
    source, result = (writer.tensor(name, shape, np.float32) for name in ("x", "y"))
    writer.operator(builtin, [source], result, *function.options)
    return writer.finish([source], [result])
