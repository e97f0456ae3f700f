"""``torch.compile(model, backend="qdialect")`` for models that PT2E converted.

The entry point ``torch_dynamo_backends`` names `compile_captured`; in a checkout that is not installed, pass the
function itself as the backend.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from qdialect.driver.torch_constants import ConstantState
from qdialect.frontends.torch.importer import import_graph
from qdialect.frontends.torch.program.dynamo import Lowered, batch_inputs, lowered, open_extents, with_extents
from qdialect.frontends.torch.program.model import Graph
from qdialect.frontends.torch.program.pytorch_operators import first_line
from qdialect.frontends.torch.program.reader import captured_inputs, captured_results, read_captured
from qdialect.runtime.base import tensor_of
from qdialect.support.diagnostics import CompileError, ImportModelError, InputError
from qdialect.support.interface import BFLOAT16
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import using_jobs
from qdialect.support.options import CompileOptions

if TYPE_CHECKING:
    from qdialect.frontends.torch.division import Fused
    from qdialect.ir._mlir import ir
    from qdialect.runtime import Executable


_NAME = "torch.compile"
OPTIONS = ("fallback", "threads", "target", "tune", "cache", "jobs")
"""The options of `qdialect.compile` that a captured graph can have; the others are about files and shapes."""
_TUNED = "max-autotune"
_MAX_CHANGES = 3
"""How often a graph is compiled again for other values of its parameters, before PyTorch runs it."""
_MAX_EXTENTS = 8
"""The first so many extents of a graph are compiled when they return; the others are left to PyTorch."""
_LOGGER = logging.getLogger("qdialect")
Call = Callable[..., tuple[Any, ...]]
_Run = Callable[[Sequence[Any]], tuple[Any, ...]]
"""A call with its arguments as one sequence: of hundreds, each copy takes a microsecond."""


def compile_captured(
    module: Any, examples: Sequence[Any], *, options: Mapping[str, object] | None = None, mode: str | None = None
) -> Call:
    """A function of tensors that computes what a graph captured by Dynamo does, for inference on the CPU.

    Parameters and buffers are constants with the values they have now, but for those that the model writes to; where
    others are written to them, the graph is compiled again, and after three times left to eager mode.  A write through
    ``parameter.data``, which PyTorch does not count, is seen where it changes the middle of the tensor.  Shapes are
    those of `examples`.  Where Dynamo leaves extents open, other ones compile once more when they come again, and
    PyTorch runs calls with those that come once, as of a cache that grows.  Contiguous inputs are read where they lie.
    What the model writes to its inputs is written to them, a result that is a view of an input is one, and other
    results have the strides that PyTorch gives them.  Gradients of parameters are those of eager mode, which computes
    the graph once more for them.

    Nodes that cannot be compiled are left to PyTorch's eager mode, by its own partitioner, and a `FallbackWarning`
    lists them; with the option ``{"fallback": "framework"}`` it is silent.  With ``"none"`` such a graph is refused.  A
    graph that trains, and one with an input that requires a gradient, is left to eager mode as a whole.  `options` are
    those of `OPTIONS`, as `qdialect.compile` documents them, and the mode ``max-autotune`` is the option `tune`.

    Raises `InputError` for options and modes that are unknown or of another value, `ImportModelError` for inputs that
    are not on the CPU and, without fallback, for a graph with nodes that the dialect cannot express, every one a note,
    and `CompileError` for a module that cannot be lowered.
    """
    wanted = CompileOptions.of({**(options or {}), **_of_mode(mode)}, OPTIONS, _NAME)
    for example in examples:
        device = str(getattr(example, "device", "cpu"))
        if device != "cpu":
            raise ImportModelError(f"tensors must be on the cpu, but got one on {device}")
    try:
        return _captured(module, examples, wanted)
    except (ImportModelError, CompileError) as error:
        if wanted.fallback == "none":
            raise
        reason = error.message
    except Exception as error:
        # Dynamo would end the model for what is no fault of it.
        if wanted.fallback == "none":
            raise
        reason = f"internal error: {type(error).__name__}: {first_line(error)}"
        _LOGGER.warning(reason, exc_info=True)
    _tell(f"PyTorch runs the whole graph: {reason}", is_silent=wanted.fallback == "framework")
    return module.forward


def _captured(module: Any, examples: Sequence[Any], options: CompileOptions) -> Call:
    """A graph as compiled code; raises `ImportModelError` and `CompileError` where it is not compiled."""
    has_batch = batch_inputs(module)
    positions = open_extents(module)
    known = with_extents(examples, positions)
    first = _Captured(module, known, options, has_batch, is_open=bool(positions))
    return _OfExtents(module, known, options, positions, first) if positions and not first.has_any_batch else first


class _OfExtents:
    """A graph with extents that Dynamo leaves open, compiled for the first ones and for others that come again.

    A cache that grows has new ones in each call, for which code would be of no use: they are left to eager mode.
    """

    def __init__(
        self, module: Any, examples: Sequence[Any], options: CompileOptions, positions: Sequence[int], first: _Captured
    ) -> None:
        self._module, self._options, self._positions = module, options, positions
        self._numbers = first.numbers
        self._by_extents: dict[tuple[int, ...], Call | None] = {self._key(examples): first}
        """By extents; None for those that came once."""

    def _key(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        return tuple(arguments[position] for position in self._positions)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        key = self._key(arguments)
        code = self._by_extents.get(key)
        return (code or self._other(key, arguments))(*arguments)

    def _other(self, key: tuple[int, ...], arguments: Sequence[Any]) -> Call:
        """The code for extents of which there is none yet."""
        must_compile = self._options.fallback == "none"
        if key not in self._by_extents and not must_compile:
            if len(self._by_extents) < _MAX_EXTENTS:
                self._by_extents[key] = None
                _LOGGER.info("PyTorch runs the whole graph: its extents %s are new, and compiled if they return", key)
            return self._module.forward
        _LOGGER.info("'%s' compiles again: for extents %s", _NAME, key)
        try:
            found: Call = _Captured(self._module, arguments, self._options, (), is_open=True, numbers=self._numbers)
        except (ImportModelError, CompileError) as error:
            if must_compile:
                raise
            _LOGGER.info("PyTorch runs the whole graph: %s", error.message)
            found = self._module.forward
        self._by_extents[key] = found
        return found


class _Captured:
    """A graph that Dynamo captured, compiled for the values that its parameters have, and again where they change."""

    def __init__(
        self,
        module: Any,
        examples: Sequence[Any],
        options: CompileOptions,
        has_batch: Sequence[bool],
        *,
        is_open: bool,
        numbers: tuple[int, ...] | None = None,
    ) -> None:
        """`is_open`: Dynamo guards no extents; the others as `lowered`.

        Raises `ImportModelError` and `CompileError` for a graph that is not compiled.
        """
        self._eager: Call = module.forward
        self._module, self._options = module, options
        self._has_batch = has_batch
        found = self._opened(examples)
        self.has_any_batch = found is not None
        """Whether it computes batches of any size."""
        self._graph = found[0] if found else _for_inference(module, examples, is_open=is_open, numbers=numbers)
        self.numbers = self._graph.numbers.positions
        plain = self._graph.plain_examples(examples)
        # Dynamo guards it: with another answer the graph is captured again.
        self._is_recorded = any(getattr(one, "requires_grad", False) for one in examples)
        is_static: Callable[[Any], object] = import_module("torch._dynamo.utils").get_static_address_type
        self._constants = [
            position
            for position, one in enumerate(plain)
            if is_static(one) is not None and position not in self._graph.written
        ]
        self._changes = 0
        self._held = self._state(plain), found[1] if found else _compiled(self._graph, plain, options)

    def _opened(self, examples: Sequence[Any]) -> tuple[Lowered, _Run] | None:
        """The graph and its code for batches of any size; None where nothing shows that it computes entries alone."""
        if not any(self._has_batch):
            return None
        try:
            with using_jobs(self._options.jobs):
                return _of_any_batch(self._module, examples, self._has_batch, self._options)
        except (ImportModelError, CompileError) as error:
            _LOGGER.info("'%s' compiles for each size of the batch: %s", _NAME, error.message)
            return None

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        torch: Any = import_module("torch")
        if self._is_recorded and torch.is_grad_enabled():
            return self._graph.recorded(self._run, self._eager, arguments)
        return self._run(*arguments)

    def _run(self, *arguments: Any) -> tuple[Any, ...]:
        plain = self._graph.plain(arguments)
        if self._graph.is_shared(plain):
            _LOGGER.info("PyTorch runs the whole graph: it writes to an argument in whose memory another one is")
            return self._eager(*arguments)
        state, run = self._held
        if state.is_current(plain):
            return run(plain)
        self._changes += 1
        if self._changes > _MAX_CHANGES:
            _LOGGER.info("PyTorch runs the whole graph: its parameters changed %d times", self._changes)
            return self._eager(*arguments)
        _LOGGER.info("'%s' compiles again: parameters or buffers hold other values", _NAME)
        state = self._state(plain)
        found = self._opened(arguments)
        if self.has_any_batch and found is None:
            return self._eager(*arguments)
        constants = self._graph.plain_examples(arguments)
        run = found[1] if found else _compiled(self._graph, constants, self._options)
        self._held = state, run
        return run(plain)

    def _state(self, plain: Sequence[Any]) -> ConstantState:
        return ConstantState(self._constants, [plain[position] for position in self._constants])


def _of_any_batch(
    module: Any, examples: Sequence[Any], has_batch: Sequence[bool], options: CompileOptions
) -> tuple[Lowered, _Run]:
    """A graph for batches of any size, which are the first extents of those `examples` that `has_batch` marks.

    Those for the size of this call and the next one are compared. Raises `ImportModelError` and `CompileError` where
    nothing shows that entries are computed alone, and for results that are not new contiguous tensors.
    """
    # The compiler is loaded when it is used.
    with LATE_IMPORTS:
        from qdialect.driver.batching.network import BatchNetwork, check_alike, compile_batched

    first = next(one.shape[0] for one, has in zip(examples, has_batch, strict=True) if has and _has_shape(one))
    # Dynamo guards what it assumed of this size, such as that a slice takes all of it; asking for it guards the size.
    size: int = first if isinstance(first, int) else first.node.hint
    sizes = size, size + 1
    found = [_of_batch(module, examples, has_batch, size) for size in sizes]
    shapes = [[tensor.shape for tensor in read.inputs] for _, read in found]
    inputs = tuple(one != other for one, other in zip(*shapes, strict=True))
    networks = [
        BatchNetwork(import_graph(read, _NAME), size, inputs) for (_, read), size in zip(found, sizes, strict=True)
    ]
    check_alike(networks[0], networks[1])
    graph, read = found[0]
    executable = compile_batched(networks[0], options)
    graph = replace(graph, layouts=(None,) * len(graph.layouts))
    return graph, _without_gradients(graph, _native(graph, read, executable))


def _has_shape(example: Any) -> bool:
    return hasattr(example, "shape")


def _of_batch(module: Any, examples: Sequence[Any], has_batch: Sequence[bool], size: int) -> tuple[Lowered, Graph]:
    torch: Any = import_module("torch")

    def sized(example: Any) -> Any:
        return torch.zeros((size, *map(int, example.shape[1:])), dtype=example.dtype) if _has_shape(example) else size

    given = [sized(one) if has else one for one, has in zip(examples, has_batch, strict=True)]
    graph = _for_inference(module, given, numbers=())
    is_new = all(one and one.argument is None and one.group is None and one.is_contiguous for one in graph.layouts)
    if graph.written or not is_new:
        raise ImportModelError("results must be new contiguous tensors to have any batch")
    return graph, read_captured(graph.module, graph.plain_examples(given))


def _for_inference(
    module: Any, examples: Sequence[Any], *, is_open: bool = False, numbers: tuple[int, ...] | None = None
) -> Lowered:
    """The graph as `lowered` gives it; raises `ImportModelError` for one that is not for inference."""
    is_static: Callable[[Any], object] = import_module("torch._dynamo.utils").get_static_address_type
    is_recorded: bool = import_module("torch").is_grad_enabled()
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    for name, example in zip(names, examples, strict=True):
        if is_recorded and getattr(example, "requires_grad", False) and is_static(example) is None:
            raise ImportModelError(f"input '{name}' must not require a gradient")
    graph = lowered(module, examples, is_open=is_open, numbers=numbers)
    if graph.training:
        raise ImportModelError(f"model must be in evaluation mode, but {graph.training}")
    return graph


def _tell(message: str, *, is_silent: bool) -> None:
    """Report the nodes that PyTorch runs: in the log and, unless it was asked for, by a warning."""
    with LATE_IMPORTS:
        from qdialect.driver.fallback import FallbackWarning

    _LOGGER.info(message)
    if not is_silent:
        warnings.warn(message, FallbackWarning, stacklevel=4)


def _of_mode(mode: str | None) -> Mapping[str, object]:
    """The options that a mode stands for; raises `InputError` for one that stands for nothing here."""
    if mode is None or mode == "default":
        return {}
    if not mode.startswith(_TUNED):
        wanted = f"'default' or '{_TUNED}', which measures kernels"
        raise InputError(f"mode of {_NAME} must be {wanted}, but got {mode!r}, which is about GPUs and other backends")
    return {"tune": True}


def _compiled(graph: Lowered, examples: Sequence[Any], options: CompileOptions) -> _Run:
    """The graph as compiled code, in parts where it has to be."""
    # The compiler is loaded when it is used.
    with LATE_IMPORTS:
        from qdialect.cache.store import open_store
        from qdialect.driver.fallback import compile_tuned

    store = open_store() if options.cache else None
    compiled = partial(compile_tuned, options=options, store=store)
    read = read_captured(graph.module, examples, written=graph.written)
    with using_jobs(options.jobs):
        try:
            run = _native(graph, read, compiled(import_graph(read, _NAME)))
        except (ImportModelError, CompileError):
            if options.fallback == "none":
                raise
            run = _partitioned(graph, examples, compiled, is_silent=options.fallback == "framework")
    return _without_gradients(graph, run)


def _without_gradients(graph: Lowered, run: _Run) -> _Run:
    """`run`, which records nothing, with the results as the model gives them."""
    torch: Any = import_module("torch")
    no_grad: Callable[[], AbstractContextManager[None]] = torch.no_grad
    is_recorded: Callable[[], bool] = torch.is_grad_enabled

    def call(plain: Sequence[Any]) -> tuple[Any, ...]:
        if not is_recorded():
            return graph.finish(run(plain), plain)
        with no_grad():
            return graph.finish(run(plain), plain)

    def call_without_casts(plain: Sequence[Any]) -> tuple[Any, ...]:
        with torch.autocast("cpu", enabled=False):
            return call(plain)

    return call_without_casts if graph.casts else call


def _native(graph: Lowered, read: Graph, executable: Executable) -> _Run:
    """Compiled code alone, on the arguments of the captured graph."""
    positions, given = captured_inputs(graph.module, read), captured_results(graph.module)
    compiled = _on_tensors(executable)

    def call(arguments: Sequence[Any]) -> tuple[Any, ...]:
        results = iter(compiled([arguments[position] for position in positions]))
        return tuple(next(results) if one is ... else one(arguments) if callable(one) else one for one in given)

    return call


def _on_tensors(executable: Executable) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """The executable as a function of tensors."""
    if any(port.dtype == BFLOAT16 for port in (*executable.inputs, *executable.outputs)):
        # PyTorch makes no arrays of these.
        return lambda tensors: tuple(map(tensor_of, executable.results(tensors)))
    from_numpy: Callable[[Any], Any] = import_module("torch").from_numpy

    def call(tensors: Sequence[Any]) -> Sequence[Any]:
        return tuple(map(from_numpy, executable.results([one.numpy(force=True) for one in tensors])))

    # Numbers that a model draws from `random.Random` are float64 ones, though Dynamo's examples are float32.
    numbers = [port.shape == () and port.dtype == np.float32 for port in executable.inputs]
    if not any(numbers):
        return call
    return lambda tensors: call([one.float() if own else one for one, own in zip(tensors, numbers, strict=True)])


def _partitioned(
    graph: Lowered, examples: Sequence[Any], compiled: Callable[[ir.Module], Executable], *, is_silent: bool
) -> _Run:
    """The captured graph with compiled regions in it."""
    with LATE_IMPORTS:
        from qdialect.driver.fallback import captured_summary
        from qdialect.frontends.torch.division import CapturedDivision

    captured = CapturedDivision(graph, examples, compiled)
    for fused in captured.fuse():
        setattr(captured.module, fused.name, _region_module(fused))
    _tell(captured_summary(captured.division, captured.reasons), is_silent=is_silent)
    forward: Call = captured.module.forward
    return lambda plain: forward(*plain)


def _region_module(fused: Fused[Executable]) -> Any:
    """A module of PyTorch that calls a compiled region, with the arguments and results of the one that it replaces."""
    torch: Any = import_module("torch")
    executable, compiled = fused.compiled, _on_tensors(fused.compiled)
    positions = [fused.arguments.index(port.name) for port in executable.inputs]
    order = [[port.name for port in executable.outputs].index(name) for name in fused.results]

    class Region(torch.nn.Module):
        def forward(self, *arguments: Any) -> Any:
            results = compiled([arguments[position] for position in positions])
            given = tuple(results[index] for index in order)
            return given[0] if len(given) == 1 else given

    return Region()
