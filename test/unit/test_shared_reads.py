"""Products are cut where those that read them are cut, with the same bits."""

from collections.abc import Sequence

import numpy as np
import pytest
from strategy_networks import Network

from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.ir.functions import MAIN, functions, has_body, name_of
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads.chunks import divided
from qdialect.lowering.threads.loop_nests import KernelFunction, analyse
from qdialect.lowering.threads.schedule import NetworkCall, network_calls
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs

COUNTS = (2, 3, 4, 7)
TILES = targets.resolve("amxint8,portable")
ROWS, COLUMNS = 4, 6

# What stands beside the loop over columns, of which each thread would do all.
BESIDE = """%b = vector.transfer_read %x[%c0], %zero {in_bounds = [true]} : memref<4096xi32>, vector<64xi32>
    vector.transfer_write %b, %scratch[%c0] {in_bounds = [true]} : vector<64xi32>, memref<64xi32>"""

# A reader of the product, cut at the product's rows or at its columns.
READERS = {"rows": ("%rows", "%columns", "%line", "%c8"), "columns": ("%columns", "%rows", "%c8", "%line")}


def trips(
    reader: str, row: int = 16, column: int = 256, beside: str = "", columns: int = COLUMNS, parts: int = 2
) -> list[tuple[tuple[int, ...], int]]:
    """The trip counts of the loops of a product that are cut: each of `ROWS` rows has `row` elements."""
    outer, inner, outer_step, inner_step = READERS[reader]
    constants = f"""%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %rows = arith.constant {ROWS} : index
  %columns = arith.constant {columns} : index
  %line = arith.constant {columns * 8} : index
  %zero = arith.constant 0 : i32"""
    memory = "memref<4096xi32>"
    module = parse("module {}")
    load_kernel_dialects(module)
    with module.context:
        module = ir.Module.parse(f"""
func.func @product(%x: {memory}, %weights: {memory}, %out: {memory}, %scratch: memref<64xi32> {{qnn.scratch}}) {{
  {constants}
  %row = arith.constant {row} : index
  %column = arith.constant {column} : index
  scf.for %i = %c0 to %rows step %c1 {{
    %x_at = arith.muli %i, %row : index
    %line_at = arith.muli %i, %line : index
    {beside}
    scf.for %j = %c0 to %columns step %c1 {{
      %w_at = arith.muli %j, %column : index
      %inside = arith.muli %j, %c8 : index
      %at = arith.addi %line_at, %inside : index
      %l = vector.transfer_read %x[%x_at], %zero {{in_bounds = [true]}} : {memory}, vector<{row}xi32>
      %r = vector.transfer_read %weights[%w_at], %zero {{in_bounds = [true]}} : {memory}, vector<{column}xi32>
      %lhs = vector.extract_strided_slice %l {{offsets = [0], sizes = [8], strides = [1]}}
        : vector<{row}xi32> to vector<8xi32>
      %rhs = vector.extract_strided_slice %r {{offsets = [0], sizes = [8], strides = [1]}}
        : vector<{column}xi32> to vector<8xi32>
      %sum = arith.addi %lhs, %rhs : vector<8xi32>
      vector.transfer_write %sum, %out[%at] {{in_bounds = [true]}} : vector<8xi32>, {memory}
    }}
  }}
  return
}}
func.func @reader(%x: {memory}, %out: {memory}) {{
  {constants}
  scf.for %i = %c0 to {outer} step %c1 {{
    %outside = arith.muli %i, {outer_step} : index
    scf.for %j = %c0 to {inner} step %c1 {{
      %inside = arith.muli %j, {inner_step} : index
      %at = arith.addi %outside, %inside : index
      %v = vector.transfer_read %x[%at], %zero {{in_bounds = [true]}} : {memory}, vector<8xi32>
      vector.transfer_write %v, %out[%at] {{in_bounds = [true]}} : vector<8xi32>, {memory}
    }}
  }}
  return
}}
func.func @main(%x: {memory}, %weights: {memory}, %between: {memory}, %out: {memory}, %scratch: memref<64xi32>) {{
  call @product(%x, %weights, %between, %scratch) : ({memory}, {memory}, {memory}, memref<64xi32>) -> ()
  call @reader(%between, %out) : ({memory}, {memory}) -> ()
  return
}}""")
        *kernels, main = functions(module)
        found = {name_of(function): analyse(function) for function in kernels}
        division = divided(found["product"], network_calls(main, found), parts, 0)
        assert division is not None
        loop_nests = division.kernel.loop_nests
        return [(nest.work.trips, found.depth) for nest, found in zip(loop_nests, division.partitions, strict=True)]


