"""Weights and bias that are known when a network is compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Operand, Tensor
from qdialect.lowering.kernels.contraction_nest import ContractionNest
from qdialect.lowering.packing import CenteredWeights


@dataclass(frozen=True)
class ConstantColumns:
    """Weights [OC, KH, KW, IC / groups] and bias int32[OC], packed into the constants of each nest."""

    taps: CenteredWeights
    start: NDArray[np.int32]
    beyond: NDArray[np.int8]
    """What is added to the taps, which alone would not fit s8."""

    def weights(self, nest: ContractionNest) -> Tensor:
        """The taps of the nest's channels."""
        return nest.packed("weights", nest.reduction.ordered(nest.group.taps(self.taps.codes)))

    def bias(self, nest: ContractionNest) -> Operand:
        """The bias of the nest's channels."""
        return Operand(nest.per_channel("bias", self.start), nest.channel_loops)

    def excess(self, nest: ContractionNest) -> NDArray[np.int8]:
        """The excess of the nest's channels."""
        return nest.reduction.ordered(nest.group.taps(self.beyond))
