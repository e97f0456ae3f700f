"""Profiles: every step once, sums that agree, the same results; and what the table and the picture say."""

from xml.etree import ElementTree

import numpy as np
import pytest
from graphs import graph, random_inputs
from quantized_layers import add, conv, fused

from qdialect import targets
from qdialect.bench import throughput
from qdialect.bench.core_model.profile import CallProfile, Profile, profile_ops
from qdialect.cli.profile_chart import chart, file_content
from qdialect.cli.run_reports import profile_table
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import InputError
from qdialect.support.interface import KernelCall

NETWORK = graph(["tensor<1x5x6x3xui8>"] * 2, lambda x, y: [fused(add(x, y)), fused(x)])
PROFILE = Profile(
    (
        CallProfile(KernelCall("padding", 0, (), 0, 100), 1e-6, 2e11),
        CallProfile(KernelCall("conv", 1, ("first",), 600_000, 4000), 6e-6, 2e11, 4.5e-6, 5.4e-6),
        CallProfile(KernelCall("conv", 1, ("a<b>&\x07c", "second"), 300_000, 4000), 3e-6, 2e11),
        CallProfile(KernelCall("nothing", 2, ()), 0.0, 2e11),
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
        "# kernel op time us of call MMAC GMAC/s of peak of bound cycles predicted bytes GB/s nodes",
        "0 0 padding 1.00 10.0 % - - - - - - 100 0.1",
        "1 1 conv 6.00 60.0 % 0.600 100.0 50.0 % 75.0 % 18000 16200 4000 0.7 first",
        "2 1 conv 3.00 30.0 % 0.300 100.0 50.0 % - - - 4000 1.3 a<b>&\\x07c, second",
        "3 2 nothing 0.00 0.0 % - - - - - - 0 -",
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
