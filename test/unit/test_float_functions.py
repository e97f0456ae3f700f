"""The benchmark's float functions: their files compute what the float64 answer says, within the tolerance."""

from pathlib import Path

import numpy as np
import pytest

from qdialect.bench.cases import Case
from qdialect.bench.float_functions import FUNCTIONS, TOLERANCE, function_sources, prepare
from qdialect.bench.worker import agreement
from qdialect.frontends.onnx import import_onnx
from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter

SHAPE = (3, 40)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_form_is_the_answer(name: str, tmp_path: Path) -> None:
    case = prepare(name, SHAPE, tmp_path)
    assert Case.from_json(case.to_json()) == case
    for kind, form in case.forms.items():
        content = Path(form.model).read_bytes()
        module = import_tflite(content) if kind == "function_tflite" else import_onnx(content)
        found = interpreter.run(module, form.inputs())
        assert agreement(form.outputs(), found, TOLERANCE).different == 0
        assert agreement([-form.outputs()[0]], found, TOLERANCE).different > 0


def test_workloads_are_named_in_order() -> None:
    assert [source.name for source in function_sources()] == [f"F{i}" for i in range(1, 9)]


def test_a_tolerance_is_a_share_of_large_numbers_and_of_one() -> None:
    right = np.array([0.0, 1e-3, 100.0, np.inf, np.nan], np.float32)
    near = np.array([1e-6, 1.001e-3, 100.0002, np.inf, np.nan], np.float32)
    assert agreement([right[:4]], [near[:4]], TOLERANCE).different == 0
    assert agreement([right[:4]], [near[:4]]).different == 3
    assert agreement([right], [np.zeros_like(right)], TOLERANCE).different == 3
