"""Products of two stored tensors: the right operand is packed at run time, then it is a contraction like any other.

The packed form is that of constant weights (see `matrix_packing`).  With stored values x and w, zero points z_x and
z_w, w' = w - 128 and z' = z_w - 128,

  sum (x - z_x)(w - z_w) = sum x w'  -  z' sum x  +  K z_x z_w  -  z_x sum w

The sum over the data is the column of ones as for constant weights; the sums of the columns of w go into what the
accumulators start from, by a kernel of their own unless z_x is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction_micro_kernel import (
    Columns,
    ContractionMicroKernel,
    DeclaredColumns,
    SumOfProducts,
)
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.matrix_packing import K_GROUP, Matrices, packed_view
from qdialect.lowering.kernels.packed_weights import correction_of
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.memory.views import Axis, View
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.kernel_text import Buffer, Operand, Tensor


@dataclass(frozen=True)
class PackedMatrices:
    """Matrices where the micro-kernels read them; `start` is int32[channels], or a slot with [matrix, lane]."""

    matrices: Matrices
    slot: BufferSlot
    start: NDArray[np.int32] | BufferSlot


@dataclass(frozen=True)
class Product(SumOfProducts):
    """``output[group, row, n] = sum_k data[group, row, k] * matrix[group][k, n]``."""

    right: PackedMatrices
    points: NDArray[np.int32]
    """What is left of the zero points of the right operand, by channel."""
    groups: Axis
    """Steps of data, output, perhaps residual, and of the matrix."""
    rows: Sequence[Axis]
    """Steps of data, output and perhaps residual."""
    offsets: tuple[int, ...]
    """Of data, output, perhaps residual, and of the matrix."""

    @property
    def channels(self) -> int:
        return self.right.matrices.channels

    @property
    def macs(self) -> int:
        rows = prod(axis.size for axis in self.rows) * self.groups.size
        return rows * self.right.matrices.depth * self.channels

    @property
    def zero_points(self) -> NDArray[np.int32]:
        return self.points

    def start(self, operand: int) -> int:
        return self.slots[operand].storage.origin + self.offsets[operand]

    def pixel_axes(self) -> list[Axis]:
        return list(self.rows)

    def channel_groups(self) -> list[ChannelGroup]:
        matrices = self.right.matrices
        return [ChannelGroup(self.groups.size, 0, 0, matrices.depth, matrices.channels, 1, self.groups.strides[:-1])]

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        return ReductionAxes((group.channels_in,), (), 0, np.ones((1, 1, 1, group.channels_in), np.int8))

    def declare_columns(self, kernel: Kernel) -> Columns:
        packed, start = kernel.slot("packed", self.right.slot), self.right.start
        sums = kernel.slot("start", start) if isinstance(start, BufferSlot) else start
        return _StoredColumns(self, packed, sums)


@dataclass(frozen=True)
class _StoredColumns:
    """Packed matrices as the columns of a micro-kernel."""

    product: Product
    packed: Buffer
    start: Buffer | NDArray[np.int32]

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare views of the micro-kernel's channels; every stored value minus 128 fits s8."""
        factor = self.product.factor_of_ones(micro_kernel.kernel.program.strategy)
        correction = correction_of(self.product.points, micro_kernel.tiles, micro_kernel.axes, factor)
        return DeclaredColumns(self._weights(micro_kernel), self._bias(micro_kernel), correction)

    def _weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """The packed channels of the micro-kernel, one group after the other."""
        matrices, block = self.product.right.matrices, micro_kernel.tiles.block
        view = packed_view(matrices, block)
        size = block.channels * matrices.k_groups * K_GROUP
        offset = view.offset + self.product.offsets[-1] * size
        count, stride = self.product.groups.size, self.product.groups.strides[-1]
        if count == 1:
            return micro_kernel.kernel.read(self.packed, View(view.sizes, view.strides, offset))
        return micro_kernel.kernel.read(self.packed, View((count, *view.sizes), (stride * size, *view.strides), offset))

    def _bias(self, micro_kernel: ContractionMicroKernel) -> Operand:
        """The start of the micro-kernel's channels, one group after the other where they differ."""
        tiles = micro_kernel.tiles
        if not isinstance(self.start, Buffer):
            return Operand(micro_kernel.constant("bias", tiles.per_channel(self.start)), micro_kernel.channel_loops)
        lanes, block = self.product.right.matrices.lanes, tiles.block
        offset = self.product.offsets[-1] * lanes + block.start
        strides = (block.vectors * block.lanes, block.lanes, 1)
        if micro_kernel.groups:
            strides = (self.product.groups.strides[-1] * lanes, *strides)
        view = View(tiles.sizes, strides, offset)
        return Operand(micro_kernel.kernel.read(self.start, view), (*micro_kernel.groups, "nt", "nv", "nl"))
