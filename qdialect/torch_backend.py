"""``torch.compile(model, backend="qdialect")`` for models that PT2E converted.

The entry point ``torch_dynamo_backends`` names `compile_captured`; in a checkout that is not installed, pass the
function itself as the backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qdialect.diagnostics import CompileError, ImportModelError
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.lowered import lowered
from qdialect.frontends.torch.reader import captured_inputs, captured_results, read_captured
from qdialect.late_imports import LATE_IMPORTS

if TYPE_CHECKING:
    from qdialect._mlir import ir
    from qdialect.frontends.torch.captured import Fused
    from qdialect.runtime import Executable

_NAME = "torch.compile"
Call = Callable[..., tuple[Any, ...]]


def compile_captured(module: Any, examples: Sequence[Any], *, options: Mapping[str, str] | None = None) -> Call:
    """A function of tensors that computes what a graph captured by Dynamo does, for inference on the CPU.

    Parameters and buffers are constants with the values they have now.  Shapes are those of `examples`: where Dynamo
    leaves an extent open, it becomes the one of this call, and another extent compiles once more.  Contiguous inputs
    are read where they lie.

    Nodes that cannot be compiled are left to PyTorch's eager mode, by its own partitioner, and a `FallbackWarning` says
    which; with the option ``{"fallback": "framework"}`` it is silent.  With ``"none"`` such a graph is refused.  With
    ``{"cache": "off"}`` nothing is taken from the user's cache folder or kept there.

    Raises `ImportModelError` for inputs that are not on the CPU and, without fallback, for a graph with nodes that the
    dialect cannot express, every one a note; `CompileError` for a module that cannot be lowered.
    """
    # What compiles is loaded when it is used.
    with LATE_IMPORTS:
        from qdialect.cache.networks import compile_kept
        from qdialect.cache.store import open_store

    for example in examples:
        device = str(getattr(example, "device", "cpu"))
        if device != "cpu":
            raise ImportModelError(f"tensors must be on the cpu, but got one on {device}")
    fallback = (options or {}).get("fallback")
    store = open_store() if (options or {}).get("cache") != "off" else None

    def compiled(module: ir.Module) -> Executable:
        return compile_kept(module, target="host", threads=1, store=store)

    module = lowered(module, examples)
    graph = read_captured(module, examples)
    try:
        executable = compiled(import_graph(graph, _NAME))
    except (ImportModelError, CompileError):
        if fallback == "none":
            raise
        return _partitioned(module, examples, compiled, is_silent=fallback == "framework")
    positions, given = captured_inputs(module, graph), captured_results(module)
    from_numpy: Callable[[Any], Any] = import_module("torch").from_numpy

    def call(*arguments: Any) -> tuple[Any, ...]:
        found = executable(*(arguments[position].detach().numpy() for position in positions))
        results = iter(found if isinstance(found, tuple) else (found,))
        return tuple(from_numpy(next(results)) if one is ... else one for one in given)

    return call


def _partitioned(
    module: Any, examples: Sequence[Any], compiled: Callable[[ir.Module], Executable], *, is_silent: bool
) -> Call:
    """The captured graph with compiled regions in it."""
    with LATE_IMPORTS:
        from qdialect.fallback import FallbackWarning, captured_summary
        from qdialect.frontends.torch.captured import CapturedDivision

    captured = CapturedDivision(module, examples, compiled)
    for fused in captured.fuse():
        setattr(captured.module, fused.name, _region_module(fused))
    if not is_silent:
        warnings.warn(captured_summary(captured.division, captured.reasons), FallbackWarning, stacklevel=2)
    return captured.module.forward


def _region_module(fused: Fused[Executable]) -> Any:
    """A module of PyTorch that calls a compiled region, with the arguments and results of the one that it replaces."""
    torch: Any = import_module("torch")
    executable = fused.compiled
    positions = [fused.arguments.index(port.name) for port in executable.inputs]
    order = [[port.name for port in executable.outputs].index(name) for name in fused.results]

    class Region(torch.nn.Module):
        def forward(self, *arguments: Any) -> Any:
            found = executable(*(arguments[position].detach().numpy() for position in positions))
            results = found if isinstance(found, tuple) else (found,)
            given = tuple(torch.from_numpy(results[index]) for index in order)
            return given[0] if len(given) == 1 else given

    return Region()
