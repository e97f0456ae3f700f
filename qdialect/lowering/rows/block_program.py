"""The calls of a block as parts of one kernel, around which a loop goes from block to block.

What the calls of a block hand to each other is scratch memory of the kernel, small enough to stay near the core.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.program import BufferSlot, Data, Kernel, Program
from qdialect.lowering.text.kernel_text import SCRATCH, Buffer

_BLOCK = "block"


@dataclass(frozen=True)
class Moving:
    """A tensor, and the elements of it that block `i` begins at: ``first + i * step``; `storage` is that of a block."""

    slot: BufferSlot
    first: int
    step: int
    storage: Storage


@dataclass
class BlockProgram(Program):
    """A program whose calls become parts of one kernel of `outer`, which has the constants and the memory."""

    outer: Program = field(kw_only=True)
    kernel: Kernel = field(kw_only=True)
    _macs: int = 0
    _blocks: int = 1
    _buffers: dict[tuple[str, int], Buffer] = field(default_factory=dict[tuple[str, int], Buffer])

    @classmethod
    def of(cls, outer: Program) -> BlockProgram:
        """The program of the blocks of a new kernel of `outer`."""
        kernel = Kernel(outer)
        return cls(
            (), (), outer.strategy, packed_weights=outer.packed_weights, whole=kernel, outer=outer, kernel=kernel
        )

    @contextmanager
    def blocks(self, count: int, tensors: Sequence[Moving]) -> Generator[list[BufferSlot]]:
        """A loop over `count` blocks around the calls inside the `with`; gives the slots of a block's `tensors`."""
        self._blocks, kernel = count, self.kernel
        buffers = [kernel.slot("tensor", moving.slot) for moving in tensors]
        with kernel.loop(count) as index:
            slots: list[BufferSlot] = []
            for moving, buffer in zip(tensors, buffers, strict=True):
                start = kernel.sum(kernel.multiple(index, moving.step), kernel.constant(moving.first, "index"))
                slot = BufferSlot(_BLOCK, len(self._buffers), moving.storage, signed=moving.slot.signed)
                self._buffers[_BLOCK, slot.index] = kernel.moved(buffer, start)
                slots.append(slot)
            yield slots

    def finish(self, label: str) -> None:
        """Append the call of the kernel."""
        self.outer.call(self.kernel, label, self._macs)

    def known_buffer(self, slot: BufferSlot) -> Buffer | None:
        """What the kernel has for a tensor of a block, or for scratch memory."""
        return self._buffers.get((slot.kind, slot.index))

    def buffer(self, storage: Storage) -> BufferSlot:
        """New scratch memory of the kernel."""
        slot = self.outer.buffer(storage)
        known = self.outer.known_buffer(slot)
        self._buffers[slot.kind, slot.index] = known or self.kernel.parameter("scratch", slot, note=SCRATCH)
        return slot

    def constant(self, array: NDArray[Any]) -> Data:
        """See `Program`."""
        return self.outer.constant(array)

    def call(self, kernel: Kernel, label: str, macs: int = 0) -> None:
        """Put `kernel` into the loop."""
        self.kernel.insert(kernel)
        self._macs += macs * self._blocks
