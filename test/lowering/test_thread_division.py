"""How the work of a kernel is divided among threads, and what that costs."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest
from bounds import HANG
from drawn_graphs import graph, random_inputs
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quantized_layers import CHANNELS, add, conv, fused, requantize, sigmoid
from threaded_networks import network

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost.op_cycles import cycles
from qdialect.lowering.ir.accesses import Run
from qdialect.lowering.ir.functions import functions
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import Phase as PhaseThreads
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads.loop_nests import Partition, Work, chained_partition, largest_share, partition
from qdialect.reference import interpreter
from qdialect.runtime import Executable, compile_module, openmp
from qdialect.runtime.comparison import random_inputs as random_inputs_threads_of_networks
from qdialect.support.diagnostics import CompileError
from qdialect.support.threads import MAX
from qdialect.targets import GENERIC, resolve

DIMS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), max_size=3).map(tuple)
RUNS = st.builds(Run, st.integers(0, 12), DIMS)


def elements(run: Run) -> list[int]:
    found = np.full(1, run.start)
    for stride, extent in run.dims:
        found = (found[:, None] + np.arange(extent) * stride).reshape(-1)
    return found.tolist()


@given(RUNS, RUNS)
def test_runs_meet_where_they_have_an_element_in_common(one: Run, other: Run) -> None:
    common = set(elements(one)) & set(elements(other))
    assert one.count_in_common(other) == len(common)
    assert one.overlaps(other) == bool(common)


@given(RUNS)
def test_an_injective_run_has_no_element_twice(run: Run) -> None:
    found = elements(run)
    assert run.end == max(found) + 1
    if run.is_injective:
        assert len(set(found)) == len(found)


@given(RUNS, st.sampled_from((1, 2, 4)), st.integers(0, 64))
def test_a_run_in_bytes(run: Run, size: int, offset: int) -> None:
    wanted = {offset + element * size + byte for element in elements(run) for byte in range(size)}
    assert set(elements(run.scaled(size, offset))) == wanted


def test_rows_of_a_row_major_image_are_injective_and_overlapping_windows_are_not() -> None:
    assert Run(3, ((64, 16), (1, 64), (1024, 31))).is_injective
    assert not Run(0, ((2, 8), (1, 3))).is_injective


@st.composite
def works(draw: st.DrawFn) -> Work:
    trips = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    strides = tuple(4 ** (len(trips) - i) for i in range(len(trips)))
    return Work(trips, draw(st.floats(1, 1000)), draw(st.integers(0, 100)), strides)


@given(st.lists(works(), min_size=1, max_size=4), st.integers(2, 9))
def test_every_unit_belongs_to_one_part(drawn: list[Work], parts: int) -> None:
    for work, found in zip(drawn, partition(drawn, parts), strict=True):
        assert found.bounds[0] == 0
        assert found.bounds[-1] == work.units(found.depth)
        assert list(found.bounds) == sorted(found.bounds)
        assert len(found.bounds) == parts + 1


def test_an_even_loop_is_cut_at_the_outermost_level() -> None:
    work = Work((8, 5), 100.0, 0, (50, 10))
    assert partition([work], 2) == [Partition(1, (0, 4, 8))]
    assert largest_share([work], partition([work], 2)) == pytest.approx(0.5)


def test_an_odd_loop_is_cut_inside_a_step() -> None:
    assert partition([Work((3, 10), 90.0, 0, (100, 10))], 2) == [Partition(2, (0, 15, 30))]


def test_borders_go_with_their_rows() -> None:
    top, rows, bottom = Work((10,), 10.0, 0, (1,)), Work((20,), 100.0, 10, (5,)), Work((10,), 10.0, 120, (1,))
    assert partition([top, rows, bottom], 2) == [
        Partition(1, (0, 10, 10)),
        Partition(1, (0, 10, 20)),
        Partition(1, (0, 0, 10)),
    ]


def test_the_rest_of_a_row_makes_up_for_a_coarse_cut() -> None:
    tiles, rest = Work((3,), 90.0, 0, (40,)), Work((8,), 8.0, 120, (1,))
    found = partition([tiles, rest], 2)
    assert found == [Partition(1, (0, 2, 3)), Partition(1, (0, 0, 8))]


def test_loops_over_the_same_columns_are_cut_alike() -> None:
    """However much their costs differ: the weights of a column are read by one thread."""
    tiles, rest = Work((16, 3), 90.0, 0, (64, 512)), Work((16,), 1.0, 1536, (64,))
    assert partition([tiles, rest], 2) == [Partition(1, (0, 8, 16))] * 2


def test_an_odd_number_of_columns_is_cut_where_the_costs_are_even() -> None:
    tiles, rest = Work((3, 10), 90.0, 0, (100, 10)), Work((3,), 3.0, 300, (100,))
    assert partition([tiles, rest], 2)[0].depth == 2


@st.composite
def row_nests(draw: st.DrawFn) -> Work:
    """A loop over groups of the rows of a buffer of 60 rows, and what is left behind them as one iteration."""
    group, width = draw(st.sampled_from((1, 2, 3, 4, 5, 6))), draw(st.integers(1, 5))
    trips = draw(st.integers(60 // group - 1, 60 // group))
    return Work((trips,), draw(st.floats(1, 1000)), 0, (group * width,), 60 * width, group * width)


@given(st.lists(row_nests(), min_size=1, max_size=4), st.integers(2, 5))
def test_no_iteration_of_chained_nests_is_on_both_sides_of_a_cut(drawn: list[Work], parts: int) -> None:
    found = chained_partition(drawn, parts)
    if found is None:
        return
    for cut in range(1, parts):
        # In sixtieths of a buffer, where the nests of the first parts end and those of the others begin.
        ends = [one.bounds[cut] * work.span * 60 // work.extent for work, one in zip(drawn, found, strict=True)]
        begins = [
            60 if one.bounds[cut] == work.trips[0] else end for work, one, end in zip(drawn, found, ends, strict=True)
        ]
        assert max(ends) <= min(begins)


def test_chained_nests_are_cut_where_their_costs_are_even() -> None:
    groups, rest, rows = (
        Work((14,), 40.0, 0, (4,), 59, 4),
        Work((), 4.0, 56, (), 59, 3),
        Work((59, 2), 100.0, 0, (200, 64), 59 * 200, 197),
    )
    assert chained_partition([groups, rest, rows], 2) == [
        Partition(1, (0, 7, 14)),
        Partition(0, (0, 0, 1)),
        Partition(1, (0, 28, 59)),
    ]


# What ops are thought to take when threads get their parts.

DENSE = """
func.func @main(%x: tensor<64x256xui8>) -> tensor<64x64xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x256xi8>} : () -> tensor<64x256xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<64x256xui8>, tensor<64x256xi8>) -> tensor<64x64xi32>
  return %0 : tensor<64x64xi32>
}
"""


def costs(target: str) -> tuple[list[float], float]:
    """The cycles of each contraction of `DENSE` by itself, and those of all loops."""
    module = lower(parse(DENSE), resolve(target), Phase.VECTOR).module
    single: list[float] = []
    outermost: list[float] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.contract":
            single.append(cycles(op))
        if op.name == "scf.for" and op.parent is not None and op.parent.name == "func.func":
            outermost.append(cycles(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return single, sum(outermost)


def test_a_contraction_in_matrix_tiles_takes_what_its_products_do() -> None:
    # 2 x 2 tiles of sums, and 16 K groups in each step of the loop.
    single, whole = costs("amxint8")
    assert single == [4 * 16]
    products = 64 * 64 * 256 / 1024
    # Beside them there are loads and stores, and the way of the sums through memory.
    assert products <= whole <= 6 * products


def test_a_contraction_of_dot_products_takes_what_these_do() -> None:
    single, whole = costs("avx512vbmi")
    assert single
    products = 64 * 64 * 256 / 64
    assert products <= whole <= 3.5 * products


@pytest.mark.parametrize("first", [0, 1])
def test_a_tile_of_one_row_or_column_takes_what_a_tile_does(first: int) -> None:
    tile, row = ("(m, k, t)", "vector<16x8x4x{}>"), ("(k, t)", "vector<8x4x{}>")
    (left, a), (right, b) = (tile, row) if first else (row, tile)
    contraction = f"""
    func.func @main(%a: {a.format("i8")}, %b: {b.format("i8")}, %c: vector<16xi32>) {{
      %0 = arith.extui %a : {a.format("i8")} to {a.format("i32")}
      %1 = arith.extsi %b : {b.format("i8")} to {b.format("i32")}
      %2 = vector.contract {{
        indexing_maps = [affine_map<(m, k, t) -> {left}>, affine_map<(m, k, t) -> {right}>,
                         affine_map<(m, k, t) -> (m)>],
        iterator_types = ["parallel", "reduction", "reduction"], kind = #vector.kind<add>
      }} %0, %1, %c : {a.format("i32")}, {b.format("i32")} into vector<16xi32>
      return
    }}"""
    module = parse(contraction)
    ops = functions(module)[0].regions[0].blocks[0].operations
    assert [cycles(op.operation) for op in ops if op.operation.name == "vector.contract"] == [16]


# Networks on several threads: the same bits for every number, in every situation a process may be in.

COUNTS = (2, 3, 5, 8)
CALLS = 2000


compile_divided = partial(compile_module, min_cycles=0)
"""Every kernel that can be is divided."""


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    openmp.addresses.cache_clear()
    monkeypatch.delenv(openmp.VARIABLE, raising=False)
    monkeypatch.setattr(openmp, "NAMES", ("libnowhere.so.1",))
    yield
    openmp.addresses.cache_clear()


def chain() -> ir.Module:
    """Two convolutions with padding, an activation between them, a residual sum at the end."""

    def body(x: ir.Value, y: ir.Value) -> ir.Value:
        return add(fused(sigmoid(requantize(conv(x)))), y)

    return graph(["tensor<1x6x5x3xi8>", f"tensor<1x6x5x{CHANNELS}xui8>"], body)


def called(executable: Executable, inputs: list[NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    found = executable(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def call_for_ever(executable: Executable, inputs: list[NDArray[np.generic]]) -> NoReturn:
    while True:
        executable(*inputs)


def same(found: list[NDArray[np.generic]], wanted: list[NDArray[np.generic]]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("threads", COUNTS)
def test_every_number_of_threads_gives_the_reference(threads: int) -> None:
    module = chain()
    inputs = random_inputs(module, 3)
    executable = compile_divided(module, threads=threads)
    assert executable.threads == threads
    assert same(called(executable, inputs), list(interpreter.run(module, inputs)))


def test_one_thread_is_the_code_of_always() -> None:
    assert str(lower(chain(), GENERIC, threads=1).module) == str(lower(chain(), GENERIC).module)
    assert "GOMP" not in str(lower(chain(), GENERIC).module)


def test_a_network_too_small_has_one_region_without_parts() -> None:
    text = str(lower(chain(), GENERIC, PhaseThreads.VECTOR, threads=2, min_cycles=10**9).module)
    assert "omp." not in text
    module = chain()
    inputs = random_inputs(module, 3)
    found = called(compile_module(module, threads=2, min_cycles=10**9), inputs)
    assert same(found, list(interpreter.run(module, inputs)))


def test_many_calls_agree() -> None:
    module = chain()
    executable = compile_divided(module, threads=2)
    inputs = [random_inputs(module, seed) for seed in range(4)]
    wanted = [list(interpreter.run(module, arrays)) for arrays in inputs]
    assert all(same(called(executable, inputs[i % 4]), wanted[i % 4]) for i in range(CALLS))


def test_python_threads_share_and_own_executables() -> None:
    module = chain()
    inputs = [random_inputs(module, seed) for seed in range(2)]
    wanted = [list(interpreter.run(module, arrays)) for arrays in inputs]
    executables = [compile_divided(module, threads=2) for _ in range(2)]

    def work(index: int) -> bool:
        own, shared = executables[index], executables[0]
        rounds = [(called(own, inputs[index]), called(shared, inputs[index])) for _ in range(100)]
        return all(same(found, wanted[index]) for pair in rounds for found in pair)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(work, range(2)))


def test_a_forked_process_computes() -> None:
    module = chain()
    executable = compile_divided(module, threads=2)
    inputs = random_inputs(module, 1)
    wanted = called(executable, inputs)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(called(executable, inputs)))
    child.start()
    child.join(HANG)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive
    assert same(queue.get(), wanted)
    assert same(called(executable, inputs), wanted)


def test_an_interrupt_is_an_exception_of_python() -> None:
    module = chain()
    executable = compile_divided(module, threads=2)
    inputs = random_inputs(module, 1)
    wanted = called(executable, inputs)
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))

    def called_until_the_timer_ends() -> None:
        timer.start()
        call_for_ever(executable, inputs)

    try:
        with pytest.raises(KeyboardInterrupt):
            called_until_the_timer_ends()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert same(called(executable, inputs), wanted)


@pytest.mark.parametrize("threads", [0, -1, MAX + 1, 2.0, "2", True, None])
def test_other_counts_are_refused(threads: Any) -> None:
    with pytest.raises(CompileError, match=f"threads must be an integer from 1 to {MAX}, but got"):
        qdialect.compile(chain(), threads=threads)


@pytest.mark.usefixtures("no_runtime")
def test_an_absent_runtime_is_an_error_that_says_what_to_install() -> None:
    compile_module(chain(), threads=1)
    with pytest.raises(CompileError, match=r"an OpenMP runtime, but none of libnowhere.so.1 is .*: install libgomp1"):
        compile_module(chain(), threads=2)


@pytest.mark.usefixtures("no_runtime")
def test_the_runtime_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(openmp.VARIABLE, "/nowhere.so")
    with pytest.raises(CompileError, match=r"OpenMP runtime that QDIALECT_OPENMP names cannot be loaded: /nowhere.so"):
        compile_module(chain(), threads=2)
    monkeypatch.setenv(openmp.VARIABLE, "libc.so.6")
    with pytest.raises(CompileError, match=r"OpenMP runtime 'libc.so.6' has no function 'GOMP_parallel'"):
        compile_module(chain(), threads=2)


def test_a_limit_of_the_runtime_changes_no_result() -> None:
    code = """
