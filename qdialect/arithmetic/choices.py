"""The named choices on which quantized runtimes differ; the text of each is the text of the IR attribute."""

from __future__ import annotations

from enum import StrEnum


class Rounding(StrEnum):
    """How an int32 accumulator becomes a quantized value: multiplier, tie rule, and when the zero point is added."""

    FIXED64_UP = "fixed64_up"
    """Q31 multiplier, ties up, zero point after rounding: TVM's int64 UPWARD."""
    FIXED64_NEAREST = "fixed64_nearest"
    """Q31 multiplier, ties away from zero, zero point after rounding: TVM's int64 TONEAREST, TFLite's dense layers."""
    FIXED64_DOUBLE = "fixed64_double"
    """Q31 multiplier, two rounding terms in one sum, zero point after rounding: TOSA's DOUBLE_ROUND."""
    FIXED32_DOUBLE = "fixed32_double"
    """Q31 multiplier, rounded twice, zero point after rounding: TFLite's reference kernels, gemmlowp."""
    F32_RNE_ZP_LAST = "f32_rne_zp_last"
    """float32 multiplier, ties to even, zero point after rounding: ONNX Runtime, FBGEMM, XNNPACK."""
    F32_RNE_ZP_FIRST = "f32_rne_zp_first"
    """float32 multiplier, ties to even, zero point before rounding: the ONNX standard, oneDNN."""
    F32_UP_ZP_FIRST = "f32_up_zp_first"
    """float32 multiplier, ties up, zero point before rounding: TVM's float32 UPWARD."""
    F32_NEAREST_ZP_FIRST = "f32_nearest_zp_first"
    """float32 multiplier, ties away from zero, zero point before rounding: TVM's float32 TONEAREST."""

    @property
    def is_fixed(self) -> bool:
        """Whether the multiplier is an integer with a shift rather than a float32."""
        return self.value.startswith("fixed")


class I16Rounding(StrEnum):
    """How an accumulator becomes a 16-bit quantized value."""

    FIXED32_DOUBLE = "fixed32_double"
    """By a Q31 multiplier with two roundings: TFLite's kernels with int32 accumulators."""
    FIXED16_UP = "fixed16_up"
    """By a Q15 multiplier, ties up: TFLite's kernels with int64 accumulators."""
    F64_NEAREST = "f64_nearest"
    """By a float64 multiplier, ties away from zero: TFLite's FULLY_CONNECTED."""
    F64_EVEN = "f64_even"
    """By a float64 multiplier, ties to even: nearest to ONNX Runtime's sums of float32 products."""


class Multiplier(StrEnum):
    """In which precision M = s_x * s_w / s_y is evaluated: the last bit of M can move a tie."""

    F64 = "f64"
    """double(s_x) * double(s_w) / double(s_y): TFLite, except for what the other two name."""
    F32_PRODUCT = "f32_product"
    """double(float32(s_x * s_w)) / double(s_y): TVM, and TFLite's uint8 convolutions."""
    F32 = "f32"
    """float32(float32(s_x * s_w) / s_y): ONNX Runtime, FBGEMM, and TFLite's MUL and leaky_relu."""


class Entries(StrEnum):
    """How an f32 value becomes an entry of a 256-entry table."""

    HALF_AWAY_DIVIDE = "half_away_divide"
    """half_away(v / s) in float32: TVM."""
    HALF_AWAY_RECIPROCAL = "half_away_reciprocal"
    """half_away(v * (1 / s)), the division too in float32: TFLite."""
    HALF_EVEN_DIVIDE = "half_even_divide"
    """half_even(v / s) in float32: ONNX Runtime."""
    HALF_AWAY_DOUBLE = "half_away_double"
    """half_away(v / s) with function and division in float64: TOSA."""


class NanPolicy(StrEnum):
    """The quantized value that a NaN becomes."""

    MAX = "max"
    """The largest value of the type."""
    MIN = "min"
    """The smallest value of the type."""
    ZERO_POINT = "zero_point"
    """The zero point, which represents 0."""
    ZERO = "zero"
    """The integer 0, whatever the zero point is: PyTorch."""


class FloatRounding(StrEnum):
    """Tie rule when an f32 value is rounded to an integer."""

    HALF_EVEN = "half_even"
    """Ties to the even integer."""
    HALF_AWAY = "half_away"
    """Ties away from zero."""
    HALF_UP = "half_up"
    """Ties towards positive infinity."""


class Scaling(StrEnum):
    """Whether an f32 value is divided by the scale or multiplied by its reciprocal, and how that is formed."""

    DIVIDE = "divide"
    """By float32(s): ONNX, TFLite, TVM."""
    RECIPROCAL = "reciprocal"
    """By float32(1 / s), the division in float64: PyTorch's `quantized_decomposed` ops."""
    RECIPROCAL_F32 = "reciprocal_f32"
    """By 1 / float32(s), the division in float32: PyTorch's quantized tensors (FBGEMM), oneDNN."""

    @property
    def f32_sum(self) -> AddArithmetic:
        """The arithmetic of a sum of f32 values that is quantized so."""
        return _F32_SUMS[self]


