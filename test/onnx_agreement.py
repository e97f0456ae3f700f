"""ONNX models whose results ONNX Runtime, the interpreter and compiled code agree on."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from together import check_compiled

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

Array = NDArray[Any]
ORT: Any = import_module("onnxruntime")


def agreed(content: bytes, *inputs: Array) -> Array:
    """The one output of the model `content`, which all of them give."""
    module = import_onnx(content)
    found = interpreter.run(module, list(inputs))
    check_compiled(module, "host", [list(inputs)], [found])
    session = ORT.InferenceSession(content, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {one.name: x for one, x in zip(session.get_inputs(), inputs, strict=True)})
    np.testing.assert_array_equal(found[0], wanted, strict=True)
    return wanted
