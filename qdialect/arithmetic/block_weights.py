"""Weights of 2, 4 or 8 bits in blocks with scales of their own: packed bytes, f32 values, products with f32 rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.machine import multiply_add

F32Array = NDArray[np.float32]
U8Array = NDArray[np.uint8]

WEIGHT_BITS = (2, 4, 8)
"""Bits of a weight that packed bytes hold."""
BLOCK_STEP = 16
"""Blocks are a multiple of it, or whole rows."""
_TILE = 64
SMALLEST_MAXIMUM = np.float32(2.0**-120)
"""Below it ``127 / m`` may be infinite, and a block counts as zeros."""


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` values of `bits` bits."""
    return -(-count * bits // 8)


def pack(values: NDArray[np.integer[Any]], bits: int) -> U8Array:
    """Values in [0, 2^bits) of shape [..., K] as bytes [..., ceil(K * bits / 8)], the first in the lowest bits."""
    per_byte, count = 8 // bits, values.shape[-1]
    padding = [(0, 0)] * (values.ndim - 1) + [(0, -count % per_byte)]
    padded = np.pad(values.astype(np.uint8), padding)
    packed = padded[..., ::per_byte].copy()
    for place in range(1, per_byte):
        packed |= padded[..., place::per_byte] << np.uint8(bits * place)
    return packed


def unpack(packed: U8Array, bits: int, count: int) -> U8Array:
    """The first `count` values of each row of `pack`'s result."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    values = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return values.reshape(*packed.shape[:-1], -1)[..., :count]


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """Weights [N, K] as ops have them: packed `weight`, `scales` [N, ceil(K / block)], zero points f32 or packed."""

    weight: U8Array
    scales: F32Array
    zero_points: NDArray[Any] | None
    bits: int
    block: int
    depth: int

    @property
    def operands(self) -> tuple[NDArray[Any], ...]:
        """Without zero points that are left out."""
        return (self.weight, self.scales, *(() if self.zero_points is None else (self.zero_points,)))


def pack_weights(
    integers: NDArray[np.integer[Any]], scales: F32Array, zero_points: NDArray[Any] | None, size: int
) -> PackedWeights | None:
    """The weights ``(q - z) * s`` of integers [N, K] in blocks of `size`, of as few bits as hold all integers.

    Scales and zero points, which are 0 where they are left out, are [N, ceil(K / size)].  None where no op takes such
    weights: integers of more than 8 bits, blocks of other sizes, zero points that are lost in float32.
    """
    depth, block = integers.shape[-1], min(size, integers.shape[-1])
    if integers.dtype.itemsize > 1 or 0 in integers.shape or (block % BLOCK_STEP and block < depth):
        return None
    is_signed = integers.dtype.kind == "i"
    points = np.zeros(scales.shape, np.int8) if zero_points is None else zero_points
    of_points = _bits_of(points, is_signed) if points.dtype.kind in "iu" else None
    bits = max(_bits_of(integers, is_signed) or max(WEIGHT_BITS), of_points or 0)
    # A signed number of b bits is an unsigned one less 2^(b - 1).
    offset, held = 2 ** (bits - 1) * is_signed, None
    if of_points is None:
        held = points.astype(np.float32) + np.float32(offset)
        if bool((held - np.float32(offset) != points).any()):
            return None
    elif bool((points.astype(np.int64) + offset != 2 ** (bits - 1)).any()):
        held = pack(points.astype(np.int64) + offset, bits)
    weight = pack(_row_major(integers).astype(np.uint8) + np.uint8(offset), bits)
    return PackedWeights(weight, scales, held, bits, block, depth)


def _row_major(matrix: NDArray[Any]) -> NDArray[Any]:
    """A matrix that lies row by row; what is turned is copied in tiles that the cache holds."""
    if matrix.flags.c_contiguous:
        return matrix
    copy = np.empty(matrix.shape, matrix.dtype)
    for i, j in product(*(range(0, extent, _TILE) for extent in matrix.shape)):
        copy[i : i + _TILE, j : j + _TILE] = matrix[i : i + _TILE, j : j + _TILE]
    return copy


def _bits_of(numbers: NDArray[np.integer[Any]], is_signed: bool) -> int | None:
    """The fewest bits that hold all of them; None where none do."""
    low, high = int(numbers.min()), int(numbers.max())
    offsets = {bits: 2 ** (bits - 1) * is_signed for bits in WEIGHT_BITS}
    return next((b for b, offset in offsets.items() if low + offset >= 0 and high + offset < 2**b), None)


@dataclass(frozen=True)
class BlockWeights:
    """Unsigned `quantized` [N, K], `scales` and `zero_points` f32 [N, ceil(K / block)]."""

    quantized: U8Array
    scales: F32Array
    zero_points: F32Array
    block: int

    @classmethod
    def unpacked(
        cls, weight: U8Array, scales: F32Array, zero_points: NDArray[Any] | None, bits: int, block: int, depth: int
    ) -> BlockWeights:
        """From packed weights, and zero points that are f32, packed alike, or left out: ``2^(bits - 1)``."""
        if zero_points is None:
            points = np.full(scales.shape, 2 ** (bits - 1), np.float32)
        elif zero_points.dtype == np.float32:
            points = zero_points
        else:
            points = unpack(zero_points, bits, scales.shape[1]).astype(np.float32)
        return cls(unpack(weight, bits, depth), scales, points, block)

    @property
    def depth(self) -> int:
        """K."""
        return self.quantized.shape[1]

    def differences(self) -> F32Array:
        """``q - z``, f32 [N, K]; exact where zero points are integers."""
        with np.errstate(all="ignore"):
            return self.quantized.astype(np.float32) - self._spread(self.zero_points)

    def values(self) -> F32Array:
        """``round((q - z) * s)``, f32 [N, K]."""
        with np.errstate(all="ignore"):
            return self.differences() * self._spread(self.scales)

    def _spread(self, by_block: F32Array) -> F32Array:
        return np.repeat(by_block, self.block, axis=1)[:, : self.depth]


def ordered_product(data: F32Array, matrix: F32Array, *, is_rounded: bool = False) -> F32Array:
    """``y = fma(x_k, w_k, y)``, k ascending, from zero: data [..., K] times matrix [N, K], giving [..., N].

    A product that `is_rounded` is so before it is added.
    """
    total = np.zeros((*data.shape[:-1], len(matrix)), np.float32)
    with np.errstate(all="ignore"):
        for k in range(data.shape[-1]):
            x, w = data[..., k, np.newaxis], matrix[:, k]
            total = x * w + total if is_rounded else multiply_add(x, w, total)
    return total


def product_by_blocks(data: F32Array, weights: BlockWeights) -> F32Array:
    """``y = fma(t, s, y)``, blocks ascending, from zero; t is the `ordered_product` of a block with ``q - z``."""
    total, differences = np.zeros((*data.shape[:-1], len(weights.scales)), np.float32), weights.differences()
    for index, scales in enumerate(weights.scales.T):
        part = slice(index * weights.block, (index + 1) * weights.block)
        with np.errstate(all="ignore"):
            total = multiply_add(ordered_product(data[..., part], differences[:, part]), scales, total)
    return total


def quantize_blocks(data: F32Array, block: int, f16_scales: bool) -> tuple[NDArray[np.int32], F32Array]:
    """Rows [..., K] as 8-bit integers in blocks along K, and the scales [..., ceil(K / block)].

    With ``m = max |x|`` of a block, an integer is ``rint(x * (127 / m))``, ties to even, or 0 where m is below 2^-120,
    and the scale is ``m / 127``, rounded to float16 with `f16_scales`; NaN where a number of the block is not finite.
    """
    depth = data.shape[-1]
    blocks = -(-depth // block)
    padded = np.pad(data, [(0, 0)] * (data.ndim - 1) + [(0, blocks * block - depth)])
    padded = padded.reshape(*data.shape[:-1], blocks, block)
    with np.errstate(all="ignore"):
        largest = np.abs(padded).max(axis=-1)
        factors = np.where(largest >= SMALLEST_MAXIMUM, np.float32(127) / largest, np.float32(0))
        values = np.rint(padded * factors[..., None])
        scales = largest / np.float32(127) + (largest - largest)
        scales = scales.astype(np.float16).astype(np.float32) if f16_scales else scales
    integers = np.where(np.isfinite(values), values, 0).astype(np.int32)
    return integers.reshape(*data.shape[:-1], -1)[..., :depth], scales


def quantized_product(
    integers: NDArray[np.int32], data_scales: F32Array, weights: BlockWeights, block: int
) -> F32Array:
    """``y = fma(f32(c), round(d * s), y)``, blocks of the rows ascending, from zero; zero points are integers.

    Integers a [..., K] in blocks of `block` have the scales d [..., ceil(K / block)]; c is the exact sum of
    ``a * (q - z)`` of a block, and s the scale of the block of weights that has it.
    """
    total, differences = np.zeros((*integers.shape[:-1], len(weights.scales)), np.float32), weights.differences()
    for index in range(data_scales.shape[-1]):
        part = slice(index * block, (index + 1) * block)
        # Exact in float64.
        count = integers[..., part].astype(np.float64) @ differences[:, part].astype(np.float64).T
        with np.errstate(all="ignore"):
            scales = data_scales[..., index, np.newaxis] * weights.scales[:, index * block // weights.block]
            total = multiply_add(count.astype(np.float32), scales, total)
    return total
