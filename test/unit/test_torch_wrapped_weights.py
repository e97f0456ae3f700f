"""Models whose weights are tensors made of others, as torchao's ``quantize_`` leaves them: exported and captured."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch_functions import check, drawn

from qdialect.driver.torch_backend import compile_captured
from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run

TORCH: Any = torch
QUANTIZATION: Any = import_module("torchao.quantization")
CONFIGURATIONS = {
    "weights": QUANTIZATION.Int8WeightOnlyConfig,
    "rows": QUANTIZATION.Int8DynamicActivationInt8WeightConfig,
    "groups": lambda: QUANTIZATION.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=TORCH.int4, weight_granularity=QUANTIZATION.PerGroup(32)
    ),
}


class Block(nn.Module):
    """A residual block with two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.last(torch.nn.functional.gelu(self.first(x))))


def quantized(kind: str) -> nn.Module:
    TORCH.manual_seed(0)
    model = Block().eval()
    QUANTIZATION.quantize_(model, CONFIGURATIONS[kind]())
    return model


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_exported(kind: str) -> None:
    model, x = quantized(kind), drawn(1, 2, 6, 32)
    (found,) = run(import_torch(torch.export.export(model, (x,))), [x.numpy()])
    assert_floats_within(found, model(x).detach().numpy(), "layer")


def test_captured() -> None:
    model, x = quantized("rows"), drawn(1, 2, 6, 32)
    TORCH._dynamo.reset()
    captured: Any = TORCH.compile(model, backend=compile_captured, options={"fallback": "none", "cache": "off"})
    assert_floats_within(captured(x).detach().numpy(), model(x).detach().numpy(), "layer")


def test_rows_are_multiplied_as_integers() -> None:
    module = import_torch(torch.export.export(quantized("rows"), (drawn(1, 2, 6, 32),)))
    assert str(module).count("qnn.dense") == 2


def test_an_archive_of_them_needs_no_trust() -> None:
    program, file = torch.export.export(quantized("weights"), (drawn(1, 2, 6, 32),)), io.BytesIO()
    torch.export.save(program, file)
    x = drawn(2, 2, 6, 32)
    (wanted,) = run(import_torch(program), [x.numpy()])
    for trust in (False, True):
        (found,) = run(import_torch(file.getvalue(), trust=trust), [x.numpy()])
        assert np.array_equal(found, wanted)


def test_products_of_integers() -> None:
    random = np.random.default_rng(3)
    left, right = (torch.tensor(random.integers(-128, 128, shape, np.int8)) for shape in ((20, 16), (16, 24)))

    def products(x: Tensor) -> Any:
        return TORCH._int_mm(x, right), TORCH._int_mm(x, x[:16].clone())

    check(products, left)
