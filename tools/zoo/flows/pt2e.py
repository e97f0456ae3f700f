"""PyTorch's PT2E quantization with the quantizers of two backends, after training or during it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tools.zoo.flows.samples import Sample
from tools.zoo.flows.training import train
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported
from tools.zoo.tensors import tensors


def quantize(built: Built, quantizer: str, target: Path, samples: Sequence[Sample]) -> None:
    """Write the ``.pt2`` archive of `built`, calibrated on `samples`."""
    package = imported("torchao.quantization.pt2e")
    pt2e = imported("torchao.quantization.pt2e.quantize_pt2e")
    calibration = list(map(tensors, samples))
    chosen = QUANTIZERS[quantizer]
    exported: Any = torch.export.export(built.model, calibration[0], strict=chosen.is_strict)
    prepare = pt2e.prepare_qat_pt2e if chosen.is_trained else pt2e.prepare_pt2e
    prepared = prepare(_without_zeros(exported.module()), chosen.create())
    if chosen.is_trained:
        package.move_exported_model_to_train(prepared)
        train(prepared, built.model, calibration)
        package.move_exported_model_to_eval(prepared)
    with torch.no_grad():
        for sample in calibration:
            prepared(*sample)
        converted = pt2e.convert_pt2e(prepared)
    package.move_exported_model_to_eval(converted)
    torch.export.save(torch.export.export(converted, calibration[0]), target)


def _without_zeros(module: Any) -> Any:
    """The module without additions of the number 0, which transformers has between indices of its masks.

    The XNNPACK quantizer turns every added number into an f32 tensor, and the sum is then no index any more.
    """
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.add.Tensor and node.args[1:] == (0,):
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    module.recompile()
    return module


def _x86(**options: bool) -> Any:
    module = imported("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    configuration = module.get_default_x86_inductor_quantization_config(**options)
    return module.X86InductorQuantizer().set_global(configuration)


def _xnnpack(**options: bool) -> Any:
    module = imported("torchao.testing.pt2e._xnnpack_quantizer")
    with warnings.catch_warnings():
        # The quantizer has moved to ExecuTorch, which pins another PyTorch; its annotations are the same.
        warnings.simplefilter("ignore")
        return module.XNNPACKQuantizer().set_global(
            module.get_symmetric_quantization_config(is_per_channel=True, **options)
        )


@dataclass(frozen=True)
class Quantizer:
    """A quantizer and the mode of `torch.export` for it.

    The x86 quantizer finds its patterns by module; the calls of one module, as of the ReLU of a ResNet's block, are
    one pattern to it unless the export is strict.  Not strict is the default, which keeps operators in place.
    """

    create: Callable[[], Any]
    is_strict: bool
    is_trained: bool = False


QUANTIZERS: Mapping[str, Quantizer] = {
    "pt2e_x86": Quantizer(_x86, True),
    "pt2e_x86_dynamic": Quantizer(lambda: _x86(is_dynamic=True), True),
    "pt2e_x86_qat": Quantizer(lambda: _x86(is_qat=True), True, is_trained=True),
    "pt2e_xnnpack": Quantizer(_xnnpack, False),
    "pt2e_xnnpack_qat": Quantizer(lambda: _xnnpack(is_qat=True), False, is_trained=True),
}
