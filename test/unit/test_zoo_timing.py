"""tools/zoo/timing.py: engines that the test brings are loaded once and called alternately."""

import os
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder, drawn

from tools.zoo import frameworks, measure_model, results, time_model
from tools.zoo.flows.samples import save
from tools.zoo.results import Result
from tools.zoo.timing import alternated, timed

START = Result("dense", "qdq_u8s8", "native", notes=("kept",), times={"old": 1.0}, untimed={"old": "why"})
SAMPLE = (np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32),)


def _dense(path: Path) -> Path:
    builder = ModelBuilder()
    data = builder.dequantize(builder.quantize(builder.input("x", (2, 16)), (0.02, 128)), (0.02, 128))
    product = builder.node("MatMul", data, builder.weight(drawn((16, 8), np.int8), 0.01))
    path.write_bytes(builder.finish(product, dtype=np.float32))
    return path


def _nothing(*_: object) -> None:
    """Stands for a setting of the process."""


def _calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every call of ONNX Runtime; OpenVINO takes no model."""
    seen: list[str] = []

    def load_call(name: str, path: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[], None]:
        assert Path(path).exists()
        assert [array.shape for array in (*inputs, *outputs)] == [(2, 16), (2, 8)]
        if name == "open_vino":
            raise ValueError("not\ntaken")
        return lambda: seen.append(name)

    monkeypatch.setattr(frameworks, "load_call", load_call)
    return seen


def test_engines_that_fail_have_a_reason_and_the_others_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _calls(monkeypatch)
    monkeypatch.setattr("tools.zoo.timing._SECONDS", 0.01)
    found = timed(START, _dense(tmp_path / "dense.onnx"), SAMPLE)
    assert list(found.times) == ["qdialect", "onnx_runtime"]
    assert min(found.times.values()) > 0
    assert found.untimed == {"open_vino": "open_vino: ValueError: not taken"}
    assert (found.status, found.notes) == ("native", ("kept",))
    assert seen


def test_engines_are_called_alternately() -> None:
    seen: list[str] = []
    found = alternated({name: lambda name=name: seen.append(name) for name in ("a", "b", "c")}, 0.005)
    assert list(found) == ["a", "b", "c"]
    assert [name for name, _ in groupby(seen)] == ["a", "b", "c"] * 5


def test_a_time_is_the_median_of_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([9.0, 1.0, 2.0, 8.0, 3.0])

    class Times:
        median = property(lambda _: next(clock))

    def measure(call: Callable[[], None], seconds: float) -> Times:
        assert seconds == pytest.approx(0.1)
        return Times()

    monkeypatch.setattr("tools.zoo.timing.measure", measure)
    assert alternated({"a": lambda: None}, 0.5) == {"a": 3.0}


def test_a_model_that_was_compared_is_not_compiled_for_its_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dense"
    folder.mkdir()
    monkeypatch.setenv("QDIALECT_CACHE", "")
    monkeypatch.setattr(os, "sched_setaffinity", _nothing)
    monkeypatch.setattr("gc.disable", _nothing)
    monkeypatch.setattr("tools.zoo.timing._SECONDS", 0.01)
    _calls(monkeypatch)
    save(folder / "inputs.npz", [SAMPLE])
    _dense(folder / "dense.qdq_u8s8.onnx")
    chosen = [str(tmp_path), "dense", "qdq_u8s8"]
    measure_model.main(chosen)
    monkeypatch.setattr("qdialect.driver.compile_model.compile_model", None)
    time_model.main(chosen)
    assert results.read(folder / "dense.qdq_u8s8.json").times["qdialect"] > 0
    # Comparing starts with an empty cache, so that its compile time is one.
    with pytest.raises(TypeError, match="not callable"):
        measure_model.main(chosen)
