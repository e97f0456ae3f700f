"""examples/serving/triton: the model of Triton's Python backend, with a stand-in for the module that the server has."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from c_programs import EXAMPLES
from phase_networks import CONVOLUTION

import qdialect

FOLDER = EXAMPLES / "serving" / "triton" / "mobilenet"


@dataclass(frozen=True)
class Tensor:
    name: str
    array: Any

    def as_numpy(self) -> Any:
        return self.array


@dataclass(frozen=True)
class Error:
    message: str


@dataclass(frozen=True)
class Response:
    output_tensors: list[Tensor] | None = None
    error: Error | None = None


def of_name(request: list[Tensor], name: str) -> Tensor:
    return next(tensor for tensor in request if tensor.name == name)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    server = ModuleType("triton_python_backend_utils")
    vars(server).update(Tensor=Tensor, InferenceResponse=Response, TritonError=Error, get_input_tensor_by_name=of_name)
    monkeypatch.setitem(sys.modules, server.__name__, server)
    shutil.copy(FOLDER / "1" / "model.py", tmp_path)
    qdialect.compile(qdialect.parse(CONVOLUTION)).save(tmp_path / "model.so")
    spec = importlib.util.spec_from_file_location("triton_model", tmp_path / "model.py")
    assert spec is not None
    assert spec.loader is not None
    found: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    one = found.TritonPythonModel()
    one.initialize({})
    return one


def test_requests_are_answered(model: Any) -> None:
    images = [np.full((1, 6, 6, 4), value, np.int8) for value in (-3, 90)]
    executable = qdialect.compile(qdialect.parse(CONVOLUTION))
    answers = model.execute([[Tensor("input0", image)] for image in images])
    for image, answer in zip(images, answers, strict=True):
        (output,) = answer.output_tensors
        assert output.name == "output0"
        np.testing.assert_array_equal(output.array, executable(image))


def test_a_bad_request_gets_an_error(model: Any) -> None:
    (answer,) = model.execute([[Tensor("input0", np.zeros((1, 6, 6, 4), np.uint8))]])
    assert answer.error.message == "input 'image' must be int8[1, 6, 6, 4], but got uint8[1, 6, 6, 4]"
