"""Padding that ops read around their data; phases of transposed convolutions; tensors inside padded ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from qdialect import dialect as qnn
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.lowering.qnn_to_linalg.program.operands import known_number
from qdialect.lowering.qnn_to_linalg.program.program import Pads, Storage, image_shape, signed_shift

# A transposed convolution as ordinary ones: one for each phase of the result's rows and columns.
#
# Along one dimension, with stride s, dilation d and p elements cut off, ``y = v*s + i*d - p`` tells which tap i meets
# which element v in element y of the result.  For all y with the same ``y mod s`` these are the same taps, every
# ``s / gcd(s, d)``-th one; from one such y to the next v grows by 1, from one of these taps to the next it falls by
# ``d / gcd(s, d)``.  So a phase is a convolution of stride 1 and that dilation by its taps in reverse, which writes
# every s-th element.


@dataclass(frozen=True)
class TransposedPhase:
    """The elements ``start, start + s, ...`` of the result along one dimension."""

    start: int
    count: int
    taps: tuple[int, ...]
    """In the order in which the window meets them; empty where no tap meets these elements."""
    first: int
    """The element of the data under the first tap of the first window; negative before the data."""
    dilation: int

    @property
    def last(self) -> int:
        """The element of the data under the last tap of the last window."""
        return self.first + self.count - 1 + (len(self.taps) - 1) * self.dilation


def phases(extent: int, kernel: int, stride: int, cut: int, dilation: int) -> list[TransposedPhase]:
    """The phases of a result of `extent` elements; `cut` elements before the first one were cut off."""
    found: list[TransposedPhase] = []
    for start in range(min(stride, extent)):
        taps = tuple(i for i in reversed(range(kernel)) if (start + cut - i * dilation) % stride == 0)
        first = (start + cut - taps[0] * dilation) // stride if taps else 0
        found.append(
            TransposedPhase(start, len(range(start, extent, stride)), taps, first, dilation // gcd(dilation, stride))
        )
    return found


def border(found: list[TransposedPhase], size: int) -> tuple[int, int]:
    """How many elements before and after data of `size` elements the windows of all phases read."""
    reading = [phase for phase in found if phase.taps]
    before = max((-phase.first for phase in reading), default=0)
    after = max((phase.last - (size - 1) for phase in reading), default=0)
    return max(before, 0), max(after, 0)


def transposed_phases(
    op: qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp,
) -> tuple[list[TransposedPhase], list[TransposedPhase]]:
    """The phases of a transposed convolution's rows and columns."""
    extents, kernel = shape_of(op.operation.results[0].type)[1:3], shape_of(op.weight.type)[1:3]
    rows, columns = (phases(extents[i], kernel[i], op.strides[i], op.padding[i], op.dilation[i]) for i in range(2))
    return rows, columns


def transposed_pads(op: qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp) -> Pads:
    """The padding that a transposed convolution reads around its data."""
    rows, columns = transposed_phases(op)
    size = shape_of(op.data.type)
    (top, bottom), (left, right) = border(rows, size[1]), border(columns, size[2])
    return top, left, bottom, right


# The padding that an op reads around its data: its extents, and the stored value that must be there.

Transposed = qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp
Convolution = qnn.Conv2DOp | qnn.FusedConv2DOp | Transposed


@dataclass(frozen=True)
class Padding:
    """The padding that a consumer reads around an image: its extents, and the stored value that must be there."""

    pads: Pads
    fill: int

    def joined(self, other: Padding) -> Padding:
        """Padding that is enough for both, which have the same fill."""
        widest = [max(pair) for pair in zip(self.pads, other.pads, strict=True)]
        return Padding((widest[0], widest[1], widest[2], widest[3]), self.fill)


def padding_of(op: Any) -> Padding | None:
    """The padding that `op` reads around its data; None if it reads none."""
    if not isinstance(op, Convolution | qnn.DynamicConv2DOp | qnn.I16Conv2DOp | qnn.MaxPool2DOp | qnn.AvgPool2DOp):
        return None
    padding = transposed_pads(op) if isinstance(op, Transposed) else op.padding
    if not any(padding):
        return None
    shift = signed_shift(op.data.type)
    if isinstance(op, qnn.I16Conv2DOp):
        fill = 0
    elif isinstance(op, Convolution):
        fill = op.input_zero_point + shift
    elif isinstance(op, qnn.MaxPool2DOp) and element_of(op.data.type) == "i16":
        fill = range_of(op.data.type)[0]
    elif isinstance(op, qnn.DynamicConv2DOp):
        point = known_number(op.zero_point)
        assert point is not None, "the verifier has seen a constant"
        fill = int(point) + shift
    elif isinstance(op, qnn.AvgPool2DOp) and op.count_include_pad:
        fill = op.zero_point + shift
    else:
        # Zero neither wins a maximum of unsigned quantized values nor adds to a sum of them.
        fill = 0
    return Padding((padding[0], padding[1], padding[2], padding[3]), fill)


# The producer of a tensor that `qnn.pad` pads writes into the middle of the padded tensor; only its border is filled.


@dataclass(frozen=True)
class Middle:
    """Where the data of a padded tensor is: its layout, and its offset in the buffer in elements."""

    storage: Storage
    offset: int


def middle_of(pad: qnn.PadOp, storage: Storage) -> Middle | None:
    """The data inside the result of `pad`, which is stored as `storage`; None if no layout describes it.

    The border of an image becomes its pads.  The data of another tensor is contiguous if only its first dimension of
    more than one entry is padded.
    """
    inner, outer = shape_of(pad.input.type), shape_of(pad.output.type)
    padded = [axis for axis in range(len(inner)) if pad.low[axis] or pad.high[axis]]
    image = image_shape(inner)
    if len(inner) == 4:
        if set(padded) - {1, 2} or any(storage.pads):
            return None
        pads = (pad.low[1], pad.low[2], pad.high[1], pad.high[2])
        return Middle(Storage(image, storage.element, storage.pitch, pads), 0)
    axis = padded[0] if len(padded) == 1 else -1
    if not 0 <= axis < len(inner) - 1 or prod(outer[:axis]) != 1:
        return None
    row = prod(outer[axis + 1 : -1]) * storage.pitch
    return Middle(Storage(image, storage.element, storage.pitch), pad.low[axis] * row)
