"""Compilation step by step: where it can stop, errors of each step, and what each phase may contain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quantized_layers import chain

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.phase_pass import check_fused, check_linalg, check_llvm, check_products, check_vector
from qdialect.lowering.linalg_to_vector.to_vector import to_vector
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.threads.divided_network import to_threads
from qdialect.lowering.vector_to_x86.to_x86 import check_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity
from qdialect.support.interface import Port
from qdialect.targets import GENERIC, TARGETS

VBMI = TARGETS["avx512vbmi"]


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


# Modules that a lowering step cannot take: each is one error with a location, whatever the step's own code met.

EMPTY = "module {\n}"
NO_MAIN = "func.func @f() {\n  return\n}"
DECLARATION = "func.func private @main()"
GLOBAL = 'memref.global "private" @main : memref<4xi8> = dense<1>'
TWO_BLOCKS = "func.func @main(%x: memref<4xi8>) {\n  cf.br ^bb1\n^bb1:\n  return\n}"
NO_COUNT = "func.func @main(%x: memref<4xi8>) {\n  omp.parallel {\n    omp.terminator\n  }\n  return\n}"
COUNT = """func.func @main(%x: memref<4xi8>, %n: i32) {
  omp.parallel num_threads(%n : i32) {
    omp.terminator
  }
  return
}"""
TAGGED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], {tags}}}
    outs(%x : tensor<4xf32>) {{
  ^bb0(%a: f32):
    linalg.yield %a : f32
  }} -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}"""


def failure(step: Callable[[ir.Module], object], text: str) -> tuple[int, str]:
    """Line and message of the one error of a step."""
    context = make_context()
    context.allow_unregistered_dialects = True
    with pytest.raises(CompileError) as caught:
        step(parse(text, context, "net.mlir"))
    first = caught.value.diagnostics[0]
    return first.line, first.message


def threads(module: ir.Module) -> int:
    return to_threads(module, 2)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (EMPTY, 1, "got no function"),
        (NO_MAIN, 1, "got f"),
        (DECLARATION, 1, "got a declaration"),
        (GLOBAL, 1, "got no function"),
    ],
)
@pytest.mark.parametrize("step", [to_llvm, threads])
def test_a_module_without_main(step: Callable[[ir.Module], object], text: str, line: int, found: str) -> None:
    message = f"a module must have a function main with a body to be lowered, but {found}"
    assert failure(step, text) == (line, message)


def test_threads_want_one_block() -> None:
    assert failure(threads, TWO_BLOCKS) == (1, "function main must have one block to be divided, but got 2")


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("%0 = arith.addi %n, %n : i32", 3, "'arith.addi' op must be a call, a constant or a view to be divided"),
        (
            "%0 = memref.view %a[%i][] : memref<64xi8> to memref<4xi8>",
            3,
            "'memref.view' op must be of an argument of main, at a constant offset, to be divided",
        ),
        (
            "call @f(%a) : (memref<64xi8>) -> ()",
            3,
            "'func.call' op must call a function with one block to be divided, but got f",
        ),
    ],
)
def test_threads_want_calls_on_views(body: str, line: int, message: str) -> None:
    text = f"""func.func private @f(memref<64xi8>)
func.func @main(%n: i32, %i: index, %a: memref<64xi8>) {{
  {body}
  return
}}"""
    assert failure(threads, text) == (line, message)


@pytest.mark.parametrize("text", [NO_COUNT, COUNT])
def test_a_parallel_region_has_a_number_of_threads(text: str) -> None:
    assert failure(to_llvm, text) == (2, "'omp.parallel' op must have a constant number of threads")


@pytest.mark.parametrize(
    ("memory", "record"),
    [
        ("memref<64xi8>", ""),
        ("memref<64xi8>", "{qnn.record = 33 : i64}"),
        ("memref<64xi8>", "{qnn.record = 48 : i64}"),
        ("memref<64xi8>", "{qnn.record = -8 : i64}"),
        ("memref<64xi8>", "{qnn.record = 0.0 : f64}"),
        ("memref<?xi8>", "{qnn.record = 0 : i64}"),
        ("memref<2xi8>", "{qnn.record = 0 : i64}"),
        ("i64", "{qnn.record = 0 : i64}"),
    ],
)
def test_a_parallel_region_has_a_record_in_the_memory(memory: str, record: str) -> None:
    text = f"""func.func @main(%x: {memory}) {{
  %n = arith.constant 2 : i32
  omp.parallel num_threads(%n : i32) {{
    omp.terminator
  }} {record}
  return
}}"""
    wanted = "must be an offset of 32 bytes in the last argument of main, a multiple of 8"
    assert failure(to_llvm, text) == (3, f"'omp.parallel' op qnn.record {wanted}")


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ('qnn.micro_kernel = 0, qnn.role = "sum"', "micro-kernel 0 must have a root, but has only sum"),
        (
            'qnn.micro_kernel = 0, qnn.role = "root"',
            "'linalg.generic' op qnn.tiles of a root must have a tile size above 0",
        ),
        (
            'qnn.micro_kernel = 0, qnn.role = "root", qnn.tiles = array<i64: 0>',
            "'linalg.generic' op qnn.tiles of a root must have a tile size above 0",
        ),
        (
            'qnn.micro_kernel = 0, qnn.role = "root", qnn.tiles = array<i64: -2>',
            "'linalg.generic' op qnn.tiles must not be negative, but got [-2]",
        ),
        ("qnn.micro_kernel = 0", "'linalg.generic' op qnn.role must be a string, but got nothing"),
        (
            'qnn.micro_kernel = "x", qnn.role = "root"',
            "'linalg.generic' op qnn.micro_kernel must be an integer, but got \"x\"",
        ),
        (
            'qnn.micro_kernel = 0, qnn.role = "root", qnn.tiles = [1]',
            "'linalg.generic' op qnn.tiles must be an array of i64, but got [1]",
        ),
        (
            'qnn.micro_kernel = 0, qnn.role = "root", qnn.tiles = array<i64: 2, 3, 4>',
            "'linalg.generic' op qnn.tiles must have at most 1 entries, one for each loop, but got 3",
        ),
    ],
)
def test_tags_of_a_micro_kernel(tags: str, message: str) -> None:
    assert failure(to_vector, TAGGED.format(tags=tags)) == (2, message)


