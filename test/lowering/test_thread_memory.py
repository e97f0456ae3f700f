"""What threads share: barriers, scratch memory, and what each part reads and writes."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds import HANG
from drawn_networks import Network
from ordered_runtime import ordered_runtime
from threaded_networks import network

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.ir.functions import functions, name_of
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads import divided_network
from qdialect.lowering.threads.chunks import divided
from qdialect.lowering.threads.loop_nests import analyse
from qdialect.lowering.threads.schedule import ScheduledCall, network_calls, schedule
from qdialect.reference import interpreter
from qdialect.runtime import compile_module, openmp
from qdialect.runtime.comparison import random_inputs

KINDS = ("convolutional", "transformer")
MIN_CYCLES = 500
"""Kernels of the networks here are divided from there on, and few of them into chunks."""


def softmaxes(between: str = "") -> ir.Module:
    """Two softmaxes along rows; the second one is of `%b`, which `between` makes of `%a`, where it is given."""
    softmax = """{{axis = 1 : i64, input_scale = {scale} : f64, output_scale = 0.00390625 : f64,
    output_zero_point = -128 : i64, arithmetic = "float"}} : (tensor<128x128xi8>) -> tensor<128x128xi8>"""
    return qdialect.parse(f"""
func.func @main(%x: tensor<128x128xi8>) -> tensor<128x128xi8> {{
  %a = "qnn.softmax"(%x) {softmax.format(scale=0.05)}
  {between}
  %y = "qnn.softmax"({"%b" if between else "%a"}) {softmax.format(scale=2.0)}
  return %y : tensor<128x128xi8>
}}""")


TURN = '%b = "qnn.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<128x128xi8>) -> tensor<128x128xi8>'


def barriers(module: ir.Module, threads: int = 2, min_cycles: int = MIN_CYCLES) -> int:
    text = str(
        lower(module, targets.resolve("avx512vbmi"), Phase.VECTOR, threads=threads, min_cycles=min_cycles).module
    )
    assert "omp.parallel" in text
    return text.count("omp.barrier")


def test_a_part_that_reads_what_others_wrote_waits() -> None:
    assert barriers(softmaxes(TURN)) > barriers(softmaxes()) > 0


def test_calls_in_chunks_wait_as_any_thread_may_take_them() -> None:
    text = str(lower(softmaxes(), targets.resolve("avx512vbmi"), Phase.VECTOR, threads=2, min_cycles=1).module)
    assert "scf.while" in text
    assert barriers(softmaxes(), min_cycles=1) > 0


def without_barriers(*how: Any) -> Iterator[ScheduledCall]:
    found = list(schedule(*how))
    waiting = [i for i, scheduled in enumerate(found) if scheduled.waits]
    yield from (replace(scheduled, waits=i in waiting[:1]) for i, scheduled in enumerate(found))


def in_turns(kind: str, threads: int) -> int:
    """How many turns the threads of the network took, and 0 for wrong results."""
    module = network(kind)
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    turns = ctypes.c_int.in_dll(ctypes.CDLL(os.environ[openmp.VARIABLE]), "turns")
    found = compile_module(module, threads=threads, min_cycles=MIN_CYCLES)(*inputs)
    return turns.value if np.array_equal(found, wanted) else 0


def drop_barriers() -> None:
    """Let networks be compiled with one barrier alone."""
    divided_network.schedule = without_barriers


@pytest.mark.parametrize("order", ["up", "down"])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_take_turns_compute_the_same(kind: str, order: str, tmp_path: Path) -> None:
    runtime = ordered_runtime(tmp_path)
    environment = {**os.environ, openmp.VARIABLE: str(runtime), "THREAD_ORDER": order}
    code = """
from test_thread_memory import drop_barriers, in_turns
assert all(in_turns({kind!r}, threads) > 3 for threads in (2, 5)), "wrong results"
drop_barriers()
assert in_turns({kind!r}, 2) == 0, "missing barriers are not noticed"
"""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(folders)
    subprocess.run([sys.executable, "-c", code.format(kind=kind)], env=environment, check=True, timeout=HANG)


# Loop nests that use the same scratch memory: divided where none reads what another one wrote, together elsewhere.

COUNTS = (2, 3, 4, 7)
BLOCKS = 9

WHOLE = "vector.transfer_write %v, %scratch[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>"
READ = """%s = vector.transfer_read %scratch[%c0], %zero {in_bounds = [true]} : memref<8xi32>, vector<8xi32>
  vector.transfer_write %s, %out[%c72] {in_bounds = [true]} : vector<8xi32>, memref<80xi32>"""


def nests(rest: str, own: str = WHOLE) -> list[tuple[int, ...]]:
    """The trip counts of the loop nests of a kernel: a loop over blocks, which does `own` first, and the `rest`."""
    module = parse("module {}")
    load_kernel_dialects(module)
    with module.context:
        module = ir.Module.parse(f"""
