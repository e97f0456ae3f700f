"""Tables, exponentials and roundings by x86 instructions."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from drawn_graphs import graph
from drawn_vector import Array, assert_same_on_targets, run, x86_text
from numpy.typing import NDArray

import qdialect
from qdialect.arithmetic import float32
from qdialect.ir._mlir import math
from qdialect.targets import TARGETS as KNOWN

RNG = np.random.default_rng(5)
LOOK_UP = """
func.func @main(%t: memref<256x{element}>, %x: memref<{shape}x{bits}>, %y: memref<{shape}x{element}>) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : {bits}
  %mask = arith.constant dense<true> : vector<{shape}xi1>
  %none = arith.constant dense<0{point}> : vector<{shape}x{element}>
  %a = vector.transfer_read %x[{at}], %zero {{in_bounds = [{inside}]}} : memref<{shape}x{bits}>, vector<{shape}x{bits}>
  %i = arith.index_castui %a : vector<{shape}x{bits}> to vector<{shape}xindex>
  %g = vector.gather %t[%c0] [%i], %mask, %none
    : memref<256x{element}>, vector<{shape}xindex>, vector<{shape}xi1>, vector<{shape}x{element}>
      into vector<{shape}x{element}>
  vector.transfer_write %g, %y[{at}] {{in_bounds = [{inside}]}} : vector<{shape}x{element}>, memref<{shape}x{element}>
  return
}}
"""
DISTANCES = """
func.func @main(%t: memref<256xf32>, %x: memref<3x64xi8>, %top: memref<3xi8>, %y: memref<3x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<true> : vector<1x64x1xi1>
  %none = arith.constant dense<0.0> : vector<1x64x1xf32>
  scf.for %row = %c0 to %c3 step %c1 {
    %a = vector.transfer_read %x[%row, %c0], %zero {in_bounds = [true, true]} : memref<3x64xi8>, vector<1x64xi8>
    %b = vector.transfer_read %top[%row], %zero {in_bounds = [true]} : memref<3xi8>, vector<1xi8>
    %c = arith.extui %a : vector<1x64xi8> to vector<1x64xi32>
    %d = vector.shape_cast %c : vector<1x64xi32> to vector<1x1x64xi32>
    %e = vector.transpose %d, [0, 2, 1] : vector<1x1x64xi32> to vector<1x64x1xi32>
    %f = arith.extui %b : vector<1xi8> to vector<1xi32>
    %g = vector.broadcast %f : vector<1xi32> to vector<1x64x1xi32>
    %h = arith.subi %g, %e : vector<1x64x1xi32>
    %i = arith.index_cast %h : vector<1x64x1xi32> to vector<1x64x1xindex>
    %j = vector.gather %t[%c0] [%i], %mask, %none
      : memref<256xf32>, vector<1x64x1xindex>, vector<1x64x1xi1>, vector<1x64x1xf32> into vector<1x64x1xf32>
    %k = vector.shape_cast %j : vector<1x64x1xf32> to vector<1x64xf32>
    vector.transfer_write %k, %y[%row, %c0] {in_bounds = [true, true]} : vector<1x64xf32>, memref<3x64xf32>
  }
  return
}
"""
CHANGING = """
func.func @main(%t: memref<256xi32>, %x: memref<64xi8>, %y: memref<3x64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i8
  %mask = arith.constant dense<true> : vector<64xi1>
  %none = arith.constant dense<0> : vector<64xi32>
  scf.for %row = %c0 to %c3 step %c1 {
    %a = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<64xi8>, vector<64xi8>
    %i = arith.index_castui %a : vector<64xi8> to vector<64xindex>
    %g = vector.gather %t[%c0] [%i], %mask, %none
      : memref<256xi32>, vector<64xindex>, vector<64xi1>, vector<64xi32> into vector<64xi32>
    vector.transfer_write %g, %y[%row, %c0] {in_bounds = [true]} : vector<64xi32>, memref<3x64xi32>
    vector.transfer_write %g, %t[%c0] {in_bounds = [true]} : vector<64xi32>, memref<256xi32>
  }
  return
}
"""


def entries(element: str) -> Array:
    if element == "i32":
        return RNG.integers(-(2**31), 2**31, 256).astype(np.int32)
    return RNG.normal(size=256).astype(np.float32)


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("bits", ["i8", "i32"])
@pytest.mark.parametrize("shape", [(64,), (2, 64), (4, 16), (128,)])
def test_look_ups(shape: tuple[int, ...], bits: str, element: str) -> None:
    program = LOOK_UP.format(
        element=element,
        bits=bits,
        shape="x".join(map(str, shape)),
        point=".0" if element == "f32" else "",
        at=", ".join(["%c0"] * len(shape)),
        inside=", ".join(["true"] * len(shape)),
    )
    indices = RNG.integers(0, 256, shape).astype(np.uint8 if bits == "i8" else np.int32)
    table = entries(element)
    assert "vpermi2var.qi.512" in x86_text(program)
    assert_same_on_targets(program, [table, indices, np.zeros(shape, table.dtype)])


def test_distances_are_those_of_bytes() -> None:
    values, top = RNG.integers(0, 200, (3, 64), np.uint8), np.array([200, 230, 255], np.uint8)
    text = x86_text(DISTANCES)
    assert text.index("arith.subi") > text.index("scf.for") > text.index("vector.shuffle"), "planes are made before"
    assert re.search(r"arith.subi .* : vector<64xi8>", text)
    assert_same_on_targets(DISTANCES, [entries("f32"), values, top, np.zeros((3, 64), np.float32)])


def test_a_loop_that_writes_the_table_reads_it_again() -> None:
    text = x86_text(CHANGING)
    assert text.index("scf.for") < text.index("vector.shuffle")
    assert_same_on_targets(CHANGING, [entries("i32"), RNG.integers(0, 256, 64, np.uint8), np.zeros((3, 64), np.int32)])


# Exponentials of numbers around and far below the bound from which they are zero, where no instruction limits them.

F32 = np.float32
TARGETS = ("host", "amxint8,portable", "avx512bw,portable", "avx2,portable")
FUNCTIONS = {"exp": (math.exp, -105.0), "exp2": (math.exp2, -151.0)}


def numbers(bound: float) -> Any:
    """The numbers next to the bound, those whose results are subnormal, any by their bits, and the ends."""
    rng = np.random.default_rng(3)
    near = (F32(bound).view(np.int32) + np.arange(-3000, 3001, dtype=np.int32)).view(F32)
    small = rng.uniform(bound - 5, 0.8 * bound, 4000).astype(F32)
    drawn = rng.integers(0, 2**32, 8000, dtype=np.uint32).view(F32)
    powers = -np.ldexp(F32(1), np.arange(-149, 128)).astype(F32)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -3.4e38, 3.4e38, 89, 129], F32)
    return np.concatenate([near, small, drawn, powers, ends])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("columns", [1, 7, 16, 19, 512])
def test_kernels_have_the_bits_of_the_reference(name: str, target: str, columns: int) -> None:
    function, bound = FUNCTIONS[name]
    drawn = numbers(bound)
    x = np.resize(drawn, (-(-len(drawn) // columns), columns))
    executable: Any = qdialect.compile(graph([tensor(x.shape, "f32")], function), target=target, cache=False)
    found, wanted = executable(x), float32.evaluate(f"math.{name}", x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(found[known].view(np.int32), wanted[known].view(np.int32))
    assert not np.isnan(found[x < bound]).any()


# Vectors of f32 numbers rounded without an instruction that rounds: the bits of NumPy's functions.

SHAPE = (64, 8)
KERNEL = """
func.func @main(%a: memref<64x8xf32>, %b: memref<64x8xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 64 : index
  scf.for %i = %c0 to %rows step %c1 {{
    %x = vector.load %a[%i, %c0] : memref<64x8xf32>, vector<8xf32>
    %r = math.{} %x : vector<8xf32>
    vector.store %r, %b[%i, %c0] : memref<64x8xf32>, vector<8xf32>
  }}
  return
}}
"""
ROUNDINGS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "roundeven": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


def drawn(kind: str, random: np.random.Generator) -> NDArray[np.float32]:
    """Numbers of any bits, halves and their neighbours, or special ones."""
    if kind == "bits":
        return random.integers(0, 2**32, SHAPE, np.uint32).view(np.float32)
    if kind == "special":
        edges = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.0**23 - 0.5, 2.0**23, 2.0**23 + 1, -(2.0**31), 2.0**31, 1e-45]
        return random.choice(np.array([*edges, np.inf, -np.inf, np.nan], np.float32), SHAPE)
    halves = (random.integers(-(2**23), 2**23, SHAPE) / 2 / random.choice([1, 2**8, 2**20], SHAPE)).astype(np.float32)
    return (
        np.nextafter(halves, random.choice(np.array([-np.inf, np.inf], np.float32), SHAPE))
        if kind == "near"
        else halves
    )


@pytest.mark.parametrize("kind", ["bits", "halves", "near", "special"])
@pytest.mark.parametrize("name", ROUNDINGS)
def test_rounds_as_numpy(name: str, kind: str) -> None:
    data = drawn(kind, np.random.default_rng(7))
    _, result = run(KERNEL.format(name), [data, np.zeros_like(data)], KNOWN["x86-64"])
    with np.errstate(invalid="ignore"):
        wanted = ROUNDINGS[name](data)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(result), ~is_number)
    np.testing.assert_array_equal(result[is_number].view(np.uint32), wanted[is_number].view(np.uint32))


@pytest.mark.parametrize("name", ROUNDINGS)
def test_only_targets_without_the_instruction_take_it_apart(name: str) -> None:
    assert f"math.{name}" not in x86_text(KERNEL.format(name), KNOWN["x86-64"])
    assert f"math.{name}" in x86_text(KERNEL.format(name), KNOWN["sse4.1"])
