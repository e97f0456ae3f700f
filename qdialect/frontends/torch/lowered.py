"""Graphs that Dynamo captured, in operators of PyTorch's registry that write to no memory.

Dynamo records the functions and methods that a model calls, ``torch.sin`` and ``Tensor.view``; what these write to
arguments becomes results of their own, which whoever calls the graph copies there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, cast

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.torch.calls import first_line
from qdialect.frontends.torch.wrapped import Wrapped
from qdialect.late_dataclass import dataclass

_DROPOUTS = frozenset(
    ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout", "rrelu"]
)
_NORMS = frozenset(["batch_norm", "_native_batch_norm_legit_functional", "_batch_norm_with_update_functional"])


@dataclass(frozen=True)
class Layout:
    """Where a result lies: its strides and, where it lies in the memory of an argument, which and how far from it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    argument: int | None = None
    offset: int = 0
    """In elements."""

    def arrange(self, result: Any, arguments: Sequence[Any]) -> Any:
        """A contiguous tensor as the model gives it."""
        if self.argument is not None:
            source = arguments[self.argument]
            return source.as_strided(self.shape, self.strides, source.storage_offset() + self.offset)
        if result.stride() == self.strides or not self._is_dense():
            return result
        torch: Any = import_module("torch")
        return torch.empty_strided(self.shape, self.strides, dtype=result.dtype).copy_(result)

    def _is_dense(self) -> bool:
        """Whether every element has a location of its own, and there are no others between."""
        covered = 1
        for stride, extent in sorted(zip(self.strides, self.shape, strict=True)):
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

    @property
    def training(self) -> str:
        """The first node that trains; empty where none does."""
        return next((f"node '{node.name}' trains" for node in self.module.graph.nodes if _trains(node)), "")

    def finish(self, results: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, ...]:
        """What the model gives, once its arguments hold what it writes to them."""
        count = len(self.layouts)
        for position, value in zip(self.written, results[count:], strict=True):
            arguments[position].copy_(value)
        pairs = zip(self.layouts, results[:count], strict=True)
        return tuple(one if layout is None else layout.arrange(one, arguments) for layout, one in pairs)


def lowered(module: Any, examples: Sequence[Any]) -> Lowered:
    """A captured module in registered operators, traced for the extents of this call, which Dynamo then guards.

    Raises `ImportModelError` where a function of the model cannot be traced.
    """
    _guard_extents(module)
    trace: Callable[..., Any] = import_module("torch.fx.experimental.proxy_tensor").make_fx
    functional: Any = import_module("torch._subclasses.functional_tensor")
    torch: Any = import_module("torch")
    guards: Any = import_module("torch._guards")
    layouts: list[Layout | None] = []
    wrapped = Wrapped.of(examples)

    def run(*given: Any) -> tuple[Any, ...]:
        owners = {_memory(one): position for position, one in enumerate(given) if isinstance(one, torch.Tensor)}
        bases = {position: given[position].storage_offset() for position in owners.values()}
        results = tuple(_listed(module(*wrapped.made(given))))
        layouts[:] = [_layout(one, owners, bases) if isinstance(one, torch.Tensor) else None for one in results]
        return (*results, *given)

    try:
        plain = wrapped.plain(examples)
        given = [example if isinstance(example, torch.Tensor) else _known(example) for example in plain]
        pure = functional.dispatch_functionalize(run, functional.FunctionalTensorMode(pre_dispatch=True, export=True))
        # Extents of the trace are known, and no matter of what Dynamo guards.
        with torch.no_grad(), guards.tracing(None):
            traced = trace(pure, pre_dispatch=True, tracing_mode="fake", _allow_non_fake_inputs=True)(*given)
    except Exception as error:
        # Tracing runs the model's own functions, which raise whatever they do.
        raise ImportModelError(f"model must be traced, but PyTorch says: {first_line(error)}") from error
    return Lowered(traced, wrapped, tuple(layouts), _keep_written(traced, len(layouts)))


def _keep_written(module: Any, count: int) -> tuple[int, ...]:
    """Leave those of the results behind `count` that are no arguments, and say which arguments these were."""
    graph = module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    results = graph.output_node().args[0]
    pairs = zip(range(len(placeholders)), placeholders, results[count:], strict=True)
    written = {position: new for position, old, new in pairs if hasattr(new, "op") and new is not old}
    graph.output_node().args = ((*results[:count], *written.values()),)
    graph.eliminate_dead_code()
    module.recompile()
    return tuple(written)


def _layout(result: Any, owners: dict[int, int], bases: dict[int, int]) -> Layout:
    argument = owners.get(_memory(result))
    offset = 0 if argument is None else result.storage_offset() - bases[argument]
    return Layout(tuple(map(int, result.shape)), tuple(map(int, result.stride())), argument, offset)


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
    for node in module.graph.nodes:
        value = node.meta.get("example_value") if node.op == "placeholder" else None
        for extent in getattr(value, "shape", ()):
            int(extent)


def _known(number: Any) -> Any:
    """A number of this call."""
    return float(number) if "Float" in type(number).__name__ else int(number)
