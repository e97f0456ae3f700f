"""Compilation step by step: where it can stop, errors of each step, and what each phase may contain."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from quantized_layers import chain

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.functions import ops_named
from qdialect.lowering.ir.phase_pass import (
    check_fused,
    check_linalg,
    check_llvm,
    check_products,
    check_vector,
    load_kernel_dialects,
)
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.threads.divided_network import to_threads
from qdialect.lowering.vector_to_x86.to_x86 import check_x86
from qdialect.lowering.x86_to_llvm.to_llvm import READ, WRITE, to_llvm, unroll_transfers
from qdialect.runtime.compiler import MachineCode
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity
from qdialect.support.interface import Port
from qdialect.targets import GENERIC, TARGETS


@pytest.mark.parametrize("phase", Phase)
def test_the_module_given_stays_as_it_is(phase: Phase) -> None:
    module = chain()
    before = module.operation.get_asm(enable_debug_info=True)
    lowered = lower(module, GENERIC, phase)
    assert module.operation.get_asm(enable_debug_info=True) == before
    assert lowered.module is not module


def test_ports_come_from_attributes() -> None:
    module = parse("""
    func.func @main(%x: tensor<1x4xi8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64},
                    %y: tensor<1x4xi8>) -> (tensor<1x4xi8> {qnn.name = "scores", qnn.scale = 0.25 : f64}) {
      %0 = "qnn.relu"(%x) {
        input_scale = 0.5 : f64, input_zero_point = -3 : i64, output_scale = 0.5 : f64, output_zero_point = -3 : i64,
        entries = "half_away_divide", nan = "max"
      } : (tensor<1x4xi8>) -> tensor<1x4xi8>
      return %0 : tensor<1x4xi8>
    }""")
    lowered = lower(module, GENERIC, Phase.QNN)
    int8 = np.dtype(np.int8)
    assert lowered.inputs == (Port("image", (1, 4), int8, 0.5, -3), Port("arg1", (1, 4), int8, None, None))
    assert lowered.outputs == (Port("scores", (1, 4), int8, 0.25, None),)


def test_the_main_function_is_found() -> None:
    relay = "func.func @{name}(%x: tensor<4xi8>) -> tensor<4xi8> {{ return %x : tensor<4xi8> }}"
    assert lower(parse(relay.format(name="only")), GENERIC).kernels == 1
    both = parse("\n".join(relay.format(name=name) for name in ("other", "main")))
    assert lower(both, GENERIC).kernels == 1
    with pytest.raises(CompileError, match=r"one function, or one named main, .* but got 2"):
        lower(parse("\n".join(relay.format(name=name) for name in ("other", "another"))), GENERIC)


# Modules that cannot be divided: one error with a location. Those that other steps cannot take are in test/lit/passes.


def module_of(text: str) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True
    return parse(text, context, "net.mlir")


def body(text: str) -> str:
    return f"""func.func private @f(memref<64xi8>)
