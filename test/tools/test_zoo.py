"""tools/zoo: models are made and measured once, failures are results, and the report says what numbers mean."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bounds import HANG
from onnx_graphs import CONTRIB, ModelBuilder, drawn

import qdialect
from qdialect.bench import frameworks, truth
from qdialect.bench.frameworks import Runner
from qdialect.bench.process import Ended, Limits, run
from qdialect.bench.truth import Exact
from tools.zoo import units
from tools.zoo.agreement import Agreement, Cause, Difference, Distance, Ties, causes, distance
from tools.zoo.campaign import Campaign
from tools.zoo.flows.few_bits import quantize_wrapped
from tools.zoo.flows.registry import FLOWS, TORCHAO, TORCHAO_QAT
from tools.zoo.measuring import measured
from tools.zoo.networks.inputs import features
from tools.zoo.networks.keras_networks import KERAS_NETWORKS
from tools.zoo.networks.legacy_keras_networks import LEGACY_KERAS_NETWORKS
from tools.zoo.networks.network import Built
from tools.zoo.networks.torch_networks import TORCH_NETWORKS
from tools.zoo.report import report
from tools.zoo.results import Result, read
from tools.zoo.table import Entry, entries
from tools.zoo.units import Measured
from tools.zoo.verdict import is_further, verdict

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
    """Stands for child processes: making writes a model, measuring and timing a result, unless told to fail.

    Where `culprit` is left out, none fails.
    """

    def __init__(self, folder: Path, culprit: str = "", **failures: str) -> None:
        self.started: list[list[str]] = []
        self._culprit = culprit
        self._folder = folder / "mlp"
        self._failures = failures

    def __call__(self, module: str, arguments: list[str], limits: Limits) -> Ended:
        assert limits == LIMITS
        kind = module.removeprefix("tools.zoo.").removesuffix("_model")
        self.started.append([kind, *arguments[1:]])
        if kind in self._failures and self._culprit not in arguments:
            return Ended("", self._failures[kind])
        self._folder.mkdir(exist_ok=True)
        if kind == "make":
            (self._folder / "mlp.qdq_u8s8.onnx").write_bytes(b"")
        else:
            (MEASURED if kind == "measure" else TIMED).write(self._folder / "mlp.qdq_u8s8.json")
        return Ended("")


def _campaign(folder: Path, children: Children, *, is_small: bool = False) -> Campaign:
    return Campaign(folder, LIMITS, is_small, children)


def test_a_model_is_made_measured_and_timed(tmp_path: Path) -> None:
    children = Children(tmp_path)
    campaign = _campaign(tmp_path, children)
    assert campaign.result(ENTRY) == MEASURED
    assert campaign.timed(ENTRY) == TIMED
    assert children.started == [[step, "mlp", "qdq_u8s8"] for step in ("make", "measure", "time")]


@pytest.mark.parametrize(("step", "status"), [("make", "not made"), ("measure", "crashed")])
def test_the_failure_of_a_child_is_a_result_that_is_kept(tmp_path: Path, step: str, status: str) -> None:
    found = _campaign(tmp_path, Children(tmp_path, **{step: "ended by SIGSEGV"})).result(ENTRY)
    assert (found.status, found.reasons) == (status, ("ended by SIGSEGV",))
    assert read(tmp_path / "mlp" / "mlp.qdq_u8s8.json") == found


@pytest.mark.parametrize(("culprit", "blamed"), [("open_vino", "open_vino"), ("", "qdialect")])
def test_an_engine_that_ends_the_process_costs_no_other_one_its_time(tmp_path: Path, culprit: str, blamed: str) -> None:
    campaign = _campaign(tmp_path, Children(tmp_path, culprit, time="ended by SIGSEGV"))
    campaign.result(ENTRY)
    found = campaign.timed(ENTRY)
    assert found.untimed == {blamed: f"{blamed}: ended by SIGSEGV"}
    assert found.times == (TIMED.times if culprit else {})


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


# qdialect/bench/process.py: a child's failure is told, and its limits hold.

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


# tools/zoo/table.py: the table names networks and flows that exist, and leaves none out.

NETWORKS = {"torch": TORCH_NETWORKS, "keras": {**KERAS_NETWORKS, **LEGACY_KERAS_NETWORKS}}


def test_every_entry_can_be_made() -> None:
    for entry in entries():
        assert entry.network in NETWORKS[FLOWS[entry.flow].framework], entry


@pytest.mark.parametrize("flow", [*TORCHAO, *TORCHAO_QAT])
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


# tools/zoo/report.py and distance.py: what the numbers of the report mean.

NEAR = Result(
    "bert", "qdq_u8s8", "native", (), 1.0, 2.5, Difference(3, 20, 0.25), Distance(0.1, 0.2), Distance(0.1, 0.3)
)


def test_a_distance_is_a_share_of_the_range_of_each_output() -> None:
    truth = [[np.array([0.0, 10.0]), np.array([0.0, 1.0])]]
    found = [[np.array([0.0, 9.0]), np.array([0.5, 1.0])]]
    assert distance(found, truth) == Distance((0.1 + 0.5) / 4, 0.5)


def test_a_distance_that_ties_explain_is_named_so() -> None:
    further = replace(NEAR, ours=Distance(0.2, 0.2))
    assert is_further(further)
    ties = replace(further, flipped=Ties(1, 2, 50, 2.61e-6))
    assert is_further(ties)
    assert verdict(ties) == "amplified ties: 2 elements in 1 unit, at most 3e-06 of a step from a tie"
    assert "- amplified ties: 1\n" in report([ties], {}, "small")
    assert verdict(replace(NEAR, flipped=ties.flipped)) == "as near to the truth"
