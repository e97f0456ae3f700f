"""``torch.compile(model, backend="qdialect")`` for models that PT2E converted.

The entry point ``torch_dynamo_backends`` names `compile_captured`; in a checkout that is not installed, pass the
function itself as the backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qdialect.diagnostics import CompileError, ImportModelError, InputError
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.lowered import lowered
from qdialect.frontends.torch.reader import captured_inputs, captured_results, read_captured
from qdialect.late_imports import LATE_IMPORTS
from qdialect.threads import checked

if TYPE_CHECKING:
    from qdialect.frontends.torch.captured import Fused
    from qdialect.runtime.executable import CompiledExecutable

_NAME = "torch.compile"
_OPTIONS = ("fallback", "threads")
Call = Callable[..., tuple[Any, ...]]


def compile_captured(module: Any, examples: Sequence[Any], *, options: Mapping[str, object] | None = None) -> Call:
    """A function of tensors that computes what a graph captured by Dynamo does, for inference on the CPU.

    Parameters and buffers are constants with the values they have now.  Shapes are those of `examples`: where Dynamo
    leaves an extent open, it becomes the one of this call, and another extent compiles once more.  Contiguous inputs
    are read where they lie.

    Nodes that cannot be compiled are left to PyTorch's eager mode, by its own partitioner, and a `FallbackWarning` says
    which; with the option ``{"fallback": "framework"}`` it is silent.  With ``"none"`` such a graph is refused.  The
    option ``{"threads": 2}`` divides each call among so many threads, with the same result.

    Raises `InputError` for options that are unknown or of another value, `ImportModelError` for inputs that are not on
    the CPU and, without fallback, for a graph with nodes that the dialect cannot express, every one a note;
    `CompileError` for a module that cannot be lowered.
    """
    # What compiles is loaded when it is used.
    with LATE_IMPORTS:
        from qdialect.runtime import compile_module

    for example in examples:
        device = str(getattr(example, "device", "cpu"))
        if device != "cpu":
            raise ImportModelError(f"tensors must be on the cpu, but got one on {device}")
    fallback, threads = _options(options or {})
    module = lowered(module, examples)
    graph = read_captured(module, examples)
    try:
        executable = compile_module(import_graph(graph, _NAME), threads=threads)
    except (ImportModelError, CompileError):
        if fallback == "none":
            raise
        return _partitioned(module, examples, threads, is_silent=fallback == "framework")
    positions, given = captured_inputs(module, graph), captured_results(module)
    from_numpy: Callable[[Any], Any] = import_module("torch").from_numpy

    def call(*arguments: Any) -> tuple[Any, ...]:
        found = executable(*(arguments[position].detach().numpy() for position in positions))
        results = iter(found if isinstance(found, tuple) else (found,))
        return tuple(from_numpy(next(results)) if one is ... else one for one in given)

    return call


def _options(options: Mapping[str, object]) -> tuple[object, int]:
    """The options ``fallback`` and ``threads``; raises `InputError` for others."""
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise InputError(f"options of torch.compile must be {' and '.join(_OPTIONS)}, but got {', '.join(unknown)}")
    fallback = options.get("fallback")
    if fallback not in (None, "framework", "none"):
        raise InputError(f"option 'fallback' must be 'framework' or 'none', but got {fallback!r}")
    return fallback, checked(options.get("threads", 1))


def _partitioned(module: Any, examples: Sequence[Any], threads: int, *, is_silent: bool) -> Call:
    """The captured graph with compiled regions in it."""
    with LATE_IMPORTS:
        from qdialect.fallback import FallbackWarning, captured_summary
        from qdialect.frontends.torch.captured import CapturedDivision
        from qdialect.runtime import compile_module

    captured = CapturedDivision(module, examples, partial(compile_module, threads=threads))
    for fused in captured.fuse():
        setattr(captured.module, fused.name, _region_module(fused))
    if not is_silent:
        warnings.warn(captured_summary(captured.division, captured.reasons), FallbackWarning, stacklevel=2)
    return captured.module.forward


def _region_module(fused: Fused[CompiledExecutable]) -> Any:
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
