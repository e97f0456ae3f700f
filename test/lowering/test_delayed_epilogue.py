"""Epilogues of matrix tiles between the products of the next block: which of them wait, and the bits of all."""

import numpy as np
import pytest
from drawn_vector import module_of
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.lowering.vector_to_x86.to_x86 import to_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.compiler import MachineCode
from qdialect.targets import resolve

BLOCKS, ROWS, K_GROUPS, LANES = 5, 6, 8, 16

# Blocks of products, `step` K groups at once; the epilogue stores the low bytes of `piece` rows of sums at once.
PROGRAM = """
#d = affine_map<(a, v, m, l, k, t) -> (a, m, k, t)>
#w = affine_map<(a, v, m, l, k, t) -> (k, v, l, t)>
#s = affine_map<(a, v, m, l, k, t) -> (a, v, m, l)>
func.func @main(%data: memref<6x6x8x4xi8>, %weights: memref<8x1x16x4xi8>, %scratch: memref<1x1x6x16xi32>,
                %out: memref<6x6x8x4xi8>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %blocks = arith.constant 5 : index
  %k_groups = arith.constant 8 : index
  %rows = arith.constant 6 : index
  %piece = arith.constant {piece} : index
  %step = arith.constant {step} : index
  %pad = arith.constant 0 : i8
  %pad32 = arith.constant 0 : i32
  %zeros = arith.constant dense<0> : vector<1x1x6x16xi32>
  scf.for %block = %c0 to %blocks step %c1 {{
    %sums = scf.for %k = %c0 to %k_groups step %step iter_args(%sum = %zeros) -> (vector<1x1x6x16xi32>) {{
      %x = vector.transfer_read %data[%block, %c0, %k, %c0], %pad {{in_bounds = [true, true, true, true]}}
        : memref<6x6x8x4xi8>, vector<1x6x{step}x4xi8>
      %y = vector.transfer_read %weights[%k, %c0, %c0, %c0], %pad {{in_bounds = [true, true, true, true]}}
        : memref<8x1x16x4xi8>, vector<{step}x1x16x4xi8>
      %x32 = arith.extui %x : vector<1x6x{step}x4xi8> to vector<1x6x{step}x4xi32>
      %y32 = arith.extsi %y : vector<{step}x1x16x4xi8> to vector<{step}x1x16x4xi32>
      %next = vector.contract {{indexing_maps = [#d, #w, #s], iterator_types = ["parallel", "parallel", "parallel",
        "parallel", "reduction", "reduction"], kind = #vector.kind<add>}} %x32, %y32, %sum
        : vector<1x6x{step}x4xi32>, vector<{step}x1x16x4xi32> into vector<1x1x6x16xi32>
      scf.yield %next : vector<1x1x6x16xi32>
    }}
    vector.transfer_write %sums, %scratch[%c0, %c0, %c0, %c0] {{in_bounds = [true, true, true, true]}}
      : vector<1x1x6x16xi32>, memref<1x1x6x16xi32>
    %behind = arith.addi %block, %c1 : index
    scf.for %row = %c0 to %rows step %piece {{
      %own = vector.transfer_read %scratch[%c0, %c0, %row, %c0], %pad32 {{in_bounds = [true, true]}}
        : memref<1x1x6x16xi32>, vector<{piece}x16xi32>
      %bytes = arith.trunci %own : vector<{piece}x16xi32> to vector<{piece}x16xi8>
      %taps = vector.shape_cast %bytes : vector<{piece}x16xi8> to vector<{piece}x4x4xi8>
      vector.transfer_write %taps, {array}[{at}, %row, %c0, %c0] {{in_bounds = [true, true, true]}}
        : vector<{piece}x4x4xi8>, memref<6x6x8x4xi8>
    }}
  }}
  return
}}
"""
# Results that nobody reads, and data of the block behind.
APART, CHAINED = {"array": "%out", "at": "%block"}, {"array": "%data", "at": "%behind"}


