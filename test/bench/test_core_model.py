"""The model of a core, which profiles compare kernels with."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from drawn_vector import module_of

from qdialect.bench.core_model.kernel_cycles import counted, kernel_cycles
from qdialect.bench.core_model.memory_traffic import Reuse, call_reuses
from qdialect.lowering.ir.functions import functions
from qdialect.targets.machine import MACHINES, ZEN_4_PIPES, Kind

ZEN_4 = MACHINES["znver4"]
M, A, P, I, S = Kind.MULTIPLY, Kind.ADD, Kind.PERMUTE, Kind.INTERLEAVE, Kind.SIMPLE  # noqa: E741


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        # Of 512 bits: one product a cycle, beside it one sum; with a permutation, three pipes do four halves.
        ({M: 2}, 1),
        ({S: 2}, 0.5),
        ({M: 2, A: 2}, 1),
        ({M: 2, P: 2}, 4 / 3),
        ({A: 2, P: 2}, 4 / 3),
        ({M: 2, I: 2}, 1),
        ({P: 2, I: 2}, 4 / 3),
        ({M: 2, A: 2, P: 2, S: 2}, 2),
        ({}, 0),
    ],
)
def test_kinds_compete_for_the_pipes_that_take_them(counts: Mapping[str, float], wanted: float) -> None:
    assert ZEN_4_PIPES.cycles(counts) == pytest.approx(wanted)


def _counted(body: str, arguments: str = "%x: memref<64xf32>, %y: memref<64xf32>") -> dict[str, float]:
    module = module_of(f"func.func @kernel_1_node({arguments}) {{\n%c0 = arith.constant 0 : index\n{body}\nreturn\n}}")
    (function,) = functions(module)
    return counted(function, ZEN_4)


def test_a_comparison_and_a_selection_of_the_same_are_one_minimum() -> None:
    found = _counted("""
      %a = vector.load %x[%c0] : memref<64xf32>, vector<16xf32>
      %b = vector.load %y[%c0] : memref<64xf32>, vector<16xf32>
      %m = arith.cmpf olt, %a, %b : vector<16xf32>
      %s = arith.select %m, %a, %b : vector<16xi1>, vector<16xf32>
      %q = arith.divf %s, %b : vector<16xf32>
      vector.store %q, %y[%c0] : memref<64xf32>, vector<16xf32>
    """)
    assert found == {"loads": 2, A: 2, "divisions": 6, "stores": 2}


def test_bytes_are_widened_and_interleaved_by_instructions() -> None:
    low = ", ".join(f"{i // 16 * 16 + i % 16 // 2 + i % 2 * 64}" for i in range(64))
    other = ", ".join(str(63 - i) for i in range(64))
    found = _counted(
        f"""
      %a = vector.load %x[%c0] : memref<64xi8>, vector<64xi8>
      %i = vector.shuffle %a, %a [{low}] : vector<64xi8>, vector<64xi8>
      %p = vector.shuffle %i, %a [{other}] : vector<64xi8>, vector<64xi8>
      %w = arith.extui %p : vector<64xi8> to vector<64xi16>
      %n = arith.trunci %w : vector<64xi16> to vector<64xi8>
      vector.store %n, %y[%c0] : memref<64xi8>, vector<64xi8>
    """,
        "%x: memref<64xi8>, %y: memref<64xi8>",
    )
    assert found == {"loads": 1, I: 2, P: 2 + 4 + 4, "stores": 2}


LOOP = """
func.func @kernel_1_node(%x: memref<512xf32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c512 = arith.constant 512 : index
  %z = arith.constant dense<0.0> : vector<16xf32>
  %s = scf.for %i = %c0 to %c512 step %c16 iter_args(%sum = %z) -> (vector<16xf32>) {
    %a = vector.load %x[%i] : memref<512xf32>, vector<16xf32>
    %b = arith.mulf %a, %a : vector<16xf32>
    %n = arith.addf %sum, %b : vector<16xf32>
    scf.yield %n : vector<16xf32>
  }
  vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>
  return
}
"""


def test_a_loop_waits_for_the_chain_of_what_it_hands_on() -> None:
    found = kernel_cycles(module_of(LOOP), ZEN_4)[1]
    # A product and a sum start in each cycle, but a sum waits three cycles for the one before it.
    assert found.bound == 32
    assert found.predicted == 32 * 3 + 2


CALLS = """
func.func @main(%x: memref<1024xi8>, %y: memref<1024xi8>, %c: memref<4096xi8>, %a: memref<2048xi8>) {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %w = memref.view %c[%c0][] : memref<4096xi8> to memref<1024xi32>
  %b = memref.view %a[%c1024][] : memref<2048xi8> to memref<1024xi8>
  call @kernel_0_node(%x, %w, %b) : (memref<1024xi8>, memref<1024xi32>, memref<1024xi8>) -> ()
  call @kernel_1_node(%b, %y) : (memref<1024xi8>, memref<1024xi8>) -> ()
  return
}
func.func private @kernel_0_node(memref<1024xi8>, memref<1024xi32>, memref<1024xi8>)
func.func private @kernel_1_node(memref<1024xi8>, memref<1024xi8>)
"""


def test_bytes_used_in_between_are_counted_around_the_network() -> None:
    first, second = call_reuses(module_of(CALLS))
    assert (first.kernel, second.kernel) == (0, 1)
    # Of both calls 6144 and 2048 bytes; half of each lies between the uses of what the first one writes.
    assert second.parts[0] == Reuse(1024, (6144 + 2048) / 2)
    # All that there is lies between the constants' uses, and no more.
    assert Reuse(4096, 7168) in first.parts
