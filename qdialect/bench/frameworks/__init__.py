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
_ERRORS_ONLY = 3

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
        return _onnx_runtime(path, "ORT_ENABLE_ALL")
    module: Any = import_module(f"{__name__}.{name}")
    return module.load(path)


def load_plain(path: str, suffix: str) -> Runner | None:
    """The model without graph optimizations, f32 wherever the file has it; None if its framework has no such mode."""
    return _onnx_runtime(path, "ORT_DISABLE_ALL") if suffix == ".onnx" else None


def _onnx_runtime(path: str, level: str) -> Runner:
    """A session of ONNX Runtime's CPU provider."""
    package = imported("onnxruntime")
    package.set_default_logger_severity(_ERRORS_ONLY)
    options = package.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(package.GraphOptimizationLevel, level)
    session = package.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]

    def run(inputs: Sequence[Array]) -> list[Array]:
        return list(session.run(None, dict(zip(names, inputs, strict=True))))

    return run


def imported(name: str) -> Any:
    """A module of a package whose types are not known, by its dotted name; raises `ImportError` where it is absent."""
    return import_module(name)
