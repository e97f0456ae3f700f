"""Programs of phase `vector` that an instruction was once put into where it computes something else."""

import numpy as np
import pytest
from vector_programs import HOST_TARGETS, assert_same_on_targets, x86_text

# Those that add words with saturation.
WIDE_TARGETS = [one for one in HOST_TARGETS if "avx512bw" in one.features]

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
SUM_STORE = """
func.func @main(%x: memref<2x4x16x{element}>, %y: memref<2x4x16xi8>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero} : {element}
  %a = vector.transfer_read %x[%c0, %c0, %c0], %zero {{in_bounds = [true, true, true]}}
    : memref<2x4x16x{element}>, vector<2x4x16x{element}>
  {integers}
  %rest = arith.constant dense<{rest}> : vector<2x4x16xi32>
  %shift = arith.constant dense<{shift}> : vector<2x4x16xi32>
  %low = arith.constant dense<0> : vector<2x4x16xi32>
  %high = arith.constant dense<255> : vector<2x4x16xi32>
  %s = arith.addi %i, %rest : vector<2x4x16xi32>
  %q = arith.shrsi %s, %shift : vector<2x4x16xi32>
  %m = arith.maxsi %q, %low : vector<2x4x16xi32>
  %k = arith.minsi %m, %high : vector<2x4x16xi32>
  %n = arith.trunci %k : vector<2x4x16xi32> to vector<2x4x16xi8>
  vector.transfer_write %n, %y[%c0, %c0, %c0] {{in_bounds = [true, true, true]}}
    : vector<2x4x16xi8>, memref<2x4x16xi8>
  return
}}
"""
SUMMED = {
    "any": ("i32", "0", "%i = arith.addi %a, %a : vector<2x4x16xi32>"),
    "halved": (
        "i32",
        "0",
        """%one = arith.constant dense<1> : vector<2x4x16xi32>
  %i = arith.shrsi %a, %one : vector<2x4x16xi32>""",
    ),
    "logically halved": (
        "i32",
        "0",
        """%one = arith.constant dense<1> : vector<2x4x16xi32>
  %i = arith.shrui %a, %one : vector<2x4x16xi32>""",
    ),
    "high": (
        "i32",
        "0",
        """%w = arith.extsi %a : vector<2x4x16xi32> to vector<2x4x16xi64>
  %p = arith.muli %w, %w : vector<2x4x16xi64>
  %c32 = arith.constant dense<32> : vector<2x4x16xi64>
  %h = arith.shrui %p, %c32 : vector<2x4x16xi64>
  %i = arith.trunci %h : vector<2x4x16xi64> to vector<2x4x16xi32>""",
    ),
    "low": (
        "i32",
        "0",
        """%w = arith.extsi %a : vector<2x4x16xi32> to vector<2x4x16xi64>
  %p = arith.muli %w, %w : vector<2x4x16xi64>
  %i = arith.trunci %p : vector<2x4x16xi64> to vector<2x4x16xi32>""",
    ),
    "converted": ("f32", "0.0", "%i = arith.fptosi %a : vector<2x4x16xf32> to vector<2x4x16xi32>"),
}
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


@pytest.mark.parametrize("summed", SUMMED)
@pytest.mark.parametrize(("rest", "shift"), [(100, 3), (255, 0), (127, 1), (32767, 7)])
def test_a_sum_that_wraps_is_no_saturated_sum_of_words(summed: str, rest: int, shift: int) -> None:
    element, zero, integers = SUMMED[summed]
    text = SUM_STORE.format(element=element, zero=zero, integers=integers, rest=rest, shift=shift)
    values = RNG.integers(-(2**31), 2**31, (2, 4, 16))
    ends = [2**31 - 1, 2**31 - 50, -(2**31), -5, 700, 46341, 2**30, 0]
    if element == "f32":
        ends = [2**31 - 128, -(2**31), 2**31 - 256, 700, -5]
    values.reshape(-1)[: len(ends)] = ends
    values = values.astype(np.int32) if element == "i32" else np.clip(values, -(2**31), 2**31 - 128).astype(np.float32)
    assert_same_on_targets(text, [values, np.zeros((2, 4, 16), np.uint8)], WIDE_TARGETS)


def test_what_is_proven_of_a_sum_lets_words_be_added() -> None:
    added = {}
    for summed, (element, zero, integers) in SUMMED.items():
        text = SUM_STORE.format(element=element, zero=zero, integers=integers, rest=100, shift=3)
        added[summed] = "sadd.sat" in (found := x86_text(text)) or "padds" in found
    assert added == {
        "any": False,
        "halved": True,
        "logically halved": False,
        "high": True,
        "low": False,
        "converted": True,
    }
