"""tools/zoo/measuring.py: what is found out about a model, with frameworks that the test brings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import CONTRIB, ModelBuilder, drawn

from qdialect.support.interface import Port
from tools.zoo import frameworks, units
from tools.zoo.frameworks.runner import Runner
from tools.zoo.measuring import fitting, measured
from tools.zoo.results import Result
from tools.zoo.units import Measured
from tools.zoo.units.agreement import Agreement
from tools.zoo.units.ties import Ties

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


def test_a_framework_that_fails_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _frameworks(monkeypatch, ValueError("not\nthere"))
    found = measured(START, _dense(tmp_path / "dense.onnx"), SAMPLES)
    assert found.difference is None
    assert found.framework is None
    assert found.notes == tuple(f"{name}: ValueError: not there" for name in ("onnx_runtime", "without optimizations"))


def test_units_that_fail_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _frameworks(monkeypatch, lambda inputs: [np.zeros((2, 8), np.float32)])

    def fail(*_: Any) -> Any:
        raise ValueError("no\nunits")

    monkeypatch.setattr(units, "measured_units", fail)
    found = measured(START, _dense(tmp_path / "dense.onnx"), SAMPLES)
    assert found.notes == ("units: ValueError: no units",)
    assert found.integer_units is None


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


def _taken(inputs: Sequence[Any]) -> list[Any]:
    return list(inputs)


@pytest.mark.parametrize("runner", [_taken, ModuleNotFoundError("onnxruntime is not installed")])
def test_a_refused_model_has_its_reasons(
    runner: Runner | Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _frameworks(monkeypatch, runner)
    found = measured(START, _wrong_bias(tmp_path / "qgemm.onnx"), SAMPLES)
    assert found.status == "refused"
    assert found.reasons[0].startswith("error: ")


def test_samples_are_quantized_for_integer_inputs() -> None:
    port = Port("x", (3,), np.dtype(np.int8), 0.5, 4)
    (found,) = fitting((np.array([0.0, 1.0, 99.0], np.float32),), [port])
    assert found.dtype == np.int8
    assert found.tolist() == [4, 6, 127]


def test_samples_that_fit_are_left_as_they_are() -> None:
    sample = (np.array([1, 2], np.int64),)
    assert fitting(sample, [Port("ids", (2,), np.dtype(np.int64), None, None)])[0] is sample[0]
