"""Contractions in matrix tiles: their bits, the code around them, their epilogues, and which contractions get them."""

from collections.abc import Sequence

import numpy as np
import pytest
from drawn_networks import AMX, Network, assert_same_bits, network, with_tiles
from drawn_vector import module_of
from numpy.typing import NDArray

from qdialect.aot.object_file import object_code
from qdialect.cli.explorer.data import bodies_of_functions
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost.matrix_tiles import TileBlock, tile_blocks
from qdialect.lowering.cost.strategy import Strategy, TiledOperand
from qdialect.lowering.instructions.tiles import TDPBUSD, AmxRegisters, PortableRegisters, Shape, TileMemory
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.ir.views import Axis
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.qnn_to_linalg.contractions import tile_contraction
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction
from qdialect.lowering.qnn_to_linalg.contractions.tile_contraction import AlignedData, aligned_data
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ReductionAxes
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.vector_to_x86.to_x86 import to_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.compiler import MachineCode
from qdialect.targets import resolve
from tools.hot_loop import disassembled


def test_the_portable_form_has_the_bits_of_the_reference() -> None:
    # Rests of pixels, channels and K groups are narrower tiles; weights of nine bits and zero points too.
    drawn = Network(5, (1, 4, 33, 68))
    drawn.convolution(36, 1)
    assert_same_bits(drawn, (1, 4, 33, 68))


@pytest.mark.parametrize(("shape", "are_far"), [((1, 7, 7, 72), False), ((1, 7, 7, 72), True), ((1, 4, 6, 68), False)])
def test_small_planes_have_the_bits_of_the_reference(
    shape: tuple[int, ...], are_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocks(op: Contraction, strategy: Strategy, pixels: Sequence[Axis]) -> list[TileBlock]:
        del op, strategy
        return tile_blocks(pixels, are_far=are_far)

    monkeypatch.setattr(tile_contraction, "pixel_blocks", blocks)
    drawn = network(12, shape, (68, 3, 1), (40, 1, 1), (24, 3, 2))
    assert_same_bits(drawn, shape)


@pytest.mark.parametrize(
    ("shape", "layer"), [((1, 2, 19, 128), (96, 1, 1)), ((1, 5, 9, 64), (64, 2, 1)), ((1, 7, 23, 64), (168, 1, 2))]
)
def test_data_of_an_array_of_the_user_is_copied_to_whole_lines(
    shape: tuple[int, ...], layer: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[AlignedData | None] = []

    def recorded(
        kernel: Kernel, data: BufferSlot, axes: ReductionAxes, block: TileBlock, columns: int
    ) -> AlignedData | None:
        copies.append(aligned_data(kernel, data, axes, block, columns))
        return copies[-1]

    monkeypatch.setattr(tile_contraction, "aligned_data", recorded)
    channels, width, step = layer
    drawn = Network(11, shape)
    drawn.convolution(channels, width, step, pad=0)
    assert_same_bits(drawn, shape)
    assert any(copies)


@pytest.mark.parametrize("is_portable", [True, pytest.param(False, marks=with_tiles)])
def test_a_product_is_what_the_instruction_means(is_portable: bool) -> None:
    random = np.random.default_rng(2)
    rows, k_groups, lanes = 3, 5, 8
    sums = random.integers(-(2**31), 2**31, (rows, lanes)).astype(np.int32)
    data = random.integers(0, 256, (rows, 4 * k_groups)).astype(np.uint8)
    weights = random.choice([-128, -1, 0, 127], (k_groups, 4 * lanes)).astype(np.int8)
    module = module_of(
        f"func.func @main(%s: memref<{rows}x{lanes}xi32>, %a: memref<{rows}x{4 * k_groups}xi8>, "
        f"%b: memref<{k_groups}x{4 * lanes}xi8>) {{ return }}"
    )
    load_kernel_dialects(module)
    block = module.body.operations[0].regions[0].blocks[0]
    shapes = (Shape(rows, lanes, 32), Shape(rows, 4 * k_groups, 8), Shape(k_groups, 4 * lanes, 8))
    with module.context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]):
        registers, zero = PortableRegisters(block) if is_portable else AmxRegisters(), b.index(0)
        registers.configure(shapes)
        places = [
            TileMemory(buffer, [zero, zero], 0, shape.columns)
            for buffer, shape in zip(block.arguments, shapes, strict=True)
        ]
        for register, memory in enumerate(places):
            registers.load(register, memory)
        registers.multiply(0, 1, 2)
        registers.store(0, places[0])
        registers.release()
    to_llvm(module)
    found, arrays = sums.copy(), [data, weights]
    MachineCode(module).bind("main", [array.ctypes.data for array in (found, *arrays)], keep=arrays).call()
    np.testing.assert_array_equal(found, TDPBUSD.meaning(sums, data, weights))


def test_state_of_tiles_is_released_where_it_was_configured() -> None:
    drawn = network(7, (1, 7, 35, 64), (40, 1, 1), (9, 1, 1))
    text = disassembled(object_code(lower(parse(drawn.text()), AMX).module, AMX))
    found = {name: [one.mnemonic for one in body] for name, body in bodies_of_functions(text)}
    tiled = [body for body in found.values() if "tdpbusd" in body]
    assert tiled
    for body in tiled:
        assert body.index("ldtilecfg") < body.index("tdpbusd")
        assert body[max(i for i, name in enumerate(body) if name.startswith("ti")) :][0] == "tilerelease"
    others = (body for body in found.values() if "tdpbusd" not in body)
    assert not any(name.startswith(("tile", "ldtile")) for body in others for name in body)


def test_products_that_are_too_small_for_tiles_stay_dot_products() -> None:
    few_taps, few_pixels = network(8, (1, 9, 9, 3), (16, 3, 1)), network(9, (1, 1, 2, 256), (64, 1, 1))
    for small in (few_taps, few_pixels):
        text = str(lower(parse(small.text()), AMX, Phase.X86).module)
        assert "vpdpbusd" in text
        assert "x86.tdpbusd" not in text


# Weights of matrix tiles: in which order they are read, and what is fetched ahead or leaves the first level alone.


def always(near: tuple[int, int], weights: TiledOperand, data: TiledOperand, results: int) -> bool:
    del near, weights, data, results
    return True


def test_columns_of_channels_that_meet_all_pixels_have_the_bits_of_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tile_contraction, "meets_pixels_first", always)
    drawn = network(13, (1, 5, 19, 68), (72, 1, 1), (40, 3, 1))
    assert_same_bits(drawn, (1, 5, 19, 68))


# Epilogues of matrix tiles between the products of the next block: which of them wait, and the bits of all.

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


def lowered_program(target: str, **changed: str | int) -> ir.Module:
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
    module = lowered_program("amxint8,portable", step=step, piece=piece, **(CHAINED if chained else APART))
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