class AddArithmetic(StrEnum):
    """How two quantized tensors are added."""

    REQUANTIZE_EACH = "requantize_each"
    """Each operand is rounded to the output's parameters, then integers are added: TVM."""
    SHIFTED_FIXED = "shifted_fixed"
    """Operands meet at twice the larger input scale with 20 more bits, and the sum is rescaled: TFLite."""
    SHIFTED_SINGLE = "shifted_single"
    """As `shifted_fixed`, with one rounding in every rescale, ties up: TOSA with SINGLE_ROUND."""
    SHIFTED_DOUBLE = "shifted_double"
    """As `shifted_single`, with the sum rescaled by `fixed64_double`: TOSA with DOUBLE_ROUND."""
    FLOAT_ONCE = "float_once"
    """One float32 expression of two multiply-adds, then a rounding: ONNX Runtime QLinearAdd on CPUs with FMA."""
    FIXED_ONCE = "fixed_once"
    """One integer expression, 21-bit multipliers and a single shift, ties up: XNNPACK."""
    F32_DIVIDE = "f32_divide"
    """f32 values are added in float32 and quantized, ties to even: the ONNX standard."""
    F32_RECIPROCAL = "f32_reciprocal"
    """As `f32_divide`, but multiplied by float32(1 / s), divided in float64: PyTorch's `quantized_decomposed` ops."""
    F32_RECIPROCAL_F32 = "f32_reciprocal_f32"
    """As `f32_divide`, but multiplied by 1 / float32(s), divided in float32: oneDNN."""

    def reads_doubles(self, multiplier: Multiplier) -> bool:
        """Whether operands that are rescaled by `multiplier` differ at scales that are one float32 number."""
        rounds_each = self is AddArithmetic.REQUANTIZE_EACH and multiplier is Multiplier.F64
        return rounds_each or self.shifted_roundings is not None

    @property
    def f32_scaling(self) -> Scaling | None:
        """How sums of f32 values become quantized values; None for other arithmetics."""
        return _F32_SCALINGS.get(self)

    @property
    def shifted_roundings(self) -> tuple[Rounding, Rounding] | None:
        """How operands and sum are rescaled where operands are shifted up by 20 bits; None for other arithmetics."""
        return _SHIFTED_ROUNDINGS.get(self)


_F32_SUMS = {
    Scaling.DIVIDE: AddArithmetic.F32_DIVIDE,
    Scaling.RECIPROCAL: AddArithmetic.F32_RECIPROCAL,
    Scaling.RECIPROCAL_F32: AddArithmetic.F32_RECIPROCAL_F32,
}
_F32_SCALINGS = {arithmetic: scaling for scaling, arithmetic in _F32_SUMS.items()}
_SHIFTED_ROUNDINGS = {
    AddArithmetic.SHIFTED_FIXED: (Rounding.FIXED32_DOUBLE, Rounding.FIXED32_DOUBLE),
    AddArithmetic.SHIFTED_SINGLE: (Rounding.FIXED64_UP, Rounding.FIXED64_UP),
    AddArithmetic.SHIFTED_DOUBLE: (Rounding.FIXED64_UP, Rounding.FIXED64_DOUBLE),
}


class SubArithmetic(StrEnum):
    """How one quantized tensor is subtracted from another."""

    REQUANTIZE_EACH = "requantize_each"
    """Each operand is rounded to the output's parameters, then integers are subtracted: TVM."""
    SHIFTED_FIXED = "shifted_fixed"
    """Operands meet at twice the larger input scale with 20 more bits, and the difference is rescaled: TFLite."""
    FLOAT = "float"
    """f32 values are subtracted in float32, and the difference divided by the output scale to even: ONNX Runtime."""
    FIXED_ONCE = "fixed_once"
    """One integer expression, 21-bit multipliers and a single shift, ties up: XNNPACK."""

    @property
    def addition(self) -> AddArithmetic | None:
        """The arithmetic of sums that it is with the other sign; None for `float`."""
        return _ADDITIONS.get(self)


_ADDITIONS = {
    SubArithmetic.REQUANTIZE_EACH: AddArithmetic.REQUANTIZE_EACH,
    SubArithmetic.SHIFTED_FIXED: AddArithmetic.SHIFTED_FIXED,
    SubArithmetic.FIXED_ONCE: AddArithmetic.FIXED_ONCE,
}


class PairArithmetic(StrEnum):
    """How a function of two quantized tensors is computed."""

    TFLITE_FIXED = "tflite_fixed"
    """In integers with fixed-point multipliers, as TFLite's reference kernel of the op."""
    FLOAT = "float"
    """On f32 values in float32, whose result is divided by the output scale to even: ONNX Runtime."""


