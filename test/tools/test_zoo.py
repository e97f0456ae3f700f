"""tools/zoo: models are made and measured once, failures are results, and the command writes its report."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bounds import HANG
from onnx_graphs import CONTRIB, ModelBuilder, drawn

import qdialect
from qdialect.bench import frameworks, truth, units
from qdialect.bench.child import Ended, Limits, run
from qdialect.bench.frameworks import Runner
from qdialect.bench.truth.tracing import Exact
from qdialect.bench.units import Measured
from qdialect.bench.units.agreement import Agreement, Cause, Difference, Distance, Ties, causes
from tools.zoo.__main__ import forget, main
from tools.zoo.campaign import Campaign
from tools.zoo.flows.few_bits import quantize_wrapped
from tools.zoo.flows.registry import FLOWS, TORCHAO
from tools.zoo.measuring import measured
from tools.zoo.networks.inputs import features, images, tokens
from tools.zoo.networks.keras_networks import KERAS_NETWORKS
from tools.zoo.networks.legacy_keras_networks import LEGACY_KERAS_NETWORKS
from tools.zoo.networks.network import Built, Draw
from tools.zoo.networks.torch_networks import TORCH_NETWORKS
from tools.zoo.report import report
from tools.zoo.results import Result, Status, from_fields, read
from tools.zoo.speed import lead, times
from tools.zoo.table import Entry, chosen, entries

ENTRY = Entry("mlp", "qdq_u8s8")
LIMITS = Limits(1.0, 1.0)
MEASURED = Result(
    "mlp",
    "qdq_u8s8",
    "fallback",
    ("node 3: why",),
    0.5,
    1.25,
    Difference(1, 10, 0.5),
    Distance(0.1, 0.2),
    notes=("truth: absent",),
)
TIMED = replace(MEASURED, times={"qdialect": 0.001})


class Children:
    """Stands for child processes: making writes a model, measuring and timing a result, unless told to fail."""

    def __init__(self, folder: Path, **failures: str) -> None:
        self.started: list[list[str]] = []
        self._folder = folder / "mlp"
        self._failures = failures

    def __call__(self, module: str, arguments: list[str], limits: Limits) -> Ended:
        assert limits == LIMITS
        kind = module.removeprefix("tools.zoo.").removesuffix("_model")
        self.started.append([kind, *arguments[1:]])
        if kind in self._failures:
            return Ended("", self._failures[kind])
        self._folder.mkdir(exist_ok=True)
        if kind == "make":
            (self._folder / "mlp.qdq_u8s8.onnx").write_bytes(b"")
        else:
            (MEASURED if kind == "measure" else TIMED).write(self._folder / "mlp.qdq_u8s8.json")
        return Ended("")


def _campaign(folder: Path, children: Children, *, is_small: bool = False) -> Campaign:
    return Campaign(folder, LIMITS, is_small, children)


def test_a_model_is_made_and_then_measured(tmp_path: Path) -> None:
    children = Children(tmp_path)
    assert _campaign(tmp_path, children).result(ENTRY) == MEASURED
    assert children.started == [["make", "mlp", "qdq_u8s8"], ["measure", "mlp", "qdq_u8s8"]]


def test_times_are_added_to_a_result(tmp_path: Path) -> None:
    children = Children(tmp_path)
    campaign = _campaign(tmp_path, children)
    assert campaign.result(ENTRY).times == {}
    assert campaign.timed(ENTRY) == TIMED
    assert children.started[2:] == [["time", "mlp", "qdq_u8s8"]]


def test_times_of_before_go_where_the_model_cannot_be_timed_any_more(tmp_path: Path) -> None:
    campaign = _campaign(tmp_path, Children(tmp_path, time="ended by SIGSEGV"))
    campaign.result(ENTRY)
    TIMED.write(tmp_path / "mlp" / "mlp.qdq_u8s8.json")
    found = campaign.timed(ENTRY)
    assert found == replace(MEASURED, untimed={"qdialect": "qdialect: ended by SIGSEGV"})
    assert read(tmp_path / "mlp" / "mlp.qdq_u8s8.json") == found


ABORTED = Ended("", "ended by SIGABRT")


@pytest.mark.parametrize(
    ("packaging", "timing", "untimed"),
    [
        ([Ended("")], "", ""),
        ([ABORTED, Ended("")], "", ""),
        ([ABORTED, Ended("", "ended by SIGSEGV")], "", "ended by SIGSEGV"),
        ([Ended("", "took longer than 1 s", is_late=True)], "", "took longer than 1 s"),
        ([Ended("")], "ended by SIGILL", "ended by SIGILL"),
    ],
)
def test_what_inductor_fails_at_costs_the_others_nothing(
    tmp_path: Path, packaging: list[Ended], timing: str, untimed: str
) -> None:
    model = tmp_path / "mlp" / "mlp.pt2e_x86.pt2"
    package, result = model.with_name("mlp.pt2e_x86.inductor.pt2"), model.with_suffix(".json")
    model.parent.mkdir()
    replace(MEASURED, times={"qdialect": 7.0}).write(result)
    compiled = list(packaging)

    def run(module: str, arguments: list[str], _: Limits) -> Ended:
        if module == "qdialect.bench.engines.inductor":
            assert arguments == [str(model), str(package), *["fixed"] * (len(compiled) < len(packaging))]
            package.write_bytes(b"")
            ended = compiled.pop(0)
            if ended.failure:
                package.unlink()
            return ended
        assert (module, compiled) == ("tools.zoo.time_model", [])
        if package.exists() and timing:
            return Ended("", timing)
        TIMED.write(result)
        return Ended("")

    found = Campaign(tmp_path, LIMITS, False, run).timed(Entry("mlp", "pt2e_x86"))
    assert found == replace(TIMED, untimed={"inductor": f"inductor: {untimed}"} if untimed else {}) == read(result)
    assert not package.exists()


def test_a_forgotten_result_is_measured_again_with_the_same_model(tmp_path: Path) -> None:
    _campaign(tmp_path, Children(tmp_path)).result(ENTRY)
    forget(tmp_path, [ENTRY])
    children = Children(tmp_path)
    _campaign(tmp_path, children).result(ENTRY)
    assert [one[0] for one in children.started] == ["measure"]


@pytest.mark.parametrize(("step", "status"), [("make", "not made"), ("measure", "crashed")])
def test_the_failure_of_a_child_is_a_result_that_is_kept(tmp_path: Path, step: str, status: str) -> None:
    found = _campaign(tmp_path, Children(tmp_path, **{step: "ended by SIGSEGV"})).result(ENTRY)
    assert (found.status, found.reasons) == (status, ("ended by SIGSEGV",))
    assert read(tmp_path / "mlp" / "mlp.qdq_u8s8.json") == found


@pytest.mark.parametrize(("status", "wanted"), [("native", 0), ("fallback", 0), ("refused", 1), ("crashed", 1)])
def test_the_exit_status_tells_whether_every_model_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: Status, wanted: int
) -> None:
    network = tmp_path / "zoo" / "full" / "mlp"
    network.mkdir(parents=True)
    Result("mlp", "qdq_u8s8", status).write(network / "mlp.qdq_u8s8.json")
    chosen = ["--networks", "mlp", "--flows", "qdq_u8s8", "--no-benchmark"]
    assert main([*chosen, "--folder", str(tmp_path / "zoo"), "--output-dir", str(tmp_path)]) == wanted
    assert capsys.readouterr().out == f"mlp qdq_u8s8: {status}\n"


@pytest.mark.parametrize(("times", "started"), [({}, ["time"]), ({"qdialect": 0.5}, [])])
def test_the_command_times_what_has_no_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: dict[str, float], started: list[str]
) -> None:
    assert _command(tmp_path, monkeypatch, replace(MEASURED, times=times), []) == started


def _command(folder: Path, monkeypatch: pytest.MonkeyPatch, result: Result, options: list[str]) -> list[str]:
    """The children that the command starts, where there is `result`."""
    network = folder / "full" / "mlp"
    network.mkdir(parents=True)
    result.write(network / "mlp.qdq_u8s8.json")
    children = Children(folder / "full")

    def run(module: str, arguments: list[str], limits: Limits) -> Ended:
        del limits
        return children(module, arguments, LIMITS)

    monkeypatch.setattr("tools.zoo.__main__.Campaign", partial(Campaign, run=run))
    chosen = ["--networks", "mlp", "--flows", "qdq_u8s8", "--folder", str(folder), "--output-dir", str(folder)]
    assert main([*chosen, *options]) == 0
    return [one[0] for one in children.started]


def test_times_alone_without_a_benchmark_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--times", "--no-benchmark"])
    assert "argument --times: not allowed with argument --no-benchmark" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--networks", "--flows"])
def test_an_unknown_name_is_told_with_the_known_ones(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        main([option, "mlp,qdq_u8s8,other"])
    told = capsys.readouterr().err
    assert "but got" in told
    assert ("mobilenet_v2" if option == "--networks" else "pt2e_x86") in told


# qdialect/bench/units/causes.py: whose result of a unit is how far from the truth.


def _values(*entries: int) -> dict[str, np.ndarray]:
    return {"a": np.array(entries, np.uint8), "b": np.array([7], np.uint8)}


def test_elements_that_differ_are_held_against_the_truth() -> None:
    exact = Exact(np.array([3, 4, 9, 0], np.uint8), np.array([3.25, 4.4375, 9.0, -5.0]))
    same = Exact(np.array([7], np.uint8), np.array([7.0]))
    truth = {"a": exact, "b": same}
    # The first element is further away, but both have it.
    found = causes([_values(5, 4, 9, 0)] * 2, [_values(5, 5, 9, 1)] * 2, [truth] * 2)
    assert found == (Cause("a", 4, 0.0, 5.5),)
    (found,) = causes([_values(3, 5, 9, 0)], [_values(3, 4, 8, 0)], [truth])
    assert found == Cause("a", 2, 0.0625, 0.5)


CASES = [
    (Cause("q", 3, 1e-6, 0.0), "ties, of which the truth is at most 1e-06 of a step away"),
    (Cause("q", 3, 1e-6, 0.5), "the framework's arithmetic, up to 0.5 of a step from the truth; ours is at most 1e-06"),
    (Cause("q", 3, 0.25, 0.0), "our arithmetic, up to 0.2 of a step from the truth; the framework's is at most 0 of a"),
    (
        Cause("q", 3, 0.5, 2.0),
        "both are away from the truth: ours up to 0.5 of a step, the framework's up to 2 of a step",
    ),
]


@pytest.mark.parametrize(("cause", "text"), CASES)
def test_the_report_says_whose_arithmetic_it_is(cause: Cause, text: str) -> None:
    result = Result("gpt2", "qdq_u8s8", "native", causes=(cause,))
    assert from_fields(json.loads(json.dumps(asdict(result)))) == result
    assert f"- unit that differs: q (3): {text}" in report([result], {}, "small")


# qdialect/bench/child.py: a child's failure is told, and its limits hold.

ONE_CHILD = Limits(HANG, 4.0)


def _python(code: str, limits: Limits = ONE_CHILD) -> tuple[str, str]:
    """Output and failure of a child that runs `code` once."""
    ended = run("timeit", ["-n", "1", "-r", "1", code], limits)
    return ended.output, ended.failure


def test_the_failure_of_a_child_is_the_last_line_of_its_traceback() -> None:
    assert _python("raise ValueError('why')")[1] == "ended with status 1: ValueError: why"


def test_a_child_that_takes_too_long_ends_with_all_that_it_started() -> None:
    start = time.monotonic()
    # The grandchild keeps the pipe open, so that a kill of the child alone would wait for it.
    code = "import subprocess; subprocess.run(['sleep', '3600'])"
    assert _python(code, Limits(1.0, 4.0))[1] == "took longer than 1 s"
    assert time.monotonic() - start < HANG


def test_a_child_that_takes_too_much_memory_fails() -> None:
    limits = Limits(HANG, 1.0)
    assert _python("bytearray(2**31)", limits)[1] == "ended with status 1: MemoryError"


# tools/zoo/measuring.py: what is found out about a model, with frameworks that the test brings.

START = Result("dense", "qdq_u8s8", "crashed")
SAMPLES = [(np.random.default_rng(seed).standard_normal((2, 16)).astype(np.float32),) for seed in (0, 1)]


def _dense(path: Path, kind: str = "Relu") -> Path:
    builder = ModelBuilder()
    data = builder.dequantize(builder.quantize(builder.input("x", (2, 16)), (0.02, 128)), (0.02, 128))
    product = builder.node("MatMul", data, builder.weight(drawn((16, 8), np.int8), 0.01))
    result = builder.dequantize(builder.quantize(builder.node(kind, product), (0.1, 0)), (0.1, 0))
    path.write_bytes(builder.finish(result, dtype=np.float32))
    return path


def _frameworks(monkeypatch: pytest.MonkeyPatch, runner: Runner | Exception) -> None:
    """Every framework runs models like `runner`, or raises it."""

    def load(*_: Any, **__: Any) -> Runner:
        if isinstance(runner, Exception):
            raise runner
        return runner

    monkeypatch.setattr(frameworks, "load", load)
    monkeypatch.setattr(frameworks, "load_plain", load)

    def measured_units(*_: object) -> Measured:
        return Measured(floating=Agreement(1, 2, 3, 4), ours=Ties(1, 2, 3, 0.5))

    monkeypatch.setattr(units, "measured_units", measured_units)


def test_a_compiled_model_is_compared_and_is_at_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _frameworks(monkeypatch, lambda inputs: [np.zeros((2, 8), np.float32)])
    found = measured(START, _dense(tmp_path / "dense.onnx"), SAMPLES)
    assert (found.status, found.native_share, found.reasons, found.notes) == ("native", 1.0, (), ())
    assert found.compile_seconds > 0
    assert found.difference
    assert found.difference.elements == 32
    assert found.difference.different > 0
    assert found.ours
    assert found.framework
    assert found.ours.maximum < 1e-6 < found.framework.mean
    assert found.plain == found.framework
    assert (found.integer_units, found.float_units) == (None, Agreement(1, 2, 3, 4))
    assert (found.our_units, found.framework_units, found.flipped) == (Ties(1, 2, 3, 0.5), None, None)
    assert found.times == {}


def _wrong_bias(path: Path) -> Path:
    """A QGemm whose bias is ui8, where the operator wants i32."""
    b = ModelBuilder()
    weight = b.constant(drawn((16, 8), np.int8))
    sides = (b.input("x", (2, 16), np.uint8), *b.parameters((0.02, 128), np.uint8))
    other = (weight, *b.parameters((0.01, 0), np.int8), b.constant(drawn((8,), np.uint8)))
    path.write_bytes(b.finish(b.node(f"{CONTRIB}.QGemm", *sides, *other, *b.parameters((0.1, 0), np.uint8))))
    return path


def test_a_model_that_its_framework_refuses_too_was_not_made(tmp_path: Path) -> None:
    found = measured(START, _wrong_bias(tmp_path / "qgemm.onnx"), SAMPLES)
    assert found.status == "not made"
    assert found.reasons[0].startswith("onnx_runtime: InvalidGraph: ")
    assert "QGemm" in found.reasons[0]
    assert str(tmp_path) not in found.reasons[0]
    assert found.reasons[1].startswith("error: 'qgemm.onnx' has 1 unsupported operation")


# tools/zoo: inputs are the same whenever they are drawn, and files keep them.

DRAWS: dict[str, tuple[Draw, list[tuple[int, ...]]]] = {
    "images": (images(20), [(2, 3, 20, 20)]),
    "channels_last": (images(20, channels_last=True), [(2, 20, 20, 3)]),
    "features": (features(5, 7), [(2, 5, 7)]),
    "tokens": (tokens(50, 12, masked=True), [(2, 12), (2, 12)]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_always_gives_the_same_inputs_and_another_seed_others(name: str) -> None:
    draw, shapes = DRAWS[name]
    one, again, other = draw(2, 1), draw(2, 1), draw(2, 2)
    assert [array.shape for array in one] == shapes
    assert all(map(np.array_equal, one, again))
    assert not np.array_equal(one[0], other[0])


# tools/zoo/table.py: the table names networks and flows that exist, and leaves none out.

NETWORKS = {"torch": TORCH_NETWORKS, "keras": {**KERAS_NETWORKS, **LEGACY_KERAS_NETWORKS}}


def test_every_entry_can_be_made() -> None:
    for entry in entries():
        assert entry.network in NETWORKS[FLOWS[entry.flow].framework], entry


@pytest.mark.parametrize("flow", TORCHAO)
def test_wrapped_weights_are_compiled(flow: str, tmp_path: Path) -> None:
    layer, target = torch.nn.Linear(64, 32), tmp_path / "layer.pt2"
    quantize_wrapped(flow, Built(layer.eval(), features(64)), target)
    executable, (drawn,) = qdialect.compile(target), features(64)(1, 7)
    # torchao's scale puts the largest number of a row at a tie if it is negative.
    data = (drawn * np.sign(drawn.flat[np.abs(drawn).argmax()]),)
    (wanted,) = frameworks.load("pytorch", str(target))(data)
    np.testing.assert_allclose(executable(*data), wanted, rtol=1e-6, atol=1e-6)
    (exact,) = truth.load(str(target), ".pt2")(data)
    np.testing.assert_allclose(wanted, exact, rtol=1e-5, atol=1e-5)
    assert all(region.is_compiled for region in executable.regions)


def test_networks_and_flows_are_chosen_by_name() -> None:
    assert [entry.flow for entry in chosen(["mlp"], ["dynamic_s8", "qdq_u8s8"])] == ["qdq_u8s8", "dynamic_s8"]
    assert {entry.network for entry in chosen(["mlp", "lstm"], [])} == {"mlp", "lstm"}
    assert chosen([], []) == entries()


# tools/zoo/speed.py: how far the other engines are behind.


def _timed(network: str, **seconds: float) -> Result:
    return Result(network, "qdq_u8s8", "native", times=seconds)


def test_the_factor_is_to_the_fastest_other_engine() -> None:
    found = lead(_timed("mlp", qdialect=0.5, onnx_runtime=2.0, open_vino=1.5))
    assert found
    assert (found.engine, found.factor) == ("open_vino", 3.0)


def test_each_flow_is_summed_up_and_the_models_behind_are_named() -> None:
    results = [
        _timed("mlp", qdialect=1.0, onnx_runtime=2.0),
        _timed("bert", qdialect=1.0, onnx_runtime=1.2, open_vino=3.0),
        _timed("gpt2", qdialect=1.0, onnx_runtime=1.25),
        replace(_timed("mlp", qdialect=2.0, inductor=1.0), flow="pt2e_x86"),
        _timed("lstm", qdialect=1.0),
    ]
    text = "\n".join(times(results))
    assert "| flow | timed | median factor | smallest factor | at least 1.25 | at least 1 |" in text
    assert "| qdq_u8s8 | 3 | 1.25 | 1.20 | 2 | 3 |\n| pt2e_x86 | 1 | 0.50 | 0.50 | 0 | 0 |\n| all | 4 |" in text
    assert text.endswith("| mlp | pt2e_x86 | 0.50 | inductor |\n| bert | qdq_u8s8 | 1.20 | onnx\\_runtime |\n")
