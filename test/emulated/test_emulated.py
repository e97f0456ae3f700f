"""Compiled networks on emulated CPUs: the bits of the reference, and no instruction that a CPU lacks."""

from functools import cache

import numpy as np
import pytest
from drawn_networks import Network, drawn, in_tiles, literal
from drawn_vector import module_of
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from qdialect.aot.object_file import disassembly, object_code
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.instructions.tiles import TDPBUSD, AmxRegisters, Shape, TileMemory
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.phase_pass import load_kernel_dialects
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.x86_to_llvm.to_llvm import name_target, to_llvm
from qdialect.reference.interpreter import run
from qdialect.targets import resolve
from tools.emulator.machine import Ran, UndefinedInstructionError, call, problem

REASON = problem()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")
AMX = "sapphire_rapids"
TILE_STATES = 0x60000
# A CPU of each kind, and one that lacks what the kind is named for.
MODELS = {
    "amxint8": (AMX, "corei7_icelake_u"),
    # Its own instruction is in products of bfloat16 numbers alone.
    "avx512bf16": (AMX, "corei7_skylake_x"),
    "avx512vbmi": ("corei7_icelake_u", "corei7_skylake_x"),
    "avx512vnni": ("tigerlake", "corei7_skylake_x"),
    "avx512bw": ("corei7_skylake_x", "corei7_haswell_4770"),
    "avxvnniint8": ("wildcat_lake", "ryzen"),
    "avxvnni": ("arrow_lake", "corei7_haswell_4770"),
    "avx2": ("corei7_haswell_4770", "corei7_sandy_bridge_2600k"),
    "sse4.1": ("core2_penryn_t9600", "athlon64_venice"),
    "x86-64": ("athlon64_venice", None),
    "generic": ("p4_prescott_celeron_336", None),
}
# CPUs by LLVM's names and those of the emulator.
CPUS = {
    "haswell": "broadwell_ult",
    "znver1": "ryzen",
    "skx": "corei7_skylake_x",
    "icelake-client": "corei7_icelake_u",
    "sapphirerapids": AMX,
    "arrowlake": "arrow_lake",
    "pantherlake": "wildcat_lake",
    "penryn": "core2_penryn_t9600",
    "sandybridge": "corei7_sandy_bridge_2600k",
    "cannonlake": "corei3_cnl",
    "k8": "athlon64_clawhammer",
}
# Pixels, input channels, output channels, kernel, stride: remainders of each, and none.
SHAPES = (
    *(
        (1, 64, 64, 64, 1, 1),
        (8, 8, 256, 64, 1, 1),
        (5, 7, 64, 24, 1, 1),
        (3, 33, 68, 33, 1, 1),
        (4, 17, 196, 100, 1, 1),
    ),
    *(
        (9, 9, 65, 8, 1, 1),
        (2, 31, 127, 47, 1, 1),
        (14, 14, 64, 40, 3, 1),
        (7, 28, 32, 36, 3, 1),
        (12, 33, 64, 20, 1, 2),
    ),
    *((16, 16, 16, 64, 5, 1), (3, 49, 9, 24, 9, 1), (1, 16, 512, 12, 1, 1)),
)


class Case:
    """A network, an image, and what the reference makes of it."""

    def __init__(self, module: ir.Module, image: NDArray[np.generic]) -> None:
        self.module, self.image = module, image
        self.wanted: NDArray[np.generic] = run(self.module, [self.image])[0]
        assert len(np.unique(self.wanted)) > 2, "a result that depends on the input"

    def code(self, target: str) -> tuple[bytes, list[NDArray[np.generic]]]:
        """The object file for a target, and what `main` takes."""
        lowered = lower(self.module, resolve(target))
        arena = np.zeros(max(lowered.arena_bytes, 1), np.uint8)
        outputs = np.zeros_like(self.wanted)
        return object_code(lowered.module, resolve(target)), [self.image, outputs, lowered.constants, arena]


def case_of(network: Network, shape: tuple[int, ...]) -> Case:
    """`network` with matrix tiles wherever they can be, though it is small."""
    return Case(parse(in_tiles(network.text())), network.rng.integers(0, 256, shape).astype(np.uint8))


def assert_same(case: Case, target: str, model: str) -> Ran:
    code, arrays = case.code(target)
    ran = call(code, "main", arrays, [1], model)
    np.testing.assert_array_equal(ran.arrays[0], case.wanted, err_msg=f"{target} on {model}")
    return ran


@cache
def small() -> Case:
    """A 3x3 convolution and a table, a depthwise one, and one of 1x1."""
    network = drawn(1)
    shape = [int(size) for size in network.input.removeprefix("tensor<").split("x")[:-1]]
    return case_of(network, tuple(shape))


