"""Weights and bias that are known when a network is compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Operand, Tensor
from qdialect.lowering.kernels.contraction_micro_kernel import ContractionMicroKernel
from qdialect.lowering.packing import CenteredWeights


@dataclass(frozen=True)
class ConstantColumns:
    """Weights [OC, KH, KW, IC / groups] and bias int32[OC], packed into the constants of each micro-kernel."""

    taps: CenteredWeights
    start: NDArray[np.int32]
    remainders: NDArray[np.int8]
    """What is added to the taps, which alone would not fit s8."""

    def weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """The taps of the micro-kernel's channels."""
        return micro_kernel.packed("weights", micro_kernel.reduction.ordered(micro_kernel.group.taps(self.taps.values)))

    def bias(self, micro_kernel: ContractionMicroKernel) -> Operand:
        """The bias of the micro-kernel's channels."""
        return Operand(micro_kernel.per_channel("bias", self.start), micro_kernel.channel_loops)

    def remainder(self, micro_kernel: ContractionMicroKernel) -> NDArray[np.int8]:
        """The clipped weight remainder of the micro-kernel's channels."""
        return micro_kernel.reduction.ordered(micro_kernel.group.taps(self.remainders))
