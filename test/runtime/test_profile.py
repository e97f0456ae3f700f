"""Profiles, their bounds and the workload of a network."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_graphs import graph, random_inputs
from drawn_networks import Array, branched, interpreted, with_externs
from quantized_layers import add, fused

import qdialect
from qdialect import targets
from qdialect.bench import throughput
from qdialect.bench.core_model.profile import CallProfile, Profile, profile_ops, trace, trace_library
from qdialect.bench.throughput import multiply_accumulates
from qdialect.cli.run_reports import profile_table
from qdialect.ir.context import parse as parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import InputError
from qdialect.support.externals import ExternalFunction
from qdialect.support.interface import KernelCall, kernel_names

NETWORK = graph(["tensor<1x5x6x3xui8>"] * 2, lambda x, y: [fused(add(x, y)), fused(x)])
PROFILE = Profile(
    (
        CallProfile(KernelCall("padding", 0, (), 0, 100), 1e-6, 2e11),
        CallProfile(KernelCall("conv", 1, ("first",), 600_000, 4000), 6e-6, 2e11, 4.5e-6, 5.4e-6, "products"),
        CallProfile(KernelCall("conv", 1, ("a<b>&\x07c", "second"), 300_000, 4000), 3e-6, 2e11),
        CallProfile(KernelCall("nothing", 3, ()), 0.0, 2e11),
    ),
    repetitions=17,
    peak=2e11,
    frequency=3e9,
)


@pytest.mark.parametrize("name", ["generic", "host"])
def test_every_step_is_there_once(name: str) -> None:
    found = profile_ops(NETWORK, random_inputs(NETWORK), target=name, seconds=0.02)
    executable = compile_module(NETWORK, target=name)
    assert tuple(one.call for one in found.calls) == executable.calls
    assert found.repetitions >= 2
    assert found.macs == throughput.multiply_accumulates(NETWORK) == 2 * 5 * 6 * 5 * 27
    assert found.seconds == pytest.approx(sum(one.seconds for one in found.calls))
    assert found.bytes_moved == sum(one.call.bytes_moved for one in found.calls)
    assert all(one.seconds >= 0 for one in found.calls)
    assert found.peak is not None
    assert (found.bound is not None) == (name == "host")
    assert all(one.bound is None or one.bound >= 0 for one in found.calls)
    assert all((one.predicted is None) == (one.bound is None) for one in found.calls)
    assert all(one.predicted >= one.bound for one in found.calls if one.predicted is not None and one.bound is not None)
    assert (found.model_error is not None) == (found.frequency is not None) == (found.bound is not None)


def test_calls_of_other_libraries_are_measured_by_their_names(tmp_path: Path) -> None:
    module = with_externs(branched())
    slow, compute, inputs = 0.002, interpreted(module), random_inputs(module)

    def waiting(function: ExternalFunction, *arrays: Array) -> Array:
        end = time.perf_counter() + slow
        while time.perf_counter() < end:
            pass
        return compute(function, *arrays)

    externals = {"npu": waiting}
    path = tmp_path / "model.mlir"
    path.write_text(str(module))
    executable = qdialect.compile(path, externals=externals)
    known = [index for index, call in enumerate(executable.calls) if call.label == "npu_fused_conv2d"]
    assert len(known) == 4
    found = profile_ops(module, inputs, externals=externals, seconds=0.01)
    spans = trace(module, inputs, externals=externals, seconds=0.01).spans
    times = executable.profile()
    for index in known:
        assert min(found.calls[index].seconds, spans[index].seconds, times[index].seconds) > slow * 0.9
        assert (found.calls[index].bound, found.calls[index].predicted) == (None, None)
    assert profile_table(found).count("npu_fused_conv2d") == len(known)


@pytest.mark.parametrize("min_cycles", [1, 10**9])
def test_the_clock_is_read_around_each_call_on_each_thread(min_cycles: int) -> None:
    inputs = random_inputs(NETWORK)
    clocked = compile_module(NETWORK, threads=2, clocked=True, min_cycles=min_cycles)
    for found, wanted in zip(clocked(*inputs), interpreter.run(NETWORK, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    ticks = clocked.ticks.reshape(2, len(clocked.calls), 2)
    has_run = ticks.min(2) > 0
    assert (has_run.any(0)).all()
    assert (ticks[has_run][:, 0] <= ticks[has_run][:, 1]).all()
    assert not ticks[~has_run].any()


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_trace_has_each_call_with_its_name(threads: int, *, is_saved: bool, tmp_path: Path) -> None:
    inputs = random_inputs(NETWORK)
    if is_saved:
        clocked = compile_module(NETWORK, threads=threads, clocked=True)
        clocked.save(tmp_path / "network.so")
        loaded = qdialect.load(tmp_path / "network.so")
        for array, wanted in zip(loaded(*inputs), interpreter.run(NETWORK, inputs), strict=True):
            np.testing.assert_array_equal(array, wanted)
        found = trace_library(loaded, inputs, seconds=0.01)
        assert found.calls == clocked.calls
    else:
        found = trace(NETWORK, inputs, threads=threads, seconds=0.01)
    events: list[dict[str, Any]] = json.loads(found.text("a"))["traceEvents"]
    spans: list[dict[str, Any]] = [event for event in events if event["ph"] == "X"]
    names = kernel_names(found.calls)
    assert {event["args"]["call"] for event in spans} == set(range(len(found.calls)))
    for event in spans:
        assert event["name"] == names[event["args"]["call"]]
        assert event["dur"] >= 0
    assert min(event["ts"] for event in spans) == 0
    assert events[0]["args"] == {"name": "a"}


def test_a_library_without_a_clock_has_no_trace(tmp_path: Path) -> None:
    compile_module(NETWORK).save(tmp_path / "network.so")
    with pytest.raises(InputError, match="library must be written by 'qdialect-compile --clock' to be traced"):
        trace_library(qdialect.load(tmp_path / "network.so"), random_inputs(NETWORK))


def test_code_without_a_clock_has_no_ticks() -> None:
    assert compile_module(NETWORK).ticks.size == 0
    assert "readcyclecounter" not in str(lower(NETWORK, targets.GENERIC, Phase.LINALG).module)
    assert str(lower(NETWORK, targets.GENERIC, clocked=True).module).count('"llvm.readcyclecounter"') >= 3


def test_inputs_are_checked() -> None:
    with pytest.raises(InputError, match="must be uint8"):
        profile_ops(NETWORK, [np.zeros(3, np.uint8)] * 2)


def test_the_table_has_a_row_for_each_step_and_the_sum() -> None:
    rows = [" ".join(line.split()) for line in profile_table(PROFILE).splitlines()]
    assert rows == [
        "# op time us of call MMAC GMAC/s of peak of bound cycles predicted bytes GB/s limit kernel nodes",
        "0 padding 1.00 10.0 % - - - - - - 100 0.1 - kernel_0",
        "1 conv 6.00 60.0 % 0.600 100.0 50.0 % 75.0 % 18000 16200 4000 0.7 products kernel_1_first first",
        "2 conv 3.00 30.0 % 0.300 100.0 50.0 % - - - 4000 1.3 - kernel_1_first a<b>&\\x07c, second",
        "3 nothing 0.00 0.0 % - - - - - - 0 - - kernel_3",
        "total 10.00 100.0 % 0.900 90.0 45.0 % 45.0 % 30000 16200 8100 0.8",
        "time: middle half of 17 calls, in place; bytes: read and written, constants included",
        "peak: the bare vpdpbusd loop's 200 GMAC/s, measured in between",
        "bound: what the instructions need at least on the core's busiest port, at the clock of bare dot products",
        "limit: by the cost model, the busiest port, latency between iterations, or memory behind L1",
        "predicted: the cost model's cycles, off by 10.0 % (median of the calls), 10.0 % (weighted by time)",
    ]


# How much a network computes.

WORKLOAD = """
func.func @main(%image: tensor<1x4x5x6xui8>, %kernel: tensor<4x2x3x3xi8>, %left: tensor<7x2x4xui8>,
                %right: tensor<7x4x3xi8>) -> (tensor<1x5x7x4xi32>, tensor<7x2x3xi32>) {
  %0 = "qnn.conv_transpose2d"(%image, %kernel) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>, strides = array<i64: 1, 1>, output_padding = array<i64: 0, 0>,
    padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i64
  } : (tensor<1x4x5x6xui8>, tensor<4x2x3x3xi8>) -> tensor<1x5x7x4xi32>
  %1 = "qnn.matmul"(%left, %right) {
    input_scale = 0.5 : f64, input_zero_point = 128 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<7x2x4xui8>, tensor<7x4x3xi8>) -> tensor<7x2x3xi32>
  return %0, %1 : tensor<1x5x7x4xi32>, tensor<7x2x3xi32>
}
"""


def test_transposed_convolutions_and_products_of_tensors_are_counted() -> None:
    # Each of 4x5 pixels meets the kernel; each of 7x2x3 sums has four products.
    assert multiply_accumulates(parse(WORKLOAD)) == 4 * 5 * (4 * 2 * 3 * 3) + 7 * 2 * 3 * 4
