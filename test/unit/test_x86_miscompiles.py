"""Programs of phase `vector` that an instruction was once put into where it computes something else."""

import numpy as np
from vector_programs import assert_same_on_targets, x86_text

DOT = """
func.func @main(%x: memref<3x4xi8>, %w: memref<2x16x4xi8>, %y: memref<{shape}x16xi32>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %none = arith.constant 0 : i32
  %a = vector.transfer_read %x[%c0, %c0], %zero {{in_bounds = [true, true]}} : memref<3x4xi8>, vector<3x4xi8>
  %b = vector.transfer_read %w[%c0, %c0, %c0], %zero {{in_bounds = [true, true, true]}}
    : memref<2x16x4xi8>, vector<2x16x4xi8>
  %c = vector.transfer_read %y[%c0, %c0, %c0], %none {{in_bounds = [true, true, true]}}
    : memref<{shape}x16xi32>, vector<{shape}x16xi32>
  %d = arith.extui %a : vector<3x4xi8> to vector<3x4xi32>
  %e = arith.extsi %b : vector<2x16x4xi8> to vector<2x16x4xi32>
  %f = vector.contract {{
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> ({result}, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<{kind}>
  }} %d, %e, %c : vector<3x4xi32>, vector<2x16x4xi32> into vector<{shape}x16xi32>
  vector.transfer_write %f, %y[%c0, %c0, %c0] {{in_bounds = [true, true, true]}}
    : vector<{shape}x16xi32>, memref<{shape}x16xi32>
  return
}}
"""
GATHER = """
func.func @main(%t: memref<256xi8>, %x: memref<64xi8>, %y: memref<64xi8>) {{
  %c0 = arith.constant 0 : index
  %base = arith.constant {base} : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<{mask}> : vector<64xi1>
  %rest = arith.constant dense<77> : vector<64xi8>
  %a = vector.transfer_read %x[%c0], %zero {{in_bounds = [true]}} : memref<64xi8>, vector<64xi8>
  %i = arith.index_castui %a : vector<64xi8> to vector<64xindex>
  %g = vector.gather %t[%base] [%i], %mask, %rest
    : memref<256xi8>, vector<64xindex>, vector<64xi1>, vector<64xi8> into vector<64xi8>
  vector.transfer_write %g, %y[%c0] {{in_bounds = [true]}} : vector<64xi8>, memref<64xi8>
  return
}}
"""
STORE = """
func.func @main(%x: memref<2x4x16xi32>, %y: memref<2x4x16xi8>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %a = vector.transfer_read %x[%c0, %c0, %c0], %zero {in_bounds = [true, true, true]}
    : memref<2x4x16xi32>, vector<2x4x16xi32>
  %b = arith.trunci %a : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %b, %y[%c0, %c0, %c0] {in_bounds = [true, true, true]}
    : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}
"""
MASKED_STORE = """
func.func @main(%x: memref<2x4x16xi32>, %y: memref<2x4x16xi8>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %a = vector.transfer_read %x[%c0, %c0, %c0], %zero {{in_bounds = [true, true, true]}}
    : memref<2x4x16xi32>, vector<2x4x16xi32>
  %b = arith.trunci %a : vector<2x4x16xi32> to vector<2x4x16x{element}>
  %c = arith.constant dense<{constant}> : vector<2x4x16x{element}>
  %d = arith.andi %b, %c : vector<2x4x16x{element}>
  %e = arith.extsi %d : vector<2x4x16x{element}> to vector<2x4x16xi32>
  %f = arith.trunci %e : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %f, %y[%c0, %c0, %c0] {{in_bounds = [true, true, true]}}
    : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}}
"""
RNG = np.random.default_rng(11)


def test_the_order_of_the_result_map() -> None:
    arrays = [RNG.integers(0, 256, (3, 4), np.uint8), RNG.integers(-128, 128, (2, 16, 4), np.int8)]
    for result, shape in (("r, v", (3, 2)), ("v, r", (2, 3))):
        text = DOT.format(result=result, shape="x".join(map(str, shape)), kind="add")
        assert_same_on_targets(text, [*arrays, RNG.integers(-1000, 1000, (*shape, 16), np.int32)])


def test_the_combining_kind() -> None:
    # Upstream lowers no maximum over products, so that there is nothing to run.
    text = x86_text(DOT.format(result="r, v", shape="3x2", kind="maxsi"))
    assert "vector.contract" in text
    assert "vpdpbusd" not in text


def test_the_base_of_a_gather() -> None:
    quantized = RNG.integers(0, 255, 64, np.uint8)
    text = GATHER.format(base=1, mask="true")
    assert_same_on_targets(text, [RNG.integers(0, 256, 256, np.uint8), quantized, np.zeros(64, np.uint8)])


def test_the_mask_of_a_gather() -> None:
    quantized = RNG.integers(0, 256, 64, np.uint8)
    text = GATHER.format(base=0, mask="false")
    assert_same_on_targets(text, [RNG.integers(0, 256, 256, np.uint8), quantized, np.zeros(64, np.uint8)])


def test_a_truncation_of_large_values() -> None:
    values = RNG.integers(-70000, 70000, (2, 4, 16), np.int32)
    assert_same_on_targets(STORE, [values, np.zeros((2, 4, 16), np.uint8)])


def test_constants_of_one_bit_are_negative() -> None:
    constant = str(RNG.integers(0, 2, (2, 4, 16)).astype(bool).tolist()).lower()
    values = RNG.integers(-70000, 70000, (2, 4, 16), np.int32)
    text = MASKED_STORE.format(element="i1", constant=constant)
    assert_same_on_targets(text, [values, np.zeros((2, 4, 16), np.uint8)])


def test_constants_that_numpy_has_no_type_for() -> None:
    constant = str(RNG.integers(-4, 4, (2, 4, 16)).tolist())
    values = RNG.integers(-70000, 70000, (2, 4, 16), np.int32)
    text = MASKED_STORE.format(element="i3", constant=constant)
    assert_same_on_targets(text, [values, np.zeros((2, 4, 16), np.uint8)])
