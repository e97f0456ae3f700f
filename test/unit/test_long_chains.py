"""Thousands of ops in a row: no pass, reference or lowering takes a frame of Python's stack for each."""

import sys
from collections.abc import Callable

import numpy as np
import pytest

import qdialect
from qdialect.reference import interpreter

COUNT = 3000
assert sys.getrecursionlimit() < COUNT

PARAMETERS = "axis = 0 : i64, scales = array<f64: 0.5>, zero_points = array<i64: 0>"


def between_quantized_values(op: str) -> str:
    """A chain of `op`, in which {x} is its operand, between a dequantize and a quantize."""
    ops = "\n".join(f"  %v{i + 1} = {op.format(x=f'%v{i}')} : tensor<4xf32>" for i in range(COUNT))
    return f"""func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {{
  %v0 = "qnn.dequantize"(%x) {{{PARAMETERS}}} : (tensor<4xi8>) -> tensor<4xf32>
{ops}
  %y = "qnn.quantize"(%v{COUNT}) {{{PARAMETERS}, scaling = "divide", nan = "max", rounding = "half_even"}}
      : (tensor<4xf32>) -> tensor<4xi8>
  func.return %y : tensor<4xi8>
}}"""


def of_floats(op: str) -> str:
    """A chain of `op` on f32."""
    ops = "\n".join(f"  %v{i + 1} = {op.format(x=f'%v{i}')} : tensor<4xf32>" for i in range(COUNT))
    return f"func.func @main(%v0: tensor<4xf32>) -> tensor<4xf32> {{\n{ops}\n  return %v{COUNT} : tensor<4xf32>\n}}"


@pytest.mark.parametrize("op", ["math.absf {x}", "arith.maximumf {x}, {x}"])
@pytest.mark.parametrize("text_of", [between_quantized_values, of_floats])
def test_a_long_chain_has_its_results(op: str, text_of: Callable[[str], str]) -> None:
    module = qdialect.parse(text_of(op))
    dtype = np.int8 if text_of is between_quantized_values else np.float32
    array = np.array([-3, -1, 0, 7], dtype=dtype)
    wanted = np.abs(array) if op.startswith("math") else array
    assert interpreter.run(module, [array])[0].tolist() == wanted.tolist()
    qdialect.PassManager("fuse-qnn").run(module)
    assert interpreter.run(module, [array])[0].tolist() == wanted.tolist()
    found = qdialect.compile(module)(array)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == wanted.tolist()
