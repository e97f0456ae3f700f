"""Real ONNX networks: imported, interpreted and compiled, every element as ONNX Runtime has it."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.ir._mlir import ir
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter

Array = NDArray[Any]
Reference = Callable[..., Mapping[str, Array]]

MOBILENET = "mobilenet_v2_torch_qat_qdq"
RESIDUAL = "ort_qdq_with_multi_consumer_dq_nodes"
TRANSPOSED = "ort_conv_follow_convtrans_s8"
SIGMOID = "tract_qsigmoid_1"
TDNN = "tract_qtdnn_qlinearconv"
MODELS = [MOBILENET, RESIDUAL, TRANSPOSED, SIGMOID, TDNN]


@pytest.fixture
def network(require_model: Callable[[str], Path], require_reference: Reference) -> Callable[[str], Any]:
    """The module of a network, its input and what ONNX Runtime's default optimization gives for it."""

    def load(name: str) -> tuple[ir.Module, Array, list[Array]]:
        recorded = require_reference(f"onnx/{name}")
        image = recorded["in_0"]
        wanted = [recorded[f"opt_{k}"] for k in range(sum(key.startswith("opt_") for key in recorded))]
        return import_onnx(require_model(f"onnx/{name}.onnx"), batch=image.shape[0]), image, wanted

    return load


def different(wanted: list[Array], found: tuple[Array, ...]) -> list[int]:
    """How many elements of each output differ as float32; dequantized values are equal where quantized ones are."""
    assert [array.shape for array in found] == [array.shape for array in wanted]
    return [int(np.count_nonzero(a != b)) for a, b in zip(wanted, found, strict=True)]


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_onnx_runtime(name: str, network: Callable[[str], Any]) -> None:
    module, image, wanted = network(name)
    assert different(wanted, interpreter.run(module, [image])) == [0] * len(wanted)
    PassManager("fuse-qnn").run(module)
    assert different(wanted, interpreter.run(module, [image])) == [0] * len(wanted)


@pytest.mark.parametrize("name", MODELS)
def test_compiled_outputs_equal_onnx_runtime(name: str, network: Callable[[str], Any]) -> None:
    module, image, wanted = network(name)
    found = qdialect.compile(module)(image)
    assert different(wanted, found if isinstance(found, tuple) else (found,)) == [0] * len(wanted)


FUSED: dict[str, tuple[list[str], list[str]]] = {
    # Name: the first ops and the last ops; in between there are convolutions alone, with their sums.
    MOBILENET: (
        ["qnn.quantize", "qnn.transpose"],
        ["qnn.mean", "qnn.reshape", "qnn.fused_dense", "qnn.dequantize"],
    ),
    RESIDUAL: (
        ["qnn.quantize", "qnn.transpose"],
        ["qnn.dequantize", "qnn.dequantize", "arith.addf", "qnn.transpose", "qnn.transpose", "qnn.dequantize"],
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_nothing_stands_between_convolutions(name: str, network: Callable[[str], Any]) -> None:
    module, _, _ = network(name)
    PassManager("fuse-qnn").run(module)
    operations = [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]
    names = [op.name for op in operations if op.name not in ("qnn.constant", "func.return")]
    convolutions = [i for i, op in enumerate(names) if op == "qnn.fused_conv2d"]
    inside = names[convolutions[0] : convolutions[-1] + 1]
    assert names[: convolutions[0]] == FUSED[name][0]
    assert sorted(names[convolutions[-1] + 1 :]) == sorted(FUSED[name][1])
    assert set(inside) == {"qnn.fused_conv2d"}
    assert len(convolutions) == {MOBILENET: 52, RESIDUAL: 6}[name]


def test_between_kernels_there_are_bytes_alone(network: Callable[[str], Any]) -> None:
    module, image, _ = network(MOBILENET)
    PassManager("fuse-qnn").run(module)
    wide: list[tuple[str, int]] = []

    def observe(op: ir.Operation, value: Array) -> None:
        if value.dtype.itemsize > 1 and op.name != "qnn.constant":
            wide.append((op.name, math.prod(value.shape)))

    interpreter.run(module, [image], observe=observe)
    assert wide == [("qnn.dequantize", 1000)]
