"""Instructions by their definitions, transposed squares, and code that was wrong once."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor, variants_together
from drawn_graphs import graph
from drawn_vector import DOT, HOST_TARGETS, assert_same_on_targets, module_of, x86_text
from numpy.typing import NDArray

from qdialect import targets
from qdialect.dialect import MatMulOp, TransposeOp, build
from qdialect.ir._mlir import ir, vector
from qdialect.lowering.instructions import dot_products
from qdialect.lowering.instructions import lanes as conversions
from qdialect.lowering.instructions import lanes as packs
from qdialect.lowering.instructions import lanes as permutes
from qdialect.lowering.instructions.instruction import Instruction, Lanes, portable_emission
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.compiler import MachineCode

FAMILIES = (
    *(
        dot_products.VDPBF16PS,
        dot_products.VPDPBSSD,
        dot_products.VPDPBUSD,
        dot_products.VPDPWSSD,
        dot_products.VPMADDWD,
        dot_products.VPMADDUBSW,
        packs.PACK_WORDS,
        packs.PACK_BYTES,
    ),
    *(permutes.VPERMD, permutes.VPSHUFB, {64: permutes.VPERMI2B, 16: permutes.VPERMI2D}),
    *(conversions.VCVTPS2DQ, conversions.CVTPS2DQ),
)
INSTRUCTIONS = [instruction for family in FAMILIES for instruction in family.values()]
DRAWS = 4
ELEMENTS = {"int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32", "float32": "f32", "bfloat16": "bf16"}


def drawn(lanes: Lanes, random: np.random.Generator) -> NDArray[np.generic]:
    """Rows of lanes: of any value, and of the extreme ones alone."""
    shape = (DRAWS, lanes.count)
    if lanes.dtype in ("float32", "bfloat16"):
        halves = random.integers(-9, 9, shape) / 2
        special = random.choice([np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31), 2.0**31 - 128, 1e30], shape)
        return np.where(random.random(shape) < 0.3, special, halves * random.choice([1, 1e4, 1e8], shape)).astype(
            lanes.dtype
        )
    limits = np.iinfo(lanes.dtype)
    values = random.integers(limits.min, limits.max, shape, endpoint=True, dtype=np.int64)
    values[0] = random.choice([limits.min, limits.max], lanes.count)
    return values.astype(lanes.dtype)


def program(instructions: list[Instruction], is_portable: bool) -> ir.Module:
    """A module whose `main` applies each instruction to rows of its operands: a buffer for each operand and result."""
    buffers = [
        f"memref<{DRAWS}x{lanes.count}x{ELEMENTS[lanes.dtype]}>" for one in instructions for lanes in all_of(one)
    ]
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(buffers))
    module = module_of(f"func.func @main({arguments}) {{ return }}")
    load_kernel_dialects(module)
    block = module.body.operations[0].regions[0].blocks[0]
    with module.context, ir.Location.unknown(), portable_emission(is_portable), ir.InsertionPoint(block.operations[0]):
        values = iter(block.arguments)
        for instruction in instructions:
            *operands, result = [next(values) for _ in all_of(instruction)]
            for row in range(DRAWS):
                indices = [b.index(row), b.index(0)]
                loaded = [
                    b.load(lanes.count, buffer, indices)
                    for lanes, buffer in zip(instruction.operands, operands, strict=True)
                ]
                vector.store(instruction.emit(*loaded), result, indices)
    return module


def all_of(instruction: Instruction) -> tuple[Lanes, ...]:
    return *instruction.operands, instruction.result


def assert_meanings(instructions: list[Instruction], is_portable: bool) -> None:
    """Run all of them in one module, and compare each row with its meaning."""
    random = np.random.default_rng(5)
    module = program(instructions, is_portable)
    assert ("llvm.x86" in str(module)) != is_portable
    to_llvm(module)
    arrays = [[drawn(lanes, random) for lanes in all_of(one)] for one in instructions]
    flat = [array for some in arrays for array in some]
    MachineCode(module).bind("main", [array.ctypes.data for array in flat], keep=flat).call()
    for instruction, (*operands, result) in zip(instructions, arrays, strict=True):
        wanted = [instruction.meaning(*rows) for rows in zip(*operands, strict=True)]
        assert wanted[0].dtype == instruction.result.dtype
        np.testing.assert_array_equal(result, np.stack(wanted), err_msg=instruction.name)


def test_the_cpu_computes_what_an_instruction_means() -> None:
    found = [one for one in INSTRUCTIONS if one.runs_on(targets.host_features())]
    if not found:
        pytest.skip("this CPU has none of the instructions")
    assert_meanings(found, is_portable=False)


def test_vector_ops_compute_what_an_instruction_means() -> None:
    assert_meanings(INSTRUCTIONS, is_portable=True)


# Rows of 32-bit numbers transposed by shuffles: the same numbers, in as few instructions as there are.


@variants_together
@pytest.mark.parametrize("rows", [4, 5, 8, 16, 37])
@pytest.mark.parametrize("columns", [4, 7, 16, 24])
def test_transposed_numbers(rows: int, columns: int) -> None:
    def body(source: ir.Value) -> ir.Value:
        return build(TransposeOp, source, element="i32", permutation=(0, 2, 1)).output

    check(
        graph([tensor((2, rows, columns), "i32")], body),
        [np.arange(2 * rows * columns, dtype=np.int32).reshape(2, rows, columns)],
    )


@variants_together
@pytest.mark.parametrize(("depth", "columns"), [(16, 8), (32, 16), (64, 21), (80, 133), (128, 40)])
def test_packed_matrices(depth: int, columns: int) -> None:
    """A transposed right operand as `emit_packing` has it."""

    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        turned = build(TransposeOp, right, element="ui8", permutation=(0, 2, 1)).output
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (77,)}
        return build(MatMulOp, left, turned, element="i32", input_scale=0.5, weight_scales=(0.25,), **points).output

    check(graph([tensor((2, 9, depth), "ui8"), tensor((2, columns, depth), "ui8")], body))


# Programs of phase `vector` that an instruction was once put into where it computes something else.

# Those that add words with saturation.
WIDE_TARGETS = [one for one in HOST_TARGETS if "avx512bw" in one.features]

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
  %low = arith.constant dense<0> : vector<2x4x16xi32>
  %high = arith.constant dense<255> : vector<2x4x16xi32>
  %s = arith.addi %i, %rest : vector<2x4x16xi32>
  %m = arith.maxsi %s, %low : vector<2x4x16xi32>
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
        text = DOT.format(result=result, shape="x".join(map(str, shape)), kind="add", store="")
        assert_same_on_targets(text, [*arrays, RNG.integers(-1000, 1000, (*shape, 16), np.int32)])


def test_the_combining_kind() -> None:
    # Upstream lowers no maximum over products, so that there is nothing to run.
    text = x86_text(DOT.format(result="r, v", shape="3x2", kind="maxsi", store=""))
    assert "vector.contract" in text
    assert "vpdpbusd" not in text


def test_the_base_of_a_gather() -> None:
    quantized = RNG.integers(0, 255, 64, np.uint8)
    text = GATHER.format(base=1, mask="true")
    assert_same_on_targets(text, [RNG.integers(0, 256, 256, np.uint8), quantized, np.zeros(64, np.uint8)])


def test_constants_of_one_bit_are_negative() -> None:
    constant = str(RNG.integers(0, 2, (2, 4, 16)).astype(bool).tolist()).lower()
    values = RNG.integers(-70000, 70000, (2, 4, 16), np.int32)
    text = MASKED_STORE.format(element="i1", constant=constant)
    assert_same_on_targets(text, [values, np.zeros((2, 4, 16), np.uint8)])


@pytest.mark.parametrize("summed", SUMMED)
@pytest.mark.parametrize("rest", [100, 255, 127, 32767])
def test_a_sum_that_wraps_is_no_saturated_sum_of_words(summed: str, rest: int) -> None:
    element, zero, integers = SUMMED[summed]
    text = SUM_STORE.format(element=element, zero=zero, integers=integers, rest=rest)
    values = RNG.integers(-(2**31), 2**31, (2, 4, 16))
    ends = [2**31 - 1, 2**31 - 50, -(2**31), -5, 700, 46341, 2**30, 0]
    if element == "f32":
        ends = [2**31 - 128, -(2**31), 2**31 - 256, 700, -5]
    values.reshape(-1)[: len(ends)] = ends
    values = values.astype(np.int32) if element == "i32" else np.clip(values, -(2**31), 2**31 - 128).astype(np.float32)
    assert_same_on_targets(text, [values, np.zeros((2, 4, 16), np.uint8)], WIDE_TARGETS)
