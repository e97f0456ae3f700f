"""Random shapes, quantization parameters and quantized values of a case; the seed is its name."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from qdialect.support.interface import Array

Type = type[np.generic]
Choice = TypeVar("Choice")
BYTES: tuple[Type, Type] = (np.int8, np.uint8)
# The standard deviation of uniform 8-bit values, and how many of them an output's range covers on each side.
_DEVIATION = 74
_COVERED = 25


def covering_scale(left: Array | float, right: Array | float, terms: float) -> float:
    """Of a contraction's output: sums of `terms` products of drawn values cover its range, and few of them clip."""
    return float(np.float32(np.mean(left) * np.mean(right) * _DEVIATION**2 * math.sqrt(terms) / _COVERED))


class Draw:
    """Draws of one case, which no other case shifts."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def one_of(self, *choices: Choice) -> Choice:
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def shape(self, rank: int, high: int) -> tuple[int, ...]:
        return tuple(self.integer(1, high) for _ in range(rank))

    def values(self, shape: Sequence[int], dtype: Type) -> Array:
        """Quantized values over the whole range of `dtype`."""
        info = np.iinfo(np.dtype(dtype).name)
        return self.rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)

    def every_value(self, shape: Sequence[int], dtype: Type) -> Array:
        """Every quantized value equally often, in drawn order; `shape` has a multiple of 256 elements."""
        info = np.iinfo(np.dtype(dtype).name)
        values = np.tile(np.arange(info.min, info.max + 1), math.prod(shape) // 256)
        return self.rng.permutation(values).astype(dtype).reshape(shape)

    def normal(self, shape: Sequence[int], deviation: float = 1) -> Array:
        """Normally distributed f32 numbers."""
        return (self.rng.normal(size=shape) * deviation).astype(np.float32)

    def bias(self, count: int, bound: int) -> Array:
        return self.rng.integers(-bound, bound, count, dtype=np.int32, endpoint=True)

    def zero_point(self, dtype: Type) -> int:
        """An end of the range, its middle, or anywhere in its middle half."""
        info = np.iinfo(np.dtype(dtype).name)
        return self.one_of(info.min, info.max, (info.min + info.max + 1) // 2, *(self.inner_point(dtype),) * 5)

    def inner_point(self, dtype: Type) -> int:
        """Anywhere in the middle half of the range, so that few results clip."""
        info = np.iinfo(np.dtype(dtype).name)
        return self.integer(info.min + 64, info.max - 64)

    def scale(self, low: float, high: float) -> float:
        """A float32 number, log-uniform."""
        return float(np.float32(math.exp(self.rng.uniform(math.log(low), math.log(high)))))

    def scales(self, count: int, low: float, high: float) -> Array:
        return np.array([self.scale(low, high) for _ in range(count)], dtype=np.float32)

    def power_of_two(self, low: int, high: int) -> float:
        """With an exponent from `low` to `high`, both included: quotients often lie half-way between two integers."""
        return 2.0 ** self.integer(low, high)
