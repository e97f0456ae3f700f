"""Every instruction by its definition: what NumPy says it means, what the CPU computes, and what vector ops compute."""

import numpy as np
import pytest
from numpy.typing import NDArray
from vector_programs import module_of

from qdialect import targets
from qdialect.ir._mlir import ir, vector
from qdialect.lowering.instructions import dot_products
from qdialect.lowering.instructions import lanes as conversions
from qdialect.lowering.instructions import lanes as packs
from qdialect.lowering.instructions import lanes as permutes
from qdialect.lowering.instructions.instruction import Instruction, Lanes, portable_emission
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.jit import MachineCode

FAMILIES = (
    *(
        dot_products.VPDPBSSD,
        dot_products.VPDPBUSD,
        dot_products.VPDPWSSD,
        dot_products.VPMADDWD,
        dot_products.VPMADDUBSW,
        packs.PACK_WORDS,
        packs.PACK_BYTES,
        packs.ADD_WORDS,
    ),
    *(permutes.VPERMD, permutes.VPSHUFB, {64: permutes.VPERMI2B, 16: permutes.VPERMI2D}),
    *(conversions.VCVTPS2DQ, conversions.CVTPS2DQ),
)
INSTRUCTIONS = [instruction for family in FAMILIES for instruction in family.values()]
DRAWS = 4
ELEMENTS = {"int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32", "float32": "f32"}


def drawn(lanes: Lanes, random: np.random.Generator) -> NDArray[np.generic]:
    """Rows of lanes: of any value, and of the extreme ones alone."""
    shape = (DRAWS, lanes.count)
    if lanes.dtype == "float32":
        halves = random.integers(-9, 9, shape) / 2
        special = random.choice([np.inf, -np.inf, np.nan, 2.0**31, -(2.0**31), 2.0**31 - 128, 1e30], shape)
        return np.where(random.random(shape) < 0.3, special, halves * random.choice([1, 1e4, 1e8], shape)).astype("f4")
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


def test_instructions_have_names_of_their_own() -> None:
    names = [one.name for one in INSTRUCTIONS]
    assert len(set(names)) == len(names) - 1, "the two roundings of one conversion"


def test_instructions_need_features_of_the_kinds_that_use_them() -> None:
    known = targets.TARGETS["avx512vbmi"].code_features | {"avxvnni", "avxvnniint8"}
    assert all(known.issuperset(some) for one in INSTRUCTIONS for some in one.features)
