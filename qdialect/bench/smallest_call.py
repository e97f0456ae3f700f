"""The smallest model there is for each engine: what a call costs by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tflite

from qdialect.bench.cases import Case, Form, Source, save
from qdialect.bench.onnx_writer import GraphWriter
from qdialect.frontends.tflite.writer import ModelWriter, Quantization

NAME = "call"

_QNN = """
func.func @main(%x: tensor<1xui8>) -> tensor<1xui8> {
  %0 = "qnn.relu"(%x) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1xui8>) -> tensor<1xui8>
  return %0 : tensor<1xui8>
}
"""


def call_sources() -> list[Source]:
    """One element through one operator."""
    return [Source(NAME, "call", _prepare)]


def _prepare(folder: Path) -> Case:
    files = {"call_qnn": ("mlir", _QNN.encode()), "call_onnx": ("onnx", _onnx()), "call_tflite": ("tflite", _tflite())}
    forms: dict[str, Form] = {}
    for form, (suffix, content) in files.items():
        path = folder / f"{form}.{suffix}"
        path.write_bytes(content)
        value = np.array([7], np.int8 if suffix == "tflite" else np.uint8)
        forms[form] = Form(str(path), save(folder / f"{form}.npz", [value], [value]))
    return Case(NAME, "call", "one element through one operator", 0, 0, 0, forms)


def _onnx() -> bytes:
    writer = GraphWriter()
    copy = writer.node("Identity", ["x"])
    return writer.finish(("x", [1]), (writer.node("Max", [copy, copy]), [1]))


def _tflite() -> bytes:
    writer = ModelWriter("one element")
    same = Quantization((1.0,), (0,))
    source, result = (writer.tensor(name, (1,), np.int8, same) for name in ("x", "y"))
    writer.operator(tflite.BuiltinOperator.RELU, [source], result)
    return writer.finish([source], [result])
