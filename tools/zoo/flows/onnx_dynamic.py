"""ONNX Runtime's dynamic quantization: weights are quantized ahead, activations at run time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.zoo.packages import imported


@dataclass(frozen=True)
class DynamicFlow:
    """Parameters of `quantize_dynamic`."""

    weights: str
    per_channel: bool

    def quantize(self, source: Path, target: Path) -> None:
        """Write the quantized model of the float model `source`."""
        package = imported("onnxruntime.quantization")
        kind = getattr(package.QuantType, self.weights)
        package.quantize_dynamic(source, target, weight_type=kind, per_channel=self.per_channel)


DYNAMIC_FLOWS = {"dynamic_s8": DynamicFlow("QInt8", False), "dynamic_u8": DynamicFlow("QUInt8", False)}
