"""Type constraints of operands and results, and the element types of quantized values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from qdialect.arithmetic import QuantParams
from qdialect.ir._mlir import ir

ELEMENT_RANGES = {
    "i8": (-128, 127),
    "ui8": (0, 255),
    "i16": (-(2**15), 2**15 - 1),
    "ui16": (0, 2**16 - 1),
    "i32": (-(2**31), 2**31 - 1),
}
"""Smallest and largest value of each integer element type; `i8` is signed, `ui8` unsigned."""
NARROW_ELEMENTS = ("i8", "ui8", "i16", "ui16")
"""Those whose every value is a float32 number, in any rounding mode."""

NUMPY_DTYPES = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "ui16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
SMALL_FLOATS = ("f16", "bf16")
"""Those that are computed with as f32 numbers: only casts and what moves elements take them."""
ELEMENT_NAMES: Mapping[np.dtype[np.generic], str] = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


MAX_ELEMENTS = 2**31 - 1
"""Of one tensor: offsets into it stay far from the end of every index type."""


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    """Shape of a ranked tensor type."""
    return tuple(ir.RankedTensorType(type_).shape)


def element_of(type_: ir.Type) -> str:
    """The name of a ranked tensor type's elements (``"ui8"``)."""
    return element_name(ir.RankedTensorType(type_).element_type)


def element_name(element: ir.Type) -> str:
    """The name of an element type, as MLIR writes it; one that `NUMPY_DTYPES` leaves out is for messages alone."""
    if isinstance(element, ir.IntegerType):
        sign = "u" if element.is_unsigned else "s" if element.is_signed else ""
        return f"{sign}i{element.width}"
    return "f32" if isinstance(element, ir.F32Type) else str(element)


def dtype_of(type_: ir.Type) -> np.dtype[np.generic]:
    """NumPy dtype of a ranked tensor type's elements."""
    return NUMPY_DTYPES[element_of(type_)]


def range_of(type_: ir.Type) -> tuple[int, int]:
    """Smallest and largest value that the elements of a tensor type can hold."""
    return ELEMENT_RANGES[element_of(type_)]


@dataclass(frozen=True)
class TypeConstraint:
    """A statically shaped ranked tensor of one of `elements`, of `rank` where that is fixed.

    It has at least one element unless it `may_be_empty`, at most `MAX_ELEMENTS`, and no encoding.
    """

    elements: tuple[str, ...]
    rank: int | None = None
    may_be_empty: bool = False

    def problem(self, type_: ir.Type) -> str | None:
        """The requirement that the type violates, or None."""
        if not isinstance(type_, ir.RankedTensorType) or not self._holds(type_):
            return str(self)
        if type_.encoding is not None:
            return f"{self} without encoding"
        return None if math.prod(type_.shape) <= MAX_ELEMENTS else f"{self} with at most {MAX_ELEMENTS} elements"

    def _holds(self, type_: ir.RankedTensorType) -> bool:
        rank_holds = self.rank is None or type_.rank == self.rank
        in_elements = element_name(type_.element_type) in self.elements
        is_static = type_.has_static_shape and (self.may_be_empty or 0 not in type_.shape)
        return rank_holds and in_elements and is_static

    def __str__(self) -> str:
        rank = "" if self.rank is None else f"{self.rank}-d "
        non_empty = "" if self.may_be_empty else "non-empty "
        return f"a {rank}{non_empty}static tensor of {' or '.join(self.elements)}"


EIGHT_BIT = TypeConstraint(("i8", "ui8"))
IMAGE = TypeConstraint(("i8", "ui8"), rank=4)
WEIGHT_4D = TypeConstraint(("i8", "ui8"), rank=4)
WEIGHT_2D = TypeConstraint(("i8", "ui8"), rank=2)
SIGNED = TypeConstraint(("i8",))
BYTES_2D = TypeConstraint(("ui8",), rank=2)
BLOCK_ZERO_POINTS = TypeConstraint(("ui8", "f32"), rank=2)
BIAS = TypeConstraint(("i32",), rank=1)
FUSED_BIAS = TypeConstraint(("i32", "f32"), rank=1)
ACCUMULATOR = TypeConstraint(("i32",))
INTEGER = TypeConstraint(tuple(ELEMENT_RANGES))
FLOAT = TypeConstraint(("f32",))
FLOAT_1D = TypeConstraint(("f32",), rank=1)
FLOAT_2D = TypeConstraint(("f32",), rank=2)
FLOAT_3D = TypeConstraint(("f32",), rank=3)
FLOAT_4D = TypeConstraint(("f32",), rank=4)
INDEX = TypeConstraint(("i32", "i64"))
INDEX_LIST = TypeConstraint(("i32", "i64"), rank=1)
ANY = TypeConstraint(tuple(NUMPY_DTYPES))
COMPUTED = TypeConstraint(tuple(name for name in NUMPY_DTYPES if name not in SMALL_FLOATS))
"""Those that ops compute with."""
ANY_OR_EMPTY = TypeConstraint(tuple(NUMPY_DTYPES), may_be_empty=True)


@dataclass(frozen=True)
class QuantizedType(QuantParams):
    """Per-tensor parameters and the element type, ``i8`` or ``ui8``."""

    element: str

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest value that the element type holds."""
        return ELEMENT_RANGES[self.element]
