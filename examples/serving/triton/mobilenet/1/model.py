"""A compiled network behind Triton's Python backend: `model.so` lies next to this file."""

from pathlib import Path

import triton_python_backend_utils as pb_utils

import qdialect


class TritonPythonModel:
    def initialize(self, args):
        self.network = qdialect.load(Path(__file__).with_name("model.so"))

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            inputs = [pb_utils.get_input_tensor_by_name(request, f"input{i}") for i in range(len(self.network.inputs))]
            outputs = self.network(*(tensor.as_numpy() for tensor in inputs))
        except qdialect.QDialectError as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(error.message))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return pb_utils.InferenceResponse([pb_utils.Tensor(f"output{i}", array) for i, array in enumerate(outputs)])
