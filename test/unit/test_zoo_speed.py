"""tools/zoo/speed.py: how far the other engines are behind."""

from dataclasses import replace

import pytest

from tools.zoo.results import Result
from tools.zoo.speed import factor, lead, times


def _timed(network: str, **seconds: float) -> Result:
    return Result(network, "qdq_u8s8", "native", times=seconds)


def test_the_factor_is_to_the_fastest_other_engine() -> None:
    found = lead(_timed("mlp", qdialect=0.5, onnx_runtime=2.0, open_vino=1.5))
    assert found
    assert (found.engine, found.factor) == ("open_vino", 3.0)


@pytest.mark.parametrize("seconds", [{}, {"qdialect": 0.5}, {"onnx_runtime": 0.5}])
def test_a_factor_needs_both_times(seconds: dict[str, float]) -> None:
    result = _timed("mlp", **seconds)
    assert lead(result) is None
    assert factor(result) == "-"
    assert list(times([result])) == []


def test_each_flow_is_summed_up_and_the_models_behind_are_named() -> None:
    results = [
        _timed("mlp", qdialect=1.0, onnx_runtime=2.0),
        _timed("bert", qdialect=1.0, onnx_runtime=1.2, open_vino=3.0),
        _timed("gpt2", qdialect=1.0, onnx_runtime=1.25),
        replace(_timed("mlp", qdialect=2.0, pytorch=1.0), flow="pt2e_x86"),
        _timed("lstm", qdialect=1.0),
    ]
    text = "\n".join(times(results))
    assert "| flow | timed | median factor | smallest factor | at least 1.25 | at least 1 |" in text
    assert "| qdq_u8s8 | 3 | 1.25 | 1.20 | 2 | 3 |\n| pt2e_x86 | 1 | 0.50 | 0.50 | 0 | 0 |\n| all | 4 |" in text
    assert text.endswith("| mlp | pt2e_x86 | 0.50 | pytorch |\n| bert | qdq_u8s8 | 1.20 | onnx\\_runtime |\n")


def test_nothing_is_listed_where_all_are_ahead() -> None:
    assert "Models below" not in "\n".join(times([_timed("mlp", qdialect=1.0, onnx_runtime=2.0)]))
