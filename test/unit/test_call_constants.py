"""Integers that every call of a kernel gives it alike become its constants."""

from __future__ import annotations

import pytest

from qdialect.context import make_context, parse
from qdialect.lowering.call_constants import propagate_call_constants

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
