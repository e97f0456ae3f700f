"""Named choices that ops carry as string attributes, beside those of `qdialect.quant_math`."""

from enum import StrEnum


class LeakyMode(StrEnum):
    """Which arithmetic a leaky_relu follows."""

    FIXED = "fixed"
    """Requantize, then a fixed-point alpha on the negative side (TVM)."""
    LUT = "lut"
    """A table of the rounded float function."""
    TFLITE = "tflite"
    """One of two fixed-point multipliers per element (TFLite)."""


class HardswishMode(StrEnum):
    """Which arithmetic a hardswish follows."""

    LUT = "lut"
    TFLITE = "tflite"


class SoftmaxArithmetic(StrEnum):
    """Which arithmetic a softmax follows."""

    TFLITE_FIXED = "tflite_fixed"
    FLOAT = "float"
    ORT_TABLE = "ort_table"
    """A float32 table of exponentials, scaled so that the sum of a row stays finite (ONNX Runtime)."""
