"""ONNX Runtime's CPU provider with all its optimizations, as it runs by default."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.bench.frameworks import Array, Runner, imported

_ERRORS_ONLY = 3


def load(path: str) -> Runner:
    """A session of the model."""
    return _load(path, "ORT_ENABLE_ALL")


def load_plain(path: str) -> Runner:
    """A session without graph optimizations: f32 arithmetic wherever the file has it."""
    return _load(path, "ORT_DISABLE_ALL")


def _load(path: str, level: str) -> Runner:
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