def test_columns_are_cut_where_the_reader_is_cut_at_them() -> None:
    assert trips("columns") == [((COLUMNS,), 1)]


def test_rows_are_cut_where_the_reader_is_cut_at_them() -> None:
    assert trips("rows") == [((ROWS, COLUMNS), 1)]


def test_rows_are_cut_where_they_are_more_than_the_weights_or_than_what_is_written() -> None:
    assert trips("columns", row=256, column=16) == [((ROWS, COLUMNS), 1)]
    assert trips("columns", row=64) == [((ROWS, COLUMNS), 1)]


def test_rows_are_cut_where_columns_give_uneven_parts() -> None:
    assert trips("columns", columns=5) == [((ROWS, 5), 1)]
    assert trips("columns", parts=4) == [((ROWS, COLUMNS), 1)]


def test_rows_are_cut_where_each_begins_with_work_of_its_own() -> None:
    assert trips("columns", beside=BESIDE) == [((ROWS, COLUMNS), 1)]


def product_read_by_channel(size: tuple[int, int], channels: tuple[int, int]) -> ir.Module:
    """A convolution from one number of channels to another, then its channels one after the other."""
    drawn = Network(5, (1, *size, channels[0]))
    drawn.convolution(channels[1], 1)
    before = drawn.type
    drawn.shape = [1, channels[1], *size]
    permutation = "{permutation = array<i64: 0, 3, 1, 2>}"
    drawn.lines.append(f'%last = "qnn.transpose"({drawn.value}) {permutation} : ({before}) -> {drawn.type}')
    drawn.value = "%last"
    return parse(drawn.text())


def test_a_product_in_tiles_is_cut_at_its_columns() -> None:
    module = lower(product_read_by_channel((8, 8), (256, 512)), TILES, Phase.VECTOR).module
    load_kernel_dialects(module)
    with module.context:
        *kernels, main = sorted(functions(module), key=lambda function: name_of(function) == MAIN)
        found = {name_of(function): analyse(function) for function in kernels if has_body(function)}
        calls = network_calls(main, found)
        assert {kernel.name for kernel in found.values() if is_cut_inside(kernel, calls)}


def is_cut_inside(kernel: KernelFunction, calls: Sequence[NetworkCall]) -> bool:
    division = divided(kernel, calls, 2, 0)
    return division is not None and division.kernel.loop_nests != kernel.loop_nests


@pytest.mark.parametrize(
    ("name", "size", "channels"),
    [
        ("host", (8, 8), (256, 512)),
        ("host", (7, 7), (64, 200)),
        ("amxint8,portable", (3, 11), (256, 512)),
        ("amxint8,portable", (8, 8), (64, 200)),
        ("avx2,portable", (7, 7), (256, 512)),
        ("avx2,portable", (3, 11), (64, 200)),
    ],
)
def test_products_read_by_channel_give_the_reference(
    size: tuple[int, int], channels: tuple[int, int], name: str
) -> None:
    module = product_read_by_channel(size, channels)
    chosen = targets.resolve(name)
    inputs = random_inputs(lower(module, chosen, Phase.QNN).inputs, 3)
    wanted = next(iter(interpreter.run(module, inputs)))
    for threads in COUNTS:
        executable = compile_module(module, target=chosen, threads=threads, min_cycles=0)
        for _ in range(3):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
