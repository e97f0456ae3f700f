"""Divisions by one number, which are products with its reciprocal where a core divides slowly."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from op_texts import Text

from qdialect.ir.context import parse
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.targets import host_features, resolve

TARGETS = [name for name in ("icelake-server", "host") if resolve(name).features <= host_features()]
SPECIAL = [0.0, np.inf, np.nan, *(np.float32(2) ** exponent for exponent in (-149, -127, -126, -101, -100, 100, 127))]


def numerators(rng: np.random.Generator) -> NDArray[np.float32]:
    """Numbers of all magnitudes, rows with a special one each, and rows of small numbers and zeros."""
    bits = rng.integers(0, 2**32, (len(SPECIAL), 64), np.uint32).view(np.float32)
    near = rng.normal(size=(len(SPECIAL), 64)).astype(np.float32)
    near[:, 5] = SPECIAL
    return np.concatenate([bits, near, -near, near * np.float32(1e-39), np.maximum(near, 0)])


def divisors(rng: np.random.Generator) -> list[Any]:
    ends = [np.float32(2) ** exponent * (1 + np.float32(2) ** -23) for exponent in (-25, -24, 23, 24)]
    return [*rng.normal(size=8), *SPECIAL, *ends, -3.0, np.nextafter(np.float32(2), np.float32(1)), 1.0]


@pytest.mark.parametrize("target", TARGETS)
def test_quotients(target: str) -> None:
    rng = np.random.default_rng(0)
    data = numerators(rng)
    text = Text(data.shape, (1, 1))
    module = parse(text.finish(text.float_op("arith.divf", "%x0", text.repeated("%x1", data.shape))))
    executable = compile_module(module, target=target)
    for divisor in divisors(rng):
        by = np.full((1, 1), divisor, np.float32)
        with np.errstate(all="ignore"):
            wanted = data / by
        found: Any = executable(data, by)
        np.testing.assert_array_equal(found, wanted)
        is_number = ~np.isnan(wanted)
        assert (np.signbit(found) == np.signbit(wanted))[is_number].all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scale", [0.03, 1 / 3, 1e-18, 0.99999994, 1e9, 1e-30, 1e-44])
def test_quantized(target: str, scale: float) -> None:
    rng, step = np.random.default_rng(1), np.float32(scale)
    # Around the halves of steps, too.
    halves = (np.arange(-300, 340, dtype=np.float32) * (step / 2)).reshape(-1, 64)
    data = np.concatenate([numerators(rng), halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf)])
    module = parse(f"""
      func.func @main(%x: tensor<{len(data)}x64xf32>) -> tensor<{len(data)}x64xui8> {{
        %0 = "qnn.quantize"(%x) {{scales = array<f64: {scale:.17e}>, zero_points = array<i64: 37>}}
          : (tensor<{len(data)}x64xf32>) -> tensor<{len(data)}x64xui8>
        return %0 : tensor<{len(data)}x64xui8>
      }}
    """)
    np.testing.assert_array_equal(compile_module(module, target=target)(data), interpreter.run(module, [data])[0])


# The quotients that are nearest to a number halfway between two float32 numbers; see `float_division.py`.
#
# Significands are N, D in [2^23, 2^24) and M in [2^24, 2^25), odd.  N 2^B = M D + k, with B = 25 where N < D, else 24,
# so that N / D is k / D beyond M, in units of 2^-B.  D is odd and k too, or D is twice an odd number and k is 2 or -2.

CHUNK = 1 << 19


def nearest() -> Iterator[tuple[int, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """(k, B, N, D, M) of many."""
    for bits, first in product((24, 25), range(1 << 23, 1 << 24, CHUNK)):
        for twice, ks in ((0, (-3, -1, 1, 3)), (1, (-2, 2))):
            divisor = np.arange(first + 1 + twice, first + CHUNK + 1, 2 << twice, dtype=np.int64)
            odd = divisor >> twice
            inverse = odd.copy()
            for _ in range(5):
                inverse = inverse * (2 - odd * inverse)
            for k, upper in product(ks, range(1 << twice)):
                middle = (-(k >> twice) * inverse) % (1 << bits - twice) + (upper << bits - twice)
                middle += (bits == 24) << 24
                numerator = (middle * divisor + k) >> bits
                fits = (middle >= 1 << 24) & (middle < 1 << 25) & (numerator >= 1 << 23) & (numerator < 1 << 24)
                fits &= (numerator < divisor) == (bits == 25)
                yield k, bits, numerator[fits], divisor[fits], middle[fits]


def test_nearest_quotients() -> None:
    count = 0
    for k, bits, numerator, divisor, middle in nearest():
        assert (middle * divisor + k == numerator << bits).all()
        n, d = numerator.astype(np.float32), divisor.astype(np.float32)
        z = np.float32(1) / d
        q = n * z
        # All of these are exact in float64: so is r in float32, and the sum's distance from the middle.
        r = q.astype(np.float64) * d - n
        assert (r == r.astype(np.float32)).all()
        beyond = (q - middle * 2.0**-bits) - r * z
        assert (np.sign(beyond) == np.sign(k)).all()
        count += len(n)
    assert count > 1e7
