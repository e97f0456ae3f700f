"""Slices of vectors as shuffles, and what is left to upstream's pass for vectors."""

from __future__ import annotations

import re

from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import shuffle_slices, to_llvm

FLAT = """func.func @main(%x: memref<8xi32>, %y: memref<8xi32>) {
  %zero = arith.constant 0 : index
  %a = vector.load %x[%zero] : memref<8xi32>, vector<8xi32>
  %b = vector.extract_strided_slice %a {offsets = [2], sizes = [3], strides = [1]} : vector<8xi32> to vector<3xi32>
  %c = vector.insert_strided_slice %b, %a {offsets = [4], strides = [1]} : vector<3xi32> into vector<8xi32>
  vector.store %c, %y[%zero] : memref<8xi32>, vector<8xi32>
  return
}"""
NESTED = """func.func @main(%x: memref<4xi32>, %y: memref<4x4xi32>) {
  %zero = arith.constant 0 : index
  %start = arith.constant dense<7> : vector<4x4xi32>
  %a = vector.load %x[%zero] : memref<4xi32>, vector<4xi32>
  %b = vector.insert_strided_slice %a, %start {offsets = [1, 0], strides = [1]} : vector<4xi32> into vector<4x4xi32>
  %c = vector.extract_strided_slice %b {offsets = [1, 0], sizes = [2, 2], strides = [1, 1]}
    : vector<4x4xi32> to vector<2x2xi32>
  %d = vector.extract %c[0] : vector<2xi32> from vector<2x2xi32>
  vector.store %d, %y[%zero, %zero] : memref<4x4xi32>, vector<2xi32>
  return
}"""


def test_slices_of_one_dimension_are_shuffles() -> None:
    module = parse(FLAT, make_context())
    load_kernel_dialects(module)
    shuffle_slices(module)
    masks = re.findall(r"vector.shuffle %\w+, %\w+ \[([^]]*)\]", str(module))
    assert masks == ["2, 3, 4", "0, 1, 2, 0, 0, 0, 0, 0", "8, 9, 10, 11, 0, 1, 2, 15"]


def test_slices_of_more_dimensions_are_left_and_lowered_by_upstream() -> None:
    module = parse(NESTED, make_context())
    load_kernel_dialects(module)
    shuffle_slices(module)
    assert "vector.shuffle" not in str(module)
    to_llvm(module)
    assert "vector." not in str(module)


MORE = """func.func @main(%x: memref<2x4xf32>) {
  %zero = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %a = vector.transfer_read %x[%zero, %zero], %pad {in_bounds = [true, true]} : memref<2x4xf32>, vector<2x4xf32>
  %b = vector.fma %a, %a, %a : vector<2x4xf32>
  %c = vector.transpose %b, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
  %d = vector.shape_cast %c : vector<4x2xf32> to vector<2x4xf32>
  %i = vector.bitcast %d : vector<2x4xf32> to vector<2x4xi32>
  %j = arith.addi %i, %i : vector<2x4xi32>
  %e = vector.bitcast %j : vector<2x4xi32> to vector<2x4xf32>
  vector.transfer_write %e, %x[%zero, %zero] {in_bounds = [true, true]} : vector<2x4xf32>, memref<2x4xf32>
  return
}"""


def test_other_ops_on_several_vectors_are_lowered() -> None:
    module = parse(MORE, make_context())
    to_llvm(module)
    assert "vector." not in str(module)
    assert str(module).count("llvm.intr.fmuladd") == 2
