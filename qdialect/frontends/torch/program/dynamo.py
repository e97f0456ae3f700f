"""Graphs that Dynamo captured, in operators of PyTorch's registry that write to no memory.

Dynamo records the functions and methods that a model calls, ``torch.sin`` and ``Tensor.view``; what these write to
arguments becomes results of their own, which whoever calls the graph copies there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, cast

from qdialect.frontends.torch.program.numbers import Numbers, OpenNumbersError, know, open_numbers, with_tensors
from qdialect.frontends.torch.program.pytorch_operators import first_line
from qdialect.frontends.torch.program.reader import Wrapped, is_contiguous, of_this_call
from qdialect.support.diagnostics import ImportModelError

_DROPOUTS = frozenset(
    ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout", "rrelu"]
)
_NORMS = frozenset(["batch_norm", "_native_batch_norm_legit_functional", "_batch_norm_with_update_functional"])


@dataclass(frozen=True)
class Layout:
    """Where a result lies: its strides and, where it lies in the memory of an argument, which and how far from it.

    Results that lie in the same memory, or in a part of it, have one `group`, of so many elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    argument: int | None = None
    offset: int = 0
    """In elements."""
    group: int | None = None
    elements: int = 0

    @property
    def is_contiguous(self) -> bool:
        """Whether elements lie in their order, without others between."""
        return is_contiguous(self.shape, self.strides)

    def arrange(self, result: Any, arguments: Sequence[Any], groups: dict[int, Any]) -> Any:
        """A contiguous tensor as the model gives it; `groups` is the memory that results of this call share."""
        if self.argument is not None:
            source = arguments[self.argument]
            return source.as_strided(self.shape, self.strides, source.storage_offset() + self.offset)
        if self.group is None and result.stride() == self.strides:
            return result
        if self.group is None:
            torch: Any = import_module("torch")
            return torch.empty_strided(self.shape, self.strides, dtype=result.dtype).copy_(result)
        if self.group not in groups:
            groups[self.group] = result.new_empty(self.elements)
        memory = groups[self.group]
        # Repeated values are written once.
        once = [slice(None) if stride else slice(1) for stride in self.strides]
        placed = memory.as_strided(self.shape, self.strides, self.offset)
        placed[tuple(once)].copy_(result[tuple(once)])
        return placed


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether every element has a location of its own, and there are no others between."""
    covered = 1
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent != 1 and stride != covered:
            return False
        covered *= extent
    return True


@dataclass(frozen=True)
class Lowered:
    """A captured graph in registered operators; behind its results come those that are written to arguments.

    Its arguments, which everything here counts, are plain tensors.
    """

    module: Any
    wrapped: Wrapped
    """How the arguments that Dynamo gives are made of these."""
    layouts: tuple[Layout | None, ...]
    """Of the results; None for what is no tensor."""
    written: tuple[int, ...]
    """The arguments that the model writes to, in the order of their results."""
    casts: bool = False
    """Whether the model runs under `torch.autocast`, whose casts are nodes of the graph."""
    differentiable: tuple[bool, ...] = ()
    """Which of the results have a gradient."""
    numbers: Numbers = field(default_factory=Numbers)
    """The arguments that are numbers of each call."""

    def plain(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments of the graph, of those that Dynamo gives."""
        return self.numbers.tensors(self.wrapped.plain(arguments))

    def plain_examples(self, arguments: Sequence[Any]) -> list[Any]:
        """As `plain`, of examples: constants are marked static, and numbers may be any."""
        return self.numbers.tensors(self.wrapped.plain_constants(arguments), are_known=False)

    @property
    def training(self) -> str:
        """The first node that trains; empty where none does."""
        return next((f"node '{node.name}' trains" for node in self.module.graph.nodes if _trains(node)), "")

    def finish(self, results: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the model, after writing its new values to its arguments."""
        count = len(self.layouts)
        for position, value in zip(self.written, results[count:], strict=True):
            arguments[position].copy_(value)
        pairs = zip(self.layouts, results[:count], strict=True)
        groups: dict[int, Any] = {}
        return tuple(one if layout is None else layout.arrange(one, arguments, groups) for layout, one in pairs)

    def recorded(self, run: Callable[..., Any], eager: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results of `run`, and for gradients those of `eager`, which computes them once more.

        What is written to an argument, lies in its memory or is drawn, `eager` gives at once.
        """
        is_pure = not self.written and all(one is None or one.argument is None for one in self.layouts)
        if not any(self.differentiable) or not is_pure or any(map(_is_drawn, self.module.graph.nodes)):
            return eager(*arguments)
        return _recorded().apply(run, eager, self.differentiable, *arguments)

    def is_shared(self, arguments: Sequence[Any]) -> bool:
        """Whether another argument may lie in the memory of one that the model writes to."""
        if not self.written:
            return False
        # Numbers have no memory.
        found = [_memory(one) if hasattr(one, "untyped_storage") else None for one in arguments]
        return any(found.count(found[position]) > 1 for position in self.written)


def batch_inputs(module: Any) -> tuple[bool, ...]:
    """Which arguments of a captured module are, or have as first extent, the number that Dynamo leaves open.

    It is the same for all; other extents become those of this call.  Empty where something but the shapes of tensors
    may depend on it.
    """
    values = [node.meta.get("example_value") for node in module.graph.nodes if node.op == "placeholder"]
    shapes: list[Any] = [getattr(value, "shape", ()) for value in values]
    symbols = {_symbol(shape[0]) for shape in shapes if shape and _symbol(shape[0])}
    if len(symbols) != 1 or len(list(_graphs(module))) != 1 or not all(map(_asks_shapes_alone, module.graph.nodes)):
        return ()
    (batch,) = symbols
    numbers: list[Any] = [
        value if hasattr(value, "node") else (*shape, 0)[0] for value, shape in zip(values, shapes, strict=True)
    ]
    others: list[Any] = [
        one for one in (*numbers, *(one for shape in shapes for one in shape[1:])) if _symbol(one) not in ("", batch)
    ]
    if not batch.isidentifier() or any(batch in map(str, extent.node.expr.free_symbols) for extent in others):
        return ()
    for extent in others:
        int(extent)
    return tuple(_symbol(number) == batch for number in numbers)


def _symbol(number: Any) -> str:
    """The expression of a number that is not known; else nothing."""
    expression = getattr(getattr(number, "node", None), "expr", None)
    return "" if expression is None or expression.is_number else str(expression)


_PRODUCT = frozenset(["Integer", "Mul", "One", "Symbol"])
_SHAPING = frozenset(["view", "reshape", "expand", "unflatten"])


def _asks_shapes_alone(node: Any) -> bool:
    """Whether the numbers that a node gives are extents of tensors, and its tensors have extents that are products."""
    value = node.meta.get("example_value")
    if hasattr(value, "shape"):
        numbers = [extent.node.expr for extent in value.shape if _symbol(extent)]
        return all(type(part).__name__ in _PRODUCT for number in numbers for part in (number, *number.args))
    if not any(hasattr(part, "node") for part in _listed(value)):
        return True
    return "SymInt" in type(value).__name__ and all(
        getattr(user.target, "__name__", user.target) in _SHAPING
        or ("SymInt" in type(user.meta.get("example_value")).__name__ and user.op == "call_function")
        for user in node.users
    )


def open_extents(module: Any) -> tuple[int, ...]:
    """The positions of the arguments that are extents and strides of tensors which Dynamo leaves open.

    Empty where there are none, and where some are no arguments.
    """
    values = [node.meta.get("example_value") for node in module.graph.nodes if node.op == "placeholder"]
    tensors = [value for value in values if str(getattr(value, "layout", None)) == "torch.strided"]
    numbers = [one for value in tensors for one in (*value.shape, *value.stride()) if _symbol(one)]
    symbols = {str(symbol) for number in numbers for symbol in number.node.expr.free_symbols}
    found = [position for position, value in enumerate(values) if _symbol(value) in symbols]
    return tuple(found) if symbols == {_symbol(values[position]) for position in found} else ()


def with_extents(examples: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    """`examples` whose numbers at `positions` are those of this call, which Dynamo does not guard."""
    return [one.node.hint if at in positions and hasattr(one, "node") else one for at, one in enumerate(examples)]


def lowered(
    module: Any, examples: Sequence[Any], *, is_open: bool = False, numbers: tuple[int, ...] | None = None
) -> Lowered:
    """A captured module in registered operators, traced for the extents of `examples`.

    Dynamo then guards these, if they are not open.  The arguments at `numbers` may be any in each call; by default
    those that can be, and Dynamo guards the others.

    Raises `ImportModelError` where a function of the model cannot be traced.
    """
    if numbers is not None:
        try:
            return _traced(module, examples, numbers)
        except OpenNumbersError as error:
            raise ImportModelError(str(error)) from error
    if not is_open:
        _guard_extents(module)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    # Of arguments that are made of others, the places differ.
    numbers = open_numbers(placeholders) if Wrapped.of(examples).is_plain else ()
    while numbers:
        try:
            return _traced(module, examples, numbers)
        except OpenNumbersError as error:
            known = {numbers[index] for index in error.positions}
        except ImportModelError:
            known = set(numbers)
        for position in known:
            know(placeholders[position])
        numbers = tuple(position for position in numbers if position not in known)
    return _traced(module, examples, ())


def _traced(module: Any, examples: Sequence[Any], positions: tuple[int, ...]) -> Lowered:
    """As `lowered`; the numbers at `positions` are those of each call."""
    trace: Callable[..., Any] = import_module("torch.fx.experimental.proxy_tensor").make_fx
    functional: Any = import_module("torch._subclasses.functional_tensor")
    torch: Any = import_module("torch")
    guards: Any = import_module("torch._guards")
    layouts: list[Layout | None] = []
    wrapped, casts = Wrapped.of(examples), _casts(module)
    read = {position for position in positions if not isinstance(examples[position], torch.Tensor)}

    def run(*given: Any) -> tuple[Any, ...]:
        called = list(given[: len(given) - len(positions)])
        for position, one in zip(positions, given[len(called) :], strict=True):
            called.insert(position, one.item() if position in read else one)
        owners = {_memory(one): position for position, one in enumerate(given) if isinstance(one, torch.Tensor)}
        bases = {position: given[position].storage_offset() for position in owners.values()}
        results = tuple(_listed(module(*wrapped.made(called))))
        tensors = [one for one in results if isinstance(one, torch.Tensor)]
        types: dict[int, Any] = {}
        for tensor in [*(one for one in given if isinstance(one, torch.Tensor)), *tensors]:
            if types.setdefault(_memory(tensor), tensor.dtype) != tensor.dtype:
                raise ImportModelError(f"results must not share the memory of a tensor of another type, {tensor.dtype}")
        shared = Counter(map(_memory, tensors))
        layouts[:] = [_layout(one, owners, bases, shared) if isinstance(one, torch.Tensor) else None for one in results]
        return (*results, *given)

    layers: Any = import_module("torch")._C._functorch
    depth = layers.get_dynamic_layer_stack_depth()
    held = [(one, one.clone(), None if one.is_inference() else one._version) for one in _held(module)]
    try:
        plain = wrapped.plain(examples)
        given = [
            one if isinstance(one, torch.Tensor) else of_this_call(one, "number")
            for place, one in enumerate(plain)
            if place not in positions
        ]
        given += [torch.zeros((), dtype=torch.int64) if one in read else plain[one] for one in positions]
        # Casts of `torch.autocast` are seen behind its dispatch, where compound operators are in parts.
        mode = functional.FunctionalTensorMode(pre_dispatch=not casts, export=True)
        pure = functional.dispatch_functionalize(run, mode)
        # Extents of the trace are known, and no matter of what Dynamo guards.
        with torch.no_grad(), guards.tracing(None), _same_casts():
            traced = trace(pure, pre_dispatch=not casts, tracing_mode="fake", _allow_non_fake_inputs=True)(*given)
    except ImportModelError:
        raise
    except Exception as error:
        # Undoes the layers of `torch.func` that the model had begun.
        layers.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        # Tracing runs the model's own functions, which raise whatever they do.
        raise ImportModelError(f"model must be traced, but PyTorch failed: {first_line(error)}") from error
    finally:
        # The trace has already written to buffers that are no arguments: their values are restored.
        with torch.no_grad():
            written = [one.copy_(before) for one, before, version in held if _is_changed(one, before, version)]
    if written:
        raise ImportModelError("model must not write to buffers that `torch._inductor.config.freezing` makes constants")
    _check_types(module, traced)
    written = _keep_written(traced, len(layouts))
    numbers = with_tensors(traced, positions)
    return Lowered(traced, wrapped, tuple(layouts), written, casts, _differentiable(module), numbers)


def _held(module: Any) -> list[Any]:
    """The tensors that are attributes of a graph, as parameters and buffers are where PyTorch's `freezing` is on."""
    tensor: Any = import_module("torch").Tensor
    graphs = [inner for inner in module.modules() if hasattr(inner, "graph")]
    found = [attrgetter(node.target)(inner) for inner in graphs for node in inner.graph.nodes if node.op == "get_attr"]
    return [one for one in found if isinstance(one, tensor)]


def _is_changed(tensor: Any, before: Any, version: int | None) -> bool:
    # A tensor of inference mode has no version.
    return not tensor.equal(before) if version is None else tensor._version != version


def _differentiable(module: Any) -> tuple[bool, ...]:
    values = (getattr(one, "meta", {}).get("example_value") for one in _listed(module.graph.output_node().args[0]))
    return tuple(bool(getattr(value, "requires_grad", False)) for value in values)


def _is_drawn(node: Any) -> bool:
    """Whether the result of a node is another one each time."""
    return import_module("torch").Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


@cache
def _recorded() -> Any:
    """The function whose gradients eager mode computes."""
    torch: Any = import_module("torch")
    once: Callable[[Any], Any] = import_module("torch.autograd.function").once_differentiable

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, run: Any, eager: Any, differentiable: Any, *arguments: Any) -> Any:
            positions = [index for index, one in enumerate(arguments) if isinstance(one, torch.Tensor)]
            context.save_for_backward(*(arguments[index] for index in positions))
            others = [None if isinstance(one, torch.Tensor) else one for one in arguments]
            context.held = eager, differentiable, positions, others, _same_casts()
            results = run(*arguments)
            pairs = zip(results, differentiable, strict=True)
            context.mark_non_differentiable(*(one for one, has in pairs if isinstance(one, torch.Tensor) and not has))
            return results

        @staticmethod
        @once
        def backward(context: Any, *gradients: Any) -> Any:
            eager, differentiable, positions, arguments, casts = context.held
            wanted = context.needs_input_grad[3:]
            for index, saved in zip(positions, context.saved_tensors, strict=True):
                arguments[index] = saved.detach().requires_grad_() if wanted[index] else saved
            with torch.enable_grad(), casts:
                results = eager(*arguments)
            # An argument without a gradient is not differentiated.
            ends = [one for one, has in zip(results, differentiable, strict=True) if has]
            weights = [one for one, has in zip(gradients, differentiable, strict=True) if has]
            starts = [one for one, is_wanted in zip(arguments, wanted, strict=True) if is_wanted]
            found = iter(torch.autograd.grad(ends, starts, weights, allow_unused=True))
            return None, None, None, *(next(found) if is_wanted else None for is_wanted in wanted)

    return Recorded


def _same_casts() -> AbstractContextManager[None]:
    """A context behind which `torch.autocast` is as it was."""
    torch: Any = import_module("torch")
    return torch.autocast("cpu", torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu"))


def _casts(module: Any) -> bool:
    """Whether `torch.autocast` is on around the module or in it."""
    torch: Any = import_module("torch")
    enter = import_module("torch.amp.autocast_mode")._enter_autocast
    is_on = torch.is_autocast_enabled("cpu")
    return is_on or any(node.target is enter for graph in _graphs(module) for node in graph.nodes)


def _graphs(module: Any) -> Iterator[Any]:
    """The graph of a module and those of modules in it, such as the branches of a condition."""
    return (inner.graph for inner in module.modules() if hasattr(inner, "graph"))


def _check_types(module: Any, traced: Any) -> None:
    """Raise `ImportModelError` where the results of the trace have other types than those that Dynamo noted."""
    noted, found = (_listed(graph.output_node().args[0]) for graph in (module.graph, traced.graph))
    for one, other in zip(noted, found, strict=False):
        types = [_dtype(node) for node in (one, other)]
        if None not in types and types[0] != types[1]:
            raise ImportModelError(
                f"result '{one}' must be {types[0]} as in eager mode, but its trace gives {types[1]}"
            )


def _dtype(node: Any) -> Any:
    meta = getattr(node, "meta", {})
    return getattr(meta.get("example_value", meta.get("val")), "dtype", None)


def _keep_written(module: Any, count: int) -> tuple[int, ...]:
    """Leave those of the results behind `count` that are no arguments, and return which arguments these were."""
    graph = module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    results = graph.output_node().args[0]
    pairs = zip(range(len(placeholders)), placeholders, results[count:], strict=True)
    written = {position: new for position, old, new in pairs if hasattr(new, "op") and new is not old}
    graph.output_node().args = ((*results[:count], *written.values()),)
    graph.eliminate_dead_code()
    module.recompile()
    return tuple(written)


def _layout(result: Any, owners: dict[int, int], bases: dict[int, int], shared: Counter[int]) -> Layout:
    memory = _memory(result)
    argument, offset = owners.get(memory), int(result.storage_offset())
    shape, strides = tuple(map(int, result.shape)), tuple(map(int, result.stride()))
    if argument is not None:
        return Layout(shape, strides, argument, offset - bases[argument])
    if shared[memory] > 1 or not _is_dense(shape, strides):
        return Layout(shape, strides, None, offset, memory, result.untyped_storage().nbytes() // result.element_size())
    return Layout(shape, strides)


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _listed(results: Any) -> Iterator[Any]:
    return iter(cast("Sequence[Any]", results) if isinstance(results, list | tuple) else (results,))


def _trains(node: Any) -> bool:
    """Whether a node computes what only training needs: a choice of elements to drop, or statistics that it keeps."""
    schema: Any = getattr(node.target, "_schema", None)
    name = str(getattr(schema, "name", "")).removeprefix("aten::")
    if name not in _DROPOUTS | _NORMS:
        return False
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs
    if name in _DROPOUTS:
        return bool(given.get("train", given.get("training"))) and given.get("p") != 0
    return bool(given.get("training", True)) and given.get("running_mean") is not None


def _guard_extents(module: Any) -> None:
    """And strides, which results have that are views: Dynamo takes both for open once they have changed."""
    for node in module.graph.nodes:
        value: Any = node.meta.get("example_value") if node.op == "placeholder" else None
        if str(getattr(value, "layout", None)) == "torch.strided":
            for number in (*value.shape, *value.stride()):
                int(number)
