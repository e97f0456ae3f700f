"""Real networks: kernel calls against nodes, calls between contractions, and tensors that are stored."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from qdialect.driver.report import report
from qdialect.frontends.model_files import ImportOptions
from qdialect.targets import GENERIC

# Kernels that fill the padding around an image.
PADDING = "padding"
# These have a batch of their own; the others leave it open, and are read for 8.
OF_ONE_BATCH = (
    *("bisonai_mobilenetv3_mnist", "deeplabv3_mnv2_dm05_pascal_quant", "derived_selfie_segmenter_a8w8"),
    *("mobilenet_v1_0.25_224_quant", "tf2_mobilenet_v2_1.0_224_ptq", "onnx/ort_qdq_with_multi_consumer_dq_nodes"),
)
# A row of a softmax has a sum, its reciprocal and its exponent.
SOFTMAX = {"i32": 3}


@dataclass(frozen=True)
class Network:
    """The figures of a network.

    `between` is every kernel call between the first and the last contraction but for those; `wide` are the stored
    tensors of more than 8 bits, a softmax's numbers for each row and a blended row of a resized image among them.
    """

    nodes: int
    calls: int
    contractions: int
    between: dict[str, int]
    wide: dict[str, int]


NETWORKS = {
    "ad01_int8": Network(10, 12, 10, {}, {}),
    "bisonai_mobilenetv3_mnist": Network(177, 101, 57, {"qnn.avg_pool2d": 11, "qnn.mul": 10, "qnn.lut": 8}, SOFTMAX),
    "dcgan_generator_int8": Network(23, 17, 10, {"qnn.reshape": 1}, {}),
    "deeplabv3_mnv2_dm05_pascal_quant": Network(
        72, 80, 55, {"qnn.avg_pool2d": 1, "qnn.resize_bilinear": 1, "qnn.lut": 1, "qnn.concat": 2}, {"i16": 2}
    ),
    "derived_selfie_segmenter_a8w8": Network(
        134, 99, 54, {"qnn.avg_pool2d": 10, "qnn.mul": 10, "qnn.resize_bilinear": 3, "qnn.add": 8}, {"i16": 3}
    ),
    "kws_ref_model": Network(13, 19, 10, {"qnn.avg_pool2d": 1}, SOFTMAX),
    "mobilenet_v1_0.25_224_quant": Network(31, 46, 28, {"qnn.avg_pool2d": 1}, SOFTMAX),
    "pretrainedResnet_quant": Network(16, 21, 10, {"qnn.avg_pool2d": 1}, SOFTMAX),
    "tf2_mobilenet_v2_1.0_224_ptq": Network(68, 75, 53, {"qnn.mean": 1}, SOFTMAX),
    "vww_96_int8": Network(31, 46, 28, {"qnn.avg_pool2d": 1}, SOFTMAX),
    "onnx/mobilenet_v2_torch_qat_qdq": Network(724, 75, 53, {"qnn.mean": 1}, {}),
    "onnx/ort_conv_follow_convtrans_s8": Network(12, 9, 3, {}, {}),
    "onnx/ort_qdq_with_multi_consumer_dq_nodes": Network(39, 15, 6, {}, {"f32": 1}),
    "onnx/tract_qsigmoid_1": Network(9, 3, 0, {}, {}),
    "onnx/tract_qtdnn_qlinearconv": Network(10, 3, 1, {}, {}),
}


def options_of(name: str) -> ImportOptions:
    return ImportOptions() if name in OF_ONE_BATCH else ImportOptions(batch=8)


@pytest.mark.parametrize("name", NETWORKS)
def test_calls_and_tensors_of_a_network(name: str, require_model: Callable[[str], Path]) -> None:
    expected = NETWORKS[name]
    path = require_model(f"{name}.onnx" if name.startswith("onnx/") else f"{name}.tflite")
    found = report(path, GENERIC, options_of(name))
    assert found.lowered is not None
    labels = [call.label for call in found.lowered.calls]
    contractions = [index for index, label in enumerate(labels) if label.startswith("qnn.fused")]
    inside = Counter(labels[contractions[0] : contractions[-1]]) if contractions else Counter[str]()
    between = {
        label: count for label, count in inside.items() if label != PADDING and not label.startswith("qnn.fused")
    }
    wide = {element: count for element, count in found.tensors().items() if element != "i8"}
    assert Network(len(found.nodes), len(labels), len(contractions), between, wide) == expected
