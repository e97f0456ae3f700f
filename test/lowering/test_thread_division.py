"""How the work of a kernel is divided among threads, and what that costs."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pytest
from drawn_graphs import random_inputs
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from quantized_layers import chain
from threaded_networks import network

import qdialect
from qdialect import targets
from qdialect.lowering.ir.accesses import Run
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads.loop_nests import Work, chained_partition, partition
from qdialect.reference import interpreter
from qdialect.runtime import Executable, compile_module, openmp
from qdialect.runtime.comparison import random_inputs as random_arrays
from qdialect.support.diagnostics import CompileError
from qdialect.support.limits import MAX
from qdialect.targets import GENERIC

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


# Networks on several threads: the same bits for every number, in every situation a process may be in.


compile_divided = partial(compile_module, min_cycles=0)
"""Every kernel that can be is divided."""


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    openmp.addresses.cache_clear()
    monkeypatch.delenv(openmp.VARIABLE, raising=False)
    monkeypatch.setattr(openmp, "NAMES", ("libnowhere.so.1",))
    yield
    openmp.addresses.cache_clear()


def called(executable: Executable, inputs: list[NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    found = executable(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def call_for_ever(executable: Executable, inputs: list[NDArray[np.generic]]) -> NoReturn:
    while True:
        executable(*inputs)


def same(found: list[NDArray[np.generic]], wanted: list[NDArray[np.generic]]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_a_network_too_small_has_one_region_without_parts() -> None:
    text = str(lower(chain(), GENERIC, Phase.VECTOR, threads=2, min_cycles=10**9).module)
    assert "omp." not in text
    module = chain()
    inputs = random_inputs(module, 3)
    found = called(compile_module(module, threads=2, min_cycles=10**9), inputs)
    assert same(found, list(interpreter.run(module, inputs)))


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

THREADS = (2, 3, 8)


@pytest.mark.parametrize("kind", ["convolutional", "transformer"])
def test_the_same_bits_for_every_number_of_threads(kind: str) -> None:
    module = network(kind)
    text = str(lower(module, targets.host(), Phase.VECTOR, threads=2).module)
    divided = set(re.findall(r"memref.global \"private\" constant @(kernel_\d+)\w*_parts", text))
    assert len(divided) >= 5
    assert "omp.barrier" in text
    # Not everything is worth it.
    assert len(divided) < len(set(re.findall(r"func.func private @(kernel_\d+)", text)))
    inputs = random_arrays(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    assert len(np.unique(wanted)) > 5
    for threads in THREADS:
        executable = compile_module(module, threads=threads)
        assert executable.threads == threads
        for _ in range(3):
            np.testing.assert_array_equal(executable(*inputs), wanted, strict=True)
