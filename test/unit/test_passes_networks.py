"""Real networks: fusion leaves one op for each kernel and the bits as they were, and fused ops come apart again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graphs import op_names, random_inputs

from qdialect.frontends.tflite import import_tflite
from qdialect.ir.context import verify
from qdialect.passes.decompose_fused import DecomposeFusedPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.reference import interpreter

NETWORKS = {
    "mobilenet_v1_0.25_224_quant": {"qnn.fused_conv2d": 28},
    "vww_96_int8": {"qnn.fused_conv2d": 27, "qnn.fused_dense": 1},
    "kws_ref_model": {"qnn.fused_conv2d": 9, "qnn.fused_dense": 1},
    "ad01_int8": {"qnn.fused_dense": 10},
    "pretrainedResnet_quant": {"qnn.fused_conv2d": 9, "qnn.fused_dense": 1},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_keeps_its_bits(name: str, require_model: Callable[[str], Path]) -> None:
    module = import_tflite(str(require_model(name)))
    inputs = random_inputs(module)
    expected = interpreter.run(module, inputs)
    FuseQnnPass().run(module)
    verify(module)
    names = op_names(module)
    assert {op: names.count(op) for op in NETWORKS[name]} == NETWORKS[name]
    assert not {"qnn.conv2d", "qnn.dense", "qnn.requantize", "qnn.clip", "qnn.add", "qnn.pad"} & set(names)
    for wanted, found in zip(expected, interpreter.run(module, inputs), strict=True):
        np.testing.assert_array_equal(wanted, found)
    DecomposeFusedPass().run(module)
    verify(module)
    assert not any(op.startswith("qnn.fused") for op in op_names(module))
    for wanted, found in zip(expected, interpreter.run(module, inputs), strict=True):
        np.testing.assert_array_equal(wanted, found)
