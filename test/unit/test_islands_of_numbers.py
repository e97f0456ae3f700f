"""What depends on single numbers alone, in a kernel of many elements: vectors of no dimension are computed too."""

from typing import Any

import numpy as np
import pytest

import qdialect
from qdialect import targets
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

KINDS = [name for name, one in targets.TARGETS.items() if one.features <= targets.host_features()]
FUNCTIONS = [
    *(f"math.{name}" for name in ("absf", "ceil", "floor", "trunc", "roundeven", "sqrt", "rsqrt", "erf", "tanh")),
    *(f"math.{name}" for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos")),
    *("arith.negf", "math.copysign", "math.powf"),
    *(f"arith.{name}" for name in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf")),
]
OF_TWO = {"math.copysign", "math.powf", *FUNCTIONS[-6:]}
_SHAPE, _NUMBER = "tensor<3x17xf32>", "tensor<1x1xf32>"


def functions_of_a_number() -> str:
    """Each function of one number, which is broadcast, added to elements; the sum is quantized."""
    lines: list[str] = []
    for i, name in enumerate(FUNCTIONS):
        operands = ", ".join(["%b"] * (2 if name in OF_TWO else 1))
        lines += [f"%y{i} = {name} {operands} : {_SHAPE}", f"%s{i} = arith.addf %x, %y{i} : {_SHAPE}"]
        how = '{rounding = "half_even", scales = array<f64: 0.03>, zero_points = array<i64: 3>}'
        lines.append(f'%q{i} = "qnn.quantize"(%s{i}) {how} : ({_SHAPE}) -> tensor<3x17xi8>')
    results = ", ".join(f"%q{i}" for i in range(len(FUNCTIONS)))
    types = ", ".join(["tensor<3x17xi8>"] * len(FUNCTIONS))
    return f"""func.func @main(%n: {_NUMBER}, %x: {_SHAPE}) -> ({types}) {{
      %b = "qnn.broadcast"(%n) {{shape = array<i64: 3, 17>}} : ({_NUMBER}) -> {_SHAPE}
      {chr(10).join(lines)}
      return {results} : {types}
    }}"""


def quantized_number() -> str:
    """One quantized number, whose exponential is quantized for each element."""
    how = "scales = array<f64: 0.007>, zero_points = array<i64: 0>"
    return f"""func.func @main(%n: tensor<1xi8>) -> tensor<2xi8> {{
      %d = "qnn.dequantize"(%n) {{{how}}} : (tensor<1xi8>) -> tensor<1xf32>
      %b = "qnn.broadcast"(%d) {{shape = array<i64: 2>}} : (tensor<1xf32>) -> tensor<2xf32>
      %e = math.exp %b : tensor<2xf32>
      %q = "qnn.quantize"(%e) {{{how}}} : (tensor<2xf32>) -> tensor<2xi8>
      return %q : tensor<2xi8>
    }}"""


@pytest.mark.parametrize("name", KINDS)
def test_functions_of_a_number(name: str) -> None:
    module = qdialect.parse(functions_of_a_number())
    number = np.array([[1.75]], np.float32)
    x = np.random.default_rng(0).normal(size=(3, 17)).astype(np.float32)
    found: Any = compile_module(module, target=targets.TARGETS[name])(number, x)
    for one, wanted in zip(found, interpreter.run(module, [number, x]), strict=True):
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("name", KINDS)
def test_a_quantized_number(name: str) -> None:
    module, number = qdialect.parse(quantized_number()), np.array([-5], np.int8)
    np.testing.assert_array_equal(
        compile_module(module, target=targets.TARGETS[name])(number), interpreter.run(module, [number])[0]
    )
