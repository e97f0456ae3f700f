"""What ``str()`` of an error says, which is all that a traceback shows: every reason, each at its line."""

from __future__ import annotations

import pytest

import qdialect
from qdialect.frontends.tosa import import_tosa

TOSA = """
func.func @main(%x: tensor<4xf16>, %y: tensor<4xi32>) -> (tensor<4xf16>, tensor<4xi32>) {
  %0 = tosa.exp %x : (tensor<4xf16>) -> tensor<4xf16>
  %1 = tosa.custom %y {domain_name = "a", implementation_attrs = "", operator_name = "b"}
    : (tensor<4xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xf16>, tensor<4xi32>
}
"""


def test_an_import_names_every_op_and_its_line() -> None:
    with pytest.raises(qdialect.ImportModelError) as caught:
        import_tosa(TOSA)
    first, exponential, custom = str(caught.value).splitlines()
    assert first == "'model.mlir' has 2 unsupported operations"
    assert exponential.startswith("  -:3:8: tosa.exp %0: must have operands and results of")
    assert custom == "  -:4:8: tosa.custom %1: has no counterpart in qnn"
    assert "-:4:8: note: tosa.custom %1: has no counterpart in qnn" in caught.value.render()


def test_a_pass_names_every_op_and_its_line() -> None:
    module = qdialect.parse("""
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = math.sqrt %x : tensor<4xf32>
        %1 = math.log1p %0 : tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(qdialect.PassError) as caught:
        qdialect.PassManager.parse("qnn-to-tosa").run(module)
    assert caught.value.render().splitlines()[1:] == [
        "-:3:14: note: 'math.sqrt' op has no counterpart in tosa",
        "-:4:14: note: 'math.log1p' op has no counterpart in tosa",
    ]


def test_a_compilation_names_every_op_and_its_line() -> None:
    module = qdialect.parse("""
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = math.sinh %x : tensor<4xf32>
        %1 = math.cosh %0 : tensor<4xf32>
        return %1 : tensor<4xf32>
      }""")
    with pytest.raises(qdialect.CompileError) as caught:
        qdialect.compile(module)
    assert str(caught.value).splitlines()[1:] == [
        "  -:3:14: 'math.sinh' op has no lowering",
        "  -:4:14: 'math.cosh' op has no lowering",
    ]
