"""What a kernel's instructions need at least: counted by hand for small programs."""

import pytest
from vector_programs import module_of

from qdialect.lowering.functions import functions
from qdialect.lowering.tiling.bound import (
    KernelCycles,
    counted,
    cycles,
    kernel_cycles,
    kernels_of_pairs,
    kernels_of_tiles,
    memory_cycles,
)
from qdialect.target import resolve

ZEN_4, ZEN_5 = resolve("znver4").machine, resolve("znver5").machine
LOOP = """
func.func @kernel_3_node(%x: memref<8x64xi8>, %w: memref<64xi8>, %y: memref<8x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = vector.load %w[%c0] : memref<64xi8>, vector<64xi8>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = vector.load %x[%i, %c0] : memref<8x64xi8>, vector<64xi8>
    %s = vector.load %y[%i, %c0] : memref<8x16xi32>, vector<16xi32>
    %d = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%s, %a, %b)
      : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
    %e = arith.addi %d, %s : vector<16xi32>
    %f = arith.extsi %e : vector<16xi32> to vector<16xi64>
    %g = arith.muli %f, %f : vector<16xi64>
    %h = arith.trunci %g : vector<16xi64> to vector<16xi32>
    vector.store %h, %y[%i, %c0] : memref<8x16xi32>, vector<16xi32>
  }
  return
}
"""


def test_every_trip_of_a_loop_counts() -> None:
    module = module_of(LOOP)
    (function,) = functions(module)
    # A product of 64 bits takes two vectors, and so does what narrows it.
    wanted = {"products": 8, "loads": 17, "stores": 8, "instructions": 8 * (1 + 1 + 2 + 2)}
    assert dict(counted(function, ZEN_4)) == wanted
    # Two instructions of any kind a cycle, one load.
    # The load before the loop overlaps with nothing of it.
    assert kernel_cycles(module, ZEN_4) == {3: KernelCycles(bound=24.0, predicted=25.0)}
    # On ports that are as fast each body is bound by what it has most of.
    assert kernel_cycles(module, ZEN_5)[3] == KernelCycles(bound=12.0, predicted=12.5)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [(32 << 10, 0), (48 << 10, (48 << 10) / 16), (1 << 20, (1 << 20) / 16), (1 << 21, (1 << 21) / 8)],
)
def test_bytes_come_from_the_level_that_holds_them(size: int, wanted: float) -> None:
    assert memory_cycles(size, ZEN_4) == wanted


@pytest.mark.parametrize(
    ("counts", "wanted"), [({"products": 5.0}, 5), ({"loads": 7.0, "products": 3.0}, 7), ({"stores": 2.0}, 2), ({}, 0)]
)
def test_the_busiest_port_is_the_bound(counts: dict[str, float], wanted: float) -> None:
    assert cycles(counts, ZEN_4) == wanted


def test_kernels_that_sum_pairs_are_known_by_their_instruction() -> None:
    pairs = LOOP.replace("kernel_3", "kernel_4").replace("avx512.vpdpbusd.512", "avx512.pmaddubs.w.512")
    pairs = pairs.replace("(%s, %a, %b)", "(%a, %b)").replace("(vector<16xi32>, vector<64xi8>", "(vector<64xi8>")
    pairs = pairs.replace("-> vector<16xi32>", "-> vector<32xi16>").replace("%e = arith.addi %d", "%e = arith.addi %s")
    assert kernels_of_pairs(module_of(LOOP + pairs)) == {4}


def test_kernels_of_matrix_tiles_are_known_by_their_instruction() -> None:
    tiles = """
func.func @kernel_5_node() {
  %a = arith.constant 0 : i8
  llvm.call_intrinsic "llvm.x86.tdpbusd"(%a, %a, %a) : (i8, i8, i8) -> ()
  return
}
"""
    assert kernels_of_tiles(module_of(LOOP + tiles)) == {5}
