"""Profiles, their bounds, the workload of a network, and open extents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from drawn_graphs import graph, random_inputs
from drawn_networks import Network
from drawn_vector import module_of
from onnx_graphs import ModelBuilder
from quantized_layers import add, conv, fused

import qdialect
from qdialect import parse, targets
from qdialect.bench import throughput
from qdialect.bench.core_model.kernel_cycles import (
    KernelCycles,
    NetworkMemory,
    counted,
    cycles,
    kernel_cycles,
    kernels_of_pairs,
    kernels_of_tiles,
    memory_cycles,
)
from qdialect.bench.core_model.memory_traffic import missed_lines, tile_loads
from qdialect.bench.core_model.profile import CallProfile, Profile, profile_ops
from qdialect.bench.core_model.trace import trace
from qdialect.bench.throughput import multiply_accumulates
from qdialect.cli.profile_chart import chart, file_content
from qdialect.cli.run_reports import profile_table
from qdialect.ir.context import parse as parse_workload
from qdialect.lowering.ir.functions import functions
from qdialect.lowering.ir.lowered import Phase as PhaseBound
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module, shaped
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import KernelCall, kernel_names
from qdialect.targets import resolve
from qdialect.targets.machine import MACHINES

NETWORK = graph(["tensor<1x5x6x3xui8>"] * 2, lambda x, y: [fused(add(x, y)), fused(x)])
PROFILE = Profile(
    (
        CallProfile(KernelCall("padding", 0, (), 0, 100), 1e-6, 2e11),
        CallProfile(KernelCall("conv", 1, ("first",), 600_000, 4000), 6e-6, 2e11, 4.5e-6, 5.4e-6),
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
    assert (found.peak is not None) == targets.host().has_vnni
    assert (found.bound is not None) == (targets.host().has_vnni and name == "host")
    assert all(one.bound is None or one.bound >= 0 for one in found.calls)
    assert all((one.predicted is None) == (one.bound is None) for one in found.calls)
    assert all(one.predicted >= one.bound for one in found.calls if one.predicted is not None and one.bound is not None)
    assert (found.model_error is not None) == (found.frequency is not None) == (found.bound is not None)


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


@pytest.mark.parametrize("threads", [1, 2])
def test_a_trace_has_each_call_with_its_name(threads: int) -> None:
    found = trace(NETWORK, random_inputs(NETWORK), threads=threads, seconds=0.01)
    events: list[dict[str, Any]] = json.loads(found.text("a"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = kernel_names(found.calls)
    assert {event["args"]["call"] for event in spans} == set(range(len(found.calls)))
    assert all(event["name"] == names[event["args"]["call"]] and event["dur"] >= 0 for event in spans)
    assert min(event["ts"] for event in spans) == 0
    assert events[0]["args"] == {"name": "a"}


def test_the_clock_changes_no_result() -> None:
    inputs = random_inputs(NETWORK)
    clocked = compile_module(NETWORK, clocked=True)
    for found, wanted in zip(clocked(*inputs), interpreter.run(NETWORK, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert len(clocked.ticks) == len(clocked.calls) + 1
    assert (np.diff(clocked.ticks) >= 0).all()
    assert clocked.ticks[0] > 0


def test_code_without_a_clock_has_no_ticks() -> None:
    assert compile_module(NETWORK).ticks.size == 0
    assert "readcyclecounter" not in str(lower(NETWORK, targets.GENERIC, Phase.LINALG).module)
    assert str(lower(NETWORK, targets.GENERIC, clocked=True).module).count('"llvm.readcyclecounter"') >= 3


def test_what_a_step_moves() -> None:
    # 5 channels are stored in 8 lanes, 3 for windows as they are; weights and what belongs to them are constants.
    calls = lower(graph(["tensor<1x5x6x3xui8>"], fused), targets.GENERIC, Phase.LINALG).calls
    padding, copied, convolution, *_ = calls
    assert padding.bytes_moved == (7 * 8 - 5 * 6) * 3
    assert copied.bytes_moved == 5 * 6 * (3 + 3)
    assert convolution.macs == 5 * 6 * 5 * 27
    assert 7 * 8 * 3 + 5 * 6 * 8 + 27 * 5 < convolution.bytes_moved < 2500


def test_a_convolution_alone_counts_its_products_too() -> None:
    calls = lower(graph(["tensor<1x5x6x3xui8>"], conv), targets.GENERIC, Phase.LINALG).calls
    assert sum(call.macs for call in calls) == 5 * 6 * 5 * 27


def test_inputs_are_checked() -> None:
    with pytest.raises(InputError, match="must be uint8"):
        profile_ops(NETWORK, [np.zeros(3, np.uint8)] * 2)


def test_rates_and_shares() -> None:
    padding, first, _, nothing = PROFILE.calls
    assert (first.rate, first.share_of_peak, first.bandwidth) == pytest.approx((1e11, 0.5, 4000 / 6e-6))
    assert padding.share_of_peak is None
    assert (nothing.rate, nothing.bandwidth) == (0.0, 0.0)
    assert (PROFILE.macs, PROFILE.bytes_moved, PROFILE.seconds) == (900_000, 8100, pytest.approx(1e-5))


def test_a_bound_is_at_most_all_of_the_time() -> None:
    calls = [CallProfile(KernelCall("x", 0, (), 10**6, 1), 1e-6, 0.5e12, bound) for bound in (1.25e-6, 0.5e-6, None)]
    found = Profile(tuple(calls), 2, 0.5e12, other_loops={"tdpbusd": 0.5e12})
    assert [one.share_of_bound for one in found.calls] == [1.0, 0.5, None]
    assert (found.calls[0].share_of_peak, found.bound) == (1.0, pytest.approx(1.5e-6))
    assert found.loop_of(found.calls[0]) == "tdpbusd"
    table = profile_table(found)
    assert table.count("100.0 %  ") >= 2
    assert "125" not in table.split("up to 25.0 % faster than the bound")[0]


def test_the_error_of_the_model_is_that_of_the_calls_that_it_predicts() -> None:
    times = ((1e-6, 1.5e-6), (2e-6, 1.8e-6), (4e-6, 4e-6), (1e-6, None), (40e-9, 1e-6))
    calls = tuple(CallProfile(KernelCall("x", 0, ()), own, 1.0, 0.0, predicted) for own, predicted in times)
    found = Profile(calls, 2, 1.0).model_error
    assert found is not None
    assert (found.median, found.weighted) == pytest.approx((0.1, 0.1))
    assert Profile(calls[3:], 2, 1.0).model_error is None


def test_the_table_has_a_row_for_each_step_and_the_sum() -> None:
    rows = [" ".join(line.split()) for line in profile_table(PROFILE).splitlines()]
    assert rows == [
        "# op time us of call MMAC GMAC/s of peak of bound cycles predicted bytes GB/s kernel nodes",
        "0 padding 1.00 10.0 % - - - - - - 100 0.1 kernel_0",
        "1 conv 6.00 60.0 % 0.600 100.0 50.0 % 75.0 % 18000 16200 4000 0.7 kernel_1_first first",
        "2 conv 3.00 30.0 % 0.300 100.0 50.0 % - - - 4000 1.3 kernel_1_first a<b>&\\x07c, second",
        "3 nothing 0.00 0.0 % - - - - - - 0 - kernel_3",
        "total 10.00 100.0 % 0.900 90.0 45.0 % 45.0 % 30000 16200 8100 0.8",
        "time: middle half of 17 calls, in place; bytes: read and written, constants included",
        "peak: the bare vpdpbusd loop's 200 GMAC/s, measured in between",
        "bound: what the instructions need at least on the core's busiest port, at the clock of bare dot products",
        "predicted: the cost model's cycles, off by 10.0 % (median of the calls), 10.0 % (weighted by time)",
    ]


def test_the_picture_is_xml_with_two_rectangles_for_each_step_that_multiplies() -> None:
    picture = ElementTree.fromstring(chart(PROFILE, "a & b"))
    hovers = [found.text or "" for found in picture.iter("{http://www.w3.org/2000/svg}title")]
    # In the strip, beside its bar and on it; once more where a share of the peak is drawn.
    assert [sum(text.startswith(f"#{number} ") for text in hovers) for number in range(4)] == [3, 4, 4, 3]
    texts = [found.text for found in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "a & b"
    assert "conv: 2 in 9 us" in texts
    assert "a<b>&\\x07c  #2" in texts
    assert texts.index("first  #1") < texts.index("a<b>&\\x07c  #2") < texts.index("padding  #0")


def test_a_profile_without_time_or_peak_is_drawn() -> None:
    for profile in (
        Profile((), 2, None),
        Profile((CallProfile(KernelCall("x", 0, ()), 0.0, None),), 2, None),
        Profile((CallProfile(KernelCall("x", 0, (), 5, 5), 1e-6, None),), 2, None),
    ):
        ElementTree.fromstring(chart(profile, "x"))
        assert "total" in profile_table(profile)


def test_a_page_holds_the_picture() -> None:
    assert file_content(PROFILE, "p.svg", "x") == chart(PROFILE, "x")
    page = file_content(PROFILE, "p.html", "<x>")
    assert page.startswith("<!doctype html>")
    assert "<title>&lt;x&gt;</title>" in page
    assert chart(PROFILE, "<x>") in page


# What a kernel's instructions need at least: counted by hand for small programs.

SAPPHIRE_RAPIDS = MACHINES["sapphirerapids"]
ZEN_4, ZEN_5 = resolve("znver4").machine, resolve("znver5").machine
# A core of which it was not measured what its pipes take.
PLAIN = replace(ZEN_4, pipes=None, levels=None)
LOOP = """
func.func @kernel_3_node(%x: memref<8x64xi8>, %w: memref<64xi8>, %y: memref<8x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = vector.load %w[%c0] : memref<64xi8>, vector<64xi8>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = vector.load %x[%i, %c0] : memref<8x64xi8>, vector<64xi8>
    %s = vector.load %y[%i, %c0] : memref<8x16xi32>, vector<16xi32>
    %d = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%s, %a, %b)
      : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
    %e = arith.addi %d, %s : vector<16xi32>
    %f = arith.extsi %e : vector<16xi32> to vector<16xi64>
    %g = arith.muli %f, %f : vector<16xi64>
    %h = arith.trunci %g : vector<16xi64> to vector<16xi32>
    vector.store %h, %y[%i, %c0] : memref<8x16xi32>, vector<16xi32>
  }
  return
}
"""


def test_every_trip_of_a_loop_counts() -> None:
    module = module_of(LOOP)
    (function,) = functions(module)
    # A product of 64 bits takes two vectors, and so does what narrows it.
    wanted = {"products": 8, "loads": 17, "stores": 8, "instructions": 8 * (1 + 1 + 2 + 2)}
    wanted["multiplications"] = 8 * (1 + 2)
    assert dict(counted(function, PLAIN)) == wanted
    # Two instructions of any kind a cycle, one load.
    # The load before the loop overlaps with nothing of it.
    assert kernel_cycles(module, PLAIN) == {3: KernelCycles(bound=24.0, predicted=25.0)}
    # On ports that are as fast each body is bound by what it has most of.
    assert kernel_cycles(module, ZEN_5)[3] == KernelCycles(bound=12.0, predicted=12.5)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [(32 << 10, 0), (48 << 10, (48 << 10) / 16), (1 << 20, (1 << 20) / 16), (1 << 21, (1 << 21) / 8)],
)
def test_bytes_come_from_the_level_that_holds_them(size: int, wanted: float) -> None:
    assert memory_cycles(size, ZEN_4) == wanted


@pytest.mark.parametrize(
    ("counts", "wanted"), [({"products": 5.0}, 5), ({"loads": 7.0, "products": 3.0}, 7), ({"stores": 2.0}, 2), ({}, 0)]
)
def test_the_busiest_port_is_the_bound(counts: dict[str, float], wanted: float) -> None:
    assert cycles(counts, PLAIN) == wanted


def test_kernels_that_sum_pairs_are_known_by_their_instruction() -> None:
    pairs = LOOP.replace("kernel_3", "kernel_4").replace("avx512.vpdpbusd.512", "avx512.pmaddubs.w.512")
    pairs = pairs.replace("(%s, %a, %b)", "(%a, %b)").replace("(vector<16xi32>, vector<64xi8>", "(vector<64xi8>")
    pairs = pairs.replace("-> vector<16xi32>", "-> vector<32xi16>").replace("%e = arith.addi %d", "%e = arith.addi %s")
    assert kernels_of_pairs(module_of(LOOP + pairs)) == {4}


def test_kernels_of_matrix_tiles_are_known_by_their_instruction() -> None:
    tiles = """
