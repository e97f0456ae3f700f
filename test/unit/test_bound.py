"""What a kernel's instructions need at least: counted by hand for small programs."""

from dataclasses import replace

import numpy as np
import pytest
from strategy_networks import Network
from vector_programs import module_of

from qdialect import parse
from qdialect.bench.core_model.kernel_cycles import (
    KernelCycles,
    NetworkMemory,
    counted,
    cycles,
    kernel_cycles,
    kernels_of_pairs,
    kernels_of_tiles,
    memory_cycles,
)
from qdialect.bench.core_model.memory_traffic import missed_lines, tile_loads
from qdialect.lowering.ir.functions import functions
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.targets import resolve
from qdialect.targets.machine import MACHINES

SAPPHIRE_RAPIDS = MACHINES["sapphirerapids"]
ZEN_4, ZEN_5 = resolve("znver4").machine, resolve("znver5").machine
# A core of which it was not measured what its pipes take.
PLAIN = replace(ZEN_4, pipes=None, levels=None)
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
    wanted["multiplications"] = 8 * (1 + 2)
    assert dict(counted(function, PLAIN)) == wanted
    # Two instructions of any kind a cycle, one load.
    # The load before the loop overlaps with nothing of it.
    assert kernel_cycles(module, PLAIN) == {3: KernelCycles(bound=24.0, predicted=25.0)}
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
    assert cycles(counts, PLAIN) == wanted


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


TILES = """
func.func @kernel_6_node(%x: memref<65536xi8>, %w: memref<4096xi8>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  %line = arith.constant 64 : i64
  %r0 = arith.constant 0 : i8
  %r4 = arith.constant 4 : i8
  %r6 = arith.constant 6 : i8
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %k = %c0 to %c4 step %c1 {
      %xs = memref.extract_aligned_pointer_as_index %x : memref<65536xi8> -> index
      %ws = memref.extract_aligned_pointer_as_index %w : memref<4096xi8> -> index
      %block = arith.muli %i, %c4096 : index
      %step = arith.muli %c1024, %k : index
      %offset = arith.addi %block, %step : index
      %xi = arith.addi %xs, %offset : index
      %wi = arith.addi %ws, %step : index
      %xn = arith.index_cast %xi : index to i64
      %wn = arith.index_cast %wi : index to i64
      %xp = llvm.inttoptr %xn : i64 to !llvm.ptr
      %wp = llvm.inttoptr %wn : i64 to !llvm.ptr
      llvm.call_intrinsic "llvm.x86.tileloadd64"(%r4, %xp, %line) {qnn.rows = 16 : i64} : (i8, !llvm.ptr, i64) -> ()
      llvm.call_intrinsic "llvm.x86.tileloadd64"(%r6, %wp, %line) {qnn.rows = 16 : i64} : (i8, !llvm.ptr, i64) -> ()
      llvm.call_intrinsic "llvm.x86.tdpbusd"(%r0, %r4, %r6) {qnn.rows = 16 : i64} : (i8, i8, i8) -> ()
    }
    %v = vector.load %y[%c0] : memref<64xf32>, vector<64xf32>
    %s = arith.addf %v, %v : vector<64xf32>
    %p = arith.mulf %s, %v : vector<64xf32>
    vector.store %p, %y[%c0] : memref<64xf32>, vector<64xf32>
  }
  return
}
"""


@pytest.mark.parametrize(
    ("capacity", "lines"),
    [
        # All of x once, and w once, as it stays beside 4 KB of x.
        (48 << 10, 1024 + 64),
        # Two tiles stay, but not what a block reads: w comes again for each of 16 blocks.
        (4 << 10, 1024 + 16 * 64),
        (0, 1024 + 1024),
    ],
)
def test_lines_that_stay_between_two_reads_are_fetched_once(capacity: int, lines: int) -> None:
    module = module_of(TILES)
    (function,) = functions(module)
    assert missed_lines(tile_loads(function), capacity) == lines


def test_lines_that_need_not_stay_are_fetched_each_time_and_displace_none() -> None:
    passing = TILES.replace('tileloadd64"(%r6', 'tileloaddt164"(%r6')
    module = module_of(passing)
    (function,) = functions(module)
    assert missed_lines(tile_loads(function), 4 << 10) == 1024 + 1024
    assert counted(function, SAPPHIRE_RAPIDS)["tile loads"] == 2 * 64 * 16


def test_windows_that_overlap_have_their_lines_once() -> None:
    module = module_of(TILES.replace("%c4096 = arith.constant 4096", "%c4096 = arith.constant 1024"))
    (function,) = functions(module)
    # 16 blocks of 64 lines, each 16 lines behind the one before.
    assert missed_lines(tile_loads(function), 48 << 10) == 15 * 16 + 64 + 64


def test_products_of_tiles_wait_for_loads_from_the_second_level_and_are_followed_by_vector_code() -> None:
    module = module_of(TILES)
    found = kernel_cycles(module, SAPPHIRE_RAPIDS)[6]
    loads = (2 * 64 * 16 - 1088) / 2 + 1088 * 64 / 40
    # Of four vectors, each addition and multiplication, two a cycle; but one multiplication a cycle.
    assert found.predicted == loads + 16 * 4
    # Loads, of 64 vectors beside those of tiles, outlast 64 products.
    assert found.bound == (2 * 64 * 16 + 16 * 4) / 2
    assert found.loaded == 65536 + 4096
    near = replace(SAPPHIRE_RAPIDS, l2_bandwidth=1 << 20)
    assert kernel_cycles(module, near)[6].predicted == pytest.approx(64 * 16 + 16 * 4, abs=0.1)
    flat = module_of(TILES.replace('tdpbusd"(%r0, %r4, %r6) {qnn.rows = 16', 'tdpbusd"(%r0, %r4, %r6) {qnn.rows = 4'))
    assert counted(next(iter(functions(flat))), SAPPHIRE_RAPIDS)["tiles"] == 64 * 9


def test_what_other_kernels_have_displaced_is_waited_for() -> None:
    large, small = NetworkMemory(3 << 20, 96 << 10), NetworkMemory(1 << 20, 96 << 10)
    dots = KernelCycles(100.0, 200.0, constants=9000, network=large)
    # Constants at 9 bytes a cycle; of the working memory half is in the first level, the rest at 20.
    assert dots.with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 1000 + 100
    assert replace(dots, network=small).with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 450 + 100
    # Tiles that load them have waited.
    tiles = replace(dots, loaded=3000, network=small)
    assert tiles.with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 25
    assert replace(dots, network=NetworkMemory(0, 48 << 10)).with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 450
    # Where the bandwidth of the third level is not known.
    assert dots.with_memory(48 << 10, ZEN_4) == (48 << 10) / 16


def test_constants_of_a_kernel_are_parts_of_those_of_the_network() -> None:
    drawn = Network(3, (1, 8, 8, 64))
    drawn.convolution(64, 1, 1)
    drawn.convolution(128, 3, 1)
    code = lower(parse(drawn.text()), resolve("amxint8"), Phase.X86).module
    found = kernel_cycles(code, SAPPHIRE_RAPIDS)
    sizes = [found[number].constants for number in sorted(kernels_of_tiles(code))]
    assert np.all(np.array(sizes) >= [64 * 64, 9 * 64 * 128])
    assert len({one.network for one in found.values()}) == 1
    assert sum(sizes) <= found[0].network.constants
