"""One executable and many callers: threads, errors, bound calls and forks."""

import pytest
from subprocesses import IN_THREADS, output_of

PROLOGUE = """
import os, signal, sys, tempfile, threading, time
from pathlib import Path
import numpy as np
import qdialect

TEXT = '''func.func @main(%x: tensor<8x64xui8>, %y: tensor<8x64xui8>) -> (tensor<8x64xui8>, tensor<8x64xui8>) {
  %w = "qnn.constant"() {value = dense<1> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %0 = "qnn.dense"(%x, %w) {input_scale = 0.5 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>} : (tensor<8x64xui8>, tensor<64x64xi8>) -> tensor<8x64xi32>
  %1 = "qnn.requantize"(%0) {input_scale = 0.5 : f64, weight_scales = array<f64: 0.25>,
    input_zero_points = array<i64: 0>, output_scale = 64.0 : f64, output_zero_point = 0 : i64, axis = 1 : i64,
    rounding = "fixed64_up", multiplier = "f64"} : (tensor<8x64xi32>) -> tensor<8x64xui8>
  %2 = "qnn.maximum"(%1, %y) {lhs_scale = 1.0 : f64, lhs_zero_point = 0 : i64, rhs_scale = 1.0 : f64,
    rhs_zero_point = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 0 : i64, output_min = 0 : i64,
    output_max = 255 : i64} : (tensor<8x64xui8>, tensor<8x64xui8>) -> tensor<8x64xui8>
  return %2, %1 : tensor<8x64xui8>, tensor<8x64xui8>
}'''
threads = int(sys.argv[1])
executable = qdialect.compile(qdialect.parse(TEXT), threads=threads, workspaces=2)
if sys.argv[2] == "loaded":
    folder = tempfile.mkdtemp()
    executable.save(Path(folder) / "network.so")
    executable = qdialect.load(Path(folder) / "network.so", workspaces=2)
assert executable.workspaces == 2

def drawn(seed):
    random = np.random.default_rng(seed)
    return [random.integers(0, 256, (8, 64), dtype=np.uint8) for _ in range(2)]

ROUNDS = [drawn(seed) for seed in range(8)]
EXPECTED = [executable(*arrays) for arrays in ROUNDS]
assert len({one.tobytes() for one, _ in EXPECTED}) == 8

def check(index):
    for found, wanted in zip(executable(*ROUNDS[index]), EXPECTED[index], strict=True):
        assert (found == wanted).all(), index
"""

CALLS = """
def work(index):
    for _ in range(int(sys.argv[3])):
        check(index)
in_threads(work)
"""

ERRORS = """
def work(index):
    for _ in range(100):
        if index % 2:
            check(index)
            continue
        try:
            executable(ROUNDS[index][0])
        except qdialect.InputError:
            pass
        try:
            executable(ROUNDS[index][0], ROUNDS[index][1][:4])
        except qdialect.InputError:
            check(index)
        else:
            raise AssertionError("no error")
in_threads(work)
"""

BINDS = """
def work(index):
    outputs = [np.empty_like(one) for one in EXPECTED[index]]
    if index % 2:
        for _ in range(100):
            check(index)
        return
    for _ in range(20):
        call = executable.bind(ROUNDS[index], outputs)
        for _ in range(10):
            outputs[0][:] = 77
            call()
            assert all((one == other).all() for one, other in zip(outputs, EXPECTED[index], strict=True))
in_threads(work)
"""

RESULTS = """
kept = []
def work(index):
    for _ in range(50):
        kept.append((index, executable(*ROUNDS[index])))
in_threads(work)
for index, found in kept:
    assert all((one == other).all() for one, other in zip(found, EXPECTED[index], strict=True))
starts = sorted(one.ctypes.data for _, found in kept for one in found)
assert all(after - before >= 512 for before, after in zip(starts, starts[1:]))
"""

FORKS = """
stop = threading.Event()
def busy(index):
    while not stop.is_set():
        check(index)
def forks(_):
    for number in range(10):
        child = os.fork()
        if not child:
            code = 1
            try:
                signal.alarm(900)
                for index in range(8):
                    check(index)
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stop.set()
in_threads(lambda index: forks(index) if index == 0 else busy(index), 4)
"""

TOGETHER = CALLS + ERRORS + BINDS + RESULTS + FORKS


@pytest.mark.parametrize(("threads", "kind"), [("1", "compiled"), ("2", "loaded")])
def test_callers_do_not_disturb_each_other(threads: str, kind: str) -> None:
    output_of(IN_THREADS + PROLOGUE + TOGETHER, threads, kind, "300" if threads == "1" else "30")