func.func @kernel_5_node() {
  %a = arith.constant 0 : i8
  llvm.call_intrinsic "llvm.x86.tdpbusd"(%a, %a, %a) : (i8, i8, i8) -> ()
  return
}
"""
    assert kernels_of_tiles(module_of(LOOP + tiles)) == {5}


TILES = """
func.func @kernel_6_node(%x: memref<65536xi8>, %w: memref<4096xi8>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  %line = arith.constant 64 : i64
  %r0 = arith.constant 0 : i8
  %r4 = arith.constant 4 : i8
  %r6 = arith.constant 6 : i8
  scf.for %i = %c0 to %c16 step %c1 {
    scf.for %k = %c0 to %c4 step %c1 {
      %xs = memref.extract_aligned_pointer_as_index %x : memref<65536xi8> -> index
      %ws = memref.extract_aligned_pointer_as_index %w : memref<4096xi8> -> index
      %block = arith.muli %i, %c4096 : index
      %step = arith.muli %c1024, %k : index
      %offset = arith.addi %block, %step : index
      %xi = arith.addi %xs, %offset : index
      %wi = arith.addi %ws, %step : index
      %xn = arith.index_cast %xi : index to i64
      %wn = arith.index_cast %wi : index to i64
      %xp = llvm.inttoptr %xn : i64 to !llvm.ptr
      %wp = llvm.inttoptr %wn : i64 to !llvm.ptr
      llvm.call_intrinsic "llvm.x86.tileloadd64"(%r4, %xp, %line) {qnn.rows = 16 : i64} : (i8, !llvm.ptr, i64) -> ()
      llvm.call_intrinsic "llvm.x86.tileloadd64"(%r6, %wp, %line) {qnn.rows = 16 : i64} : (i8, !llvm.ptr, i64) -> ()
      llvm.call_intrinsic "llvm.x86.tdpbusd"(%r0, %r4, %r6) {qnn.rows = 16 : i64} : (i8, i8, i8) -> ()
    }
    %v = vector.load %y[%c0] : memref<64xf32>, vector<64xf32>
    %s = arith.addf %v, %v : vector<64xf32>
    %p = arith.mulf %s, %v : vector<64xf32>
    vector.store %p, %y[%c0] : memref<64xf32>, vector<64xf32>
  }
  return
}
"""


@pytest.mark.parametrize(
    ("capacity", "lines"),
    [
        # All of x once, and w once, as it stays beside 4 KB of x.
        (48 << 10, 1024 + 64),
        # Two tiles stay, but not what a block reads: w comes again for each of 16 blocks.
        (4 << 10, 1024 + 16 * 64),
        (0, 1024 + 1024),
    ],
)
def test_lines_that_stay_between_two_reads_are_fetched_once(capacity: int, lines: int) -> None:
    module = module_of(TILES)
    (function,) = functions(module)
    assert missed_lines(tile_loads(function), capacity) == lines


def test_lines_that_need_not_stay_are_fetched_each_time_and_displace_none() -> None:
    passing = TILES.replace('tileloadd64"(%r6', 'tileloaddt164"(%r6')
    module = module_of(passing)
    (function,) = functions(module)
    assert missed_lines(tile_loads(function), 4 << 10) == 1024 + 1024
    assert counted(function, SAPPHIRE_RAPIDS)["tile loads"] == 2 * 64 * 16


def test_windows_that_overlap_have_their_lines_once() -> None:
    module = module_of(TILES.replace("%c4096 = arith.constant 4096", "%c4096 = arith.constant 1024"))
    (function,) = functions(module)
    # 16 blocks of 64 lines, each 16 lines behind the one before.
    assert missed_lines(tile_loads(function), 48 << 10) == 15 * 16 + 64 + 64


def test_products_of_tiles_wait_for_loads_from_the_second_level_and_are_followed_by_vector_code() -> None:
    module = module_of(TILES)
    found = kernel_cycles(module, SAPPHIRE_RAPIDS)[6]
    loads = (2 * 64 * 16 - 1088) / 2 + 1088 * 64 / 40
    # Of four vectors, each addition and multiplication, two a cycle; but one multiplication a cycle.
    assert found.predicted == loads + 16 * 4
    # Loads, of 64 vectors beside those of tiles, outlast 64 products.
    assert found.bound == (2 * 64 * 16 + 16 * 4) / 2
    assert found.loaded == 65536 + 4096
    near = replace(SAPPHIRE_RAPIDS, l2_bandwidth=1 << 20)
    assert kernel_cycles(module, near)[6].predicted == pytest.approx(64 * 16 + 16 * 4, abs=0.1)
    flat = module_of(TILES.replace('tdpbusd"(%r0, %r4, %r6) {qnn.rows = 16', 'tdpbusd"(%r0, %r4, %r6) {qnn.rows = 4'))
    assert counted(next(iter(functions(flat))), SAPPHIRE_RAPIDS)["tiles"] == 64 * 9


def test_what_other_kernels_have_displaced_is_waited_for() -> None:
    large, small = NetworkMemory(3 << 20, 96 << 10), NetworkMemory(1 << 20, 96 << 10)
    dots = KernelCycles(100.0, 200.0, constants=9000, network=large)
    # Constants at 9 bytes a cycle; of the working memory half is in the first level, the rest at 20.
    assert dots.with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 1000 + 100
    assert replace(dots, network=small).with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 450 + 100
    # Tiles that load them have waited.
    tiles = replace(dots, loaded=3000, network=small)
    assert tiles.with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 25
    assert replace(dots, network=NetworkMemory(0, 48 << 10)).with_memory(13000, SAPPHIRE_RAPIDS) == 200 + 450
    # Where the bandwidth of the third level is not known.
    assert dots.with_memory(48 << 10, ZEN_4) == (48 << 10) / 16


def test_constants_of_a_kernel_are_parts_of_those_of_the_network() -> None:
    drawn = Network(3, (1, 8, 8, 64))
    drawn.convolution(64, 1, 1)
    drawn.convolution(128, 3, 1)
    code = lower(parse(drawn.text()), resolve("amxint8"), PhaseBound.X86).module
    found = kernel_cycles(code, SAPPHIRE_RAPIDS)
    sizes = [found[number].constants for number in sorted(kernels_of_tiles(code))]
    assert np.all(np.array(sizes) >= [64 * 64, 9 * 64 * 128])
    assert len({one.network for one in found.values()}) == 1
    assert sum(sizes) <= found[0].network.constants


# How much a network computes.

NETWORK_WORKLOAD = """
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
    assert multiply_accumulates(parse_workload(NETWORK_WORKLOAD)) == 4 * 5 * (4 * 2 * 3 * 3) + 7 * 2 * 3 * 4


