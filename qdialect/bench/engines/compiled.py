"""This compiler: models as their front end reads them, arrays bound to the compiled network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import qdialect
from qdialect.bench.cases import Array, Case, Session, known_forms
from qdialect.bench.levels import target_name
from qdialect.runtime.memory import allocate

_FORMS = ("qdq", "qdq_nhwc", "onnx", "function_onnx", "call_qnn")


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
        return known_forms(case, (*_FORMS, "tflite") if case.kind == "model" else _FORMS)

    def load(self, case: Case, variant: str, threads: int) -> Session:
        form = case.forms[variant]
        inputs = form.inputs()
        batch = inputs[0].shape[0] if inputs[0].ndim else 1
        executable = qdialect.compile(form.model, batch=batch, threads=threads, target=target_name(), cache=False)
        outputs = [_array(port.shape, port.dtype) for port in executable.outputs]
        return Session(executable.bind([_copied(array) for array in inputs], outputs), lambda: outputs)
