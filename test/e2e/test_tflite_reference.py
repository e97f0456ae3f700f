"""Real networks: the interpreter on the imported module gives the numbers of the reference kernels, bit for bit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.frontends.tflite import TENSOR_ATTRIBUTE, import_tflite
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Reference = Callable[..., Mapping[str, NDArray[Any]]]

MODELS = [
    "mobilenet_v1_0.25_224_quant",
    "vww_96_int8",
    "kws_ref_model",
    "ad01_int8",
    "pretrainedResnet_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "bisonai_mobilenetv3_mnist",
    "dcgan_generator_int8",
    "derived_selfie_segmenter_a8w8",
    "deeplabv3_mnv2_dm05_pascal_quant",
]


def inputs_of(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return [arrays[f"in_{k}"] for k in range(sum(name.startswith("in_") and name[3:].isdigit() for name in arrays))]


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_the_reference_kernels(
    name: str, require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    module = import_tflite(require_model(f"{name}.tflite"))
    arrays = require_reference(name)
    for index, output in enumerate(interpreter.run(module, inputs_of(arrays))):
        expected = arrays[f"ref_{index}"]
        assert output.dtype == expected.dtype
        assert np.count_nonzero(output != expected) == 0


def test_every_layer_equals_the_reference_kernels(
    require_model: Callable[[str], Path], require_reference: Reference
) -> None:
    name = "mobilenet_v1_0.25_224_quant"
    module, layers = import_tflite(require_model(f"{name}.tflite")), require_reference(name, "layers")
    different: dict[str, int] = {}

    def compare(op: ir.Operation, value: NDArray[Any]) -> None:
        if TENSOR_ATTRIBUTE in op.attributes:
            key = f"t{ir.IntegerAttr(op.attributes[TENSOR_ATTRIBUTE]).value}"
            different[key] = int(np.count_nonzero(value != layers[key]))

    interpreter.run(module, inputs_of(require_reference(name)), observe=compare)
    assert len(different) == 31
    assert {key: count for key, count in different.items() if count} == {}
