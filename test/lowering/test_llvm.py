"""Steps to LLVM: neutral starts, strided slices, unrolled loops and rows of vectors."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import (
    READ,
    WRITE,
    drop_neutral_starts,
    shuffle_slices,
    to_llvm,
    unroll_loops,
    unroll_transfers,
)
from qdialect.runtime.jit import MachineCode

REDUCTION = """func.func @main(%x: vector<8xi16>, %y: i16) -> i16 {{
  %start = arith.constant {start} : i16
  %0 = vector.reduction <{kind}>, %x, {used} : vector<8xi16> into i16
  return %0 : i16
}}"""
NEUTRAL = [("minui", -1), ("and", -1), ("maxui", 0), ("add", 0), ("or", 0), ("xor", 0)]


def starts(kind: str, start: int, used: str = "%start") -> bool:
    module = parse(REDUCTION.format(kind=kind, start=start, used=used), make_context())
    load_kernel_dialects(module)
    drop_neutral_starts(module)
    return re.search(r"vector\.reduction <\w+>, %\w+, %", str(module)) is not None


@pytest.mark.parametrize(("kind", "neutral"), NEUTRAL)
def test_a_start_that_changes_nothing_is_dropped(kind: str, neutral: int) -> None:
    assert not starts(kind, neutral)


@pytest.mark.parametrize(("kind", "start"), [("minui", 0), ("maxui", -1), ("add", 1), ("minsi", -1), ("mul", 0)])
def test_other_starts_stay(kind: str, start: int) -> None:
    assert starts(kind, start)


def test_floats_keep_their_start() -> None:
    text = REDUCTION.format(kind="add", start="0.0", used="%start").replace("i16", "f32")
    module = parse(text, make_context())
    load_kernel_dialects(module)
    drop_neutral_starts(module)
    assert re.search(r"vector\.reduction <add>, %\w+, %", str(module))


# Slices of vectors as shuffles, and what is left to upstream's pass for vectors.

FLAT = """func.func @main(%x: memref<8xi32>, %y: memref<8xi32>) {
  %zero = arith.constant 0 : index
  %a = vector.load %x[%zero] : memref<8xi32>, vector<8xi32>
  %b = vector.extract_strided_slice %a {offsets = [2], sizes = [3], strides = [1]} : vector<8xi32> to vector<3xi32>
  %c = vector.insert_strided_slice %b, %a {offsets = [4], strides = [1]} : vector<3xi32> into vector<8xi32>
  vector.store %c, %y[%zero] : memref<8xi32>, vector<8xi32>
  return
}"""
NESTED = """func.func @main(%x: memref<4xi32>, %y: memref<4x4xi32>) {
  %zero = arith.constant 0 : index
  %start = arith.constant dense<7> : vector<4x4xi32>
  %a = vector.load %x[%zero] : memref<4xi32>, vector<4xi32>
  %b = vector.insert_strided_slice %a, %start {offsets = [1, 0], strides = [1]} : vector<4xi32> into vector<4x4xi32>
  %c = vector.extract_strided_slice %b {offsets = [1, 0], sizes = [2, 2], strides = [1, 1]}
    : vector<4x4xi32> to vector<2x2xi32>
  %d = vector.extract %c[0] : vector<2xi32> from vector<2x2xi32>
  vector.store %d, %y[%zero, %zero] : memref<4x4xi32>, vector<2xi32>
  return
}"""


def test_slices_of_one_dimension_are_shuffles() -> None:
    module = parse(FLAT, make_context())
    load_kernel_dialects(module)
    shuffle_slices(module)
    masks = re.findall(r"vector.shuffle %\w+, %\w+ \[([^]]*)\]", str(module))
    assert masks == ["2, 3, 4", "0, 1, 2, 0, 0, 0, 0, 0", "8, 9, 10, 11, 0, 1, 2, 15"]


def test_slices_of_more_dimensions_are_left_and_lowered_by_upstream() -> None:
    module = parse(NESTED, make_context())
    load_kernel_dialects(module)
    shuffle_slices(module)
    assert "vector.shuffle" not in str(module)
    to_llvm(module)
    assert "vector." not in str(module)


# Short innermost loops are unrolled by a divisor of their iterations.

TEXT = """
func.func @main(%to: memref<4096xi32>, %last: index) {{
  %first = arith.constant {first} : index
  %end = {end}
  %step = arith.constant {step} : index
  %outer = arith.constant 1 : index
  scf.for %j = %first to %end step %outer {{
    scf.for %i = %first to %end step %step {{
      %a = memref.load %to[%i] : memref<4096xi32>
      memref.store %a, %to[%j] : memref<4096xi32>
    }}
  }}
  return
}}
"""


def copies(first: int, end: str, step: int) -> tuple[int, int]:
    """How often the body stands there, and how many loops there are."""
    module = parse(TEXT.format(first=first, end=end, step=step), make_context())
    unroll_loops(module, "test")
    text = str(module)
    assert "qnn.unroll" not in text or text.count("scf.for") == 2
    return text.count("memref.load"), text.count("scf.for")


@pytest.mark.parametrize(
    ("first", "end", "step", "expected"),
    [
        (0, "arith.constant 1024 : index", 1, (8, 2)),
        # 99 iterations: the largest divisor of at most 10.
        (3, "arith.constant 300 : index", 3, (9, 2)),
        # 4 iterations, the last of which is shorter: all of the loop.
        (0, "arith.constant 10 : index", 3, (4, 1)),
        # A prime number of iterations has no divisor, and none is left over.
        (0, "arith.constant 1021 : index", 1, (1, 2)),
        (5, "arith.constant 5 : index", 1, (1, 2)),
        (0, "arith.addi %last, %last : index", 1, (1, 2)),
    ],
)
def test_copies(first: int, end: str, step: int, expected: tuple[int, int]) -> None:
    assert copies(first, end, step) == expected


# Reads and writes of vectors of several dimensions by their rows: what is left to upstream, and the same numbers.

SIZE = 240


@dataclass(frozen=True)
class Case:
    """A vector that is copied from one buffer to another, at the indices 1, 1 ... of a view of both."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    """Of the view, from one index of a dimension to the next."""
    extents: tuple[int, ...]
    """Of the vector."""
    strides: tuple[int, ...]
    """Of the vector's elements in the view."""
    left: int = 0
    """Of the two transfers, how many upstream's pattern gets."""
    kept: int = 0
    """How many stay as they are."""
    element: str = "i8"
    layout: str = ""
    order: str = ""