UNRESOLVED = """func.func @main(%i: index) {
  %0 = memref.alloc(%i) : memref<?xi8>
  call @other(%0) : (memref<?xi8>) -> ()
  return
}
func.func @other(%x: memref<?xi8>) {
  return
}"""


def test_an_op_that_upstream_cannot_lower() -> None:
    line, message = failure(to_llvm, UNRESOLVED)
    assert line == 3
    assert message.startswith("qnn-to-llvm: 'llvm.call' op 'other' does not reference a valid")


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


def module_of(text: str) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True
    return parse(text, context, "net.mlir")


def broken_contract(check: Callable[[ir.Module], None], text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        check(module_of(text))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.severity is Severity.ERROR
    return diagnostic


def notes(diagnostic: Diagnostic) -> list[tuple[int, str]]:
    assert all(note.severity is Severity.NOTE for note in diagnostic.notes)
    return [(note.line, note.message) for note in diagnostic.notes]


def test_fused_is_the_dialect_alone() -> None:
    refused = broken_contract(check_fused, FOREIGN)
    assert refused.message == "after phase fused: 1 ops break its contract"
    assert refused.line == 2
    assert notes(refused) == [(2, "'tosa.exp' op is not allowed")]
    check_fused(module_of("func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }"))


def test_linalg_has_no_op_of_the_dialect() -> None:
    assert notes(broken_contract(check_linalg, FOREIGN)) == [(2, "'tosa.exp' op is not allowed")]
    check_linalg(module_of(LINALG))


def test_vector_has_neither_tensors_nor_allocations() -> None:
    found = notes(broken_contract(check_vector, LINALG))
    assert (2, "'linalg.generic' op is not allowed") in found
    assert notes(broken_contract(check_vector, ALLOCATING)) == [
        (2, "'memref.alloc' op allocates memory inside a kernel"),
        (3, "'memref.alloca' op allocates memory inside a kernel"),
    ]
    check_vector(module_of(VECTOR))


def test_a_contraction_of_bytes_is_dot_products_where_the_target_has_them() -> None:
    for name in sorted(set(TARGETS) - {"generic"}):
        refused = broken_contract(lambda module, name=name: check_x86(module, TARGETS[name]), CONTRACTION)
        data = "data must be read from memory"
        found = f"is left; [dot-product] {data}; [interleaved-dot] {data}"
        assert notes(refused) == [(4, f"'vector.contract' op {found}")]
    check_x86(module_of(CONTRACTION), TARGETS["generic"])
    # Products of signed bytes are no instruction.
    check_x86(module_of(CONTRACTION.replace("extui", "extsi")), TARGETS["avx512vbmi"])


def test_llvm_is_alone() -> None:
    refused = broken_contract(check_llvm, VECTOR)
    assert refused.message == "after phase llvm: 5 ops break its contract"
    assert (1, "'func.func' op is not allowed") in notes(refused)
    check_llvm(module_of(LLVM))


def test_products_are_rounded() -> None:
    text = """llvm.func @f(%a: f32) -> f32 {
  %0 = llvm.intr.fmuladd(%a, %a, %a) : (f32, f32, f32) -> f32
  llvm.return %0 : f32
}"""
    assert notes(broken_contract(check_llvm, text)) == [
        (2, "'llvm.intr.fmuladd' op adds a product that is not rounded")
    ]


def test_products_of_floats_are_not_left_to_upstream() -> None:
    maps = "affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>"
    text = f"""func.func @f(%a: vector<4x2xf32>, %b: vector<2xf32>, %c: vector<4xf32>) {{
  %0 = vector.contract {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}} %a, %b, %c
    : vector<4x2xf32>, vector<2xf32> into vector<4xf32>
  %1 = vector.outerproduct %c, %c : vector<4xf32>, vector<4xf32>
  %2 = math.fma %c, %c, %c : vector<4xf32>
  return
}}"""
    assert notes(broken_contract(check_products, text)) == [
        (2, "'vector.contract' op adds a product that is not rounded"),
        (4, "'vector.outerproduct' op adds a product that is not rounded"),
    ]
    lines = [line for line in text.replace("f32", "i32").splitlines() if "math.fma" not in line]
    check_products(module_of("\n".join(lines)))