@pytest.mark.parametrize(("rows", "k_groups", "lanes"), [(16, 16, 16), (1, 16, 4), (7, 3, 8), (16, 1, 16)])
def test_a_cpu_with_tiles_computes_what_their_product_means(rows: int, k_groups: int, lanes: int) -> None:
    random = np.random.default_rng(rows)
    arrays = [
        random.integers(-(2**31), 2**31, (rows, lanes)).astype(np.int32),
        random.integers(0, 256, (rows, 4 * k_groups)).astype(np.uint8),
        random.choice([*range(-128, 128)], (k_groups, 4 * lanes)).astype(np.int8),
    ]
    shapes = (Shape(rows, lanes, 32), Shape(rows, 4 * k_groups, 8), Shape(k_groups, 4 * lanes, 8))
    types = ", ".join(f"%a{i}: memref<{s.rows}x{s.columns}xi{s.bits}>" for i, s in enumerate(shapes))
    module = module_of(f"func.func @main({types}) {{ return }}")
    load_kernel_dialects(module)
    block = module.body.operations[0].regions[0].blocks[0]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(block.operations[0]):
        registers = AmxRegisters()
        registers.configure(shapes)
        memories = [
            TileMemory(buffer, [b.index(0), b.index(0)], 0, shape.columns)
            for buffer, shape in zip(block.arguments, shapes, strict=True)
        ]
        for register, memory in enumerate(memories):
            registers.load(register, memory)
        registers.multiply(0, 1, 2)
        registers.store(0, memories[0])
        registers.release()
    to_llvm(module)
    target = resolve("amxint8")
    name_target(module, target)
    ran = call(object_code(module, target), "main", arrays, [0], AMX)
    np.testing.assert_array_equal(ran.arrays[0], TDPBUSD.meaning(arrays[0], arrays[1], arrays[2]))
    assert ran.states & TILE_STATES == TILE_STATES


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_contractions_in_tiles_have_the_bits_of_the_reference(shape: tuple[int, ...]) -> None:
    height, width, depth, channels, kernel, stride = shape
    network = Network(sum(shape), (1, height, width, depth))
    network.convolution(channels, kernel, stride)
    case = case_of(network, (1, height, width, depth))
    assert "tdpbusd" in disassembly(case.code("amxint8")[0])
    assert_same(case, "amxint8", AMX)


def test_a_network_in_tiles_has_the_bits_of_the_reference() -> None:
    network = Network(11, (1, 20, 20, 3))
    network.convolution(32, 3, 2, table=True)
    network.convolution(32, 3, 1, 32)
    network.convolution(72, 1)
    network.convolution(40, 3, table=True)
    network.convolution(24, 3, 1, 2)
    network.convolution(90, 1, 2)
    case = case_of(network, (1, 20, 20, 3))
    text = disassembly(case.code("sapphirerapids")[0])
    assert text.count("tdpbusd %tmm") > 4
    assert "vpdpbusd" in text
    assert_same(case, "sapphirerapids", AMX)


def test_products_of_signed_bytes_run_where_a_cpu_has_them() -> None:
    rng = np.random.default_rng(12)
    depth, channels, rows = 72, 37, 5
    weights = rng.integers(-128, 128, (channels, depth))
    module = parse(f"""
    func.func @main(%x: tensor<{rows}x{depth}xi8>) -> tensor<{rows}x{channels}xi32> {{
      %w = "qnn.constant"() {{value = {literal(weights, "i8")}}} : () -> tensor<{channels}x{depth}xi8>
      %0 = "qnn.dense"(%x, %w) {{
        input_scale = 0.5 : f64, input_zero_point = -7 : i64, weight_scales = array<f64: 0.25>,
        weight_zero_points = array<i64: 2>
      }} : (tensor<{rows}x{depth}xi8>, tensor<{channels}x{depth}xi8>) -> tensor<{rows}x{channels}xi32>
      return %0 : tensor<{rows}x{channels}xi32>
    }}""")
    case = Case(module, rng.integers(-128, 128, (rows, depth)).astype(np.int8))
    assert "vpdpbssd" in disassembly(case.code("arrowlake")[0])
    assert_same(case, "arrowlake", "arrow_lake")
    with pytest.raises(UndefinedInstructionError):
        # It has AVX-VNNI, but not that of signed bytes.
        assert_same(case, "avxvnniint8", AMX)


def test_products_of_bfloat16_numbers_run_where_a_cpu_has_them() -> None:
    rng = np.random.default_rng(3)
    weights, data = (rng.normal(size=shape).astype(bfloat16) for shape in ((70, 80), (9, 70)))
    module = parse(f"""
    func.func @main(%x: tensor<9x70xi16>) -> tensor<9x80xi32> {{
      %w = "qnn.constant"() {{value = {literal(weights.astype(np.float32), "f32")}}} : () -> tensor<70x80xf32>
      %0 = arith.bitcast %x : tensor<9x70xi16> to tensor<9x70xbf16>
      %1 = arith.extf %0 : tensor<9x70xbf16> to tensor<9x70xf32>
      %2 = "qnn.f32_matmul"(%1, %w) : (tensor<9x70xf32>, tensor<70x80xf32>) -> tensor<9x80xf32>
      %3 = arith.bitcast %2 : tensor<9x80xf32> to tensor<9x80xi32>
      return %3 : tensor<9x80xi32>
    }}""")
    case = Case(module, data.view(np.int16))
    assert "vdpbf16ps" in disassembly(case.code("avx512bf16")[0])
    assert_same(case, "avx512bf16", AMX)
    with pytest.raises(UndefinedInstructionError):
        assert_same(case, "avx512bf16", "corei7_icelake_u")


@pytest.mark.parametrize("kind", MODELS)
def test_a_kind_runs_on_its_cpus_alone(kind: str) -> None:
    model, lacking = MODELS[kind]
    assert_same(small(), kind, model)
    if lacking:
        with pytest.raises(UndefinedInstructionError):
            assert_same(small(), kind, lacking)


@pytest.mark.parametrize("cpu", CPUS)
def test_code_for_a_cpu_runs_on_it(cpu: str) -> None:
    assert_same(small(), cpu, CPUS[cpu])