class BlockActivations(StrEnum):
    """In which form data are multiplied by weights in blocks."""

    F32 = "f32"
    """As they are."""
    I8_BLOCK = "i8_block"
    """As signed 8-bit integers, with a scale for each block of a row."""


class ActivationScale(StrEnum):
    """The precision of the scales of data that are quantized when they are multiplied."""

    F32 = "f32"
    """float32: ONNX Runtime, OpenVINO."""
    F16 = "f16"
    """Rounded to float16: llama.cpp."""


class SumOrder(StrEnum):
    """Where the scales of weights in blocks enter a sum of products."""

    TERMS = "terms"
    """Each weight is multiplied by its scale: ONNX Runtime."""
    BLOCKS = "blocks"
    """The sum of each block is."""
    SCALE_LAST = "scale_last"
    """The whole sum is, of channels with one scale: PyTorch's packed 8-bit product."""


class Order(StrEnum):
    """In which order equal elements come."""

    STABLE = "stable"
    """The first one first."""
    SORT = "std_sort"
    """As ``std::sort`` of libstdc++ leaves them."""
    TOP_K = "std_top_k"
    """As PyTorch's `topk` does: ``std::partial_sort``, of more than 1 in 64 ``std::nth_element`` and ``std::sort``."""
    SELECT = "std_nth_element"
    """The same without ``std::sort``."""


class Division(StrEnum):
    """How the sum of a pooling window is divided by the number of its elements."""

    HALF_AWAY = "half_away"
    """Ties away from zero: TFLite."""
    HALF_AWAY_CENTERED = "half_away_centered"
    """The mean of quantized values less their zero point, ties away from zero: TOSA."""
    TRUNCATE = "truncate"
    """Towards zero: TVM."""


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
    """A table of the rounded float function."""
    TFLITE = "tflite"
    """The 16-bit fixed point of TFLite's reference kernel."""


class SoftmaxArithmetic(StrEnum):
    """Which arithmetic a softmax follows."""

    TFLITE_FIXED = "tflite_fixed"
    """Exponentials and their ratio in fixed point (TFLite's reference kernel)."""
    FLOAT = "float"
    """f32 values in float32, the result rounded once."""
    ORT_TABLE = "ort_table"
    """A float32 table of exponentials, scaled so that the sum of a row stays finite (ONNX Runtime)."""


class Coordinates(StrEnum):
    """The input's coordinate of element i of a resized image; `s` is the extent of the result over the input's."""

    ASYMMETRIC = "asymmetric"
    """``i / s``."""
    HALF_PIXEL = "half_pixel"
    """``(i + 0.5) / s - 0.5``: elements are areas, their centers correspond."""
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    """As `half_pixel`, but 0 where the result has one element."""
    TF_HALF_PIXEL = "tf_half_pixel"
    """``(i + 0.5) / s``."""
    ALIGN_CORNERS = "align_corners"
    """First and last elements correspond: ``i * (in - 1) / (out - 1)``."""


class ScatterReduction(StrEnum):
    """The result of an element and the update that a scatter has for it."""

    NONE = "none"
    """The update."""
    ADD = "add"
    """Their sum; integers wrap around."""
    MUL = "mul"
    """Their product; integers wrap around."""
    MIN = "min"
    """The smaller; NaN where one is."""
    MAX = "max"
    """The larger; NaN where one is."""
    LESS = "less"
    """The element if it is less than the update, else the update: ONNX Runtime's minimum."""
    GREATER = "greater"
    """The element if it is greater than the update, else the update."""


class Ratio(StrEnum):
    """How the float32 coordinates of a resized image's elements are evaluated."""

    MULTIPLY = "multiply"
    """Times float32(in / out), with corners float32((in - 1) / (out - 1)): TFLite."""
    DIVIDE = "divide"
    """Divided by float32(out / in), with corners as the formula stands; 1e-6 around a half are ties: ONNX Runtime."""


class Nearest(StrEnum):
    """How a coordinate is rounded to the index of the nearest element."""

    FLOOR = "floor"
    """To the lower index."""
    CEIL = "ceil"
    """To the upper index."""
    ROUND_PREFER_FLOOR = "round_prefer_floor"
    """To the nearest index, ties to the lower one."""
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    """To the nearest index, ties to the upper one."""


class Interpolation(StrEnum):
    """Which arithmetic interpolates between the four elements around a coordinate."""

    TFLITE_FIXED = "tflite_fixed"
    """Coordinates and weights with 10 fraction bits, rounded half away from zero: TFLite's i8."""
    XNNPACK_FIXED = "xnnpack_fixed"
    """Coordinates in float32, weights with 11 fraction bits, rounded half up: XNNPACK."""
    TFLITE_FLOAT = "tflite_float"
    """float32, a quantized value is the sum plus 0.5 without its fraction: TFLite's ui8 and f32."""
    ONNX_FLOAT = "onnx_float"
    """float32, a quantized value is the sum without its fraction: ONNX Runtime."""
