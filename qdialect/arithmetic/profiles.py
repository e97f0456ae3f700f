"""Whose arithmetic: presets of the rounding attributes, one for each runtime.

A profile is what a runtime does unless one of its kernels is known to do something else; such exceptions stand with the
operator, in its front end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from qdialect.arithmetic import AddArithmetic, Entries, FloatRounding, Multiplier, NanPolicy, Rounding, Scaling
from qdialect.arithmetic.choices import BlockActivations


class ActivationOrder(StrEnum):
    """The values that an activation after a contraction is applied to."""

    QUANTIZED_VALUES = "quantized"
    """To rounded quantized values, through a table or a clamp: graphs name the quantization between the two."""
    F32_VALUES = "f32"
    """To f32 values, before the one rounding (the stages `dequantize` to `quantize` of the fused ops)."""


@dataclass(frozen=True)
class Profile:
    """The arithmetic of one runtime.

    `rounding` and `multiplier` are those of contractions and rescales, `addition` that of quantized sums, `entries` and
    `nan` those of tables, `float_rounding` and `scaling` those of f32 values that are quantized.
    """

    name: str
    rounding: Rounding
    multiplier: Multiplier
    addition: AddArithmetic
    entries: Entries | None
    """None: a table's entries are quantized as other f32 values are."""
    nan: NanPolicy
    float_rounding: FloatRounding
    scaling: Scaling
    order: ActivationOrder

    @property
    def rescale(self) -> dict[str, Any]:
        """Attributes of what rescales integers: requantize, mul, mean, concat, fused ops."""
        return {"rounding": self.rounding, "multiplier": self.multiplier}

    @property
    def sum(self) -> dict[str, Any]:
        """Attributes of `qnn.add`."""
        return {"arithmetic": self.addition, **self.rescale}

    @property
    def table(self) -> dict[str, Any]:
        """Attributes of the unary ops; empty where a profile quantizes table entries as other f32 values."""
        return {} if self.entries is None else {"entries": self.entries, "nan": self.nan}

    @property
    def quantization(self) -> dict[str, Any]:
        """Attributes of `qnn.quantize`."""
        return {"rounding": self.float_rounding, "scaling": self.scaling, "nan": self.nan}


TFLITE = Profile(
    "tflite",
    Rounding.FIXED32_DOUBLE,
    Multiplier.F64,
    AddArithmetic.SHIFTED_FIXED,
    Entries.HALF_AWAY_RECIPROCAL,
    NanPolicy.MIN,
    FloatRounding.HALF_AWAY,
    Scaling.DIVIDE,
    ActivationOrder.QUANTIZED_VALUES,
)
"""TFLite's reference kernels."""
TFLITE_SINGLE = replace(TFLITE, name="tflite-single", rounding=Rounding.FIXED64_UP)
"""TFLite built with single rounding."""
TFLITE_XNNPACK = replace(
    TFLITE,
    name="tflite-xnnpack",
    rounding=Rounding.F32_RNE_ZP_LAST,
    multiplier=Multiplier.F32,
    addition=AddArithmetic.FIXED_ONCE,
    float_rounding=FloatRounding.HALF_EVEN,
    scaling=Scaling.RECIPROCAL_F32,
)
"""TFLite's desktop delegate; tables are still TFLite's own."""
ORT = Profile(
    "ort",
    Rounding.F32_RNE_ZP_LAST,
    Multiplier.F32,
    AddArithmetic.FLOAT_ONCE,
    Entries.HALF_EVEN_DIVIDE,
    NanPolicy.MIN,
    FloatRounding.HALF_EVEN,
    Scaling.DIVIDE,
    ActivationOrder.QUANTIZED_VALUES,
)
"""ONNX Runtime on CPUs."""
ONNX_REFERENCE = replace(
    ORT, name="onnx-reference", rounding=Rounding.F32_RNE_ZP_FIRST, addition=AddArithmetic.F32_DIVIDE
)
"""The evaluator of the ONNX standard."""
PYTORCH = Profile(
    "pytorch",
    Rounding.F32_RNE_ZP_LAST,
    Multiplier.F32,
    AddArithmetic.F32_RECIPROCAL,
    None,
    NanPolicy.ZERO,
    FloatRounding.HALF_EVEN,
    Scaling.RECIPROCAL,
    ActivationOrder.F32_VALUES,
)
"""PyTorch's exported programs."""
ONEDNN = replace(
    PYTORCH,
    name="onednn",
    rounding=Rounding.F32_RNE_ZP_FIRST,
    addition=AddArithmetic.F32_RECIPROCAL_F32,
    nan=NanPolicy.ZERO_POINT,
    scaling=Scaling.RECIPROCAL_F32,
)
"""oneDNN."""
TVM = Profile(
    "tvm",
    Rounding.F32_UP_ZP_FIRST,
    Multiplier.F32_PRODUCT,
    AddArithmetic.REQUANTIZE_EACH,
    Entries.HALF_AWAY_DIVIDE,
    NanPolicy.MAX,
    FloatRounding.HALF_AWAY,
    Scaling.DIVIDE,
    ActivationOrder.QUANTIZED_VALUES,
)
"""TVM on x86 CPUs: float32, UPWARD."""
TVM_NEAREST = replace(TVM, name="tvm-nearest", rounding=Rounding.F32_NEAREST_ZP_FIRST)
"""TVM: float32, TONEAREST."""
TVM_INT64 = replace(TVM, name="tvm-int64", rounding=Rounding.FIXED64_UP)
"""TVM: int64, UPWARD."""
TVM_INT64_NEAREST = replace(TVM, name="tvm-int64-nearest", rounding=Rounding.FIXED64_NEAREST)
"""TVM: int64, TONEAREST."""
TOSA = Profile(
    "tosa",
    Rounding.FIXED64_UP,
    Multiplier.F64,
    AddArithmetic.SHIFTED_SINGLE,
    Entries.HALF_AWAY_DOUBLE,
    NanPolicy.ZERO_POINT,
    FloatRounding.HALF_AWAY,
    Scaling.DIVIDE,
    ActivationOrder.QUANTIZED_VALUES,
)
"""TOSA's RESCALE with SINGLE_ROUND."""
TOSA_DOUBLE = replace(TOSA, name="tosa-double", rounding=Rounding.FIXED64_DOUBLE, addition=AddArithmetic.SHIFTED_DOUBLE)
"""TOSA's RESCALE with DOUBLE_ROUND."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        *(TFLITE, TFLITE_SINGLE, TFLITE_XNNPACK, ORT, ONNX_REFERENCE, PYTORCH, ONEDNN),
        *(TVM, TVM_NEAREST, TVM_INT64, TVM_INT64_NEAREST, TOSA, TOSA_DOUBLE),
    )
}
"""Every profile by its name."""

TFLITE_PROFILES = (TFLITE.name, TFLITE_XNNPACK.name)
"""The names of those that a .tflite file may have, its own first."""
ONNX_PROFILES: Mapping[str, BlockActivations | None] = {
    ORT.name: None,
    f"{ORT.name}-accuracy-0": BlockActivations.F32,
    f"{ORT.name}-accuracy-4": BlockActivations.I8_BLOCK,
}
"""In which form data are multiplied by packed weights: as each node states, or as at one accuracy level everywhere."""
