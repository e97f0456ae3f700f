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


class Coordinates(StrEnum):
    """Which place of the input a cell of a resized image shows; `s` is the extent of the result over the input's."""

    ASYMMETRIC = "asymmetric"
    """``i / s``."""
    HALF_PIXEL = "half_pixel"
    """``(i + 0.5) / s - 0.5``: cells are areas, their centers correspond."""
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    """As `half_pixel`, but 0 where the result has one cell."""
    TF_HALF_PIXEL = "tf_half_pixel"
    """``(i + 0.5) / s``."""
    ALIGN_CORNERS = "align_corners"
    """First and last cells correspond: ``i * (in - 1) / (out - 1)``."""


class Ratio(StrEnum):
    """How the float32 places of a resized image's cells are evaluated."""

    MULTIPLY = "multiply"
    """Times float32(in / out), with corners float32((in - 1) / (out - 1)): TFLite."""
    DIVIDE = "divide"
    """Divided by float32(out / in), with corners as the formula stands: ONNX Runtime."""


class Nearest(StrEnum):
    """Which cell is nearest to a place."""

    FLOOR = "floor"
    CEIL = "ceil"
    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"


class Interpolation(StrEnum):
    """Which arithmetic interpolates between the four cells around a place."""

    TFLITE_FIXED = "tflite_fixed"
    """Places and weights with 10 fraction bits, rounded half away from zero: TFLite's i8."""
    XNNPACK_FIXED = "xnnpack_fixed"
    """Places in float32, weights with 11 fraction bits, rounded half up: XNNPACK."""
    TFLITE_FLOAT = "tflite_float"
    """float32, a code is the sum plus 0.5 without its fraction: TFLite's ui8 and f32."""
    ONNX_FLOAT = "onnx_float"
    """float32, a code is the sum without its fraction: ONNX Runtime."""
