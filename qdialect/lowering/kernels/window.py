"""The geometry of a sliding window over a stored tensor."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.lowering.memory.storage import Storage


@dataclass(frozen=True)
class Grid:
    """Which pixels of a stored tensor a kernel writes or adds: from `start` on every `steps`, along H and W."""

    start: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (1, 1)

    def origin(self, storage: Storage) -> int:
        """Offset of the first pixel."""
        return storage.origin + self.start[0] * storage.strides[1] + self.start[1] * storage.strides[2]

    def pixel_strides(self, storage: Storage) -> tuple[int, int, int]:
        """Elements from one pixel to the next, along N, H and W."""
        image, row, column, _ = storage.strides
        return image, self.steps[0] * row, self.steps[1] * column


EVERY_PIXEL = Grid()


@dataclass(frozen=True)
class Window:
    """Output pixels and kernel taps of a convolution or a pool, as steps over the stored input."""

    images: int
    output: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    """Rows above and columns left of the first pixel; negative where the first window starts inside."""

    def start(self, data: Storage) -> int:
        """Offset of the first tap of the first window; the halo must hold the padding."""
        return data.origin - self.padding[0] * data.strides[1] - self.padding[1] * data.strides[2]

    def pixel_strides(self, data: Storage) -> tuple[int, int, int]:
        """Input elements from one output pixel to the next, along N, H and W."""
        image, row, column, _ = data.strides
        return image, self.strides[0] * row, self.strides[1] * column

    def tap_strides(self, data: Storage) -> tuple[int, int]:
        """Input elements from one tap to the next, along H and W."""
        return self.dilation[0] * data.strides[1], self.dilation[1] * data.strides[2]

    @property
    def pixels(self) -> tuple[int, int, int]:
        """Output extents along N, H and W."""
        return self.images, *self.output
