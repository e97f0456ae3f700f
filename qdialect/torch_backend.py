"""``torch.compile(model, backend="qdialect")`` for models that PT2E converted.

The entry point ``torch_dynamo_backends`` names `compile_captured`; in a checkout that is not installed, pass the
function itself as the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.reader import captured_inputs, read_captured

_NAME = "torch.compile"


def compile_captured(module: Any, examples: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
    """A function of tensors that computes what a graph captured by Dynamo does, for inference on the CPU.

    QuantParams and buffers are constants with the values they have now.  Shapes are those of `examples`: where Dynamo
    leaves an extent open, it becomes the one of this call, and another extent compiles once more.  Contiguous inputs
    are read where they lie.

    Raises `ImportModelError` for a graph with nodes that the dialect cannot express, every one a note, and for inputs
    that are not on the CPU; `CompileError` for a module that cannot be lowered.
    """
    # What compiles is loaded when it is used.
    from qdialect.runtime import compile_module

    for example in examples:
        device = str(getattr(example, "device", "cpu"))
        if device != "cpu":
            raise ImportModelError(f"tensors must be on the cpu, but got one on {device}")
    graph = read_captured(module, examples)
    executable = compile_module(import_graph(graph, _NAME))
    positions = captured_inputs(module, graph)
    from_numpy: Callable[[Any], Any] = import_module("torch").from_numpy

    def call(*arguments: Any) -> tuple[Any, ...]:
        results = executable(*(arguments[position].detach().numpy() for position in positions))
        return tuple(from_numpy(result) for result in (results if isinstance(results, tuple) else (results,)))

    return call
