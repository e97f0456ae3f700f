"""Evaluates the extents that a program leaves open, from the extents that a user gives for its inputs."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from qdialect.frontends.building.checks import UnsupportedError, require
from qdialect.frontends.building.extents import Extents
from qdialect.support.diagnostics import ImportModelError

# ``Mul(Integer(2), Symbol('s0', positive=True, integer=True))`` is twice the extent `s0`.  Such a text is parsed, never
# run: it consists of the functions that are listed here.

Number = int | float | bool

_LONGEST = 4096
_LARGEST_EXPONENT = 64
_LARGEST = 2**63


def _power(base: Any, exponent: Any) -> Any:
    require(abs(exponent) <= _LARGEST_EXPONENT, f"exponent must be at most {_LARGEST_EXPONENT}, but got {exponent}")
    return base**exponent


def _quotient(lhs: Any, rhs: Any) -> Any:
    return lhs / rhs


def _floor_quotient(lhs: Any, rhs: Any) -> Any:
    return lhs // rhs


def _remainder(lhs: Any, rhs: Any) -> Any:
    return lhs % rhs


def _modular_index(base: Any, divisor: Any, modulus: Any) -> Any:
    return base // divisor % modulus


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda *terms: sum(terms),
    "CeilToInt": math.ceil,
    "CleanDiv": _floor_quotient,
    "FloatPow": _power,
    "FloatTrueDiv": _quotient,
    "FloorDiv": _floor_quotient,
    "FloorToInt": math.floor,
    "IntTrueDiv": _quotient,
    "Max": max,
    "Min": min,
    "Mod": _remainder,
    "ModularIndexing": _modular_index,
    "Mul": lambda *factors: math.prod(factors),
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "Pow": _power,
    "PowByNatural": _power,
    "PythonMod": _remainder,
    "ToFloat": float,
    "TruncToInt": math.trunc,
}
_LITERALS = ("Integer", "Float")
_INFIX = {"Add": " + ", "Mul": "*"}


def evaluate(text: str, sizes: Mapping[str, int]) -> Number:
    """The number that an expression is where its symbols have `sizes`.

    Raises `UnsupportedError` for another text, for a symbol without a size, and where a function fails.
    """
    try:
        found: Any = _evaluated(_parsed(text), sizes)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise UnsupportedError(f"expression must be a number, but {shown(text)} fails: {error}") from error
    require(isinstance(found, int | float) and abs(found) < _LARGEST, f"expression {shown(text)} must be a number")
    return found


def symbols_of(text: str) -> frozenset[str]:
    """The names of an expression's symbols."""
    return frozenset(_symbols(_parsed(text)))


def shown(text: str) -> str:
    """An expression as people write it, ``2*s0``."""
    return _shown(_parsed(text))


def _parsed(text: str) -> ast.expr:
    require(len(text) <= _LONGEST, f"expression must have at most {_LONGEST} characters, but got {len(text)}")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsupportedError("expression must be one of extents, but it cannot be read") from error


