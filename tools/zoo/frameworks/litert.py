"""LiteRT: its reference kernels for results, its default delegate for times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect.bench.engines.litert import LiteRtSession
from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.packages import imported

_PACKAGE = "ai_edge_litert.interpreter"


def load(path: str) -> Runner:
    """An interpreter of the model with the reference kernels."""
    package = imported(_PACKAGE)
    resolver = package.OpResolverType.BUILTIN_REF
    interpreter = package.Interpreter(path, experimental_op_resolver_type=resolver, num_threads=1)
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


def load_call(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """An interpreter with XNNPACK whose inputs are set."""
    del outputs
    return LiteRtSession(imported(_PACKAGE), path, inputs, 1).call