def test_products_of_words_are_counted() -> None:
    text = """
      func.func @main(%rows: tensor<3x5xi16>) -> tensor<3x7xi64> {
        %weight = arith.constant dense<2> : tensor<7x5xi8>
        %sums = "qnn.i16_dense"(%rows, %weight) : (tensor<3x5xi16>, tensor<7x5xi8>) -> tensor<3x7xi64>
        return %sums : tensor<3x7xi64>
      }"""
    assert multiply_accumulates(parse_workload(text)) == 3 * 7 * 5


# Networks whose inputs leave extents open: each shape is compiled when it is first seen, and kept.

X = (0.05, 128)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The sum of two quantized inputs that share an extent."""
    b = ModelBuilder()
    lhs, rhs = (b.dequantize(b.input(name, ("batch", "seq"), np.uint8), X) for name in ("a", "b"))
    path = tmp_path / "model.onnx"
    path.write_bytes(b.finish(b.quantize(b.node("Add", lhs, rhs), X)))
    return path


def arrays(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(0)
    return drawn.integers(0, 256, shape, dtype=np.uint8), drawn.integers(0, 256, shape, dtype=np.uint8)


def expected(a: np.ndarray, b: np.ndarray) -> list[list[int]]:
    return np.clip(a.astype(np.int64) + b - 128, 0, 255).tolist()


def test_calls_with_other_shapes_compile_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = qdialect.compile(model, dims={"seq": 5})
    for shape in ((1, 5), (1, 7), (3, 5), (1, 7)):
        given = arrays(*shape)
        found = executable(*given)
        assert isinstance(found, np.ndarray)
        assert found.tolist() == expected(*given)
    outputs = [np.empty((3, 5), np.uint8)]
    executable.run(arrays(3, 5), outputs)
    call = executable.bind(arrays(3, 5), outputs)
    monkeypatch.setattr("qdialect.driver.fallback.compile_tuned", None)
    call()
    assert outputs[0].tolist() == expected(*arrays(3, 5))
    # Known shapes are not compiled again; a new one would be.
    executable(*arrays(1, 7))
    with pytest.raises(TypeError):
        executable(*arrays(1, 9))


def test_a_shape_can_be_compiled_before_it_is_called(model: Path) -> None:
    executable = qdialect.compile(model, dims={"seq": 5}).for_shape({"seq": 4, "batch": 2})
    assert [port.shape for port in executable.inputs] == [(2, 4), (2, 4)]
    given = arrays(2, 4)
    found = executable(*given)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == expected(*given)
    with pytest.raises(InputError, match="extents must be open extents of inputs, but got depth"):
        qdialect.compile(model, dims={"seq": 5}).for_shape({"depth": 4})


def test_shapes_that_do_not_fit(model: Path) -> None:
    executable = qdialect.compile(model, dims={"seq": 5})
    a, b = arrays(1, 5)
    with pytest.raises(InputError, match="extent 'seq' must be one for all inputs, but got 5 and 4"):
        executable(a, b[:, :4])
    with pytest.raises(InputError, match=r"input 'a' must be uint8\[1, 5\], but got uint8\[5\]"):
        executable(a[0], b)
    with pytest.raises(InputError, match="network must be called with 2 inputs, but got 1"):
        executable(a)


def test_few_shapes_are_kept(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaped, "KEPT", 1)
    executable = qdialect.compile(model, dims={"seq": 5})
    first = executable.for_shape({"seq": 6})
    assert executable.for_shape({"seq": 6}) is first
    executable.for_shape({"seq": 7})
    assert executable.for_shape({"seq": 6}) is not first


def test_a_network_of_one_shape(tmp_path: Path) -> None:
    b = ModelBuilder()
    data = b.dequantize(b.input("x", (1, 4), np.uint8), X)
    path = tmp_path / "model.onnx"
    path.write_bytes(b.finish(b.quantize(b.node("Relu", data), X)))
    with pytest.raises(InputError, match="network has one shape"):
        qdialect.compile(path).for_shape({"seq": 3})
