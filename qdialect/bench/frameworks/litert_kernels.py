"""LiteRT's interpreter with its own kernels alone, without the delegate that it would take."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.bench.frameworks.runner import Array, Runner, imported

PACKAGE = "ai_edge_litert.interpreter"


def load(content: bytes, *, is_reference: bool) -> Runner:
    """A model by the reference kernels, or by the optimized ones; raises `ValueError` where one is missing."""
    package = imported(PACKAGE)
    kinds = package.OpResolverType
    kind = kinds.BUILTIN_REF if is_reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = package.Interpreter(model_content=content, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    sources = [details["index"] for details in interpreter.get_input_details()]
    results = [details["index"] for details in interpreter.get_output_details()]

    def run(inputs: Sequence[Array]) -> list[Array]:
        for index, array in zip(sources, inputs, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.reset_all_variables()
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in results]

    return run
