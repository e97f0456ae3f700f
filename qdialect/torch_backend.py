"""``torch.compile(model, backend="qdialect")`` for models that PT2E converted.

The entry point ``torch_dynamo_backends`` names `compile_captured`; in a checkout that is not installed, pass the
function itself as the backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qdialect.diagnostics import CompileError, ImportModelError
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.lowered import Lowered, lowered
from qdialect.frontends.torch.model import Graph
from qdialect.frontends.torch.reader import captured_inputs, captured_results, read_captured
from qdialect.late_imports import LATE_IMPORTS
from qdialect.torch_options import TorchOptions

if TYPE_CHECKING:
    from qdialect._mlir import ir
    from qdialect.frontends.torch.captured import Fused
    from qdialect.runtime import Executable

_NAME = "torch.compile"
Call = Callable[..., tuple[Any, ...]]


def compile_captured(module: Any, examples: Sequence[Any], *, options: Mapping[str, object] | None = None) -> Call:
    """A function of tensors that computes what a graph captured by Dynamo does, for inference on the CPU.

    Parameters and buffers are constants with the values they have now, but for those that the model writes to.  Shapes
    are those of `examples`: where Dynamo leaves an extent open, it becomes the one of this call, and another extent
    compiles once more.  Contiguous inputs are read where they lie.  What the model writes to its inputs is written to
    them, a result that is a view of an input is one, and other results have the strides that PyTorch gives them.
    Results have no gradients.

    Nodes that cannot be compiled are left to PyTorch's eager mode, by its own partitioner, and a `FallbackWarning` says
    which; with the option ``{"fallback": "framework"}`` it is silent.  With ``"none"`` such a graph is refused.  A
    graph that trains, and one with an input that requires a gradient, is left to eager mode as a whole.  The option
    ``{"threads": 2}`` divides each call among so many threads, with the same result.  With ``{"cache": "off"}`` nothing
    is taken from the user's cache folder or kept there.

    Raises `InputError` for options that are unknown or of another value, `ImportModelError` for inputs that are not on
    the CPU and, without fallback, for a graph with nodes that the dialect cannot express, every one a note, and
    `CompileError` for a module that cannot be lowered.
    """
    wanted = TorchOptions.of(options or {})
    for example in examples:
        device = str(getattr(example, "device", "cpu"))
        if device != "cpu":
            raise ImportModelError(f"tensors must be on the cpu, but got one on {device}")
    try:
        graph = _for_inference(module, examples)
        return _compiled(graph, graph.wrapped.plain_constants(examples), wanted)
    except (ImportModelError, CompileError) as error:
        if wanted.fallback == "none":
            raise
        if wanted.fallback is None:
            _warn(f"PyTorch runs the whole graph: {error.message}")
        return module.forward


def _for_inference(module: Any, examples: Sequence[Any]) -> Lowered:
    """The graph in registered operators; raises `ImportModelError` for one that is not for inference."""
    is_static: Callable[[Any], object] = import_module("torch._dynamo.utils").get_static_address_type
    is_recorded: bool = import_module("torch").is_grad_enabled()
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    for name, example in zip(names, examples, strict=True):
        if is_recorded and getattr(example, "requires_grad", False) and is_static(example) is None:
            raise ImportModelError(f"input '{name}' must not require a gradient")
    graph = lowered(module, examples)
    if graph.training:
        raise ImportModelError(f"model must be in evaluation mode, but {graph.training}")
    return graph


def _warn(message: str) -> None:
    with LATE_IMPORTS:
        from qdialect.fallback import FallbackWarning

    warnings.warn(message, FallbackWarning, stacklevel=3)


def _compiled(graph: Lowered, examples: Sequence[Any], options: TorchOptions) -> Call:
    """The graph as compiled code, in parts where it has to be."""
    # What compiles is loaded when it is used.
    with LATE_IMPORTS:
        from qdialect.cache.networks import compile_kept
        from qdialect.cache.store import open_store

    store = open_store() if options.cache == "on" else None
    compiled = partial(compile_kept, target="host", threads=options.threads, store=store)
    read = read_captured(graph.module, examples, written=graph.written)
    try:
        run = _native(graph, read, compiled(import_graph(read, _NAME)))
    except (ImportModelError, CompileError):
        if options.fallback == "none":
            raise
        run = _partitioned(graph, examples, compiled, is_silent=options.fallback == "framework")
    no_grad: Callable[[], AbstractContextManager[None]] = import_module("torch").no_grad

    def call(*arguments: Any) -> tuple[Any, ...]:
        plain = graph.wrapped.plain(arguments)
        with no_grad():
            return graph.finish(run(*plain), plain)

    return call


def _native(graph: Lowered, read: Graph, executable: Executable) -> Call:
    """Compiled code alone, on the arguments of the captured graph."""
    positions, given = captured_inputs(graph.module, read), captured_results(graph.module)
    from_numpy: Callable[[Any], Any] = import_module("torch").from_numpy

    def call(*arguments: Any) -> tuple[Any, ...]:
        found = executable(*(arguments[position].detach().numpy() for position in positions))
        results = iter(found if isinstance(found, tuple) else (found,))
        return tuple(from_numpy(next(results)) if one is ... else one for one in given)

    return call


def _partitioned(
    graph: Lowered, examples: Sequence[Any], compiled: Callable[[ir.Module], Executable], *, is_silent: bool
) -> Call:
    """The captured graph with compiled regions in it."""
    with LATE_IMPORTS:
        from qdialect.fallback import captured_summary
        from qdialect.frontends.torch.captured import CapturedDivision

    captured = CapturedDivision(graph, examples, compiled)
    for fused in captured.fuse():
        setattr(captured.module, fused.name, _region_module(fused))
    if not is_silent:
        _warn(captured_summary(captured.division, captured.reasons))
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
