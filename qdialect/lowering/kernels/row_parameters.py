"""Numbers that a kernel's epilogue reads from memory: one for each row of the result, or one for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.lowering.kernels.segments import Segment
from qdialect.lowering.memory.views import Axis, View
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.kernel_text import Buffer, Operand
from qdialect.lowering.text.scalar_body import Value


@dataclass(frozen=True)
class RowParameter:
    """A stored tensor, and how far it moves from one pixel to the next along N, H and W."""

    name: str
    slot: BufferSlot
    steps: tuple[int, int, int]

    def declare(self, kernel: Kernel) -> Buffer:
        """The buffer as a parameter of `kernel`."""
        return kernel.slot(self.name, self.slot)

    def operand(self, kernel: Kernel, buffer: Buffer, segment: Segment, index: int) -> Operand:
        """The numbers of a segment's pixels, among whose operands it has this `index`."""
        view, loops = _moving(segment.pixels, segment.loops, index, self.slot.storage.origin + segment.offsets[index])
        return Operand(kernel.read(buffer, view), loops)

    def operand_from(
        self, kernel: Kernel, buffer: Buffer, pixels: Sequence[Axis], loops: Sequence[str], index: int, start: Value
    ) -> Operand:
        """The numbers of `pixels` along `loops`, the first of which stands at `start`."""
        view, moving = _moving(pixels, loops, index, 0)
        return Operand(kernel.read(buffer, view, start), moving)

    def single(self, kernel: Kernel, buffer: Buffer) -> Operand:
        """The one number of all pixels."""
        assert not any(self.steps), "there is one number for all pixels"
        return Operand(kernel.read(buffer, View((), (), self.slot.storage.origin)), ())


def _moving(pixels: Sequence[Axis], loops: Sequence[str], index: int, offset: int) -> tuple[View, tuple[str, ...]]:
    """The axes of `pixels` along which operand `index` moves, and their loops."""
    moving = [(axis, loop) for axis, loop in zip(pixels, loops, strict=True) if axis.strides[index]]
    sizes, strides = tuple(axis.size for axis, _ in moving), tuple(axis.strides[index] for axis, _ in moving)
    return View(sizes, strides, offset), tuple(loop for _, loop in moving)
