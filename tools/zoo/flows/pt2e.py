"""PyTorch's PT2E quantization with the quantizers of two backends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tools.zoo.flows.samples import Sample
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported
from tools.zoo.tensors import tensors


def quantize(built: Built, quantizer: str, target: Path, samples: Sequence[Sample]) -> None:
    """Write the ``.pt2`` archive of `built`, calibrated on `samples`."""
    pt2e = imported("torchao.quantization.pt2e.quantize_pt2e")
    calibration = list(map(tensors, samples))
    chosen = QUANTIZERS[quantizer]
    exported: Any = torch.export.export(built.model, calibration[0], strict=chosen.is_strict)
    prepared = pt2e.prepare_pt2e(_without_zeros(exported.module()), chosen.create())
    with torch.no_grad():
        for sample in calibration:
            prepared(*sample)
        converted = pt2e.convert_pt2e(prepared)
    imported("torchao.quantization.pt2e").move_exported_model_to_eval(converted)
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


def _x86(is_dynamic: bool) -> Any:
    module = imported("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    configuration = module.get_default_x86_inductor_quantization_config(is_dynamic=is_dynamic)
    return module.X86InductorQuantizer().set_global(configuration)


def _xnnpack() -> Any:
    module = imported("torchao.testing.pt2e._xnnpack_quantizer")
    with warnings.catch_warnings():
        # The quantizer has moved to ExecuTorch, which pins another PyTorch; its annotations are the same.
        warnings.simplefilter("ignore")
        return module.XNNPACKQuantizer().set_global(module.get_symmetric_quantization_config(is_per_channel=True))


@dataclass(frozen=True)
class Quantizer:
    """A quantizer and the mode of `torch.export` for it.

    The x86 quantizer finds its patterns by module; the calls of one module, as of the ReLU of a ResNet's block, are
    one pattern to it unless the export is strict.  Not strict is the default, which keeps operators in place.
    """

    create: Callable[[], Any]
    is_strict: bool


QUANTIZERS: Mapping[str, Quantizer] = {
    "pt2e_x86": Quantizer(lambda: _x86(False), True),
    "pt2e_x86_dynamic": Quantizer(lambda: _x86(True), True),
    "pt2e_xnnpack": Quantizer(_xnnpack, False),
}
