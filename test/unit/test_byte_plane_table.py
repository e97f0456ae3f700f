"""Tables of 256 numbers that byte permutes look up, a byte of the number at a time."""

import re

import numpy as np
import pytest
from vector_programs import Array, assert_same_on_targets, x86_text

RNG = np.random.default_rng(5)
LOOK_UP = """
func.func @main(%t: memref<256x{element}>, %x: memref<{shape}x{bits}>, %y: memref<{shape}x{element}>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : {bits}
  %mask = arith.constant dense<true> : vector<{shape}xi1>
  %none = arith.constant dense<0{point}> : vector<{shape}x{element}>
  %a = vector.transfer_read %x[{at}], %zero {{in_bounds = [{inside}]}} : memref<{shape}x{bits}>, vector<{shape}x{bits}>
  %i = arith.index_castui %a : vector<{shape}x{bits}> to vector<{shape}xindex>
  %g = vector.gather %t[%c0] [%i], %mask, %none
    : memref<256x{element}>, vector<{shape}xindex>, vector<{shape}xi1>, vector<{shape}x{element}>
      into vector<{shape}x{element}>
  vector.transfer_write %g, %y[{at}] {{in_bounds = [{inside}]}} : vector<{shape}x{element}>, memref<{shape}x{element}>
  return
}}
"""
DISTANCES = """
func.func @main(%t: memref<256xf32>, %x: memref<3x64xi8>, %top: memref<3xi8>, %y: memref<3x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<true> : vector<1x64x1xi1>
  %none = arith.constant dense<0.0> : vector<1x64x1xf32>
  scf.for %row = %c0 to %c3 step %c1 {
    %a = vector.transfer_read %x[%row, %c0], %zero {in_bounds = [true, true]} : memref<3x64xi8>, vector<1x64xi8>
    %b = vector.transfer_read %top[%row], %zero {in_bounds = [true]} : memref<3xi8>, vector<1xi8>
    %c = arith.extui %a : vector<1x64xi8> to vector<1x64xi32>
    %d = vector.shape_cast %c : vector<1x64xi32> to vector<1x1x64xi32>
    %e = vector.transpose %d, [0, 2, 1] : vector<1x1x64xi32> to vector<1x64x1xi32>
    %f = arith.extui %b : vector<1xi8> to vector<1xi32>
    %g = vector.broadcast %f : vector<1xi32> to vector<1x64x1xi32>
    %h = arith.subi %g, %e : vector<1x64x1xi32>
    %i = arith.index_cast %h : vector<1x64x1xi32> to vector<1x64x1xindex>
    %j = vector.gather %t[%c0] [%i], %mask, %none
      : memref<256xf32>, vector<1x64x1xindex>, vector<1x64x1xi1>, vector<1x64x1xf32> into vector<1x64x1xf32>
    %k = vector.shape_cast %j : vector<1x64x1xf32> to vector<1x64xf32>
    vector.transfer_write %k, %y[%row, %c0] {in_bounds = [true, true]} : vector<1x64xf32>, memref<3x64xf32>
  }
  return
}
"""
CHANGING = """
func.func @main(%t: memref<256xi32>, %x: memref<64xi8>, %y: memref<3x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0> : vector<64xi32>
  scf.for %row = %c0 to %c3 step %c1 {
    %a = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<64xi8>, vector<64xi8>
    %i = arith.index_castui %a : vector<64xi8> to vector<64xindex>
    %g = vector.gather %t[%c0] [%i], %mask, %none
      : memref<256xi32>, vector<64xindex>, vector<64xi1>, vector<64xi32> into vector<64xi32>
    vector.transfer_write %g, %y[%row, %c0] {in_bounds = [true]} : vector<64xi32>, memref<3x64xi32>
    vector.transfer_write %g, %t[%c0] {in_bounds = [true]} : vector<64xi32>, memref<256xi32>
  }
  return
}
"""


def entries(element: str) -> Array:
    if element == "i32":
        return RNG.integers(-(2**31), 2**31, 256).astype(np.int32)
    return RNG.normal(size=256).astype(np.float32)


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("bits", ["i8", "i32"])
@pytest.mark.parametrize("shape", [(64,), (2, 64), (4, 16), (128,)])
def test_look_ups(shape: tuple[int, ...], bits: str, element: str) -> None:
    program = LOOK_UP.format(
        element=element,
        bits=bits,
        shape="x".join(map(str, shape)),
        point=".0" if element == "f32" else "",
        at=", ".join(["%c0"] * len(shape)),
        inside=", ".join(["true"] * len(shape)),
    )
    indices = RNG.integers(0, 256, shape).astype(np.uint8 if bits == "i8" else np.int32)
    table = entries(element)
    assert "vpermi2var.qi.512" in x86_text(program)
    assert_same_on_targets(program, [table, indices, np.zeros(shape, table.dtype)])


def test_distances_are_those_of_bytes() -> None:
    values, top = RNG.integers(0, 200, (3, 64), np.uint8), np.array([200, 230, 255], np.uint8)
    text = x86_text(DISTANCES)
    assert text.index("arith.subi") > text.index("scf.for") > text.index("vector.shuffle"), "planes are made before"
    assert re.search(r"arith.subi .* : vector<64xi8>", text)
    assert_same_on_targets(DISTANCES, [entries("f32"), values, top, np.zeros((3, 64), np.float32)])


def test_a_loop_that_writes_the_table_reads_it_again() -> None:
    text = x86_text(CHANGING)
    assert text.index("scf.for") < text.index("vector.shuffle")
    assert_same_on_targets(CHANGING, [entries("i32"), RNG.integers(0, 256, 64, np.uint8), np.zeros((3, 64), np.int32)])