def _call(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """A function's name and what it is of."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise UnsupportedError("expression must be one of extents, with functions of names and numbers")
    return node.func.id, node.args


def _evaluated(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    name, operands = _call(node)
    if name == "Symbol":
        (symbol,) = _literals(operands, str)
        require(symbol in sizes, f"extent '{symbol}' must be that of an input, but it is known at run time alone")
        return sizes[symbol]
    if name in _LITERALS:
        return _number(name, operands)
    if name == "Rational":
        lhs, rhs = _literals(operands, int)
        return lhs / rhs
    require(name in _FUNCTIONS, f"expression must consist of known functions, but got {name}")
    require(len(operands) >= 1, f"function {name} must have operands")
    return _FUNCTIONS[name](*(_evaluated(operand, sizes) for operand in operands))


def _literals(nodes: Sequence[ast.expr], *types: type) -> list[Any]:
    """Constants of `types`."""
    values = [node.value if isinstance(node, ast.Constant) else _negative(node) for node in nodes]
    known = all(type(value) in types for value in values)
    require(known and len(values) >= 1, "expression must be one of extents, with names and numbers as its constants")
    return values


def _negative(node: ast.expr) -> object:
    """The number ``-n``."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int | float) else None
    return None


def _number(name: str, operands: Sequence[ast.expr]) -> Number:
    """A literal; the digits of a float are a text."""
    (value,) = _literals(operands, str if name == "Float" else int)
    return float(value) if name == "Float" else value


def _symbols(node: ast.expr) -> Iterator[str]:
    name, operands = _call(node)
    if name == "Symbol":
        yield from _literals(operands, str)
    elif name not in (*_LITERALS, "Rational"):
        for operand in operands:
            yield from _symbols(operand)


def _shown(node: ast.expr) -> str:
    name, operands = _call(node)
    if name == "Symbol":
        return " ".join(_literals(operands, str))
    if name in _LITERALS:
        return str(_number(name, operands))
    parts = [ast.unparse(operand) if name == "Rational" else _shown(operand) for operand in operands]
    return _INFIX[name].join(parts) if name in _INFIX else f"{name}({', '.join(parts)})"


# The sizes of extents that a program leaves open, from the extents that a user gives for its inputs.

Declared = Sequence[int | str]
"""Extents that are known, and expressions of those that are not."""
Range = tuple[float, float]

# PyTorch assumes of every open extent that it is neither 0 nor 1, and lets it be 1 all the same.
_ASSUMED_MIN = 2


def sizes_of(declared: Mapping[str, Declared], extents: Extents, ranges: Mapping[str, Range]) -> dict[str, int]:
    """The size of each symbol of inputs that are `declared`, within its range.

    Raises `ImportModelError` for extents that stay open, all at once, and for sizes that do not fit.
    """
    sizes: dict[str, int] = {}
    # Expressions of symbols, such as a length with one entry more, follow from inputs that have the symbols alone.
    for name, shape in sorted(declared.items(), key=lambda item: any(map(_is_expression, item[1]))):
        try:
            _bind_input(name, shape, extents, sizes)
        except UnsupportedError as error:
            raise ImportModelError(f"input '{name}' must have known extents: {error}") from error
    extents.check_used()
    for symbol, size in sizes.items():
        minimum, maximum = ranges.get(symbol, (0, math.inf))
        holds = size <= maximum and (size >= minimum or minimum <= _ASSUMED_MIN)
        if not holds:
            raise ImportModelError(f"extent '{symbol}' must be in [{minimum}, {maximum}], but got {size}")
    return sizes


def _is_expression(part: int | str) -> bool:
    try:
        return isinstance(part, str) and not shown(part).isidentifier()
    except UnsupportedError:
        # Whoever evaluates it tells why it cannot be read, with the name of its input.
        return True


def open_shape(declared: Declared) -> tuple[int | str, ...]:
    """Extents with expressions as people write them."""
    return tuple(shown(part) if isinstance(part, str) else part for part in declared)


def number(text: str, sizes: Mapping[str, int], name: str) -> Number:
    """The value of an expression; raises `ImportModelError` where `name` is not known before the network runs."""
    try:
        return evaluate(text, sizes)
    except UnsupportedError as error:
        raise ImportModelError(f"'{name}' must have known extents: {error}") from error


def extent_of(text: str, sizes: Mapping[str, int], name: str) -> int:
    """The size of an extent of the tensor `name`, -1 where it depends on data.

    Raises `ImportModelError` for a text that is no expression of extents.
    """
    try:
        return int(evaluate(text, sizes)) if set(symbols_of(text)) <= sizes.keys() else -1
    except UnsupportedError as error:
        raise ImportModelError(f"'{name}' must have known extents: {error}") from error


def _bind_input(name: str, shape: Declared, extents: Extents, sizes: dict[str, int]) -> None:
    # The expressions whose symbols have sizes by now.
    texts = [part for part in shape if isinstance(part, str) and symbols_of(part) <= sizes.keys()]
    found = extents.shape(name, open_shape(shape), {shown(text): int(evaluate(text, sizes)) for text in texts})
    for part, size in zip(shape, found, strict=True):
        if isinstance(part, str):
            _bind(part, size, sizes)


def _bind(text: str, size: int, sizes: dict[str, int]) -> None:
    """Take the size of an expression for that of its symbol."""
    unknown = symbols_of(text) - sizes.keys()
    if len(unknown) == 1:
        (symbol,) = unknown
        at_zero, at_one = (evaluate(text, {**sizes, symbol: value}) for value in (0, 1))
        slope = at_one - at_zero
        sizes[symbol] = int((size - at_zero) // slope) if slope else size
    if len(unknown) > 1:
        raise ImportModelError(f"extent '{shown(text)}' must have one symbol that no other extent has")
    found = evaluate(text, sizes)
    if found != size:
        raise ImportModelError(f"extent '{shown(text)}' must be one for all inputs, but got {found} and {size}")
