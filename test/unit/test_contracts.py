"""Each phase's contract refuses a module that breaks it, and names the unsupported ops."""

from collections.abc import Callable

import pytest

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.ir.phase_pass import check_fused, check_linalg, check_llvm, check_products, check_vector
from qdialect.lowering.vector_to_x86.to_x86 import check_x86
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity
from qdialect.targets import TARGETS

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
GATHER = """\
func.func @main(%t: memref<{size}xi8>, %i: vector<4xindex>, %m: vector<4xi1>, %p: vector<4xi8>) -> vector<4xi8> {{
  %c0 = arith.constant 0 : index
  %0 = vector.gather %t[%c0] [%i], %m, %p
    : memref<{size}xi8>, vector<4xindex>, vector<4xi1>, vector<4xi8> into vector<4xi8>
  return %0 : vector<4xi8>
}}
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


def failure(check: Callable[[ir.Module], None], text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        check(module_of(text))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.severity is Severity.ERROR
    return diagnostic


def notes(diagnostic: Diagnostic) -> list[tuple[int, str]]:
    assert all(note.severity is Severity.NOTE for note in diagnostic.notes)
    return [(note.line, note.message) for note in diagnostic.notes]


def test_fused_is_the_dialect_alone() -> None:
    refused = failure(check_fused, FOREIGN)
    assert refused.message == "after phase fused: 1 ops break its contract"
    assert refused.line == 2
    assert notes(refused) == [(2, "'tosa.exp' op is not allowed")]
    check_fused(module_of("func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }"))


def test_linalg_has_no_op_of_the_dialect() -> None:
    assert notes(failure(check_linalg, FOREIGN)) == [(2, "'tosa.exp' op is not allowed")]
    check_linalg(module_of(LINALG))


def test_unsupported_ops_inside_regions_are_found() -> None:
    refused = failure(check_fused, LINALG)
    assert notes(refused) == [(line, f"'{name}' op is not allowed") for line, name in [
        (2, "linalg.generic"), (7, "linalg.yield"),
    ]]  # fmt: skip


def test_vector_has_neither_tensors_nor_allocations() -> None:
    found = notes(failure(check_vector, LINALG))
    assert (2, "'linalg.generic' op is not allowed") in found
    assert notes(failure(check_vector, ALLOCATING)) == [
        (2, "'memref.alloc' op allocates memory inside a kernel"),
        (3, "'memref.alloca' op allocates memory inside a kernel"),
    ]
    check_vector(module_of(VECTOR))


def test_a_table_is_a_permute_where_the_target_has_one() -> None:
    vbmi = TARGETS["avx512vbmi"]
    refused = failure(lambda module: check_x86(module, vbmi), GATHER.format(size=256))
    reason = "[byte-table] indices must be cast from a vector of integers of at least 8 bits"
    masked = "[byte-table] mask must be true in every lane"
    assert notes(refused) == [(3, f"'vector.gather' op is left; {masked}")]
    unmasked = GATHER.format(size=256).replace("%c0 =", "%t1 = arith.constant dense<true> : vector<4xi1>\n  %c0 =")
    refused = failure(lambda module: check_x86(module, vbmi), unmasked.replace("[%i], %m", "[%i], %t1"))
    assert notes(refused) == [(4, f"'vector.gather' op is left; {reason}")]
    check_x86(module_of(GATHER.format(size=256)), TARGETS["x86-64"])
    check_x86(module_of(GATHER.format(size=100)), vbmi)


def test_a_contraction_of_bytes_is_dot_products_where_the_target_has_them() -> None:
    for name in sorted(set(TARGETS) - {"generic"}):
        refused = failure(lambda module, name=name: check_x86(module, TARGETS[name]), CONTRACTION)
        data = "data must be read from memory"
        found = f"is left; [dot-product] {data}; [interleaved-dot] {data}"
        assert notes(refused) == [(4, f"'vector.contract' op {found}")]
    check_x86(module_of(CONTRACTION), TARGETS["generic"])
    # Products of signed bytes are no instruction.
    check_x86(module_of(CONTRACTION.replace("extui", "extsi")), TARGETS["avx512vbmi"])


def test_llvm_is_alone() -> None:
    refused = failure(check_llvm, VECTOR)
    assert refused.message == "after phase llvm: 5 ops break its contract"
    assert (1, "'func.func' op is not allowed") in notes(refused)
    check_llvm(module_of(LLVM))


def test_products_are_rounded() -> None:
    text = """llvm.func @f(%a: f32) -> f32 {
  %0 = llvm.intr.fmuladd(%a, %a, %a) : (f32, f32, f32) -> f32
  llvm.return %0 : f32
}"""
    assert notes(failure(check_llvm, text)) == [(2, "'llvm.intr.fmuladd' op adds a product that is not rounded")]


def test_products_of_floats_are_not_left_to_upstream() -> None:
    maps = "affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>"
    text = f"""func.func @f(%a: vector<4x2xf32>, %b: vector<2xf32>, %c: vector<4xf32>) {{
  %0 = vector.contract {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}} %a, %b, %c
    : vector<4x2xf32>, vector<2xf32> into vector<4xf32>
  %1 = vector.outerproduct %c, %c : vector<4xf32>, vector<4xf32>
  %2 = math.fma %c, %c, %c : vector<4xf32>
  return
}}"""
    assert notes(failure(check_products, text)) == [
        (2, "'vector.contract' op adds a product that is not rounded"),
        (4, "'vector.outerproduct' op adds a product that is not rounded"),
    ]
    lines = [line for line in text.replace("f32", "i32").splitlines() if "math.fma" not in line]
    check_products(module_of("\n".join(lines)))


def test_not_every_unsupported_op_of_many_is_listed() -> None:
    body = "\n".join(f"  %{i} = memref.alloc() : memref<4xf32>" for i in range(25))
    refused = failure(check_vector, f"func.func @main() {{\n{body}\n  return\n}}")
    assert refused.message == "after phase vector: 25 ops break its contract"
    assert len(refused.notes) == 10
