"""ONNX Runtime's static quantization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.zoo.flows.samples import Sample
from tools.zoo.packages import imported


@dataclass(frozen=True)
class StaticFlow:
    """Parameters of `quantize_static`; the calibration takes minimum and maximum."""

    activations: str
    """``QUInt8`` or ``QInt8``, as for `weights`."""
    weights: str
    per_channel: bool
    form: str = "QDQ"
    """``QDQ`` or ``QOperator``."""

    def quantize(self, source: Path, target: Path, samples: Sequence[Sample]) -> None:
        """Write the quantized model of the float model `source`, calibrated on `samples`."""
        package = imported("onnxruntime.quantization")
        package.quantize_static(
            source,
            target,
            _reader(samples),
            quant_format=getattr(package.QuantFormat, self.form),
            activation_type=getattr(package.QuantType, self.activations),
            weight_type=getattr(package.QuantType, self.weights),
            per_channel=self.per_channel,
            calibrate_method=package.CalibrationMethod.MinMax,
        )


STATIC_FLOWS = {
    "qdq_u8s8": StaticFlow("QUInt8", "QInt8", True),
    "qdq_u8s8_tensor": StaticFlow("QUInt8", "QInt8", False),
    "qdq_s8s8": StaticFlow("QInt8", "QInt8", True),
    "qoperator_u8s8": StaticFlow("QUInt8", "QInt8", True, "QOperator"),
}


def _reader(samples: Sequence[Sample]) -> Any:
    remaining = iter(samples)

    class Reader(imported("onnxruntime.quantization").CalibrationDataReader):
        def get_next(self) -> Any:
            sample = next(remaining, None)
            return None if sample is None else {f"x{index}": array for index, array in enumerate(sample)}

    return Reader()
