"""ONNX Runtime's CPU provider, on one thread."""

from __future__ import annotations

from qdialect.bench.cases import foreign
from tools.record.family import Array

_ERRORS_ONLY = 3


def optimized(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs with all graph optimizations, which is the default."""
    return _run(model, inputs, "ORT_ENABLE_ALL")


def unoptimized(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs with graph optimizations disabled: quantized values become f32 numbers wherever the model says so."""
    return _run(model, inputs, "ORT_DISABLE_ALL")


def _run(model: bytes, inputs: tuple[Array, ...], level: str) -> tuple[Array, ...]:
    package = foreign("onnxruntime")
    package.set_default_logger_severity(_ERRORS_ONLY)
    options = package.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.graph_optimization_level = getattr(package.GraphOptimizationLevel, level)
    session = package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    return tuple(session.run(None, dict(zip(names, inputs, strict=True))))
