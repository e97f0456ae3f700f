"""Weights as language models have them: in bfloat16, in MatMulNBits of ONNX Runtime, and of torchao's `quantize_`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tools.zoo.flows.samples import CALIBRATION_SEEDS, drawn
from tools.zoo.flows.training import train
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported
from tools.zoo.tensors import tensors

_BLOCK = 32
_torch: Any = torch

# Bits, and the level: at 4 rows may be quantized, too.
BLOCKS = {"nbits4": (4, 0), "nbits4_level4": (4, 4), "nbits8": (8, 0), "nbits8_level4": (8, 4)}

TORCHAO: dict[str, Callable[[Any], Any]] = {
    "torchao_int4": lambda ao: ao.IntxWeightOnlyConfig(weight_dtype=_torch.int4, granularity=ao.PerGroup(_BLOCK)),
    "torchao_int8": lambda ao: ao.Int8WeightOnlyConfig(),
    "torchao_int8_dynamic": lambda ao: ao.Int8DynamicActivationInt8WeightConfig(),
    "torchao_int8_dynamic_int4": lambda ao: ao.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=_torch.int4, weight_granularity=ao.PerGroup(_BLOCK)
    ),
}
TRAINED = "qat"
"""How the names of flows end whose networks are trained with fake quantization first."""
IN_BFLOAT16 = "bfloat16"
"""How the names of flows end whose networks compute in this type."""


class _InBfloat16(nn.Module):
    """A network in bfloat16 whose inputs and results are float32 numbers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.bfloat16()

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        found: Any = self.model(*(one.bfloat16() if one.is_floating_point() else one for one in given))
        results: Any = [found] if isinstance(found, Tensor) else found
        return tuple(one.float() for one in list(results))


def quantize_blocks(name: str, source: Path, target: Path) -> None:
    """Write the float model `source` with the weights of its products in blocks."""
    module = imported("onnxruntime.quantization.matmul_nbits_quantizer")
    bits, level = BLOCKS[name]
    model = imported("onnx").load(source)
    quantizer = module.MatMulNBitsQuantizer(model, bits=bits, block_size=_BLOCK, accuracy_level=level)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


def quantize_wrapped(name: str, built: Built, target: Path) -> None:
    """Write the ``.pt2`` archive of `built` with weights that torchao wraps, if the flow has such."""
    package = imported("torchao.quantization")
    example = tensors(built.draw(1, CALIBRATION_SEEDS[0]))
    model = _InBfloat16(built.model).eval() if name.endswith(IN_BFLOAT16) else built.model
    quantized = name.removesuffix(IN_BFLOAT16).removesuffix(TRAINED).removesuffix("_")
    if quantized:
        configuration = TORCHAO[quantized](package)
        package.quantize_(model, _trained(built, configuration) if name.endswith(TRAINED) else configuration)
    with torch.no_grad():
        torch.export.save(torch.export.export(model, example), target)


def _trained(built: Built, configuration: Any) -> Any:
    """The configuration that ends the training of `built`."""
    package = imported("torchao.quantization.qat")
    teacher = copy.deepcopy(built.model)
    imported("torchao.quantization").quantize_(built.model, package.QATConfig(configuration, step="prepare"))
    train(built.model, teacher, list(map(tensors, drawn(built.draw, CALIBRATION_SEEDS))))
    return package.QATConfig(configuration, step="convert")
