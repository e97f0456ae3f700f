"""Modules that a lowering step cannot take: each is one error with a location, whatever the step's own code met."""

from collections.abc import Callable

import pytest

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.linalg_to_vector.to_vector import to_vector
from qdialect.lowering.threads.divided_network import to_threads
from qdialect.lowering.vector_to_x86.patterns import to_x86
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.passes.pipeline import PassManager
from qdialect.support.diagnostics import CompileError, PassError
from qdialect.targets import TARGETS

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
GENERIC = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
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


def test_threads_want_flat_buffers() -> None:
    text = "func.func @main(%x: memref<4x4xi8>) {\n  return\n}"
    assert failure(threads, text) == (
        1,
        "argument 0 of main must be a flat buffer or a number to be divided, but got memref<4x4xi8>",
    )


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
    assert failure(to_vector, GENERIC.format(tags=tags)) == (2, message)


def test_a_role_is_any_string() -> None:
    text = GENERIC.format(tags='qnn.micro_kernel = -1, qnn.role = "root\\22 } in", qnn.tiles = array<i64: 2>')
    assert failure(to_vector, text) == (2, 'micro-kernel -1 must have a root, but has only root" } in')


UNRESOLVED = """func.func @main(%i: index) {
  %0 = memref.alloc(%i) : memref<?xi8>
  call @other(%0) : (memref<?xi8>) -> ()
  return
}
func.func @other(%x: memref<?xi8>) {
  return
}"""


def test_what_upstream_cannot_lower() -> None:
    line, message = failure(to_llvm, UNRESOLVED)
    assert line == 3
    assert message.startswith("qnn-to-llvm: 'llvm.call' op 'other' does not reference a valid")


def test_the_name_of_the_pass_is_said_once() -> None:
    with pytest.raises(PassError) as caught:
        PassManager("qnn-to-llvm").run(parse(UNRESOLVED, make_context(), "net.mlir"))
    assert str(caught.value).startswith("qnn-to-llvm: 'llvm.call' op 'other' does not reference a valid")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("text", [EMPTY, NO_MAIN, DECLARATION, GLOBAL, TWO_BLOCKS, NO_COUNT])
def test_instructions_are_put_into_any_module(name: str, text: str) -> None:
    to_x86(parse(text, make_context(), "net.mlir"), TARGETS[name])
