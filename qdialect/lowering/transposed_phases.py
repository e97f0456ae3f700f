"""A transposed convolution as ordinary ones: one for each phase of the result's rows and columns.

Along one dimension, with stride s, dilation d and p elements cut off, ``y = v*s + i*d - p`` says which tap i meets
which element v in element y of the result.  For all y with the same ``y mod s`` these are the same taps, every ``s /
gcd(s, d)``-th one; from one such y to the next v grows by 1, from one of these taps to the next it falls by ``d /
gcd(s, d)``.  So a phase is a convolution of stride 1 and that dilation by its taps in reverse, which writes every s-th
element.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from qdialect.dialect import ConvTranspose2DOp, FusedConvTranspose2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.memory.storage import Halo


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
    op: ConvTranspose2DOp | FusedConvTranspose2DOp,
) -> tuple[list[TransposedPhase], list[TransposedPhase]]:
    """The phases of a transposed convolution's rows and columns."""
    extents, kernel = shape_of(op.operation.results[0].type)[1:3], shape_of(op.weight.type)[1:3]
    rows, columns = (phases(extents[i], kernel[i], op.strides[i], op.padding[i], op.dilation[i]) for i in range(2))
    return rows, columns


def transposed_halo(op: ConvTranspose2DOp | FusedConvTranspose2DOp) -> Halo:
    """What a transposed convolution reads around its data."""
    rows, columns = transposed_phases(op)
    size = shape_of(op.data.type)
    (top, bottom), (left, right) = border(rows, size[1]), border(columns, size[2])
    return top, left, bottom, right
