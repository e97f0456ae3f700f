"""Named choices that ops carry as string attributes, beside those of `qdialect.quant_math`."""

from enum import StrEnum


class AddArithmetic(StrEnum):
    """How a quantized addition forms its sum."""

    REQUANTIZE_EACH = "requantize_each"
    """Each operand to the output's parameters, then an integer sum: two roundings (TVM)."""
    SHIFTED_FIXED = "shifted_fixed"
    """Both operands shifted left by 20 bits and scaled to a common scale, then one more scaling (TFLite)."""
    FLOAT_ONCE = "float_once"
    """One float32 expression, zero point inside, one rounding (ONNX Runtime)."""


class Division(StrEnum):
    """How an average pool divides its sum."""

    HALF_AWAY = "half_away"
    TRUNCATE = "truncate"


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


class FloatRounding(StrEnum):
    """How `qnn.quantize` rounds a quotient."""

    HALF_EVEN = "half_even"
    HALF_AWAY = "half_away"
    HALF_UP = "half_up"


class Scaling(StrEnum):
    """How `qnn.quantize` applies the scale."""

    DIVIDE = "divide"
    RECIPROCAL = "reciprocal"
