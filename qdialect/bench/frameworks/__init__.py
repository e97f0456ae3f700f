"""The frameworks that a model's results are compared with, by the kind of its file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from qdialect.support.interface import Array

# Suffix: the framework whose model it is; those but ONNX Runtime are modules here.
OWN = {".onnx": "onnx_runtime", ".tflite": "litert", ".pt2": "pytorch"}
# Suffix: whose arithmetic results are compared in, where the default of a divided model is another.
PROFILES = {".tflite": "tflite"}
_FATAL_ONLY = 4

# A model in a framework, in a measurement.


Sample = tuple[Array, ...]
"""Inputs in the order of the model."""

Runner = Callable[[Sequence[Array]], list[Array]]
"""Inputs in the order of the model to its outputs."""


def load(name: str, path: str) -> Runner:
    """The model at `path` in the framework `name`, on one thread, set up for the results that count as its own.

    Raises `ImportError` where the framework is not installed, and whatever the framework raises for the model.
    """
    if name == OWN[".onnx"]:
        return _onnx_runtime(path, is_optimized=True)
    module: Any = import_module(f"{__name__}.{name}")
    return module.load(path)


def load_plain(path: str, suffix: str) -> Runner | None:
    """The model without graph optimizations, f32 wherever the file has it; None if its framework has no such mode."""
    return _onnx_runtime(path, is_optimized=False) if suffix == ".onnx" else None


def onnx_runtime_session(model: str | bytes, *, is_optimized: bool = True) -> Any:
    """A session of ONNX Runtime's CPU provider on one thread; raises whatever it raises for the model.

    On CPUs without VNNI its sums of two products of bytes saturate, unless it turns int8 weights to uint8. It cannot
    where several nodes read a weight.
    """
    package = imported("onnxruntime")
    package.set_default_logger_severity(_FATAL_ONLY)
    options = package.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    levels = package.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_optimized else levels.ORT_DISABLE_ALL
    try:
        options.add_session_config_entry("session.x64quantprecision", "1")
        return package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:
        options.add_session_config_entry("session.x64quantprecision", "0")
        return package.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _onnx_runtime(path: str, *, is_optimized: bool) -> Runner:
    session = onnx_runtime_session(path, is_optimized=is_optimized)
    names = [node.name for node in session.get_inputs()]

    def run(inputs: Sequence[Array]) -> list[Array]:
        return list(session.run(None, dict(zip(names, inputs, strict=True))))

    return run


def imported(name: str) -> Any:
    """A module of a package whose types are not known, by its dotted name; raises `ImportError` where it is absent."""
    return import_module(name)
