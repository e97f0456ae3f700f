"""One executable and many callers: threads, errors, bound calls and forks."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from subprocesses import IN_THREADS, output_of

import qdialect
from qdialect import Executable
from qdialect.support.diagnostics import InputError

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


# Inputs and outputs by name, calls that others wait for, and what an executable shows of itself.

TEXT = """
func.func @main(%a: tensor<2x4xi8> {qnn.name = "image", qnn.scale = 0.5 : f64, qnn.zero_point = -3 : i64},
    %b: tensor<2x4xi8> {qnn.name = "out"}) -> (tensor<2x4xi8> {qnn.name = "low"}, tensor<2x4xi8> {qnn.name = "b:0"}) {
  %x = "qnn.clip"(%a) {min = -5 : i64, max = 9 : i64} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  %y = "qnn.clip"(%b) {min = 0 : i64, max = 100 : i64} : (tensor<2x4xi8>) -> tensor<2x4xi8>
  return %x, %y : tensor<2x4xi8>, tensor<2x4xi8>
}
"""
A, B = np.full((2, 4), -100, np.int8), np.full((2, 4), 120, np.int8)


@pytest.fixture(scope="module", params=["compiled", "any batch", "loaded"])
def executable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    made = qdialect.compile(qdialect.parse(TEXT), batch="dynamic" if request.param == "any batch" else 1)
    if request.param != "loaded":
        return made
    path = tmp_path_factory.mktemp("loaded") / "network.so"
    made.save(path)
    return qdialect.load(path)


TORCH: Any = torch
FEEDS: list[Callable[[Executable], Any]] = [
    lambda one: one(A, B),
    lambda one: one({"out": B, "image": A}),
    lambda one: one({"out": B}, image=A),
    lambda one: one.submit({"out": B, "image": TORCH.from_numpy(A)}).result(),
    lambda one: one.submit(A, B).result(),
    lambda one: asyncio.run(_awaited(one)),
    lambda one: tuple(one(A, B, returns="dict").values()),
    lambda one: tuple(
        one(A, B, out={"b:0": np.empty_like(B), "low": np.empty_like(A)})[name] for name in ("low", "b:0")
    ),
]


async def _awaited(executable: Executable) -> Any:
    return await asyncio.wrap_future(executable.submit({"image": A, "out": B}))


def test_every_way_to_call_gives_the_same(executable: Executable) -> None:
    for number, feed in enumerate(FEEDS):
        low, other = feed(executable)
        assert (low == -5).all(), number
        assert (other == 100).all(), number


REFUSED: dict[str, Callable[[Executable], Any]] = {
    "one input 'imag', but has 0, did you mean 'image'?": lambda one: one({"imag": A, "out": B}),
    "one input 'z', but has 0; its inputs are image, out": lambda one: one({"z": A}),
    "every input, but lacks out": lambda one: one(image=A),
    "input 'image' must be given once": lambda one: one(A, image=A),
    "every output, but lacks b:0": lambda one: one(A, B, out={"low": A}),
    "one output 'lo', but has 0, did you mean 'low'?": lambda one: one.outputs["lo"],
    "called with 2 inputs": lambda one: one(A),
    "input 'image' must be": lambda one: one.submit({"image": A[:, :2], "out": B}).result(),
    "returns must be numpy, torch or dict": lambda one: one(A, B, returns="list"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_names_that_do_not_fit(executable: Executable, message: str) -> None:
    with pytest.raises(InputError) as error:
        REFUSED[message](executable)
    assert message in str(error.value)


def test_ports_are_found_by_name(executable: Executable) -> None:
    assert executable.inputs["image"] is executable.inputs[0]
    assert executable.outputs["b:0"] is executable.outputs[-1]
    assert executable.inputs[:1] == (executable.inputs["image"],)


def test_names_that_several_ports_have() -> None:
    made = qdialect.compile(qdialect.parse(TEXT.replace('"b:0"', '"low"')))
    assert len(made({"image": A, "out": B})) == 2
    with pytest.raises(InputError, match="one output 'low', but has 2"):
        made(A, B, returns="dict")


def html(executable: Executable) -> str:
    """The text of a notebook."""
    return getattr(executable, "_repr_html_")()  # noqa: B009


def test_it_shows_what_it_is(executable: Executable) -> None:
    batch = "?" if executable.inputs[0].shape[0] < 0 else "2"
    for shown in (repr(executable), html(executable)):
        assert executable.target in shown
        assert f"int8[{batch}, 4], scale 0.5, zero point -3" in shown
        assert "1 thread" in shown
        assert f"{executable.working_memory} bytes of working memory" in shown
        assert "qdialect (" in shown


def test_names_of_a_model_are_shown_as_text() -> None:
    made = qdialect.compile(qdialect.parse(TEXT.replace('"b:0"', '"<b>\\1B[0m"')))
    assert "\x1b" not in repr(made)
    assert "<b>" not in html(made)


def test_a_module_shows_its_public_names() -> None:
    assert dir(qdialect) == sorted(qdialect.__all__)
