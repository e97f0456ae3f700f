"""Where a tensor lives: a flat buffer, perhaps with a halo around each image and lanes beyond its channels.

Inside a compiled network every 8-bit value is stored unsigned: an `i8` value c as the byte c + 128, its zero point and
bounds shifted alike.  So every kernel reads u8, which is what the dot-product instruction takes, and a signed tensor
costs a shifted zero point at compile time, nothing at run time.  An `i1` is a byte of 0 or 1, as in NumPy.

The halo holds a convolution's padding: the producer writes inside it, the consumer reads straight through it.  Only a
user's array, and an image around which two consumers want different values, are copied to get one.  Channels are
rounded up to whole small vectors, so that no kernel has a partial vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir

SLACK = 64
"""Bytes after a buffer of the arena that a kernel may read: contiguous reductions are padded to K groups of 4."""

STORAGE_ELEMENTS = {
    "i1": "i8",
    "i8": "i8",
    "ui8": "i8",
    "i16": "i16",
    "ui16": "i16",
    "i32": "i32",
    "i64": "i64",
    "f32": "f32",
}
_STORED_UNSIGNED = ("i8", "ui8", "ui16")
ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4}

Halo = tuple[int, int, int, int]
NO_HALO: Halo = (0, 0, 0, 0)


def signed_shift(type_: ir.Type) -> int:
    """What is added to a value of this tensor type when it is stored: 128 for `i8`, else 0."""
    return 128 if element_of(type_) == "i8" else 0


def is_stored_unsigned(type_: ir.Type) -> bool:
    """Whether stored quantized values of this tensor type are unsigned integers; all those of 8 bits are."""
    return element_of(type_) in _STORED_UNSIGNED


def widening(type_: ir.Type) -> str:
    """The op that makes a stored value of this tensor type a wider integer."""
    return "arith.extui" if is_stored_unsigned(type_) else "arith.extsi"


def element_bytes(type_: ir.MemRefType) -> int | None:
    """Bytes of an element of a buffer; None for a type that no tensor is stored with."""
    element = type_.element_type
    is_number = isinstance(element, ir.IntegerType | ir.F32Type)
    return element.width // 8 if is_number and element.width in (8, 16, 32, 64) else None


def lanes_for(channels: int) -> int:
    """Channels rounded up to whole vectors: to 4 for up to 4, else to a multiple of 8."""
    return 4 if channels <= 4 else (channels + 7) // 8 * 8


@dataclass(frozen=True)
class Storage:
    """Layout of one tensor: [N, H, W, C] with a halo (top, left, bottom, right) and `pitch` lanes for C channels.

    A tensor of another rank has its leading dimensions in N, and H = W = 1.
    """

    shape: tuple[int, int, int, int]
    element: str
    pitch: int
    halo: Halo = NO_HALO

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width with the halo."""
        top, left, bottom, right = self.halo
        return self.shape[1] + top + bottom, self.shape[2] + left + right

    @property
    def strides(self) -> tuple[int, int, int, int]:
        """Elements between neighbours along N, H, W and C."""
        height, width = self.padded
        return height * width * self.pitch, width * self.pitch, self.pitch, 1

    @property
    def origin(self) -> int:
        """Offset of the first element inside the halo."""
        return self.halo[0] * self.strides[1] + self.halo[1] * self.pitch

    @property
    def length(self) -> int:
        """Elements of the buffer, halo included."""
        return self.shape[0] * self.strides[0]

    def bytes(self) -> int:
        """Size in bytes."""
        return self.length * ELEMENT_BYTES[self.element]

    def live_bytes(self) -> int:
        """Size of the tensor's elements alone, without halo and spare lanes."""
        return math.prod(self.shape) * ELEMENT_BYTES[self.element]


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A shape of any rank as [N, H, W, C]."""
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    return math.prod(shape[:-1]), 1, 1, shape[-1] if shape else 1


def storage_of(type_: ir.Type, halo: Halo = NO_HALO) -> Storage:
    """Layout of a tensor inside the arena: unsigned bytes, channels rounded up to whole vectors."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], lanes_for(shape[3]), halo)


def dense_storage_of(type_: ir.Type) -> Storage:
    """Layout of a user's array."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], shape[3])
