"""Conversions between integers, booleans and float32, as x86-64 CPUs convert.

A float goes to the integer below its magnitude; what 32 bits cannot hold, or 64 for i64, becomes the smallest integer
of that width, as the CPU's conversions say, and narrower integers are its low bits.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import Array
from qdialect.frontends.planning.plain import Arithmetic


def converted(s: Arithmetic, x: ir.Value, found: str, target: str) -> ir.Value:
    """`x` of the element type `found` as one of `target`."""
    if target == "i1":
        return s.compare("ne", x, 0)
    bare = target.removeprefix("u")
    if found == "f32":
        return _integer(s, x, bare)
    if target == "f32":
        return s.convert("arith.uitofp" if found == "i1" or found.startswith("u") else "arith.sitofp", x, "f32")
    return s.resize(x, bare)


def _integer(s: Arithmetic, x: ir.Value, element: str) -> ir.Value:
    wide = "i64" if element == "i64" else "i32"
    limit = 2.0 ** (int(wide[1:]) - 1)
    is_inside = s.op("arith.andi", s.compare("ge", x, -limit), s.compare("lt", x, limit))
    whole = s.convert("arith.fptosi", s.select(is_inside, x, 0.0), wide)
    return s.resize(s.select(is_inside, whole, -int(limit)), element)


def cast_array(array: Array, target: str) -> Array:
    """An array as one of the element type `target`."""
    dtype = NUMPY_DTYPES[target]
    if array.dtype.kind != "f" or dtype.kind not in "iu":
        return array.astype(dtype)
    wide = np.int64 if dtype.itemsize == 8 else np.int32
    limit = 2.0 ** (np.iinfo(wide).bits - 1)
    is_inside = (array >= -limit) & (array < limit)
    whole = np.where(is_inside, array, 0).astype(wide)
    return np.where(is_inside, whole, np.iinfo(wide).min).astype(dtype)
