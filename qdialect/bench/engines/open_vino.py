"""OpenVINO's CPU plugin, which runs oneDNN: ONNX and TFLite models, tensors shared with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qdialect.bench.cases import Array, Case, foreign, known_forms
from qdialect.bench.transformers import LANGUAGE_LAYERS

_FORMS = ("qdq", "qdq_one_rounding", "onnx", "function_onnx")
_LAYOUT = "qdq_layout"
# By default it quantizes the rows that meet weights of few bits, which is another function.
_FLOAT_ROWS = "f32_rows"


class OpenVinoSession:
    """An infer request with its tensors."""

    def __init__(self, package: Any, compiled: Any, inputs: Sequence[Array], wanted: Sequence[Array]) -> None:
        self._request: Any = compiled.create_infer_request()
        self._outputs = [np.zeros(array.shape, array.dtype) for array in wanted]
        # The request does not keep what it shares.
        self._tensors = [package.Tensor(array, shared_memory=True) for array in (*inputs, *self._outputs)]
        for index, tensor in enumerate(self._tensors[: len(inputs)]):
            self._request.set_input_tensor(index, tensor)
        for index, tensor in enumerate(self._tensors[len(inputs) :]):
            self._request.set_output_tensor(index, tensor)
        # The function behind the public method, without its dispatch on the input types and its copies of the outputs.
        base: Any = type(self._request).__bases__[0]
        self._infer: Callable[..., Any] = base.infer

    def call(self) -> None:
        self._infer(self._request, {}, True, False)

    def outputs(self) -> Sequence[Array]:
        return self._outputs


class OpenVino:
    """The package `openvino`."""

    def __init__(self) -> None:
        self._package = foreign("openvino")
        self._preprocess = foreign("openvino.preprocess")
        self._core = self._package.Core()

    def version(self) -> str:
        return str(self._package.__version__).split("-")[0]

    def variants(self, case: Case) -> Mapping[str, str]:
        found = known_forms(case, (*_FORMS, "tflite") if case.kind == "model" else _FORMS)
        if "qdq_nhwc" in case.forms:
            # Transposes in the model would stop its fusions; these are the engine's own.
            found[_LAYOUT] = "qdq_nhwc"
        if case.name in LANGUAGE_LAYERS:
            found[_FLOAT_ROWS] = "onnx"
        return found | ({"add": "call_onnx"} if case.kind == "call" else {})

    def load(self, case: Case, variant: str, threads: int) -> OpenVinoSession:
        form = case.forms[self.variants(case)[variant]]
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
            "PERFORMANCE_HINT": "LATENCY",
            # The default may be bfloat16, which is another function.
            "INFERENCE_PRECISION_HINT": "f32",
            **({"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0} if variant == _FLOAT_ROWS else {}),
        }
        compiled = self._core.compile_model(self._model(case, variant), "CPU", settings)
        return OpenVinoSession(self._package, compiled, form.inputs(), form.outputs())

    def _model(self, case: Case, variant: str) -> Any:
        if variant == "add":
            return self._smallest()
        if variant != _LAYOUT:
            return self._core.read_model(case.forms[self.variants(case)[variant]].model)
        model = self._core.read_model(case.forms["qdq"].model)
        steps = self._preprocess.PrePostProcessor(model)
        ends = [steps.input(0)]
        if len(model.output(0).shape) == 4:
            ends.append(steps.output(0))
        for end in ends:
            end.tensor().set_layout(self._package.Layout("NHWC"))
            end.model().set_layout(self._package.Layout("NCHW"))
        return steps.build()

    def _smallest(self) -> Any:
        operators = foreign("openvino.opset13")
        value = operators.parameter([1], np.uint8, name="x")
        return self._package.Model([operators.add(value, operators.constant(np.uint8(0)))], [value], "smallest")
