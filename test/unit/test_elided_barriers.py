"""Barriers between calls: as few as there may be, and none too few."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from deadline import HANG
from ordered_runtime import ordered_runtime
from threaded_networks import network

import qdialect
from qdialect import targets
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.lowering.threads import divided_network
from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.schedule import ScheduledCall
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


def test_rows_that_go_through_one_layer_after_the_other_need_no_barrier() -> None:
    assert barriers(softmaxes()) == 0


def test_a_part_that_reads_what_others_wrote_waits() -> None:
    assert barriers(softmaxes(TURN)) == 2


def test_calls_in_chunks_wait_as_any_thread_may_take_them() -> None:
    text = str(lower(softmaxes(), targets.resolve("avx512vbmi"), Phase.VECTOR, threads=2, min_cycles=1).module)
    assert "scf.while" in text
    assert barriers(softmaxes(), min_cycles=1) > 0


def kept(calls: Iterable[ScheduledCall], _: Mapping[str, Division], __: int) -> Iterator[ScheduledCall]:
    yield from calls


def every_other(calls: Iterable[ScheduledCall], _: Mapping[str, Division], __: int) -> Iterator[ScheduledCall]:
    found = list(calls)
    waiting = [i for i, scheduled in enumerate(found) if scheduled.waits]
    yield from (replace(scheduled, waits=i in waiting[::2]) for i, scheduled in enumerate(found))


def test_a_network_has_fewer_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = barriers(network("transformer"))
    monkeypatch.setattr(divided_network, "elide_barriers", kept)
    assert 0 < fewer < barriers(network("transformer"))


def in_turns(kind: str, threads: int) -> int:
    """How many turns the threads of the network took, and 0 for wrong results."""
    module = network(kind)
    inputs = random_inputs(lower(module, targets.host(), Phase.QNN).inputs, 3)
    wanted = compile_module(module)(*inputs)
    turns = ctypes.c_int.in_dll(ctypes.CDLL(os.environ[openmp.VARIABLE]), "turns")
    found = compile_module(module, threads=threads, min_cycles=MIN_CYCLES)(*inputs)
    return turns.value if np.array_equal(found, wanted) else 0


def drop_barriers() -> None:
    """Let networks be compiled with one barrier in two."""
    divided_network.elide_barriers = every_other


@pytest.mark.parametrize("order", ["up", "down"])
@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_take_turns_compute_the_same(kind: str, order: str, tmp_path: Path) -> None:
    runtime = ordered_runtime(tmp_path)
    environment = {**os.environ, openmp.VARIABLE: str(runtime), "THREAD_ORDER": order}
    code = """
from test_elided_barriers import drop_barriers, in_turns
assert all(in_turns({kind!r}, threads) > 3 for threads in (2, 3, 7)), "wrong results"
drop_barriers()
assert in_turns({kind!r}, 2) == 0, "a barrier too few is not noticed"
"""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(folders)
    subprocess.run([sys.executable, "-c", code.format(kind=kind)], env=environment, check=True, timeout=HANG)
