"""Functions whose results of positive numbers nothing chooses are computed with less work and the same bits."""

import numpy as np
import pytest
from compiled_ops import Array, check
from together import variants_together

from qdialect.ir.context import parse


def f32_values(count: int, seed: int = 0) -> Array:
    """Numbers of every magnitude, and many near zero."""
    rng = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 16.5, 18.5, 89.5, -18.5, 1e-45, -1e-45, 3e38, -3e38])
    near = rng.normal(size=count // 2) * rng.choice([1e-3, 0.1, 1, 10, 40], count // 2)
    bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.concatenate([special, near, bits])[:count].astype(np.float32)


def check_text(text: str, inputs: list[Array]) -> None:
    check(parse(text), inputs)


@variants_together
@pytest.mark.parametrize("guard", ["ogt", "oge", "olt"])
@pytest.mark.parametrize("of", ["%x", "%y"])
def test_expm1_chosen_beside_a_comparison(guard: str, of: str) -> None:
    # Only beside "x > 0" or "x >= 0" of its own operand do the results of positive numbers not count.
    text = f"""
      func.func @main(%x: tensor<4096xf32>, %y: tensor<4096xf32>) -> tensor<4096xf32> {{
        %zero = "qnn.constant"() {{value = dense<0.0> : tensor<f32>}} : () -> tensor<f32>
        %bound = "qnn.broadcast"(%zero) {{shape = array<i64: 4096>}} : (tensor<f32>) -> tensor<4096xf32>
        %alpha = "qnn.constant"() {{value = dense<0.7> : tensor<4096xf32>}} : () -> tensor<4096xf32>
        %guard = arith.cmpf {guard}, {of}, %bound : tensor<4096xf32>
        %expm1 = math.expm1 %x : tensor<4096xf32>
        %scaled = arith.mulf %expm1, %alpha : tensor<4096xf32>
        %result = arith.select %guard, %y, %scaled : tensor<4096xi1>, tensor<4096xf32>
        func.return %result : tensor<4096xf32>
      }}
    """
    check_text(text, [f32_values(4096), f32_values(4096, 2)])


@variants_together
@pytest.mark.parametrize("bound", [0.0, -1.0])
def test_expm1_that_something_else_reads_too(bound: float) -> None:
    text = f"""
      func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {{
        %bound = "qnn.constant"() {{value = dense<{bound}> : tensor<4096xf32>}} : () -> tensor<4096xf32>
        %guard = arith.cmpf ogt, %x, %bound : tensor<4096xf32>
        %expm1 = math.expm1 %x : tensor<4096xf32>
        %chosen = arith.select %guard, %x, %expm1 : tensor<4096xi1>, tensor<4096xf32>
        %result = arith.maximumf %chosen, %expm1 : tensor<4096xf32>
        func.return %result : tensor<4096xf32>
      }}
    """
    check_text(text, [f32_values(4096)])
