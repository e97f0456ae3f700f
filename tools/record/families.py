"""Every family, named as its file of recordings and as its module."""

from __future__ import annotations

from tools.record import (
    f32_tflite,
    onnx_contractions,
    onnx_elementwise,
    onnx_float_sums,
    onnx_layers,
    onnx_movement,
    onnx_qdq_groups,
    onnx_resize,
    onnx_softmax,
    tflite_casts,
    tflite_contractions,
    tflite_elementwise,
    tflite_gathering,
    tflite_i16,
    tflite_operators,
    tflite_resize,
    tflite_slicing,
    xnnpack,
)
from tools.record.family import Family

_ALL = (
    onnx_contractions.FAMILY,
    onnx_elementwise.FAMILY,
    onnx_float_sums.FAMILY,
    onnx_layers.FAMILY,
    onnx_movement.FAMILY,
    onnx_resize.FAMILY,
    onnx_softmax.FAMILY,
    onnx_qdq_groups.FAMILY,
    f32_tflite.FAMILY,
    tflite_casts.FAMILY,
    tflite_contractions.FAMILY,
    tflite_elementwise.FAMILY,
    tflite_gathering.FAMILY,
    tflite_i16.FAMILY,
    tflite_operators.FAMILY,
    tflite_resize.FAMILY,
    tflite_slicing.FAMILY,
    xnnpack.FAMILY,
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