import numpy as np, qdialect
from qdialect.runtime import compile_module
text = '''func.func @main(%x: tensor<64x64xui8>) -> tensor<64x64xui8> {
  %0 = "qnn.clip"(%x) {min = 10 : i64, max = 200 : i64} : (tensor<64x64xui8>) -> tensor<64x64xui8>
  return %0 : tensor<64x64xui8>
}'''
values = np.arange(4096, dtype=np.uint8).reshape(64, 64)
assert (compile_module(qdialect.parse(text), threads=4, min_cycles=0)(values) == values.clip(10, 200)).all()
"""
    for limit in ("1", "3"):
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "OMP_THREAD_LIMIT": limit}, check=True)


# Whole networks on several threads, divided where the compiler finds it worth it: the same bits for every number.

COUNTS_THREADS_OF_NETWORKS = (2, 3, 8)


@pytest.mark.parametrize("kind", ["convolutional", "transformer"])
def test_the_same_bits_for_every_number_of_threads(kind: str) -> None:
    module = network(kind)
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=2).module)
    divided = set(re.findall(r"memref.global \"private\" constant @(kernel_\d+)\w*_parts", text))
    assert len(divided) >= 5
    assert "omp.barrier" in text
    # Not everything is worth it.
    assert len(divided) < len(set(re.findall(r"func.func private @(kernel_\d+)", text)))
    inputs = random_inputs_threads_of_networks(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    assert len(np.unique(wanted)) > 5
    for threads in COUNTS_THREADS_OF_NETWORKS:
        executable = compile_module(module, threads=threads)
        assert executable.threads == threads
        for _ in range(3):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
