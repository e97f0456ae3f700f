"""Everything that can be measured: drawn workloads, real networks, and the smallest call."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import tflite

from qdialect.bench import models
from qdialect.bench.cases import Array, Case, Form, Source, numbered, save, write_form
from qdialect.bench.drawn import layer_sources, network_sources
from qdialect.bench.float_functions import function_sources
from qdialect.bench.onnx_writer import GraphWriter
from qdialect.bench.throughput import multiply_accumulates
from qdialect.bench.transformers import transformer_sources
from qdialect.dialect.constants import constants_of
from qdialect.frontends.model_files import open_shapes, read_model
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.lowering.ir.lowered import ports
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.reference import interpreter
from qdialect.runtime.comparison import random_inputs
from qdialect.support.options import ImportOptions

_TFLITE = (
    *("mobilenet_v1_0.25_224_quant", "vww_96_int8", "tf2_mobilenet_v2_1.0_224_ptq"),
    *("bisonai_mobilenetv3_mnist", "pretrainedResnet_quant", "kws_ref_model", "ad01_int8"),
    *("deeplabv3_mnv2_dm05_pascal_quant", "dcgan_generator_int8", "derived_selfie_segmenter_a8w8"),
)
_ONNX = (
    *("mobilenet_v2_torch_qat_qdq", "ort_qdq_with_multi_consumer_dq_nodes", "ort_conv_follow_convtrans_s8"),
    *("tract_qsigmoid_1", "tract_qtdnn_qlinearconv"),
)
# Recorded outputs, the best first: of TFLite's reference kernels, of ONNX Runtime's optimized graph.
_RECORDED = ("ref_", "opt_", "out_")


def model_sources() -> tuple[list[Source], dict[str, str]]:
    """The networks that are here, and for those that are not the reason."""
    found: list[Source] = []
    absent: dict[str, str] = {}
    files = [(name, f"{name}.tflite") for name in _TFLITE] + [(name, f"onnx/{name}.onnx") for name in _ONNX]
    for name, file in files:
        path = models.find(file)
        if path is None:
            absent[name] = f"'{file}' is in no folder of models"
        else:
            found.append(Source(name, "model", partial(_prepare, name, path)))
    return found, absent


def _prepare(name: str, path: Path, folder: Path) -> Case:
    recorded = _recorded(name, path)
    inputs = recorded[0] if recorded else []
    batch = inputs[0].shape[0] if inputs and inputs[0].ndim else 1
    is_open = any(isinstance(shape[0], str) for shape in open_shapes(path, ImportOptions()).values() if shape)
    module = read_model(path, ImportOptions(batch) if is_open else None)
    if recorded is None:
        inputs = random_inputs(ports(main_function(module), "arg"), 0)
    outputs = recorded[1] if recorded else interpreter.run(module, inputs)
    form = Form(str(path), save(folder / f"{name}.npz", inputs, outputs))
    macs = multiply_accumulates(module)
    # The bytes that are read and written at least once; the weights are the constants.
    weights = sum(array.nbytes for array in constants_of(module))
    moved = sum(array.nbytes for array in (*inputs, *outputs)) + weights
    return Case(
        name, "model", f"{path.suffix.removeprefix('.')} network", macs, moved, weights, {path.suffix[1:]: form}
    )


def _recorded(name: str, path: Path) -> tuple[list[Array], list[Array]] | None:
    """Recorded inputs and outputs of a network, where both are here."""
    recording = models.find_reference(f"{path.parent.name}/{name}") or models.find_reference(name)
    if recording is None:
        return None
    with np.load(recording, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    outputs = next(filter(None, (numbered(arrays, prefix) for prefix in _RECORDED)), None)
    return (numbered(arrays, "in_"), outputs) if outputs else None


# The smallest possible model for each engine, to measure the cost of a call itself.

SMALLEST_CALL = "call"

_QNN = """
func.func @main(%x: tensor<1xui8>) -> tensor<1xui8> {
  %0 = "qnn.relu"(%x) {
    input_scale = 1.0 : f64, input_zero_point = 0 : i64, output_scale = 1.0 : f64, output_zero_point = 0 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1xui8>) -> tensor<1xui8>
  return %0 : tensor<1xui8>
}
"""


def _prepare_call(folder: Path) -> Case:
    writer = GraphWriter()
    copy = writer.node("Identity", ["x"])
    largest = writer.node("Max", [copy, copy])
    files = {
        "call_qnn": ("mlir", _QNN.encode()),
        "call_onnx": ("onnx", writer.model([("x", [1], "UINT8")], [(largest, [1], "UINT8")])),
        "call_tflite": ("tflite", _smallest_tflite()),
    }
    forms: dict[str, Form] = {}
    for form, (suffix, content) in files.items():
        value = np.array([7], np.int8 if suffix == "tflite" else np.uint8)
        forms[form] = write_form(folder / f"{form}.{suffix}", content, [value], [value])
    return Case(SMALLEST_CALL, "call", "one element through one operator", 0, 0, 0, forms)


def _smallest_tflite() -> bytes:
    writer = ModelWriter("one element")
    same = Quantization((1.0,), (0,))
    source, result = (writer.tensor(name, (1,), np.int8, same) for name in ("x", "y"))
    writer.operator(tflite.BuiltinOperator.RELU, [source], result)
    return writer.finish([source], [result])


# Everything that can be measured.


def all_sources() -> tuple[list[Source], dict[str, str]]:
    """Every workload, in the order of the report, and the reasons why others are absent."""
    models, absent = model_sources()
    drawn = [*layer_sources(), *network_sources(), *transformer_sources()]
    # One element through one operator.
    call = Source(SMALLEST_CALL, "call", _prepare_call)
    return [*drawn, *models, *function_sources(), call], absent
