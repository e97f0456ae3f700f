"""Steps to LLVM: unrolled loops and rows of vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import READ, WRITE, to_llvm, unroll_loops, unroll_transfers
from qdialect.runtime.jit import MachineCode

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


def test_rows_out_of_bounds_are_left() -> None:
    source = (np.arange(SIZE) % 127 + 1).astype(np.int8)
    target = run(function("i8", "memref<6x11xi8>", "6, 11", "11, 1", BEYOND), source, left=2, kept=0)
    wanted = np.zeros_like(source)
    wanted[5 * 11 + 1 : 5 * 11 + 9] = source[5 * 11 + 1 : 5 * 11 + 9]
    np.testing.assert_array_equal(target, wanted)
