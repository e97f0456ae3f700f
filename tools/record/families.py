"""Every family, named as its file of recordings and as its module."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tools.record.family import Family

_NAMES = (
    *("onnx_contractions", "onnx_elementwise", "onnx_float_sums", "onnx_layers", "onnx_movement", "onnx_resize"),
    *("onnx_softmax", "onnx_qdq_groups", "f32_tflite", "tflite_casts", "tflite_contractions", "tflite_elementwise"),
    *("tflite_gathering", "tflite_i16", "tflite_operators", "tflite_resize", "tflite_slicing", "xnnpack"),
)


def _family(name: str) -> Family:
    module: Any = import_module(f"tools.record.{name}")
    return module.FAMILY


FAMILIES: dict[str, Family] = {name: _family(name) for name in _NAMES}
