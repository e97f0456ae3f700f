"""ONNX Runtime's CPU provider, on one thread."""

from __future__ import annotations

from qdialect.bench.frameworks import onnx_runtime_session
from tools.record.family import Array


def optimized(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs with all graph optimizations, which is the default."""
    return _run(model, inputs, is_optimized=True)


def unoptimized(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs with graph optimizations disabled: quantized values become f32 numbers wherever the model says so."""
    return _run(model, inputs, is_optimized=False)


def _run(model: bytes, inputs: tuple[Array, ...], *, is_optimized: bool) -> tuple[Array, ...]:
    session = onnx_runtime_session(model, is_optimized=is_optimized)
    names = [node.name for node in session.get_inputs()]
    return tuple(session.run(None, dict(zip(names, inputs, strict=True))))
