"""LiteRT (the package ai-edge-litert) on one thread: its reference kernels and its default delegate, XNNPACK."""

from __future__ import annotations

from qdialect.bench.cases import foreign
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from tools.record.family import Array

# Operators without a reference kernel are recorded from the optimized built-in one.
_BUILT_IN_ONLY = {"ELU"}


def reference(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs of the reference kernels."""
    kinds = {operator.kind for operator in read_graph(model).operators}
    return _run(model, inputs, "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if kinds & _BUILT_IN_ONLY else "BUILTIN_REF")


def delegate(model: bytes, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Outputs with the XNNPACK delegate, which a desktop's interpreter applies by default."""
    return _run(model, inputs, "AUTO")


def _run(model: bytes, inputs: tuple[Array, ...], resolver: str) -> tuple[Array, ...]:
    package = foreign("ai_edge_litert.interpreter")
    kind = getattr(package.OpResolverType, resolver)
    interpreter = package.Interpreter(model_content=model, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return tuple(interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details())
