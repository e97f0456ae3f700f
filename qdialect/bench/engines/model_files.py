"""Engines that read model files, this compiler first; each imports its package when it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import qdialect
from qdialect.bench.cases import Array, Case, EngineError, Session, foreign, known_forms, session_of
from qdialect.bench.levels import target_name
from qdialect.bench.transformers import LANGUAGE_LAYERS
from qdialect.runtime.memory import allocate

# This compiler: models as their front end reads them, arrays bound to the compiled network.

_OWN_FORMS = ("qdq", "qdq_nhwc", "onnx", "function_onnx", "call_qnn")


def _array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array that begins at a cache line, as those do in which other engines keep inputs and results."""
    return allocate(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)


def _copied(array: Array) -> Array:
    copy = _array(array.shape, array.dtype)
    copy[...] = array
    return copy


class Compiler:
    """This package."""

    def variants(self, case: Case) -> Mapping[str, str]:
        # Drawn workloads are ONNX models; their TFLite form is for those who read nothing else.
        return known_forms(case, (*_OWN_FORMS, "tflite") if case.kind == "model" else _OWN_FORMS)

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form = case.forms[variant]
        inputs = form.inputs()
        batch = inputs[0].shape[0] if inputs[0].ndim else 1
        executable = qdialect.compile(form.model, batch=batch, threads=threads, target=target_name(), cache=False)
        outputs = [_array(port.shape, port.dtype) for port in executable.outputs]
        return Session(executable.bind([_copied(array) for array in inputs], outputs), lambda: outputs)


# ONNX Runtime's CPU provider: all graph optimizations, inputs and outputs bound once.

_ORT_FORMS = ("qdq", "qdq_nhwc", "qop", "qop_nhwc", "qop_three_roundings_nhwc", "onnx", "function_onnx", "call_onnx")
_ERRORS_ONLY = 3


def onnx_runtime_session(package: Any, model: str, inputs: Sequence[Array], threads: int) -> Session:
    """A session with an IO binding."""
    options = package.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = package.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = package.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    session = package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = [package.OrtValue.ortvalue_from_numpy(array) for array in inputs]
    for node, value in zip(session.get_inputs(), values, strict=True):
        binding.bind_ortvalue_input(node.name, value)
    # A first run into memory of its own tells the outputs' shapes where the model leaves them open.
    for node in session.get_outputs():
        binding.bind_output(node.name)
    session.run_with_iobinding(binding)
    outputs = binding.get_outputs()
    for node, value in zip(session.get_outputs(), outputs, strict=True):
        binding.bind_ortvalue_output(node.name, value)
    # The function behind the public method, whose checks cost more than a small network.
    run, bound, kept = session._sess.run_with_iobinding, binding._iobinding, (session, binding, values)

    def call() -> None:
        run(bound, None)

    return Session(call, lambda: [value.numpy() for value in outputs], kept)


class OnnxRuntime:
    """The package `onnxruntime`."""

    def __init__(self) -> None:
        self._package = foreign("onnxruntime")

    def variants(self, case: Case) -> Mapping[str, str]:
        return known_forms(case, _ORT_FORMS)

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form = case.forms[variant]
        return onnx_runtime_session(self._package, form.model, form.inputs(), threads)


# OpenVINO's CPU plugin, which runs oneDNN: ONNX and TFLite models, tensors shared with NumPy.

_OPENVINO_FORMS = ("qdq", "qdq_one_rounding", "onnx", "function_onnx")
_LAYOUT = "qdq_layout"
_IN_FLOATS = "f32_rows"
FLOAT_ROWS = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
"""By default it quantizes the rows that meet weights of few bits, which is another function."""


def open_vino_settings(threads: int) -> dict[str, Any]:
    """For the latency of one call."""
    return {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
        "PERFORMANCE_HINT": "LATENCY",
        # The default may be bfloat16, which is another function.
        "INFERENCE_PRECISION_HINT": "f32",
    }


