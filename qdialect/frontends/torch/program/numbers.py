"""Numbers of Python that change between calls: a captured graph takes what it computes of them as tensors.

Python computes with the numbers, in float64 and integers without end, and what a tensor is added to, multiplied with or
compared with becomes an input of one element, of the type in which PyTorch computes there.  What the model returns of
them becomes an input that the graph only gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from qdialect.frontends.torch.program.pytorch_operators import is_check
from qdialect.frontends.torch.program.reader import of_this_call

_WIDER = {name: name for name in ("mul.Tensor", "div.Tensor")}
"""Operators of numbers as those of tensors. With float16, PyTorch computes these in float32, and sums in float16."""
_COMPARED = {f"{name}.Scalar": f"{name}.Tensor" for name in ("gt", "ge", "lt", "le", "eq", "ne")}
_SAME = {
    **{name: name for name in ("add.Tensor", "sub.Tensor")},
    **{f"{name}.default": f"{name}.Tensor" for name in ("clamp", "clamp_min", "clamp_max")},
    **{f"where.{name}": "where.self" for name in ("Scalar", "ScalarSelf", "ScalarOther")},
    "rsub.Scalar": "sub.Tensor",
    "masked_fill.Scalar": "masked_fill.Tensor",
    "full.default": "expand.default",
}


class OpenNumbersError(Exception):
    """The numbers at some `positions` among the open ones must be known."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__(f"numbers {sorted(positions)} must be known")
        self.positions = positions


@dataclass(frozen=True)
class Numbers:
    """Which arguments are numbers that change, and the tensors that a graph takes in their place, behind the others."""

    positions: tuple[int, ...] = ()
    types: tuple[Any, ...] = ()
    """Of the tensors; None for a number that is a result."""
    computed: Callable[..., Sequence[Any]] = lambda: ()
    """The values of the tensors, of the numbers."""

    def tensors(self, arguments: Sequence[Any], *, are_known: bool = True) -> list[Any]:
        """`arguments` with tensors in the place of numbers; of examples these are zeros, as numbers may be any."""
        if not self.positions:
            return list(arguments)
        torch: Any = import_module("torch")
        values: Sequence[Any] = (0,) * len(self.types)
        if are_known:
            numbers = [arguments[position] for position in self.positions]
            values = self.computed(*(one.item() if isinstance(one, torch.Tensor) else one for one in numbers))

        def given(value: Any, dtype: Any) -> Any:
            # In PyTorch's widest type, which is cast as that of a number that meets a tensor.
            wide = torch.float64 if isinstance(value, float) else None
            return value if dtype is None else torch.tensor(value, dtype=wide).to(dtype)

        found = [one for position, one in enumerate(arguments) if position not in self.positions]
        return [*found, *map(given, values, self.types)]


def open_numbers(placeholders: Sequence[Any]) -> tuple[int, ...]:
    """The positions of numbers that Dynamo leaves open and that are no extents of tensors."""
    values = [node.meta.get("example_value") for node in placeholders]
    extents = {str(one) for value in values for one in getattr(value, "shape", ())}
    found = enumerate(zip(placeholders, values, strict=True))
    is_int = ["SymInt" in type(value).__name__ and str(value) not in extents for value in values]
    return tuple(position for position, (node, _) in found if is_int[position] or _is_open_float(node))


def _is_open_float(placeholder: Any) -> bool:
    """Whether an argument is a tensor that Dynamo makes of a number."""
    value = placeholder.meta.get("example_value")
    is_scalar = str(getattr(value, "dtype", "")) == "torch.float64" and not value.shape
    return is_scalar and bool(placeholder.users) and all(user.target == "item" for user in placeholder.users)


def know(placeholder: Any) -> None:
    """Make a number that of this call, which Dynamo then guards; raises `ImportModelError` for one of the data."""
    if not _is_open_float(placeholder):
        of_this_call(placeholder.meta["example_value"], placeholder.name)
        return
    for user in list(placeholder.users):
        user.replace_all_uses_with(of_this_call(user.meta["example_value"], placeholder.name))
        placeholder.graph.erase_node(user)
    placeholder.graph.owning_module.recompile()


