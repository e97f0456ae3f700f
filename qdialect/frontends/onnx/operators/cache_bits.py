"""Key and value caches of 8 or 4 bits, as GroupQueryAttention of com.microsoft has them.

Numbers are ``clip(round(x / s))``, ties to even, with a scale for all, or for each column of each head.  Two numbers of
4 bits are a byte, each plus 8, the first in the lower half.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect.frontends.building.checks import Array, require
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.planning.elementwise import Arithmetic, binary, constant_of, converted
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.ir._mlir import ir

_ALL, _COLUMNS = "PER_TENSOR", "PER_CHANNEL"
CACHE_ELEMENTS = {0: "f32", 4: "ui8", 8: "i8"}
"""The element type of caches of so many bits, 0 for those that are not quantized."""
_HALF, _MIDDLE = 4, 8


def cache_bits(call: Call, width: int) -> int:
    """Of a number of the caches; 0 for those of f32."""
    if call.attribute("k_quant_type", "NONE") == "NONE":
        return 0
    bits: int = call.attribute("kv_cache_bit_width", 0)
    holds = bits == 2 * _HALF or (bits == _HALF and width % 2 == 0)
    require(holds, f"kv_cache_bit_width must be 8, or 4 for an even width, but got {bits} for {width}")
    return bits


def cache_scales(call: Call, name: str, index: int, heads: int, width: int) -> Array | None:
    """Of a cache, to broadcast to [B, N, L, D]; None for one of f32."""
    kind: str = call.attribute(f"{name}_quant_type", "NONE")
    if kind == "NONE":
        require(call.optional(index) is None, f"input {index}, {name}_scale, must be omitted")
        return None
    require(kind in (_ALL, _COLUMNS), f"{name}_quant_type must be {_ALL} or {_COLUMNS}, but got {kind}")
    found, shape = call.constant(index), (1, heads, 1, width) if kind == _COLUMNS else (1, 1, 1, 1)
    holds = found.dtype == np.float32 and found.size == math.prod(shape)
    require(holds, f"input {index}, {name}_scale, must have {math.prod(shape)} entries of f32, but got {found.size}")
    return found.reshape(shape)


def in_few_bits(call: Call, source: Value, scales: Array, bits: int) -> Value:
    """Floats as a cache of `bits` has them."""
    low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1

    def quantized(s: Arithmetic, x: ir.Value, scale: ir.Value) -> ir.Value:
        rounded = s.op("math.roundeven", s.op("arith.divf", x, scale))
        return converted(s, s.op("arith.minimumf", s.op("arith.maximumf", rounded, low), high), "f32", "i8")

    values = binary(call, [source, constant_of(call, scales)], "i8", quantized)
    return values if bits > _HALF else _paired(call, values)


def _paired(call: Call, source: Value) -> Value:
    """Numbers of 4 bits, two to a byte."""
    *outer, width = source.shape
    shape = (*outer, width // 2)

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        s, rows = Arithmetic(emitter), [Slice(0, 1, extent) for extent in outer]
        columns = [take_slices(emitter, operands[0], [*rows, Slice(i, 2, width // 2)]) for i in range(2)]
        first, second = (s.op("arith.addi", s.resize(one, "i32"), _MIDDLE) for one in columns)
        joined = s.op("arith.ori", first, s.op("arith.shli", second, _HALF))
        return emitter.convert("tensor.bitcast", s.resize(joined, "i8"), "ui8")

    return call.plan.ordered(call.name, shape, "ui8", [source], build)


def _apart(call: Call, source: Value) -> Value:
    """The numbers of `_paired`."""
    *outer, count = source.shape

    def build(emitter: Emitter, operands: list[ir.Value]) -> ir.Value:
        s = Arithmetic(emitter)
        whole = s.resize(emitter.convert("tensor.bitcast", operands[0], "i8"), "i32")
        fields = s.op("arith.andi", whole, 15), s.op("arith.andi", s.op("arith.shrui", whole, _HALF), 15)
        numbers = [s.resize(s.op("arith.subi", field, _MIDDLE), "i8") for field in fields]
        columns = [emitter.reshape(one, (*source.shape, 1)) for one in numbers]
        return emitter.reshape(emitter.concatenate(columns, len(source.shape)), (*outer, 2 * count))

    return call.plan.ordered(call.name, (*outer, 2 * count), "i8", [source], build)


def as_numbers(call: Call, source: Value, scales: Array, bits: int) -> Value:
    """The floats of a cache of `bits`."""

    def number(s: Arithmetic, x: ir.Value, scale: ir.Value) -> ir.Value:
        return s.op("arith.mulf", converted(s, x, "i8", "f32"), scale)

    values = source if bits > _HALF else _apart(call, source)
    return binary(call, [values, constant_of(call, scales)], "f32", number)