def open_vino_session(package: Any, compiled: Any, inputs: Sequence[Array], wanted: Sequence[Array]) -> Session:
    """An infer request with its tensors."""
    request: Any = compiled.create_infer_request()
    outputs: list[Array] = [np.zeros(array.shape, array.dtype) for array in wanted]
    # The request does not keep what it shares.
    tensors = [package.Tensor(array, shared_memory=True) for array in (*inputs, *outputs)]
    for index, tensor in enumerate(tensors[: len(inputs)]):
        request.set_input_tensor(index, tensor)
    for index, tensor in enumerate(tensors[len(inputs) :]):
        request.set_output_tensor(index, tensor)
    # The function behind the public method, without its dispatch on the input types and its copies of the outputs.
    base: Any = type(request).__bases__[0]
    infer: Callable[..., Any] = base.infer

    def call() -> None:
        infer(request, {}, True, False)

    return Session(call, lambda: outputs, tensors)


class OpenVino:
    """The package `openvino`."""

    def __init__(self) -> None:
        self._package = foreign("openvino")
        self._preprocess = foreign("openvino.preprocess")
        self._core = self._package.Core()

    def variants(self, case: Case) -> Mapping[str, str]:
        found = known_forms(case, (*_OPENVINO_FORMS, "tflite") if case.kind == "model" else _OPENVINO_FORMS)
        if "qdq_nhwc" in case.forms:
            # Transposes in the model would stop its fusions; these are the engine's own.
            found[_LAYOUT] = "qdq_nhwc"
        if case.name in LANGUAGE_LAYERS:
            found[_IN_FLOATS] = "onnx"
        return found | ({"add": "call_onnx"} if case.kind == "call" else {})

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form = case.forms[self.variants(case)[variant]]
        settings = open_vino_settings(threads) | (FLOAT_ROWS if variant == _IN_FLOATS else {})
        compiled = self._core.compile_model(self._model(case, variant), "CPU", settings)
        return open_vino_session(self._package, compiled, form.inputs(), form.outputs())

    def _model(self, case: Case, variant: str) -> Any:
        if variant == "add":
            operators = foreign("openvino.opset13")
            value = operators.parameter([1], np.uint8, name="x")
            return self._package.Model([operators.add(value, operators.constant(np.uint8(0)))], [value], "smallest")
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


# LiteRT with its default delegate, XNNPACK.

_LITERT_FORMS = ("tflite", "tflite_f32", "function_tflite", "call_tflite")


def litert_session(package: Any, model: str, inputs: Sequence[Array], threads: int) -> Session:
    """An interpreter whose inputs are set."""
    interpreter = package.Interpreter(model_path=model, num_threads=threads)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], array)
    ends = interpreter.get_output_details()
    return Session(interpreter.invoke, lambda: [interpreter.get_tensor(details["index"]) for details in ends])


class LiteRt:
    """The package `ai-edge-litert`."""

    def __init__(self) -> None:
        self._package = foreign("ai_edge_litert.interpreter")

    def variants(self, case: Case) -> Mapping[str, str]:
        return known_forms(case, _LITERT_FORMS)

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form = case.forms[variant]
        return litert_session(self._package, form.model, form.inputs(), threads)


# Apache TVM's Relax, untuned; it runs QDQ models in float32.

# A network in float32 takes minutes to compile and seconds to run.
_KINDS = ("layer",)


class Tvm:
    """The package `apache-tvm`."""

    def __init__(self) -> None:
        self._tvm = foreign("tvm")
        self._relax = foreign("tvm.relax")

    def variants(self, case: Case) -> Mapping[str, str]:
        return {"relax": "qdq"} if case.kind in _KINDS else {}

    def load(self, case: Case, variant: str, threads: int) -> Session:
        if threads != 1:
            raise EngineError("measured on one thread alone")
        form = case.forms["qdq"]
        module = foreign("tvm.relax.frontend.onnx").from_onnx(foreign("onnx").load(form.model))
        target = self._tvm.target.Target({"kind": "llvm", "mcpu": "znver4", "num-cores": threads})
        machine = self._relax.VirtualMachine(self._relax.build(module, target), self._tvm.cpu())
        argument = self._tvm.runtime.tensor(form.inputs()[0])
        return session_of(partial(machine["main"], argument), lambda found: [found.numpy()])
