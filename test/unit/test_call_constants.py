"""Numbers that every call of a kernel gives it alike become its constants."""

from __future__ import annotations

import pytest

from qdialect.ir.context import make_context, parse
from qdialect.lowering.linalg_to_vector.to_vector import propagate_call_constants

TEXT = """
func.func {visibility} @kernel_0(%a: i32, %b: f32, %to: memref<1xi32>) {{
  %zero = arith.constant 0 : index
  memref.store %a, %to[%zero] : memref<1xi32>
  return
}}
func.func private @kernel_1(%a: i32, %to: memref<1xi32>) {{
  %zero = arith.constant 0 : index
  memref.store %a, %to[%zero] : memref<1xi32>
  return
}}
func.func @main(%when: i1, %given: i32, %to: memref<1xi32>) {{
  %five = arith.constant 5 : i32
  %b = arith.constant 1.0 : f32
  %second = {second}
  func.call @kernel_0(%five, %b, %to) : (i32, f32, memref<1xi32>) -> ()
  scf.if %when {{
    func.call @kernel_0(%second, %b, %to) : (i32, f32, memref<1xi32>) -> ()
  }}
  func.call @kernel_1(%given, %to) : (i32, memref<1xi32>) -> ()
  return
}}
"""


def stored(second: str, visibility: str = "private") -> list[str]:
    """What the kernels store after `second` was handed over by the second call."""
    module = parse(TEXT.format(second=second, visibility=visibility), make_context())
    propagate_call_constants(module)
    return [line.split()[1] for line in str(module).splitlines() if "memref.store" in line]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("arith.constant 5 : i32", "%c5_i32,"),
        ("arith.constant 6 : i32", "%arg0,"),
        ("arith.addi %given, %given : i32", "%arg0,"),
    ],
)
def test_what_all_calls_agree_on_is_a_constant(second: str, expected: str) -> None:
    assert stored(second) == [expected, "%arg0,"]


def test_a_public_function_keeps_its_parameters() -> None:
    assert stored("arith.constant 5 : i32", "public") == ["%arg0,", "%arg0,"]


FLOATS = """
func.func private @kernel_0(%a: f32, %x: f32, %to: memref<1xf32>) {{
  %zero = arith.constant 0 : index
  %y = {op}
  memref.store %y, %to[%zero] : memref<1xf32>
  return
}}
func.func @main(%x: f32, %to: memref<1xf32>) {{
  %a = arith.constant {value} : f32
  func.call @kernel_0(%a, %x, %to) : (f32, f32, memref<1xf32>) -> ()
  func.call @kernel_0(%a, %x, %to) : (f32, f32, memref<1xf32>) -> ()
  return
}}
"""


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("arith.divf %x, %a : f32", "6.0", "arith.divf %arg1, %cst : f32"),
        ("arith.divf %x, %a : f32", "0.1", "arith.divf %arg1, %arg0 : f32"),
        ("arith.divf %x, %a : f32", "4.0", "arith.divf %arg1, %arg0 : f32"),
        ("arith.divf %a, %x : f32", "6.0", "arith.divf %arg0, %arg1 : f32"),
        ("arith.mulf %x, %a : f32", "6.0", "arith.mulf %arg1, %arg0 : f32"),
        ("arith.minimumf %x, %a : f32", "0.1", "arith.minimumf %arg1, %cst : f32"),
        ("arith.maximumf %a, %x : f32", "0.0", "arith.maximumf %cst, %arg1 : f32"),
    ],
)
def test_bounds_and_short_divisors_are_constants(op: str, value: str, expected: str) -> None:
    module = parse(FLOATS.format(op=op, value=value), make_context())
    propagate_call_constants(module)
    assert expected in str(module)
