"""The layout of a tensor: a flat buffer, perhaps with padding around each image and padded channels.

Inside a compiled network every 8-bit value is stored unsigned: an `i8` value c as the byte c + 128, its zero point and
bounds shifted alike.  So every kernel reads u8, which is what the dot-product instruction takes, and a signed tensor
costs a shifted zero point at compile time, nothing at run time.  An `i1` is a byte of 0 or 1, as in NumPy, and a float
of 16 bits an i16 with its bits.

A convolution's padding is part of its input's layout: the producer writes inside it, and the consumer reads it.  Only a
user's array, or an image around which two consumers need different values, is copied to be padded.  Channels are
rounded up to whole small vectors (the padding lanes), so that no kernel has a partial vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir

EXTRA_BYTES = 64
"""Bytes past the end of a buffer of the arena that a kernel may read: contiguous reductions are padded to K groups.

A K group is the 4 bytes along the reduction that one lane of a dot product reads (kr = 4 in XNNPACK, K padded to 4 in
oneDNN's VNNI layouts); of 16-bit data it is 2 values."""

STORAGE_ELEMENTS = {
    "i1": "i8",
    "i8": "i8",
    "ui8": "i8",
    "i16": "i16",
    "ui16": "i16",
    "i32": "i32",
    "i64": "i64",
    "f32": "f32",
    "f16": "i16",
    "bf16": "i16",
}
_STORED_UNSIGNED = ("i8", "ui8", "ui16")
ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4}

Pads = tuple[int, int, int, int]
"""Padding of an image in pixels: top, left, bottom, right."""
NO_PADS: Pads = (0, 0, 0, 0)


def signed_shift(type_: ir.Type) -> int:
    """The number that is added to a value of this tensor type when it is stored: 128 for `i8`, else 0."""
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
    """Layout of one tensor: [N, H, W, C] with `pads` around each image and `pitch` lanes for C channels.

    A tensor of another rank has its leading dimensions in N, and H = W = 1.
    """

    shape: tuple[int, int, int, int]
    element: str
    pitch: int
    pads: Pads = NO_PADS

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width with the padding."""
        top, left, bottom, right = self.pads
        return self.shape[1] + top + bottom, self.shape[2] + left + right

    @property
    def strides(self) -> tuple[int, int, int, int]:
        """Elements between neighbours along N, H, W and C."""
        height, width = self.padded
        return height * width * self.pitch, width * self.pitch, self.pitch, 1

    @property
    def origin(self) -> int:
        """Offset of the first element inside the padding."""
        return self.pads[0] * self.strides[1] + self.pads[1] * self.pitch

    @property
    def length(self) -> int:
        """Elements of the buffer, padding included."""
        return self.shape[0] * self.strides[0]

    def bytes(self) -> int:
        return self.length * ELEMENT_BYTES[self.element]

    def live_bytes(self) -> int:
        """Size of the tensor's elements, without padding around images and padding lanes."""
        return math.prod(self.shape) * ELEMENT_BYTES[self.element]


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """A shape of any rank as [N, H, W, C]."""
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    return math.prod(shape[:-1]), 1, 1, shape[-1] if shape else 1


def storage_of(type_: ir.Type, pads: Pads = NO_PADS) -> Storage:
    """Layout of a tensor inside the arena: unsigned bytes, channels rounded up to whole vectors."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], lanes_for(shape[3]), pads)


def dense_storage_of(type_: ir.Type) -> Storage:
    """Layout of a user's array."""
    tensor = ir.RankedTensorType(type_)
    shape = image_shape(tuple(tensor.shape))
    return Storage(shape, STORAGE_ELEMENTS[element_of(type_)], shape[3])
