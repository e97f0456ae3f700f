"""How the benchmark chooses and measures: without other engines, and without a word about how long anything takes."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_vector import module_of

from qdialect.bench import engines, levels, pictures, report, run, sources
from qdialect.bench.cases import Case, EngineError, Form, Source, save
from qdialect.bench.clock import Clock, common_state
from qdialect.bench.core_model.kernel_cycles import counted, kernel_cycles
from qdialect.bench.drawn import ConvolutionLayer, draw_input, layer_network, write_case
from qdialect.bench.engines.pytorch import layer_variants
from qdialect.bench.footprint import CoreShare, Footprint, measured_apart
from qdialect.bench.goals import judge
from qdialect.bench.onnx_writer import write_qdq
from qdialect.bench.process import WorkerProcess
from qdialect.bench.random_networks import Drawing
from qdialect.bench.results import Measurement, Results, Rounds, Row
from qdialect.bench.run import Campaign, Plan, Run, Selection, Settings, cores_for, select
from qdialect.bench.sources import model_sources
from qdialect.bench.tflite_writer import signed_channels_last, write_tflite
from qdialect.bench.worker import agreement, measure
from qdialect.cli import bench
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import import_tflite
from qdialect.lowering.ir.functions import functions
from qdialect.reference import interpreter
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.targets.machine import MACHINES, ZEN_4_PIPES, Kind

LAYER = ConvolutionLayer(1, 4, 6, 6, 5, (3, 3), padding=1, activation="relu")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    network = layer_network("tiny", LAYER)
    data = draw_input(network, "tiny")
    return write_case(tmp_path, ("tiny", "network", "a small layer"), network, data, np.zeros(network.output.shape))


def exact(case: Case) -> Case:
    """The case with the answer that the reference gives."""
    form = case.forms["qdq"]
    inputs = form.inputs()
    outputs = interpreter.run(import_onnx(Path(form.model)), inputs)
    data = save(Path(form.data).with_name("exact.npz"), inputs, outputs)
    return replace(case, forms={"qdq": Form(form.model, data)})


def ignore(_: object) -> None:
    """Neither progress nor results are shown."""


def test_our_own_engine_is_measured_and_compared(case: Case) -> None:
    with Campaign(Plan(["qdialect"], 1, 2, 0.01), ignore) as campaign:
        right = campaign.measure(exact(case))
        wrong = campaign.measure(case)
    (row,) = right.rows
    assert (row.engine, row.variant, row.error, row.different) == ("qdialect", "qdq", "", 0)
    assert row.calls > 0
    assert all(row.different > 0 and not row.is_exact for row in wrong.rows)


def test_a_worker_that_dies_is_named() -> None:
    with closing(WorkerProcess("nonsense", 1, cores_for(1))) as worker, pytest.raises(EngineError) as failure:
        worker.ask("version")
    assert str(failure.value) == "engine 'nonsense' ended with status 1: KeyError: 'nonsense'"


def test_a_dead_engine_does_not_stop_the_others(case: Case) -> None:
    with Campaign(Plan(["nonsense", "qdialect"], 1, 1, 0.01), ignore) as campaign:
        for _ in range(2):
            dead, *alive = campaign.measure(exact(case)).rows
            assert dead.error.startswith("engine 'nonsense' ended with status 1")
            assert [row.error for row in alive] == [""]


def test_a_run_leaves_out_what_does_not_start_or_cannot_be_read(case: Case) -> None:
    def broken(_: Path) -> Case:
        raise InputError("it is damaged")

    named = [Source("bad", "layer", broken), Source("tiny", "network", lambda _: exact(case))]
    results = Run(Selection(named, ["nonsense", "qdialect"], {}), Settings((1,), 1, 0.01), ignore, ignore).results()
    assert list(results.versions) == ["qdialect"]
    assert "nonsense" in results.absent
    assert results.absent["bad"] == "it is damaged"
    assert [m.name for m in results.measurements] == ["tiny"]
    (one,) = results.footprints
    assert one.weights == case.weight_bytes
    assert one.kernels > 0
    (share,) = results.core_shares
    assert (share.name, share.seconds > 0) == ("tiny", True)
    assert 0 <= share.of_peak <= share.of_bound < 2 or not share.of_bound


def test_a_model_that_does_not_compile_is_named(case: Case) -> None:
    Path(case.forms["qdq"].model).write_bytes(b"damaged")
    with pytest.raises(EngineError, match=r"footprint of 'tiny' ended with status 1: .*damaged"):
        measured_apart(case)


def test_unknown_names_are_refused() -> None:
    everything, absent = sources.all_sources()
    with pytest.raises(InputError, match=r"workload must be one of W1, W2, .* but got 'W9'"):
        select(["W9"], [], everything, absent)
    with pytest.raises(InputError, match=r"engine must be one of qdialect, onnxruntime, .* but got 'gcc'"):
        select([], ["gcc"], everything, absent)
    with pytest.raises(InputError, match="workload 'gone' is not here: deleted"):
        select(["gone"], [], everything, {"gone": "deleted"})


def test_an_engine_without_its_package_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def tvm_alone(name: str) -> str:
        return "tvm" if name == "tvm" else ""

    monkeypatch.setattr(run, "missing_package", tvm_alone)
    chosen = select(["W1"], [], *sources.all_sources())
    assert chosen.absent == {"tvm": "package 'tvm' is not installed"}
    assert chosen.engines == [name for name in engines.ENGINES if name != "tvm"]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_real_network_has_recorded_data_or_drawn(
    is_recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = layer_network("tiny", LAYER)
    model, recorded = tmp_path / "kws_ref_model.tflite", tmp_path / "recorded.npz"
    model.write_bytes(write_tflite(network))
    data = signed_channels_last(draw_input(network, "tiny"))
    np.savez(recorded, in_0=data, in_names=["x"], ref_0=data[:, :1], out_0=data[:, :2])

    def find(name: str) -> Path | None:
        return model if name == "kws_ref_model.tflite" else None

    def find_reference(_: str) -> Path | None:
        return recorded if is_recorded else None

    monkeypatch.setattr("qdialect.bench.models.find", find)
    monkeypatch.setattr("qdialect.bench.models.find_reference", find_reference)
    (source,) = model_sources()[0]
    case = source.prepare(tmp_path)
    form = case.forms["tflite"]
    assert case.macs == network.macs
    if is_recorded:
        np.testing.assert_array_equal(form.inputs()[0], data)
        np.testing.assert_array_equal(form.outputs()[0], data[:, :1])
    else:
        (wanted,) = interpreter.run(import_tflite(model), form.inputs())
        np.testing.assert_array_equal(form.outputs()[0], wanted)


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--only", "W9"]) == 1
    assert "but got 'W9'" in capsys.readouterr().err
    for arguments in (["--rounds", "0"], ["--seconds", "nan"], ["--threads", "1,x"]):
        with pytest.raises(SystemExit) as end:
            bench.main(arguments)
        assert end.value.code == 1
        assert f"but got '{arguments[1].rpartition(',')[2]}'" in capsys.readouterr().err


def test_calls_are_counted() -> None:
    calls: list[int] = []
    found = measure(lambda: calls.append(1), 0.001)
    assert 0 < found.calls <= len(calls)
    assert found.minimum <= found.median <= found.upper


def test_outputs_are_compared() -> None:
    right = np.arange(100000, dtype=np.int64)
    other = right.copy()
    assert agreement([right], [other]).is_exact
    other[5] += 2
    assert (agreement([right], [other]).different, agreement([right], [other]).is_exact) == (1, True)
    other[5] += 9
    assert not agreement([right], [other]).is_exact
    other[:] += 1
    assert not agreement([right], [other]).is_exact
    assert not agreement([right], [right.reshape(10, -1)]).is_exact
    infinite = np.array([np.inf, 1.0])
    assert agreement([infinite], [infinite]).is_exact


def test_a_random_network_computes_its_answer() -> None:
    drawing = Drawing(3, 224)
    value = drawing.convolution(drawing.input, 4, 7, 8, (3, 3, 3, 3), "relu")
    value = drawing.max_pool(value, 3, 2, 1)
    value = drawing.sum(drawing.convolution(value, 4, 3, 1, (1, 1, 1, 1), "none"), value)
    drawing.head(drawing.convolution(value, 4, 3, 2, (0, 0, 1, 1), "relu6", depthwise=True))
    network, image, answer = drawing.finish()
    (found,) = interpreter.run(import_onnx(write_qdq(network)), [image])
    # A sum of f32 values may round the other way in one element, and what follows sees it.
    assert np.abs(found.astype(int) - answer).max() <= 1
    assert network.macs > 0


def test_engines_are_kept_to_a_target(case: Case) -> None:
    with Campaign(Plan(["qdialect"], 1, 1, 0.01, "x86-64"), ignore) as campaign:
        (row,) = campaign.measure(exact(case)).rows
    assert (row.error, row.different) == ("", 0)
    chosen = select((), (), [], {}, "avx2")
    assert "qdialect" in chosen.engines
    assert set(chosen.engines) <= set(levels.LIMITED)
    assert chosen.absent.get("litert", "package").startswith(("it uses all that the CPU has", "package"))
    assert levels.environment("alderlake")["ONEDNN_MAX_CPU_ISA"] == "AVX2_VNNI"
    assert levels.environment("skx")["ATEN_CPU_CAPABILITY"] == "avx512"
    assert "ONEDNN_MAX_CPU_ISA" not in levels.environment("host")
    assert layer_variants(False, "host") == ["fbgemm", "onednn"]
    assert levels.environment("znver3")["FBGEMM_ENABLE_INSTRUCTIONS"] == "AVX2"
    assert levels.environment("cascadelake")["FBGEMM_ENABLE_INSTRUCTIONS"] == "AVX512_E1"
    assert layer_variants(False, "avx2") == ["fbgemm", "onednn"]
    assert layer_variants(False, "sse4.1") == ["onednn"]
    assert layer_variants(True, "sse4.1") == ["onednn", "onednn_nhwc", "fused_nhwc"]
    assert levels.reason_to_leave_out("torch", "generic") == "it cannot be kept to 'generic'"
    with pytest.raises(CompileError, match="target must be one of"):
        levels.environment("avx3")


# qdialect/bench/clock.py: a clock that flips between states of 100 and 50, which the test brings.


@pytest.mark.parametrize(
    ("before", "rates", "wanted", "after", "repeated"),
    [
        (0, (100, 102), 101, 102, 0),
        # The clock falls, is back, and has settled; it flips all the time; it falls for good.
        (100, (100, 50, 50, 100, 98), 99, 99, 3),
        (100, (100, 50, 100, 50, 100), 0, 100, 3),
        (100, (100, 50, 50, 50, 51), 50.5, 50.5, 3),
        (0, (0, 0), 0, 0, 0),
    ],
)
def test_a_sample_is_of_one_state(
    before: float, rates: tuple[float, ...], wanted: float, after: float, repeated: int
) -> None:
    remaining, taken = list(rates), list[int]()
    clock = Clock(lambda: remaining.pop(0), before)
    assert clock.sample(lambda: taken.append(1)).rate == wanted
    assert (clock.state, clock.repeated, len(taken), remaining) == (after, repeated, repeated + 1, [])


def test_engines_are_compared_in_the_state_of_most_samples() -> None:
    def rounds(*entries: tuple[float, float]) -> Rounds:
        made = [{"rate": rate, "median": s, "minimum": s, "upper": s, "calls": 1} for rate, s in entries]
        return Rounds("torch", "", {"different": 0, "elements": 1, "largest": 0.0, "is_exact": True}, list(made))

    both, slow = rounds((100, 1.0), (50, 2.0), (101, 1.1)), rounds((51, 4.0), (0, 9.0))
    state = common_state([one["rate"] for entry in (both, slow) for one in entry.rounds])
    assert (state, common_state([0, 0, 50]), common_state([])) == (100.5, 50, 0)
    assert (both.row(state).seconds, both.row(50).seconds) == (1.05, 2.0)
    assert slow.row(state).error == "the clock was in another state than for the other engines"


# The report of a run: goals, tables and pictures, from recorded figures.

PEAK = 200e9
MACS = 1_000_000


def row(engine: str, share: float, variant: str = "qdq", **fields: Any) -> Row:
    made = Row(engine, variant, seconds=MACS / PEAK / share, minimum=1e-6, upper=1e-5, calls=10)
    return replace(made, **fields)


def measurement(name: str, *rows: Row, kind: str = "layer", threads: int = 1) -> Measurement:
    return Measurement(name, kind, f"what {name} is", MACS, 50_000, threads, PEAK * threads, rows)


INEXACT: dict[str, Any] = {"is_exact": False, "different": 0.25, "largest": 2.0}
RESULTS = Results(
    machine={"cpu": "a fast one"},
    versions={"qdialect": "1.0", "onnxruntime": "2.0"},
    absent={"litert": "package 'ai_edge_litert' is not installed"},
    settings={"rounds": "3"},
    measurements=(
        measurement("W1", row("qdialect", 0.95), row("qdialect", 0.7, "other"), row("onnxruntime", 0.8)),
        measurement("W2", row("qdialect", 0.9), row("onnxruntime", 0.5), row("torch", 0.6, **INEXACT)),
        measurement("net", row("qdialect", 0.5), row("onnxruntime", 0.45), kind="model"),
        measurement("W3", row("qdialect", 0.5), Row("tvm", "relax", error="it broke")),
    ),
    limits={"L1": 200e9, "DRAM": 20e9},
    footprints=(Footprint("mobilenet_v1_025", 2.5, 300 << 20, 7, 30, 1100, 1000, 1300, 1000, 1200, 1000),),
    core_shares=(CoreShare("net", 2.5e-4, 0.6, 0.875, 0.08, 0.041),),
)


def verdicts(results: Results) -> dict[tuple[str, str], bool]:
    return {(v.what, v.figure): v.is_met for v in judge(results)}


def test_goals_are_judged() -> None:
    assert verdicts(RESULTS) == {
        ("W1", "95.0 %"): True,
        ("W2", "90.0 %"): False,
        ("W3", "50.0 %"): False,
        ("net", "1.11 times"): False,
        ("compiling mobilenet_v1_025", "2.50 s, 300 MiB"): True,
        ("memory of mobilenet_v1_025", "1.10 times"): True,
        ("memory of mobilenet_v1_025", "1.20 times"): False,
    }


def test_a_transformer_is_compared_with_what_computes_the_same() -> None:
    rows = row("qdialect", 0.6), row("onnxruntime", 0.4), row("ggml", 0.9, **INEXACT)
    results = replace(RESULTS, measurements=(measurement("T5", *rows, kind="transformer"),), footprints=())
    (verdict,) = judge(results)
    assert (verdict.goal, verdict.figure, verdict.is_met) == (
        "1.25 times as fast as every engine that computes the same",
        "1.50 times",
        True,
    )
    assert "(onnxruntime)" in verdict.best_peer
    assert "(ggml, inexact)" in verdict.best_peer


@pytest.mark.parametrize(
    ("ratio", "share", "figure", "is_met"),
    [
        (1.9, 0.5, "1.90 times, 50.0 %", True),
        (1.4, 0.8, "1.40 times, 80.0 %", False),
        (1.4, 0.95, "1.40 times, 95.0 %", True),
    ],
)
def test_two_threads_are_twice_as_fast_or_read_what_memory_gives(
    ratio: float, share: float, figure: str, is_met: bool
) -> None:
    one = Row("qdialect", "qdq", seconds=4e-3, minimum=4e-3, upper=4e-3, calls=10)
    two = replace(one, seconds=one.seconds / ratio)
    rate = (64 << 20) / two.seconds / share
    measured = [replace(measurement("T4", kind="transformer"), rows=(one,), bytes_moved=64 << 20)]
    measured.append(replace(measured[0], rows=(two,), threads=2))
    machine, limits = {"L3 cache": "32768K"}, {"DRAM, 2 cores together": rate}
    results = replace(RESULTS, measurements=tuple(measured), machine=machine, limits=limits, footprints=())
    assert verdicts(results) == {("T4", figure): is_met}
    held = replace(results, machine={"L3 cache": "98304K"})
    assert verdicts(held) == {("T4", figure.partition(",")[0]): ratio >= 1.85}


def test_results_survive_their_json_form() -> None:
    assert Results.from_json(RESULTS.to_json()) == RESULTS


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 0}', '{"version": 1, "measurements": 3}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="results must"):
        Results.from_json(text)


def test_the_page_has_every_figure() -> None:
    page = report.markdown(RESULTS)
    assert "## Goals: 3 of 7 met" in page
    assert "| W1 | at least 94.0 % of bare vpdpbusd | 95.0 % | 80.0 % (onnxruntime) | met |" in page
    assert "| **W2** what W2 is | 5.556 us, 90.0 % | 10 us, 50.0 % | 8.333 us, 60.0 % \\* | 1.50 |" in page
    assert "| W2 | 25 % | 2 |" not in page
    assert "| torch | qdq | 8.333 us | 1 us | 10 us | 60.0 % | 25 % | 2 |" in page
    assert "- tvm relax: it broke" in page
    assert "- litert: package 'ai_edge_litert' is not installed" in page
    assert "| reads from L1 | 200.0 GB/s |" in page


@pytest.mark.parametrize("picture", [pictures.shares, pictures.roofline])
def test_pictures_are_well_formed(picture: Callable[[Results], str]) -> None:
    for results in (RESULTS, replace(RESULTS, measurements=(), limits={})):
        root = ElementTree.fromstring(picture(results))
        assert root.tag.endswith("svg")
        texts = {text.strip() for text in root.itertext()}
        assert {m.name for m in results.measurements} <= texts
        assert {"qdialect", "onnxruntime"} <= texts or not results.measurements


def test_the_share_of_the_core_is_told() -> None:
    lines = report.markdown(RESULTS).splitlines()
    assert "## Share of the core" in lines
    assert "| net | 250 us | 60.0 % | 87.5 % | 8.0 % | 4.1 % |" in lines
    assert any("mean of the shares of the bound is 88 %" in line for line in lines)
    assert Results.from_json(RESULTS.to_json()) == RESULTS
    older = json.loads(RESULTS.to_json())
    del older["core_shares"], older["loop"]
    assert Results.from_json(json.dumps(older)).core_shares == (), "results of before have none"
    assert Results.from_json(json.dumps(older)).loop == "vpdpbusd"


# The model of a core, which profiles compare kernels with.

ZEN_4 = MACHINES["znver4"]
M, A, P, I, S = Kind.MULTIPLY, Kind.ADD, Kind.PERMUTE, Kind.INTERLEAVE, Kind.SIMPLE  # noqa: E741


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        # Of 512 bits: one product a cycle, and one sum; with a permutation, three pipes do four halves.
        ({M: 2}, 1),
        ({S: 2}, 0.5),
        ({M: 2, A: 2}, 1),
        ({M: 2, P: 2}, 4 / 3),
        ({A: 2, P: 2}, 4 / 3),
        ({M: 2, I: 2}, 1),
        ({P: 2, I: 2}, 4 / 3),
        ({M: 2, A: 2, P: 2, S: 2}, 2),
        ({}, 0),
    ],
)
def test_kinds_compete_for_the_pipes_that_take_them(counts: Mapping[str, float], wanted: float) -> None:
    assert ZEN_4_PIPES.cycles(counts) == pytest.approx(wanted)


def _counted(body: str, arguments: str = "%x: memref<64xf32>, %y: memref<64xf32>") -> dict[str, float]:
    module = module_of(f"func.func @kernel_1_node({arguments}) {{\n%c0 = arith.constant 0 : index\n{body}\nreturn\n}}")
    (function,) = functions(module)
    return counted(function, ZEN_4)


def test_a_comparison_and_a_selection_of_the_same_are_one_minimum() -> None:
    found = _counted("""
      %a = vector.load %x[%c0] : memref<64xf32>, vector<16xf32>
      %b = vector.load %y[%c0] : memref<64xf32>, vector<16xf32>
      %m = arith.cmpf olt, %a, %b : vector<16xf32>
      %s = arith.select %m, %a, %b : vector<16xi1>, vector<16xf32>
      %q = arith.divf %s, %b : vector<16xf32>
      vector.store %q, %y[%c0] : memref<64xf32>, vector<16xf32>
    """)
    assert found == {"loads": 2, A: 2, "divisions": 6, "stores": 2}


def test_bytes_are_widened_and_interleaved_by_instructions() -> None:
    low = ", ".join(f"{i // 16 * 16 + i % 16 // 2 + i % 2 * 64}" for i in range(64))
    other = ", ".join(str(63 - i) for i in range(64))
    found = _counted(
        f"""
      %a = vector.load %x[%c0] : memref<64xi8>, vector<64xi8>
      %i = vector.shuffle %a, %a [{low}] : vector<64xi8>, vector<64xi8>
      %p = vector.shuffle %i, %a [{other}] : vector<64xi8>, vector<64xi8>
      %w = arith.extui %p : vector<64xi8> to vector<64xi16>
      %n = arith.trunci %w : vector<64xi16> to vector<64xi8>
      vector.store %n, %y[%c0] : memref<64xi8>, vector<64xi8>
    """,
        "%x: memref<64xi8>, %y: memref<64xi8>",
    )
    assert found == {"loads": 1, I: 2, P: 2 + 4 + 4, "stores": 2}


def test_of_two_branches_the_second_counts() -> None:
    found = _counted(
        """
      %a = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
      %r = scf.if %rare -> (vector<16xf32>) {
        %d = arith.divf %a, %a : vector<16xf32>
        scf.yield %d : vector<16xf32>
      } else {
        %p = arith.mulf %a, %a : vector<16xf32>
        scf.yield %p : vector<16xf32>
      }
      vector.store %r, %x[%c0] : memref<16xf32>, vector<16xf32>
    """,
        "%x: memref<16xf32>, %rare: i1",
    )
    assert found == {"loads": 1, M: 2, "stores": 2}


LOOP = """
func.func @kernel_1_node(%x: memref<512xf32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c512 = arith.constant 512 : index
  %z = arith.constant dense<0.0> : vector<16xf32>
  %s = scf.for %i = %c0 to %c512 step %c16 iter_args(%sum = %z) -> (vector<16xf32>) {
    %a = vector.load %x[%i] : memref<512xf32>, vector<16xf32>
    %b = arith.mulf %a, %a : vector<16xf32>
    %n = arith.addf %sum, %b : vector<16xf32>
    scf.yield %n : vector<16xf32>
  }
  vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>
  return
}
"""


def test_a_loop_waits_for_the_chain_of_what_it_hands_on() -> None:
    found = kernel_cycles(module_of(LOOP), ZEN_4)[1]
    # A product and a sum start in each cycle, but a sum waits three cycles for the one before it.
    assert found.bound == 32
    assert found.predicted == 32 * 3 + 2
