"""Hypothesis strategies for quantization parameters and data, and the frame of a drawn module."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from graphs import graph
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import Multiplier, Rounding
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.ir._mlir import ir

T = TypeVar("T")
EIGHT_BIT = ("i8", "ui8")
# Around every width that kernels have: 4 and 8 lanes, whole vectors, register tiles.
CHANNELS = (*range(1, 18), 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 67)


@dataclass(frozen=True)
class Draw:
    """What a module is drawn from: choices that hypothesis shrinks, and random content from a seed."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    rng: np.random.Generator

    def integer(self, minimum: int, maximum: int) -> int:
        return self.draw(st.integers(minimum, maximum))

    def one_of(self, values: Sequence[T]) -> T:
        return self.draw(st.sampled_from(values))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def element(self) -> str:
        return self.one_of(EIGHT_BIT)

    def channels(self) -> int:
        return self.one_of(CHANNELS)

    def scale(self, minimum: float = 1e-3, maximum: float = 1.0) -> float:
        """A double, which few times is a float32 number: the arithmetic says where it is narrowed."""
        position = self.draw(st.floats(0, 1))
        return minimum * (maximum / minimum) ** position

    def zero_point(self, element: str) -> int:
        """A quantized value, with both ends and the usual ones likely."""
        low, high = ELEMENT_RANGES[element]
        return self.draw(st.sampled_from((low, high, (low + high + 1) // 2)) | st.integers(low, high))

    def bounds(self, element: str) -> tuple[int, int]:
        low, high = ELEMENT_RANGES[element]
        if self.flag():
            return low, high
        first, second = self.integer(low, high), self.integer(low, high)
        return min(first, second), max(first, second)

    def rounding(self) -> Rounding:
        return self.one_of(tuple(Rounding))

    def multiplier(self) -> Multiplier:
        return self.one_of(tuple(Multiplier))

    def quantized(self, element: str, shape: Sequence[int]) -> NDArray[Any]:
        low, high = ELEMENT_RANGES[element]
        return self.rng.integers(low, high, shape, dtype=NUMPY_DTYPES[element], endpoint=True)

    def values_constant(self, element: str, shape: Sequence[int]) -> ir.Value:
        return constant(self.quantized(element, shape))

    def table(self) -> NDArray[np.uint8]:
        return self.rng.integers(0, 256, 256, dtype=np.uint8)

    def scales(self, count: int) -> tuple[float, ...]:
        """One scale, or `count` of them."""
        spread = self.rng.uniform(0.2, 1.0, count if self.flag() else 1)
        return tuple((spread * 0.01).tolist())

    def zero_points(self, element: str, count: int) -> tuple[int, ...]:
        """The symmetric one, one of any value, or `count` of them with both ends among them."""
        low, high = ELEMENT_RANGES[element]
        kind = self.integer(0, 2)
        if kind == 0:
            return ((low + high + 1) // 2,)
        if kind == 1:
            return (self.zero_point(element),)
        values = self.rng.integers(low, high + 1, count)
        values[: min(count, 2)] = (low, high)[:count]
        return tuple(int(value) for value in values)


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


Build = Callable[[Sequence[ir.Value]], ir.Value | list[ir.Value]]
"""Builds a body on the arguments of a function, and gives what it returns."""


def drawn_module(of: Callable[[Draw], tuple[Sequence[str], Build]]) -> st.SearchStrategy[str]:
    """Texts of modules: `of` draws the types of the inputs and the function that builds the body on them."""

    @st.composite
    def module(draw: st.DrawFn) -> str:
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        types, body = of(Draw(draw, rng))

        def on_arguments(*arguments: ir.Value) -> ir.Value | list[ir.Value]:
            return body(arguments)

        return str(graph(types, on_arguments))

    return module()
