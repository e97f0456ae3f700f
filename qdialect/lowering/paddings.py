"""What an op reads around its data: how far, and which stored value must be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qdialect.dialect import (
    AvgPool2DOp,
    Conv2DOp,
    ConvTranspose2DOp,
    DynamicConv2DOp,
    FusedConv2DOp,
    FusedConvTranspose2DOp,
    I16Conv2DOp,
    MaxPool2DOp,
)
from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.lowering.memory.storage import Halo, signed_shift
from qdialect.lowering.operands.constant_operands import known_number
from qdialect.lowering.transposed_phases import transposed_halo

Transposed = ConvTranspose2DOp | FusedConvTranspose2DOp
Convolution = Conv2DOp | FusedConv2DOp | Transposed


@dataclass(frozen=True)
class Padding:
    """What a consumer reads around an image: how far, and which stored value must be there."""

    halo: Halo
    fill: int

    def joined(self, other: Padding) -> Padding:
        """Enough for both; their fill is the same."""
        widest = [max(pair) for pair in zip(self.halo, other.halo, strict=True)]
        return Padding((widest[0], widest[1], widest[2], widest[3]), self.fill)


def padding_of(op: Any) -> Padding | None:
    """The halo that `op` reads around its data; None where it reads none."""
    if not isinstance(op, Convolution | DynamicConv2DOp | I16Conv2DOp | MaxPool2DOp | AvgPool2DOp):
        return None
    padding = transposed_halo(op) if isinstance(op, Transposed) else op.padding
    if not any(padding):
        return None
    shift = signed_shift(op.data.type)
    if isinstance(op, I16Conv2DOp):
        fill = 0
    elif isinstance(op, Convolution):
        fill = op.input_zero_point + shift
    elif isinstance(op, MaxPool2DOp) and element_of(op.data.type) == "i16":
        fill = range_of(op.data.type)[0]
    elif isinstance(op, DynamicConv2DOp):
        point = known_number(op.zero_point)
        assert point is not None, "the verifier has seen a constant"
        fill = int(point) + shift
    elif isinstance(op, AvgPool2DOp) and op.count_include_pad:
        fill = op.zero_point + shift
    else:
        # Zero neither wins a maximum of unsigned quantized values nor adds to a sum of them.
        fill = 0
    return Padding((padding[0], padding[1], padding[2], padding[3]), fill)
