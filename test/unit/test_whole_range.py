"""Scale and zero point of a whole tensor's range: both ends found at once, with the bits of two reductions."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_ops import Array, Attributes, check, tensor
from graphs import graph
from together import variants_together

from qdialect import targets
from qdialect.dialect import F32MaxOp, F32MinOp, RangeScaleOp, RangeZeroPointOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

NEGATIVE_NAN = float(np.array(0xFFC00000, np.uint32).view(np.float32))
VALUES: dict[str, tuple[float, float]] = {
    "both signs": (-3.0, 7.0),
    "positive": (2.0, 5.0),
    "negative": (-9.0, -0.25),
    "zeros": (0.0, 0.0),
    "negative zeros": (-0.0, -0.0),
    "zeros of both signs": (-0.0, 0.0),
    "infinity": (-1.0, np.inf),
    "negative infinity": (-np.inf, -2.0),
    "subnormal": (-1e-45, 1e-40),
    "NaN": (-3.0, np.nan),
    "negative NaN": (NEGATIVE_NAN, 4.0),
    "NaN alone": (np.nan, np.nan),
}
SHAPES = [(132, 9), (1, 1, 136, 32), (2, 5, 7, 19), (3, 1), (70,), (5, 64), (1,)]


def ranges(shape: tuple[int, ...]) -> ir.Module:
    def body(x: ir.Value) -> list[ir.Value]:
        axes: Attributes = {"axes": tuple(range(len(shape))), "keep_dims": True}
        low, high = (build(op, x, element="f32", **axes).output for op in (F32MinOp, F32MaxOp))
        return [build(op, low, high, element="f32").output for op in (RangeScaleOp, RangeZeroPointOp)]

    return graph([tensor(shape, "f32")], body)


def drawn(shape: tuple[int, ...], ends: tuple[float, float], first: int) -> Array:
    """Numbers between the ends, which stand at two places."""
    size = int(np.prod(shape))
    finite = [end if np.isfinite(end) else 1.0 for end in ends]
    values = np.random.default_rng(3).uniform(min(finite), max(finite), size).astype(np.float32)
    if ends[0] == ends[1] == 0:
        values = np.zeros(size, np.float32) * np.float32(np.copysign(1, ends[0]))
    values[first % size], values[-1 - first % size] = ends
    return values.reshape(shape)


@variants_together
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ranges(shape: tuple[int, ...]) -> None:
    check(ranges(shape), *([drawn(shape, ends, first)] for ends in VALUES.values() for first in (0, 11, 133)))


def test_one_call_finds_both_ends() -> None:
    labels = list(lower(ranges((5, 64)), targets.host(), Phase.LINALG).labels)
    assert labels.count("qnn.f32_range") == 1
    assert not {"qnn.f32_min", "qnn.f32_max"} & set(labels)


def test_ends_that_something_else_reads_are_exact() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        axes: Attributes = {"axes": (0, 1), "keep_dims": True}
        low, high = (build(op, x, element="f32", **axes).output for op in (F32MinOp, F32MaxOp))
        return [build(RangeScaleOp, low, high, element="f32").output, low]

    check(graph([tensor((5, 64), "f32")], body), [drawn((5, 64), (2.0, 5.0), 3)], [drawn((5, 64), (-9.0, -1.0), 3)])


def test_on_two_threads() -> None:
    module, x = ranges((513, 64)), drawn((513, 64), (-3.0, 7.0), 1)
    wanted = interpreter.run(module, [x])
    for found, one in zip(compile_module(module, threads=2, min_cycles=1)(x), wanted, strict=True):
        np.testing.assert_array_equal(found, one)
