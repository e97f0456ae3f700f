"""Tables of 256 entries: any function from 8-bit quantized values to 8-bit quantized values.

Index and entry are unsigned bit patterns, so for int8 the order is 0..127, -128..-1; entries have the bits of the
output type.  TVM and ONNX Runtime order their tables likewise; TOSA's run from -128 to 127.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qdialect.quant_math.affine import FloatArray, quantize_array
from qdialect.quant_math.choices import Entries, FloatRounding, NanPolicy, Scaling
from qdialect.quant_math.quant_params import QuantParams
from qdialect.quant_math.real_functions import ElementFunction

Table = NDArray[np.uint8]


@dataclass(frozen=True)
class QuantizedDtype(QuantParams):
    """Per-tensor parameters and the 8-bit type of the quantized values, at one end of a table."""

    dtype: DTypeLike

    def offsets(self) -> NDArray[np.int64]:
        """The 256 values less the zero point, in table order, int64[256]."""
        return table_values(self.dtype) - self.zero_point


def table_values(dtype: DTypeLike) -> NDArray[np.int64]:
    """The 256 values of an 8-bit type in table order, int64[256]."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)


def build_table(
    function: ElementFunction,
    source: QuantizedDtype,
    result: QuantizedDtype,
    entries: Entries,
    nan: NanPolicy,
) -> Table:
    """table[bits(i)] = bits(quantize(function(s_x * (i - z_x)))) for every value i of the type of `source`.

    Dequantization, `function` and quantization run in float32, except that `half_away_double` runs them in float64.
    Infinities saturate; NaN follows `nan`.
    """
    floating = np.float64 if entries is Entries.HALF_AWAY_DOUBLE else np.float32
    offsets = source.offsets().astype(floating)
    values: FloatArray = offsets * floating(source.scale)
    with np.errstate(all="ignore"):
        results = function(values).astype(floating)
    rounding = FloatRounding.HALF_EVEN if entries is Entries.HALF_EVEN_DIVIDE else FloatRounding.HALF_AWAY
    scaling = Scaling.RECIPROCAL_F32 if entries is Entries.HALF_AWAY_RECIPROCAL else Scaling.DIVIDE
    quantized = quantize_array(results, result.scale, result.zero_point, 0, result.dtype, rounding, scaling, nan)
    return quantized.view(np.uint8)


def encode_table(quantized: NDArray[np.int64], dtype: DTypeLike) -> Table:
    """Entries given as values of `dtype`, int64[256], as bit patterns."""
    return quantized.astype(dtype).view(np.uint8)


def identity_table() -> Table:
    """The table that changes no bit."""
    return np.arange(256, dtype=np.uint8)


def compose_tables(first: Table, second: Table) -> Table:
    """The table of `second` after `first`; the output type of the one must be the input type of the other."""
    return second[first]


def clamp_of_table(table: Table, input_dtype: DTypeLike, output_dtype: DTypeLike) -> tuple[int, int] | None:
    """(lo, hi) when the table maps every value v to min(max(v, lo), hi), else None."""
    outputs = table.view(output_dtype).astype(np.int64)
    lo, hi = int(outputs.min()), int(outputs.max())
    is_clamp = np.array_equal(outputs, np.clip(table_values(input_dtype), lo, hi))
    return (lo, hi) if is_clamp else None
