"""How much memory networks need: an arena near what lives at once, constants near the model's, nothing for a call."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import qdialect
from qdialect import targets
from qdialect.dialect.constants import constants_of
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.runtime import compile_module
from qdialect.runtime.comparison import random_inputs

# The arena as a multiple of what lives at once; packed weights, and all constants, as multiples of the model's. Beyond
# 1.1 are arenas with borders around small images; beyond 1.15 weights with rows of 3 or 5 taps that are packed as 4 and
# 8, and what requantization needs for each channel of networks that have few weights a channel.
NETWORKS = {
    "tflite/mobilenet_v1_0.25_224_quant.tflite": (1.02, 1.06, 1.18),
    "tflite/vww_96_int8.tflite": (1.04, 1.04, 1.11),
    "tflite/kws_ref_model.tflite": (1.27, 1.06, 1.21),
    "tflite/ad01_int8.tflite": (1.1, 1.01, 1.08),
    "tflite/pretrainedResnet_quant.tflite": (1.12, 1.02, 1.08),
    "tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite": (1.02, 1.02, 1.05),
    "tflite/bisonai_mobilenetv3_mnist.tflite": (1.04, 1.15, 1.29),
    "tflite/dcgan_generator_int8.tflite": (1.75, 1.03, 1.1),
    "tflite/derived_selfie_segmenter_a8w8.tflite": (1.02, 1.3, 1.82),
    "tflite/deeplabv3_mnv2_dm05_pascal_quant.tflite": (1.03, 1.16, 1.37),
    "onnx/mobilenet_v2_torch_qat_qdq.onnx": (1.04, 1.02, 1.04),
}


def operations(module: ir.Module) -> list[ir.Operation]:
    (function,) = module.body.operations
    return [op.operation for op in function.operation.regions[0].blocks[0].operations]


def model_weights(module: ir.Module) -> int:
    """Bytes of the model's 8-bit constants."""
    return sum(array.nbytes for array in constants_of(module) if array.itemsize == 1)


def model_constants(module: ir.Module) -> int:
    """Bytes of its constants, and 4 for each scale of an output channel."""
    scales = [op.attributes["weight_scales"] for op in operations(module) if "weight_scales" in op.attributes]
    return sum(array.nbytes for array in constants_of(module)) + sum(4 * len(ir.DenseF64ArrayAttr(s)) for s in scales)


@pytest.mark.parametrize("name", NETWORKS)
def test_memory_is_near_what_the_network_needs(require_model: Callable[[str], Path], name: str) -> None:
    module = qdialect.read_model(require_model(name))
    lowered = lower(module, targets.TARGETS["avx512vbmi"], Phase.LINALG)
    max_arena, max_weights, max_constants = NETWORKS[name]
    assert lowered.live_bytes <= lowered.arena_bytes <= max_arena * lowered.live_bytes
    assert model_weights(module) <= lowered.weights_bytes <= max_weights * model_weights(module)
    assert lowered.constants.size <= max_constants * model_constants(module)


@pytest.mark.parametrize("name", ["amxint8", "avx512vbmi", "avx2"])
def test_generated_code_calls_nothing_but_itself(require_model: Callable[[str], Path], name: str) -> None:
    """So it cannot allocate either: a function of somebody else's would be declared."""
    module = qdialect.read_model(require_model("tflite/kws_ref_model.tflite"))
    lowered = lower(module, targets.resolve(name))
    found = [op.operation for op in lowered.module.body.operations]
    functions = [op for op in found if op.name == "llvm.func"]
    assert functions
    assert all(len(op.regions[0].blocks) for op in functions)
    # There are also constants of the code, such as the shapes of matrix tiles.
    others = [op for op in found if op.name != "llvm.func"]
    assert all(op.name == "llvm.mlir.global" and "constant" in op.attributes for op in others)


def test_a_call_allocates_nothing(require_model: Callable[[str], Path]) -> None:
    executable = compile_module(qdialect.read_model(require_model("tflite/kws_ref_model.tflite")))
    outputs = [np.empty(port.shape, port.dtype) for port in executable.outputs]
    call = executable.bind(random_inputs(executable.inputs, 0), outputs)
    call()
    # Other threads of the process may allocate meanwhile; what the call does, it does each time.
    maximum = min(traced(call) for _ in range(5))
    # What Python needs for a call of a function.
    assert maximum < 1000


def traced(call: Callable[[], object]) -> int:
    """The most bytes that Python's allocator had given out at a time during 100 calls."""
    tracemalloc.start()
    try:
        for _ in range(100):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
