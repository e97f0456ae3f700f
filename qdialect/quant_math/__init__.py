"""Integer-exact arithmetic of quantized networks: scales, multipliers, rounding, tables; pure functions on arrays."""

from qdialect.quant_math import activations
from qdialect.quant_math.accumulator_range import accumulator_range
from qdialect.quant_math.activations import Activation, activate
from qdialect.quant_math.affine import (
    FloatArray,
    dequantize_array,
    nan_value,
    quantize_array,
    quantized_range,
    round_f32,
)
from qdialect.quant_math.choices import (
    AddArithmetic,
    Division,
    Entries,
    FloatRounding,
    Multiplier,
    NanPolicy,
    PairArithmetic,
    Rounding,
    Scaling,
    SubArithmetic,
)
from qdialect.quant_math.fixed_point import (
    IntArray,
    doubling_high_multiply,
    multiply_by_quantized_multiplier,
    rounding_shift_right,
    saturating_shift_left,
)
from qdialect.quant_math.float_sum import float_sum, float_sum_numbers
from qdialect.quant_math.hard_swish import hard_swish_bound, tflite_hard_swish_table
from qdialect.quant_math.leaky_relu import tflite_leaky_relu_table, tvm_leaky_relu_table
from qdialect.quant_math.multipliers import (
    FixedMultiplier,
    FloatMultiplier,
    RequantizeParameters,
    SumFactors,
    folded_count_multiplier,
    quantize_multiplier,
    real_multiplier,
    requantize_parameters,
    sum_factors,
)
from qdialect.quant_math.quant_params import BinaryQuantization, QuantizedArray, QuantParams
from qdialect.quant_math.real_functions import ElementFunction
from qdialect.quant_math.requantize import requantize, requantize_f32
from qdialect.quant_math.scales import same_scale, scale_factors
from qdialect.quant_math.tables import (
    QuantizedDtype,
    Table,
    build_table,
    clamp_of_table,
    compose_tables,
    encode_table,
    identity_table,
    table_values,
)
from qdialect.quant_math.thresholds import Thresholds, multiplier_values, select_channels, thresholds_of

__all__ = [
    "Activation",
    "AddArithmetic",
    "BinaryQuantization",
    "Division",
    "ElementFunction",
    "Entries",
    "FixedMultiplier",
    "FloatArray",
    "FloatMultiplier",
    "IntArray",
    "Multiplier",
    "NanPolicy",
    "PairArithmetic",
    "FloatRounding",
    "QuantParams",
    "QuantizedArray",
    "QuantizedDtype",
    "RequantizeParameters",
    "Rounding",
    "Scaling",
    "Thresholds",
    "SubArithmetic",
    "SumFactors",
    "Table",
    "accumulator_range",
    "activate",
    "activations",
    "build_table",
    "clamp_of_table",
    "quantized_range",
    "compose_tables",
    "dequantize_array",
    "float_sum",
    "float_sum_numbers",
    "doubling_high_multiply",
    "encode_table",
    "folded_count_multiplier",
    "hard_swish_bound",
    "identity_table",
    "multiply_by_quantized_multiplier",
    "nan_value",
    "quantize_array",
    "quantize_multiplier",
    "real_multiplier",
    "multiplier_values",
    "requantize",
    "requantize_parameters",
    "requantize_f32",
    "round_f32",
    "rounding_shift_right",
    "select_channels",
    "thresholds_of",
    "same_scale",
    "saturating_shift_left",
    "scale_factors",
    "sum_factors",
    "table_values",
    "tflite_hard_swish_table",
    "tflite_leaky_relu_table",
    "tvm_leaky_relu_table",
]