func.func @kernel(%x: memref<80xi32>, %out: memref<80xi32>, %scratch: memref<8xi32> {{qnn.scratch}}, %flag: i1) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant {BLOCKS} : index
  %c72 = arith.constant 72 : index
  %zero = arith.constant 0 : i32
  %v = arith.constant dense<3> : vector<8xi32>
  %half = arith.constant dense<3> : vector<4xi32>
  %mask = vector.create_mask %c4 : vector<8xi1>
  scf.for %i = %c0 to %c9 step %c1 {{
    %at = arith.muli %i, %c8 : index
    {own}
    %r = vector.transfer_read %scratch[%c0], %zero {{in_bounds = [true]}} : memref<8xi32>, vector<8xi32>
    vector.transfer_write %r, %out[%at] {{in_bounds = [true]}} : vector<8xi32>, memref<80xi32>
  }}
  {rest}
  return
}}""")
        return [nest.work.trips for nest in analyse(module.body.operations[0].operation).loop_nests]


def test_a_rest_that_reads_what_it_wrote_is_a_nest_of_its_own() -> None:
    assert nests(f"{WHOLE}\n{READ}") == [(BLOCKS,), ()]


PARTIAL = {
    "nothing": "",
    "half": "vector.transfer_write %half, %scratch[%c0] {in_bounds = [true]} : vector<4xi32>, memref<8xi32>",
    "masked": "vector.transfer_write %v, %scratch[%c0], %mask {in_bounds = [true]} : vector<8xi32>, memref<8xi32>",
    "beyond": "vector.transfer_write %v, %scratch[%c0] {in_bounds = [false]} : vector<8xi32>, memref<8xi32>",
    "conditional": f"scf.if %flag {{ {WHOLE} }}",
    "never": f"scf.for %j = %c1 to %c1 step %c1 {{ {WHOLE} }}",
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_rest_that_may_read_what_the_loop_wrote_stays_with_it(name: str) -> None:
    assert nests(f"{PARTIAL[name]}\n{READ}") == [()]


CHANGE = """%old = vector.transfer_read %scratch[%c0], %zero {in_bounds = [true]} : memref<8xi32>, vector<8xi32>
    %new = arith.addi %old, %v : vector<8xi32>
    vector.transfer_write %new, %scratch[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>"""


def test_a_loop_that_goes_on_with_what_it_wrote_stays_whole() -> None:
    assert nests(f"{WHOLE}\n{READ}", CHANGE) == [()]


def test_a_loop_that_changes_what_was_written_before_it_stays_with_that() -> None:
    changed = CHANGE.replace("%old", "%before").replace("%new", "%after")
    rest = f"{WHOLE}\nscf.for %j = %c0 to %c9 step %c1 {{ {changed} }}\n{READ}"
    assert nests(rest) == [(BLOCKS,), ()]
    assert nests(rest.replace(WHOLE, PARTIAL["half"])) == [()]


# Blocks of rows and a rest: pixels, channels, and what comes out.
REMAINDERS = [(1, 7, 35, 64, 40), (1, 3, 11, 64, 17)]


@pytest.mark.parametrize("shape", REMAINDERS)
def test_products_in_tiles_are_divided_though_rows_are_left(shape: tuple[int, ...], tmp_path: Path) -> None:
    *image, channels = shape
    drawn = Network(11, tuple(image))
    drawn.convolution(channels, 1)
    module = parse(drawn.text())
    chosen = targets.resolve("amxint8,portable")
    divided = lower(module, chosen, Phase.VECTOR, threads=2, min_cycles=0)
    text = str(divided.module)
    tables = re.findall(r"_parts : memref<\d+x\d+xindex> = dense<\[(\[.*\])\]>", text)
    assert any(table.count("[") > 1 for table in tables), "a rest is a nest of its own"
    # Networks of one layer have no memory of their own; that of the threads is all of it.
    assert lower(divided.module, chosen, threads=2).arena_bytes == divided.arena_bytes
    inputs = random_inputs(lower(module, chosen, Phase.QNN).inputs, 3)
    wanted = next(iter(interpreter.run(module, inputs)))
    for threads in COUNTS:
        executable = compile_module(module, target=chosen, threads=threads, min_cycles=0)
        for _ in range(5):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
    path = tmp_path / "network.so"
    path.write_bytes(compile_module(module, target=chosen, threads=2, min_cycles=0).library("network"))
    np.testing.assert_array_equal(qdialect.load(path)(*inputs), wanted, strict=True)


# Products are cut where those that read them are cut, with the same bits.

ROWS, COLUMNS = 4, 6

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


def test_rows_are_cut_where_they_are_more_than_the_weights_or_than_what_is_written() -> None:
    assert trips("columns", row=256, column=16) == [((ROWS, COLUMNS), 1)]
    assert trips("columns", row=64) == [((ROWS, COLUMNS), 1)]


def test_rows_are_cut_where_columns_give_uneven_parts() -> None:
    assert trips("columns", columns=5) == [((ROWS, 5), 1)]
    assert trips("columns", parts=4) == [((ROWS, COLUMNS), 1)]


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


@pytest.mark.parametrize(
    ("name", "size", "channels"),
    [
        ("host", (8, 8), (256, 512)),
        ("amxint8,portable", (3, 11), (256, 512)),
        ("amxint8,portable", (8, 8), (64, 200)),
        ("avx2,portable", (7, 7), (256, 512)),
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