func.func @main(%n: i32, %i: index, %a: memref<64xi8>) {{
  {text}
  return
}}"""


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("module {}", 1, "a module must have a function main with a body to be lowered, but got no function"),
        (
            "func.func @main() {\n  cf.br ^bb1\n^bb1:\n  return\n}",
            1,
            "function main must have one block to be divided, but got 2",
        ),
        (body("%0 = arith.addi %n, %n : i32"), 3, "'arith.addi' op must be a call, a constant or a view to be divided"),
        (
            body("%0 = memref.view %a[%i][] : memref<64xi8> to memref<4xi8>"),
            3,
            "'memref.view' op must be of an argument of main, at a constant offset, to be divided",
        ),
        (
            body("call @f(%a) : (memref<64xi8>) -> ()"),
            3,
            "'func.call' op must call a function with one block to be divided, but got f",
        ),
    ],
)
def test_a_module_that_cannot_be_divided(text: str, line: int, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        to_threads(module_of(text), 2)
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].message) == (line, message)


# Each phase's contract refuses a module that breaks it, and names the unsupported ops.

FOREIGN = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "tosa.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
LINALG = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
  } outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
VECTOR = """\
func.func @main(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %0 = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %0, %x[%c0] : memref<4xf32>, vector<4xf32>
  return
}
"""
ALLOCATING = """\
func.func @main() {
  %0 = memref.alloc() : memref<4xf32>
  %1 = memref.alloca() : memref<4xf32>
  return
}
"""
CONTRACTION = """\
func.func @main(%x: vector<4xi8>, %w: vector<16x4xi8>, %y: vector<16xi32>) -> vector<16xi32> {
  %0 = arith.extui %x : vector<4xi8> to vector<4xi32>
  %1 = arith.extsi %w : vector<16x4xi8> to vector<16x4xi32>
  %2 = vector.contract {
    indexing_maps = [affine_map<(l, t) -> (t)>, affine_map<(l, t) -> (l, t)>, affine_map<(l, t) -> (l)>],
    iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>
  } %0, %1, %y : vector<4xi32>, vector<16x4xi32> into vector<16xi32>
  return %2 : vector<16xi32>
}
"""
LLVM = "llvm.func @main() {\n  llvm.return\n}\n"


LEGAL = "func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }"
FUSED_MULTIPLY_ADD = """llvm.func @f(%a: f32) -> f32 {
  %0 = llvm.intr.fmuladd(%a, %a, %a) : (f32, f32, f32) -> f32
  llvm.return %0 : f32
}"""
PRODUCTS = """func.func @f(%a: vector<4x2xf32>, %b: vector<2xf32>, %c: vector<4xf32>) {
  %0 = vector.contract {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>,
    affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} %a, %b, %c
    : vector<4x2xf32>, vector<2xf32> into vector<4xf32>
  %1 = vector.outerproduct %c, %c : vector<4xf32>, vector<4xf32>
  %2 = math.fma %c, %c, %c : vector<4xf32>
  return
}"""
OF_INTEGERS = PRODUCTS.replace("f32", "i32").replace("  %2 = math.fma %c, %c, %c : vector<4xi32>\n", "")
NOT_ROUNDED = "op adds a product that is not rounded"
NOT_ALLOWED = "'tosa.exp' op is not allowed"
ALLOCATES = "op allocates memory inside a kernel"
Check = Callable[[ir.Module], None]
# The check of a phase, a module that breaks it, notes with their lines, and a module that does not.
CONTRACTS: dict[str, tuple[Check, str, list[tuple[int, str]], str]] = {
    "fused": (check_fused, FOREIGN, [(2, NOT_ALLOWED)], LEGAL),
    "linalg": (check_linalg, FOREIGN, [(2, NOT_ALLOWED)], LINALG),
    "vector": (
        check_vector,
        ALLOCATING,
        [(2, f"'memref.alloc' {ALLOCATES}"), (3, f"'memref.alloca' {ALLOCATES}")],
        VECTOR,
    ),
    "products": (
        check_products,
        PRODUCTS,
        [(2, f"'vector.contract' {NOT_ROUNDED}"), (5, f"'vector.outerproduct' {NOT_ROUNDED}")],
        OF_INTEGERS,
    ),
    "llvm": (check_llvm, FUSED_MULTIPLY_ADD, [(2, f"'llvm.intr.fmuladd' {NOT_ROUNDED}")], LLVM),
}


def broken_contract(check: Check, text: str) -> tuple[Diagnostic, list[tuple[int, str]]]:
    """The error, and its notes."""
    with pytest.raises(CompileError) as caught:
        check(module_of(text))
    (error,) = caught.value.diagnostics
    assert error.severity is Severity.ERROR
    assert all(note.severity is Severity.NOTE for note in error.notes)
    return error, [(note.line, note.message) for note in error.notes]


@pytest.mark.parametrize("phase", CONTRACTS)
def test_a_phase_has_its_ops_alone(phase: str) -> None:
    check, text, wanted, legal = CONTRACTS[phase]
    error, notes = broken_contract(check, text)
    found = "x86" if phase == "products" else phase
    assert (error.message, error.line) == (f"after phase {found}: {len(wanted)} ops break its contract", wanted[0][0])
    assert notes == wanted
    check(module_of(legal))


def test_what_a_phase_leaves_behind_is_no_part_of_the_next() -> None:
    assert (2, "'linalg.generic' op is not allowed") in broken_contract(check_vector, LINALG)[1]
    assert (1, "'func.func' op is not allowed") in broken_contract(check_llvm, VECTOR)[1]


def test_a_contraction_of_bytes_is_dot_products_where_the_target_has_them() -> None:
    for name in sorted(set(TARGETS) - {"generic"}):
        _, notes = broken_contract(lambda module, name=name: check_x86(module, TARGETS[name]), CONTRACTION)
        data = "data must be read from memory"
        found = f"is left; [dot-product] {data}; [interleaved-dot] {data}"
        assert notes == [(4, f"'vector.contract' op {found}")]
    check_x86(module_of(CONTRACTION), TARGETS["generic"])
    # Products of signed bytes are no instruction.
    check_x86(module_of(CONTRACTION.replace("extui", "extsi")), TARGETS["avx512vbmi"])


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