CASES = {
    "rows": Case((6, 11), (11, 1), (2, 8), (11, 1)),
    "one row": Case((6, 11), (11, 1), (8,), (1,), kept=2),
    "three dimensions": Case((4, 5, 12), (60, 12, 1), (2, 3, 4), (60, 12, 1)),
    "fewer dimensions than the view": Case((4, 5, 12), (60, 12, 1), (3, 4), (12, 1)),
    "f32": Case((6, 11), (11, 1), (2, 8), (11, 1), element="f32"),
    "rows that lie apart": Case((5, 7), (40, 1), (2, 3), (40, 1), layout=", strided<[40, 1]>"),
    "elements that lie apart": Case((5, 7), (40, 2), (2, 3), (40, 2), left=2, layout=", strided<[40, 2]>"),
    "transposed": Case(
        (6, 11), (11, 1), (2, 3), (1, 11), left=2, order=", permutation_map = affine_map<(a, b) -> (b, a)>"
    ),
}
# At the last rows of a view of 6 x 11.
BEYOND = """
  %last = arith.constant 5 : index
  %v = vector.transfer_read %read[%last, %at], %zero : memref<6x11xi8>, vector<2x8xi8>
  vector.transfer_write %v, %write[%last, %at] : vector<2x8xi8>, memref<6x11xi8>
"""


def function(element: str, view: str, sizes: str, strides: str, body: str) -> str:
    whole, zero = f"memref<{SIZE}x{element}>", "0.0" if element == "f32" else "0"
    casts = "".join(
        f"  %{name} = memref.reinterpret_cast %{own} to offset: [0], sizes: [{sizes}], strides: [{strides}]"
        f" : {whole} to {view}\n"
        for name, own in (("read", "source"), ("write", "target"))
    )
    return (
        f"func.func @main(%source: {whole}, %target: {whole}) {{\n  %at = arith.constant 1 : index\n"
        f"  %zero = arith.constant {zero} : {element}\n{casts}{body}  return\n}}"
    )


def copy_of(case: Case) -> str:
    sizes, extents = ("x".join(map(str, one)) for one in (case.sizes, case.extents))
    view, vector = f"memref<{sizes}x{case.element}{case.layout}>", f"vector<{extents}x{case.element}>"
    at, bounds = (", ".join([text] * len(one)) for text, one in (("%at", case.sizes), ("true", case.extents)))
    notes = f"{{in_bounds = [{bounds}]{case.order}}}"
    body = (
        f"  %v = vector.transfer_read %read[{at}], %zero {notes} : {view}, {vector}\n"
        f"  vector.transfer_write %v, %write[{at}] {notes} : {vector}, {view}\n"
    )
    listed, strides = (", ".join(map(str, one)) for one in (case.sizes, case.steps))
    return function(case.element, view, listed, strides, body)


def run(text: str, source: NDArray[Any], left: int, kept: int) -> NDArray[Any]:
    """The target of a copy, of whose transfers `left` go to upstream's pattern and `kept` stay."""
    target = np.zeros_like(source)
    with make_context() as context, ir.Location.unknown(context):
        load_kernel_dialects(ir.Module.create())
        module = ir.Module.parse(text)
        assert len(unroll_transfers(module)) == left
        assert len(ops_named(module, READ, WRITE)) == left + kept
        to_llvm(module)
        MachineCode(module).bind("main", [source.ctypes.data, target.ctypes.data]).call()
    return target


@pytest.mark.parametrize("name", CASES)
def test_a_vector_is_copied(name: str) -> None:
    case = CASES[name]
    source = (np.arange(SIZE) % 127 + 1).astype(np.float32 if case.element == "f32" else np.int8)
    target = run(copy_of(case), source, case.left, case.kept)
    rows = [np.arange(extent) * stride for extent, stride in zip(case.extents, case.strides, strict=True)]
    at = sum(case.steps) + sum(np.meshgrid(*rows, indexing="ij"))
    wanted = np.zeros_like(source)
    wanted[at] = source[at]
    np.testing.assert_array_equal(target, wanted)


def test_what_is_out_of_bounds_is_left() -> None:
    source = (np.arange(SIZE) % 127 + 1).astype(np.int8)
    target = run(function("i8", "memref<6x11xi8>", "6, 11", "11, 1", BEYOND), source, left=2, kept=0)
    wanted = np.zeros_like(source)
    wanted[5 * 11 + 1 : 5 * 11 + 9] = source[5 * 11 + 1 : 5 * 11 + 9]
    np.testing.assert_array_equal(target, wanted)