def lowered(target: str, **changed: str | int) -> ir.Module:
    module = module_of(PROGRAM.format(**({"step": 2, "piece": 3} | changed)))
    to_x86(module, resolve(target))
    return module


def waits(module: ir.Module) -> bool:
    """Whether the code keeps on the stack whose epilogue is to be computed."""
    return "memref.alloca() : memref<2xindex>" in str(module)


def wanted(data: NDArray[np.uint8], weights: NDArray[np.int8], out: NDArray[np.uint8], *, chained: bool) -> None:
    """The program in NumPy, in place."""
    matrix = weights[:, 0].transpose(0, 2, 1).reshape(4 * K_GROUPS, LANES).astype(np.int64)
    for block in range(BLOCKS):
        sums = data[block].reshape(ROWS, -1).astype(np.int64) @ matrix
        destination = data[block + 1] if chained else out[block]
        destination[:, :4] = sums.astype(np.uint8).reshape(ROWS, 4, 4)


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("step", [2, 4, 8])
@pytest.mark.parametrize("piece", [1, 2, 3])
def test_the_program_does_the_same_in_any_order(step: int, piece: int, chained: bool) -> None:
    module = lowered("amxint8,portable", step=step, piece=piece, **(CHAINED if chained else APART))
    assert waits(module) == (not chained)
    to_llvm(module)
    random = np.random.default_rng(4)
    arrays: list[NDArray[np.uint8]] = [random.integers(0, 256, (6, 6, 8, 4)).astype(np.uint8) for _ in range(2)]
    weights, scratch = random.integers(-128, 128, (8, 1, 16, 4)).astype(np.int8), np.zeros((1, 1, 6, 16), np.int32)
    expected = [array.copy() for array in arrays]
    wanted(expected[0], weights, expected[1], chained=chained)
    keep = [arrays[0], weights, scratch, arrays[1]]
    MachineCode(module).bind("main", [array.ctypes.data for array in keep], keep=keep).call()
    for found, right in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(found, right)


def scratch_read_too() -> str:
    """The program with a second result: in each iteration, what scratch had before."""
    text = PROGRAM.format(step=2, piece=3, **APART)
    old = "    %sums = "
    read = (
        "    %old = vector.transfer_read %scratch[%c0, %c0, %c0, %c0], %pad32 {in_bounds = [true]}\n"
        "      : memref<1x1x6x16xi32>, vector<16xi32>\n"
        "    vector.transfer_write %old, %was[%block, %c0] {in_bounds = [true]} : vector<16xi32>, memref<6x16xi32>\n"
    )
    return text.replace(old, read + old).replace("xi8>) {", "xi8>, %was: memref<6x16xi32>) {")


def test_sums_that_others_read_are_stored_with_their_block() -> None:
    module = module_of(scratch_read_too())
    to_x86(module, resolve("amxint8,portable"))
    to_llvm(module)
    random = np.random.default_rng(7)
    data, weights, out = (random.integers(0, 256, (6, 6, 8, 4)).astype(np.uint8), _weights(random), _bytes())
    scratch, was = np.full((1, 1, 6, 16), 5, np.int32), np.zeros((6, 16), np.int32)
    keep = [data, weights, scratch, out, was]
    MachineCode(module).bind("main", [array.ctypes.data for array in keep], keep=keep).call()
    matrix = weights[:, 0].transpose(0, 2, 1).reshape(4 * K_GROUPS, LANES).astype(np.int64)
    sums = data[: BLOCKS - 1, 0].reshape(BLOCKS - 1, -1).astype(np.int64) @ matrix
    np.testing.assert_array_equal(was[0], np.full(16, 5))
    np.testing.assert_array_equal(was[1:BLOCKS], sums)


def _weights(random: np.random.Generator) -> NDArray[np.int8]:
    return random.integers(-128, 128, (8, 1, 16, 4)).astype(np.int8)


def _bytes() -> NDArray[np.uint8]:
    return np.zeros((6, 6, 8, 4), np.uint8)
