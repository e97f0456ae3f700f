"""Programs for many shapes: their sizes are expressions of symbols, which become numbers before anything else is read.

An expression is a call such as ``Mul(Integer(2), Symbol('s77', positive=True, integer=True))``.  It is parsed and
evaluated here, as integer arithmetic and nothing else.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.extents import Extents, OpenShape
from qdialect.frontends.torch.archive.fields import Field, shown

_LONGEST, _LARGEST = 1000, 2**62
_SYMBOLIC = ("as_sym_int", "as_sym_float", "as_sym_bool")


class _UnknownError(Exception):
    """An expression of what has no number, or none of the integer arithmetic that sizes have."""


def _divided(lhs: int, rhs: int) -> int:
    if rhs == 0 or lhs % rhs:
        raise _UnknownError
    return lhs // rhs


def _floored(lhs: int, rhs: int) -> int:
    return lhs // rhs


def _power(base: int, exponent: int) -> int:
    if exponent == -1:
        raise _UnknownError
    if not 0 <= exponent <= _LARGEST.bit_length() or abs(base) > _LARGEST:
        raise _UnknownError
    return base**exponent


def _sum(*terms: int) -> int:
    return sum(terms)


def _product(*factors: int) -> int:
    return math.prod(factors)


_FUNCTIONS: dict[str, Callable[..., int]] = {
    "Add": _sum,
    "CleanDiv": _divided,
    "FloorDiv": _floored,
    "Integer": int,
    "IntTrueDiv": _divided,
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "Mul": _product,
    "Pow": _power,
    "PythonMod": operator.mod,
}


@dataclass
class Sizes:
    """The numbers of symbols, and of the nodes that compute with them."""

    symbols: dict[str, int] = field(default_factory=dict[str, int])

    def of(self, expression: Field) -> int | None:
        """The number of an expression; None where that is not known."""
        try:
            return self._of(_parsed(expression))
        except (_UnknownError, ArithmeticError, TypeError, ValueError):
            return None

    def _of(self, node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._of(node.operand)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise _UnknownError
        name = _symbol(node)
        if name is not None:
            return self._number(name)
        function = _FUNCTIONS.get(node.func.id)
        if function is None or node.keywords:
            raise _UnknownError
        found = function(*(self._of(argument) for argument in node.args))
        return found if abs(found) < _LARGEST else self._number("")

    def _number(self, name: str) -> int:
        if name not in self.symbols:
            raise _UnknownError
        return self.symbols[name]


def _parsed(expression: Field) -> ast.expr:
    text = expression["expr_str"].text()
    if len(text) > _LONGEST:
        raise _UnknownError
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _UnknownError from error


def _symbol(node: ast.expr) -> str | None:
    """The name of a lone symbol."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Symbol":
        return None
    first = node.args[0] if node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def open_shape(sizes: Field) -> OpenShape:
    """The sizes of a tensor: numbers, and the names of lone symbols; another expression has an empty name."""
    return tuple(_open_extent(size) for size in sizes.items())


def _open_extent(size: Field) -> int | str:
    kind, value = size.union()
    if kind != "as_expr":
        return value.integer()
    try:
        return _symbol(_parsed(value)) or ""
    except (_UnknownError, ValueError):
        return ""


def input_shapes(root: Field) -> Mapping[str, OpenShape]:
    """The sizes of the inputs of a program by their names, in order."""
    module = root["graph_module"]
    tensors = dict(module["graph"]["tensor_values"].entries())
    names = [name for spec in module["signature"]["input_specs"].items() for name in _user_input(spec)]
    return {name: open_shape(tensors[name]["sizes"]) for name in names if name in tensors}


def _user_input(spec: Field) -> Iterator[str]:
    kind, held = spec.union()
    if kind == "user_input" and held["arg"].union()[0] == "as_tensor":
        yield held["arg"]["as_tensor"]["name"].name()


def with_known_sizes(root: Field, extents: Extents) -> Field:
    """A program with the sizes that `extents` say; itself where none is open.

    Nodes that give sizes go, since their numbers are known.  Raises `ImportModelError` for sizes that stay open, lie
    outside of the range that the program notes, or contradict each other.
    """
    sizes = Sizes(_symbols(input_shapes(root), extents))
    extents.check_used()
    if not sizes.symbols:
        return root
    ranges = root.get("range_constraints")
    for name, noted in ranges.entries() if ranges is not None else ():
        _check_range(name, noted, sizes.symbols)
    module = root["graph_module"]
    graph = _with_numbers(module["graph"], sizes)
    return Field({**_parts(root), "graph_module": {**_parts(module), "graph": graph}}, root.member)


def _symbols(shapes: Mapping[str, OpenShape], extents: Extents) -> dict[str, int]:
    """The numbers of the symbols that inputs have."""
    found: dict[str, int] = {}
    extents.share(shapes)
    for name, declared in shapes.items():
        for extent, number in zip(declared, extents.shape(name, declared), strict=True):
            if isinstance(extent, str) and extent and found.setdefault(extent, number) != number:
                numbers = f"{found[extent]} and {number}"
                raise ImportModelError(f"extent '{extent}' must be one for all inputs, but got {numbers}")
    return found


def _check_range(name: str, noted: Field, symbols: Mapping[str, int]) -> None:
    bounds = [None if (bound := noted.get(part)) is None else bound.integer() for part in ("min_val", "max_val")]
    low, high = bounds
    number = symbols.get(name)
    if number is None or (number >= (low or 0) and (high is None or number <= high)):
        return
    most = "" if high is None else f" and at most {high}"
    raise ImportModelError(f"extent '{shown(name)}' must be at least {low or 0}{most}, but got {number}")


def _parts(held: Field) -> dict[str, object]:
    return {name: part.value for name, part in held.entries()}


def _with_numbers(graph: Field, sizes: Sizes) -> dict[str, object]:
    """A graph with numbers for sizes of tensors and of arguments, and without the nodes that give them."""
    values = graph.get("sym_int_values")
    named = {name: _number(value, sizes) for name, value in (values.entries() if values is not None else ())}
    tensors = {
        name: {**_parts(meta), "sizes": [_number(size, sizes) for size in meta["sizes"].items()]}
        for name, meta in graph["tensor_values"].entries()
    }
    nodes = [_node(node, named) for node in graph["nodes"].items() if gives_tensors(node)]
    return {**_parts(graph), "tensor_values": tensors, "nodes": nodes}


def _number(size: Field, sizes: Sizes) -> object:
    """An ``as_int`` in place of an expression whose number is known."""
    kind, value = size.union()
    number = sizes.of(value) if kind == "as_expr" else None
    return size.value if number is None else {"as_int": number}


def gives_tensors(node: Field) -> bool:
    """Whether a node gives more than sizes and numbers of them."""
    return any(output.union()[0] not in _SYMBOLIC for output in node["outputs"].items())


def _node(node: Field, named: Mapping[str, object]) -> dict[str, object]:
    inputs = [{**_parts(given), "arg": _argument(given["arg"], named)} for given in node["inputs"].items()]
    return {**_parts(node), "inputs": inputs}


def _argument(argument: Field, named: Mapping[str, object]) -> object:
    kind, value = argument.union()
    if kind == "as_sym_int":
        return {kind: _one(value, named)}
    return {kind: [_one(part, named) for part in value.items()]} if kind == "as_sym_ints" else argument.value


def _one(value: Field, named: Mapping[str, object]) -> object:
    kind, held = value.union()
    return named.get(held.text(), value.value) if kind == "as_name" else value.value
