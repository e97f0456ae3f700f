"""Networks on several threads: the same bits for every number, in every situation a process may be in."""

import multiprocessing
import os
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
from deadline import HANG
from graphs import graph, random_inputs
from numpy.typing import NDArray
from quantized_layers import CHANNELS, add, conv, fused, requantize, sigmoid

import qdialect
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import Executable, compile_module, openmp
from qdialect.support.diagnostics import CompileError
from qdialect.support.threads import MAX
from qdialect.targets import GENERIC

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
    text = str(lower(chain(), GENERIC, Phase.VECTOR, threads=2, min_cycles=10**9).module)
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


def test_clocked_code_runs_on_one_thread() -> None:
    with pytest.raises(CompileError, match="clocked code must run on one thread, but got 2"):
        compile_module(chain(), threads=2, clocked=True)


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
