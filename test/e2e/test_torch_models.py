"""Three networks that PT2E quantized, by two quantizers: against PyTorch itself, three ways round."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tolerances import FLOATS, tolerance_of
from torch_models import NETWORKS, QUANTIZERS, Array, network

import qdialect
from qdialect.dialect import DequantizeOp
from qdialect.driver.torch_backend import compile_captured
from qdialect.frontends.torch import import_torch
from qdialect.ir._mlir import ir
from qdialect.passes.matching import producer
from qdialect.reference.interpreter import run

# Results are floats. What an element may be away from PyTorch's is a step of its own quantization where it has one;
# without one, what float32 loses in a sum of a hundred numbers.
FLOAT_LOSS = FLOATS["network"].absolute
SUMS = tolerance_of(".pt2", "aten.conv2d.default")


@cache
def imported(name: str, quantizer: str) -> ir.Module:
    return import_torch(network(name, quantizer).exported())


def step_of(module: ir.Module) -> float:
    """The scale of the quantized values that the result stands for, 0 where it is computed in float32."""
    (function,) = module.body.operations
    *_, last = function.regions[0].blocks[0].operations
    source = producer(last.operation.operands[0])
    return source.scales[0] if isinstance(source, DequantizeOp) and len(source.scales) == 1 else 0.0


def assert_close(found: Array, wanted: Array, step: float) -> None:
    assert found.shape == wanted.shape
    differences = np.abs(found - wanted)
    loss = FLOAT_LOSS * float(np.abs(wanted).max())
    assert differences.max() <= SUMS.steps * step + loss
    assert np.count_nonzero(differences > loss) <= SUMS.share * wanted.size


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_interpreted(name: str, quantizer: str) -> None:
    model, module = network(name, quantizer), imported(name, quantizer)
    found = [run(module, [image.numpy()])[0] for image in model.images]
    assert_close(np.stack(found), np.stack(model.results()), step_of(module))


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_values(name: str, quantizer: str) -> None:
    """Not only results: whatever the network quantizes on the way."""
    torch: Any = import_module("torch")
    model = network(name, quantizer)
    opened = model.opened()
    module = import_torch(torch.export.export(opened, (model.images[0],)))
    total = differing = 0
    for image in model.images[:2]:
        with torch.no_grad():
            wanted = [values.numpy().astype(np.int64) for values in opened(image)]
        for found, values in zip(run(module, [image.numpy()]), wanted, strict=True):
            steps = np.abs(found.astype(np.int64) - values)
            assert steps.max() <= SUMS.steps
            total += steps.size
            differing += np.count_nonzero(steps)
    assert differing <= SUMS.share * total


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_compiled(name: str, quantizer: str) -> None:
    """Compiled, the module gives the interpreter's bits."""
    model, module = network(name, quantizer), imported(name, quantizer)
    executable = qdialect.compile(module)
    for image in model.images:
        assert np.array_equal(executable(image.numpy()), run(module, [image.numpy()])[0])


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_torch_compile(name: str, quantizer: str) -> None:
    """Through Dynamo a model is what it is through export."""
    model, module = network(name, quantizer), imported(name, quantizer)
    torch: Any = import_module("torch")
    fast = torch.compile(model.model, backend=compile_captured)
    for image in model.images[:2]:
        with torch.no_grad():
            found = fast(image).numpy()
        assert np.array_equal(found, run(module, [image.numpy()])[0])


# Of each network: its contractions, all but those whose float results somebody reads fused into one kernel each, and
# the ops beside them once it is fused.
FUSED = {
    ("resnet", "x86"): (6, {"max_pool2d", "mean", "dynamic_dense"}),
    ("resnet", "xnnpack"): (7, {"max_pool2d", "mean"}),
    ("mobilenet", "x86"): (8, {"mean", "dynamic_conv2d", "dynamic_dense"}),
    ("mobilenet", "xnnpack"): (13, {"mean", "mul"}),
    ("perceptron", "x86"): (2, {"dynamic_dense"}),
    ("perceptron", "xnnpack"): (3, set[str]()),
}
EDGES = {"quantize", "dequantize", "transpose", "reshape", "constant", "broadcast"}


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("name", NETWORKS)
def test_fused(name: str, quantizer: str) -> None:
    module = import_torch(network(name, quantizer).exported())
    qdialect.PassManager("fuse-qnn").run(module)
    (function,) = module.body.operations
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    kernels = [op.removeprefix("qnn.") for op in names if op.startswith("qnn.")]
    count, beside = FUSED[name, quantizer]
    assert sum(kernel.startswith("fused_") for kernel in kernels) == count
    assert {kernel for kernel in kernels if not kernel.startswith("fused_")} - EDGES == beside
    # The image comes with its channels first; nothing else is turned.
    assert kernels.count("transpose") == (name != "perceptron")
    if quantizer == "xnnpack":
        # Everything between quantize and dequantize is 8 bits wide.
        assert kernels.count("quantize") == kernels.count("dequantize") == 1
        assert not any(op.startswith(("arith.", "math.")) for op in names)