def with_tensors(module: Any, positions: tuple[int, ...]) -> Numbers:
    """Give a traced graph tensors in place of its last arguments, which stand for the numbers at `positions`.

    Raises `OpenNumbersError` for numbers that operators take which have no such tensors.
    """
    if not positions:
        return Numbers()
    fx: Any = import_module("torch.fx")
    graph, taken = module.graph, fx.Graph()
    placeholders = [node for node in graph.nodes if node.op == "placeholder"][-len(positions) :]
    roots: dict[Any, frozenset[int]] = {node: frozenset([index]) for index, node in enumerate(placeholders)}
    copies = {node: taken.placeholder(f"number_{index}") for index, node in enumerate(placeholders)}
    values: list[Any] = []
    types: list[Any] = []

    def tensor(operand: Any, dtype: Any) -> Any:
        if operand is None or (hasattr(operand, "op") and operand not in roots):
            return operand
        values.append(copies.get(operand, operand))
        types.append(dtype)
        with graph.inserting_before(placeholders[0]):
            new = graph.placeholder(f"number_{len(values)}")
        empty = placeholders[0].meta["val"].new_empty
        new.meta["val"] = operand.meta["val"] if dtype is None else empty((), dtype=dtype)
        return new

    for node in list(graph.nodes):
        given = [one for one in node.all_input_nodes if one in roots]
        known = frozenset[int]().union(*(roots[one] for one in given))
        if given and hasattr(node.meta.get("val"), "node"):
            is_read = str(node.target) in ("aten.item.default", "aten._local_scalar_dense.default")
            copies[node] = copies[given[0]] if is_read else taken.node_copy(node, copies.__getitem__)
            roots[node] = known
        elif given and is_check(str(node.target)):
            graph.erase_node(node)
        elif given and node.op == "output":
            node.args = (tuple(tensor(one, None) if one in given else one for one in node.args[0]),)
        elif given and not _replaced(node, tensor):
            raise OpenNumbersError(known)
    for node in reversed(roots):
        graph.erase_node(node)
    taken.output(tuple(values))
    module.recompile()
    return Numbers(positions, tuple(types), fx.GraphModule({}, taken).forward)


def _replaced(node: Any, tensor: Callable[[Any, Any], Any]) -> bool:
    """Make an operator one of tensors; False where it has no such form."""
    torch: Any = import_module("torch")
    name, result = str(node.target).removeprefix("aten."), node.meta.get("val")
    if name == "scalar_tensor.default":
        node.replace_all_uses_with(tensor(node.args[0], result.dtype))
        node.graph.erase_node(node)
        return True
    target, is_full = (_WIDER | _COMPARED | _SAME).get(name), name == "full.default"
    # Other arguments are factors of operands.
    if target is None or (node.kwargs and not is_full):
        return False
    args, dtype = node.args[1:] if is_full else node.args, result.dtype
    if name in _WIDER:
        dtype = import_module("torch._prims_common").get_computation_dtype(dtype)
    elif name in _COMPARED:
        dtype = torch.result_type(args[0].meta["val"], 1.0 if "Float" in type(args[1].meta["val"]).__name__ else 1)

    def call(target: Any, *args: Any, **kwargs: Any) -> Any:
        new = node.graph.call_function(target, args, kwargs)
        values = [one.meta["val"] if hasattr(one, "op") else one for one in args]
        new.meta = {**node.meta, "val": target(*values, **kwargs)}
        return new

    def cast(one: Any, dtype: Any) -> Any:
        is_other = one is not None and one.meta["val"].dtype not in (dtype, torch.bool)
        return call(torch.ops.aten._to_copy.default, one, dtype=dtype) if is_other else one

    with node.graph.inserting_before(node):
        operands = [cast(tensor(one, dtype), dtype) for one in args]
        operands = [*operands[:: -1 if name == "rsub.Scalar" else 1], *node.args[: int(is_full)]]
        operator, overload = target.split(".")
        new = call(getattr(getattr(torch.ops.aten, operator), overload), *operands)
        new = new if name in _COMPARED else cast(new, result.dtype)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
    return True
