"""NNCF of OpenVINO on ONNX models: static quantization, and weights of 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.zoo.flows.samples import Sample
from tools.zoo.packages import imported

NNCF_WEIGHTS = {"nncf_weights8": "INT8_SYM", "nncf_weights4": "INT4_SYM"}
"""By flow: the mode of `compress_weights`."""
_GROUP = 32


def quantize(name: str, source: Path, target: Path, samples: Sequence[Sample]) -> None:
    """Write the quantized model of the float model `source`, calibrated on `samples` or with small weights alone."""
    nncf, onnx = imported("nncf"), imported("onnx")
    model = onnx.load(source)
    if name in NNCF_WEIGHTS:
        mode = NNCF_WEIGHTS[name]
        groups = {} if mode.startswith("INT8") else {"group_size": _GROUP}
        found = nncf.compress_weights(model, mode=nncf.CompressWeightsMode[mode], **groups)
    else:
        calibration = [{f"x{index}": array for index, array in enumerate(sample)} for sample in samples]
        found = nncf.quantize(model, nncf.Dataset(calibration), subset_size=len(calibration))
    onnx.save(found, target)
