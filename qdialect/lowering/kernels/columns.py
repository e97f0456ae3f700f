"""Weights and bias that are known when a network is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.lowering.kernels.contraction_micro_kernel import ContractionMicroKernel, DeclaredColumns, Remainder
from qdialect.lowering.kernels.packed_weights import ContractionWeights, PackedRemainder, pack_weights
from qdialect.lowering.operands.packing import widened_k_groups
from qdialect.lowering.text.kernel_text import Operand


@dataclass(frozen=True)
class ConstantColumns:
    """Weights and bias that are packed into the constants of each micro-kernel."""

    weights: ContractionWeights

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare the packed weights of the micro-kernel's channels."""
        strategy, in_pairs = micro_kernel.kernel.program.strategy, micro_kernel.tiles.block.in_pairs
        factor = micro_kernel.op.factor_of_ones(strategy)
        packed = pack_weights(self.weights, micro_kernel.tiles, micro_kernel.axes, factor)
        are_words = not in_pairs and strategy.are_words(micro_kernel.op.pixel_count)
        own = widened_k_groups(packed.weights) if are_words else packed.weights
        weights = micro_kernel.constant("weights", own, is_weight=True)
        bias = Operand(micro_kernel.constant("bias", packed.bias), micro_kernel.channel_loops)
        remainder = [_declare(micro_kernel, index, k_group) for index, k_group in enumerate(packed.remainder)]
        return DeclaredColumns(weights, bias, packed.correction, remainder, are_words)


def _declare(micro_kernel: ContractionMicroKernel, index: int, k_group: PackedRemainder) -> Remainder:
    name = f"remainder{index}"
    offset = micro_kernel.kernel.number(micro_kernel.name_of(f"{name}_offset"), k_group.offset, "index")
    return Remainder(offset, micro_kernel.constant(name, k_group.weights, is_weight=True))
