"""How much an import may compute beside what the file holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.common import require

_MIN_BYTES = 2**28
_BYTES_FOR_EACH = 16
# A Python integer and its slot in a tuple.
_INDEX_BYTES = 64


@dataclass
class Budget:
    """The bytes of constants and lists of indices that are made while a model is read.

    A few bytes of a file can ask for any number of them (Expand, Tile, Range, a border of a tensor): a model may make
    256 MiB and 16 bytes for each of its own, all its nodes together.
    """

    maximum: int = _MIN_BYTES
    spent: int = 0

    @classmethod
    def of_file(cls, size: int) -> Budget:
        """What a file of `size` bytes may ask for."""
        return cls(_MIN_BYTES + _BYTES_FOR_EACH * size)

    def spend_constant(self, shape: Sequence[int], item_size: int) -> None:
        """Account for a constant that is about to be made; raises `UnsupportedError` where it is too large."""
        check_shape(shape, "constant")
        self.spend(math.prod(shape) * item_size, f"a constant of shape {list(shape)}")

    def spend_indices(self, count: int) -> None:
        """Account for a list of `count` indices; raises `UnsupportedError` where that is too many."""
        self.spend(count * _INDEX_BYTES, f"{count} indices")

    def spend(self, count: int, what: str) -> None:
        """Account for `count` bytes; raises `UnsupportedError` where they are not left."""
        left = self.maximum - self.spent
        require(
            count <= left,
            f"constants that a model makes must have at most {self.maximum} bytes, but {left} are left for {what}",
        )
        self.spent += count


def check_shape(shape: Sequence[int], what: str) -> None:
    """Raise `UnsupportedError` where a tensor of `shape` has a negative extent or more than 2^31 - 1 elements."""
    require(all(extent >= 0 for extent in shape), f"{what} must have extents of at least 0, but got {list(shape)}")
    require(is_shape(shape), f"{what} must have at most {MAX_ELEMENTS} elements, but has the shape {list(shape)}")


def is_shape(shape: Sequence[int]) -> bool:
    """Whether a tensor can have the extents `shape`, some of them perhaps zero."""
    return min(shape, default=0) >= 0 and max(math.prod(shape), *shape, 0) <= MAX_ELEMENTS
