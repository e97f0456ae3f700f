"""The quantization of a binary op as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from qdialect.quant_math import QuantParams


class PerTensor(Protocol):
    """Anything with the quantization of a tensor: a quantized value q stands for ``scale * (q - zero_point)``."""

    @property
    def scale(self) -> float:
        """Of one quantized value."""
        ...

    @property
    def zero_point(self) -> int:
        """The quantized value that stands for 0."""
        ...


@dataclass(frozen=True)
class BinaryQuantization:
    """What the operands and the result of a `BinaryOp` stand for, and the bounds of the result."""

    lhs: PerTensor
    rhs: PerTensor
    output: PerTensor
    bounds: tuple[int, int]

    @property
    def quant_params(self) -> tuple[QuantParams, QuantParams, QuantParams]:
        """The parameters of lhs, rhs and the result."""
        lhs, rhs, output = (QuantParams(own.scale, own.zero_point) for own in (self.lhs, self.rhs, self.output))
        return lhs, rhs, output

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the op, by name."""
        return {
            "lhs_scale": self.lhs.scale,
            "lhs_zero_point": self.lhs.zero_point,
            "rhs_scale": self.rhs.scale,
            "rhs_zero_point": self.rhs.zero_point,
            "output_scale": self.output.scale,
            "output_zero_point": self.output.zero_point,
            "output_min": self.bounds[0],
            "output_max": self.bounds[1],
        }
