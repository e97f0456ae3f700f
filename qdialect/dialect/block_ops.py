"""Products with weights of 2, 4 or 8 bits in blocks that have scales of their own, and rows of such weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic.block_weights import BLOCK_STEP, WEIGHT_BITS, packed_bytes
from qdialect.arithmetic.choices import ActivationScale, BlockActivations, SumOrder
from qdialect.dialect import type_constraints as types
from qdialect.dialect.fields import BOOL, I64, attribute, choice, operand, optional_operand, result
from qdialect.dialect.op_base import QnnOp, Shape, check_row_parameters, require
from qdialect.ir._mlir import ir

_LARGEST_INTEGER_BLOCK = 2**16
"""Weights of a block whose products with bytes an i32 holds."""

LARGEST_DYNAMIC_BLOCK = 2**15
"""The same, where bytes have a zero point."""


class BlockWeightOp(QnnOp):
    """The weight [N, K] has `bits` bits a number: unsigned, packed along K, the first number in the lowest bits.

    Its f32 values are ``round((q - z) * s)``, s and z those of the block of `block` numbers of a row that q is in.
    `scales` has the shape [N, ceil(K / block)]. `zero_points` are f32 of this shape, or bytes packed like weights; left
    out they are 2^(bits - 1). Of the last byte of a row, bits that no number needs have no meaning.

    Constraints:
      C2: bits must be 2, 4 or 8
      C3: block must be a multiple of 16, or K
      C4: scales must be [N, ceil(K / block)]
      C5: zero_points must be f32 as scales are, or bytes [N, ceil(ceil(K / block) * bits / 8)]
    """

    bits = attribute(I64)
    block = attribute(I64)

    def check_blocks(self, weight: ir.Value, scales: ir.Value, zero_points: ir.Value | None, depth: int) -> None:
        """Constraints C3 to C5, for K = `depth`."""
        block, rows = self.block, types.shape_of(weight.type)[0]
        holds = block > 0 and (block % BLOCK_STEP == 0 or block == depth)
        require(holds, "C3", f"block must be a multiple of {BLOCK_STEP}, or {depth}, but got {block}")
        blocks, found = -(-depth // block), list(types.shape_of(scales.type))
        require(found == [rows, blocks], "C4", f"scales must be {[rows, blocks]}, but got {found}")
        if zero_points is None:
            return
        is_f32, found = types.element_of(zero_points.type) == "f32", list(types.shape_of(zero_points.type))
        wanted = [rows, blocks if is_f32 else packed_bytes(blocks, self.bits)]
        require(found == wanted, "C5", f"zero_points must be {wanted}, but got {found}")


def _require_bits(bits: int) -> None:
    require(bits in WEIGHT_BITS, "C2", f"bits must be 2, 4 or 8, but got {bits}")


def _check_integers(block: int, most: int, zero_points: ir.Value | None) -> None:
    bounds = f"a block of data must have at most {most} weights"
    require(block <= most, "C7", f"{bounds}, but got {block}")
    element = "ui8" if zero_points is None else types.element_of(zero_points.type)
    require(element == "ui8", "C7", f"zero_points must be ui8, but got {element}")


class BlockProductOp(BlockWeightOp):
    """Shared fields: ``[..., K] x [N, K] -> [..., N]``; C1 of each op is checked here."""

    data = operand(types.FLOAT)
    weight = operand(types.BYTES_2D)

    @property
    def depth(self) -> int:
        """K."""
        return types.shape_of(self.data.type)[-1]

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        data, (rows, found), bits = shapes[0], shapes[1], attributes["bits"]
        _require_bits(bits)
        require(len(data) > 0, "C1", "data must have at least 1 dimension, but got 0")
        wanted = packed_bytes(data[-1], bits)
        require(found == wanted, "C1", f"weight must have {wanted} bytes a row, but got {found}")
        return (*data[:-1], rows)


class BlockDenseOp(BlockProductOp, name="block_dense"):
    """Product of f32 data with weights in blocks: ``[..., K] x [N, K] -> [..., N]``.

    With `activations` f32 the data x stays f32, and y is by `order`, from zero and every step rounded once:

    - terms: ``y = fma(x_k, round((q_k - z) * s), y)``, k ascending: `qnn.f32_matmul` of the f32 values, and with
      `rounded_products` that op's, too: a product is rounded before it is added;
    - blocks: ``y = fma(t, s, y)``, blocks ascending, ``t = fma(x_k, q_k - z, t)`` from zero, k ascending;
    - scale_last: ``y * s``, y the t of the one block.

    With `activations` i8_block x is quantized in blocks of `activation_block` numbers of a row, 0 for `block`: from the
    largest magnitude m of a block, ``a = rint(x * (127 / m))``, ties to even, 0 where m is below 2^-120, and
    ``d = m / 127``, rounded to float16 with `activation_scale` f16, NaN where a number is not finite. With the exact
    sum c of ``a * (q - z)`` of a block ``y = fma(f32(c), round(d * s), y)``, blocks ascending, from zero.

    Constraints:
      C1: data must have K as its last dimension, and weight ceil(K * bits / 8) bytes a row
      C6: order scale_last must have one block
      C7: for activations of i8_block a block of data must have at most 65536 weights, and zero_points be bytes
      C8: activation_block must be 0, or a multiple of 16; where there are several blocks it divides block
      C9: rounded_products must go with activations f32 and order terms
    """

    scales = operand(types.FLOAT_2D)
    zero_points = optional_operand(types.BLOCK_ZERO_POINTS)
    activations = attribute(choice(BlockActivations), BlockActivations.F32)
    activation_block = attribute(I64, 0)
    activation_scale = attribute(choice(ActivationScale), ActivationScale.F32)
    order = attribute(choice(SumOrder), SumOrder.TERMS)
    rounded_products = attribute(BOOL, False)
    output = result(types.FLOAT)

    @property
    def data_block(self) -> int:
        """Numbers of a row that are quantized together."""
        return self.activation_block or self.block

    def check(self) -> None:
        self.infer_shape(self.operand_shapes(), {"bits": self.bits})
        self.check_blocks(self.weight, self.scales, self.zero_points, self.depth)
        blocks, size = types.shape_of(self.scales.type)[1], self.activation_block
        holds = blocks == 1 or self.order is not SumOrder.SCALE_LAST
        require(holds, "C6", f"order scale_last must have 1 block, but got {blocks}")
        if self.activations is BlockActivations.I8_BLOCK:
            _check_integers(min(self.data_block, self.depth), _LARGEST_INTEGER_BLOCK, self.zero_points)
        holds = size == 0 or (size > 0 and size % BLOCK_STEP == 0 and (blocks == 1 or self.block % size == 0))
        wanted = f"0, or a multiple of {BLOCK_STEP}" + f" that divides {self.block}" * (blocks > 1)
        require(holds, "C8", f"activation_block must be {wanted}, but got {size}")
        found = self.activations, self.order
        holds = not self.rounded_products or found == (BlockActivations.F32, SumOrder.TERMS)
        require(holds, "C9", f"rounded_products must go with f32 and terms, but got {found[0]} and {found[1]}")


class BlockDynamicDenseOp(BlockProductOp, name="block_dynamic_dense"):
    """Product of i8 data a, quantized at run time, with weights in blocks: ``[..., K] x [N, K] -> [..., N]``, f32.

    `scale` d and `zero_point` z_a are of the data, or of each row, as those of `qnn.dynamic_dense`. With the exact sum
    c of ``(a - z_a) * (q - z)`` of a block ``y = fma(f32(c), round(d * s), y)``, blocks ascending, from zero.

    Constraints:
      C1: data must have K as its last dimension, and weight ceil(K * bits / 8) bytes a row
      C6: scale and zero_point must have 1 element, or the data's shape with a last dimension of 1
      C7: a block must have at most 32768 weights, and zero_points be bytes
    """

    data = operand(types.SIGNED)
    scale = operand(types.FLOAT)
    zero_point = operand(types.SIGNED)
    scales = operand(types.FLOAT_2D)
    zero_points = optional_operand(types.BLOCK_ZERO_POINTS)
    output = result(types.FLOAT)

    def check(self) -> None:
        self.infer_shape(self.operand_shapes(), {"bits": self.bits})
        self.check_blocks(self.weight, self.scales, self.zero_points, self.depth)
        check_row_parameters("C6", self.data, scale=self.scale, zero_point=self.zero_point)
        _check_integers(min(self.block, self.depth), LARGEST_DYNAMIC_BLOCK, self.zero_points)


class BlockGatherOp(BlockWeightOp, name="block_gather"):
    """The f32 values of rows of the weight: row ``indices[...]`` for each index, as ``numpy.take`` along dimension 0.

    K is as many numbers as a row of bytes holds. An index below -N or above N - 1 is taken as the nearest of these.
    """

    indices = operand(types.INDEX)
    weight = operand(types.BYTES_2D)
    scales = operand(types.FLOAT_2D)
    zero_points = optional_operand(types.BLOCK_ZERO_POINTS)
    output = result(types.FLOAT)

    @property
    def depth(self) -> int:
        """K."""
        return types.shape_of(self.output.type)[-1]

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        _require_bits(attributes["bits"])
        return (*shapes[0], shapes[1][1] * 8 // attributes["bits"])

    def check(self) -> None:
        (*_, depth) = self.infer_shape(self.operand_shapes(), {"bits": self.bits})
        self.check_blocks(self.weight, self.scales, self.zero_points, depth)
