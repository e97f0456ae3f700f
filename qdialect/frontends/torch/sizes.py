"""The sizes of extents that a program leaves open, from what a user says about its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.common import UnsupportedError
from qdialect.frontends.extents import Extents
from qdialect.frontends.torch.symbols import Number, evaluate, shown, symbols_of

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
    for name, shape in declared.items():
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


def open_shape(declared: Declared) -> tuple[int | str, ...]:
    """Extents with expressions as people write them."""
    return tuple(shown(part) if isinstance(part, str) else part for part in declared)


def number(text: str, sizes: Mapping[str, int], name: str) -> Number:
    """What an expression is; raises `ImportModelError` where `name` is not known before the network runs."""
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
    found = extents.shape(name, open_shape(shape), _known(shape, sizes))
    for part, size in zip(shape, found, strict=True):
        if isinstance(part, str):
            _bind(part, size, sizes)


def _known(shape: Declared, sizes: Mapping[str, int]) -> dict[str, int]:
    """The expressions of a shape whose symbols have sizes by now."""
    texts = [part for part in shape if isinstance(part, str) and symbols_of(part) <= sizes.keys()]
    return {shown(text): int(evaluate(text, sizes)) for text in texts}


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
