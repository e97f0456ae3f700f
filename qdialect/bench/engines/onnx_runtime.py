"""ONNX Runtime's CPU provider: all graph optimizations, inputs and outputs bound once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.bench.cases import Array, Case, foreign, known_forms

_FORMS = ("qdq", "qdq_nhwc", "qop", "qop_nhwc", "qop_three_roundings_nhwc", "onnx", "function_onnx", "call_onnx")
_ERRORS_ONLY = 3


class OnnxRuntimeSession:
    """A session with an IO binding."""

    def __init__(self, package: Any, model: str, inputs: Sequence[Array], threads: int) -> None:
        options = package.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = package.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = package.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = _ERRORS_ONLY
        self._session = package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        self._inputs = [package.OrtValue.ortvalue_from_numpy(array) for array in inputs]
        for node, value in zip(self._session.get_inputs(), self._inputs, strict=True):
            self._binding.bind_ortvalue_input(node.name, value)
        # A first run into memory of its own tells the outputs' shapes where the model leaves them open.
        for node in self._session.get_outputs():
            self._binding.bind_output(node.name)
        self._session.run_with_iobinding(self._binding)
        self._outputs = self._binding.get_outputs()
        for node, value in zip(self._session.get_outputs(), self._outputs, strict=True):
            self._binding.bind_ortvalue_output(node.name, value)
        # The function behind the public method, whose checks cost more than a small network.
        self._run, self._bound = self._session._sess.run_with_iobinding, self._binding._iobinding

    def call(self) -> None:
        self._run(self._bound, None)

    def outputs(self) -> Sequence[Array]:
        return [value.numpy() for value in self._outputs]


class OnnxRuntime:
    """The package `onnxruntime`."""

    def __init__(self) -> None:
        self._package = foreign("onnxruntime")

    def version(self) -> str:
        return str(self._package.__version__)

    def variants(self, case: Case) -> Mapping[str, str]:
        return known_forms(case, _FORMS)

    def load(self, case: Case, variant: str, threads: int) -> OnnxRuntimeSession:
        form = case.forms[variant]
        return OnnxRuntimeSession(self._package, form.model, form.inputs(), threads)
