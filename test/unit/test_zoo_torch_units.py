"""tools/zoo/units/torch_units.py: programs of PyTorch are cut at their quantized tensors."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_models import dequantized, quantized

import qdialect
from tools.zoo import frameworks
from tools.zoo.tensors import tensors
from tools.zoo.units import flipped_ties, measured_units
from tools.zoo.units.torch_units import load


class _Block(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        data = dequantized(quantized(x, 0.03, 120, torch.uint8), 0.03, 120, torch.uint8)
        normal = quantized(functional.layer_norm(data, (16,)), 0.02, 110, torch.uint8)
        total = dequantized(normal, 0.02, 110, torch.uint8) + data
        return dequantized(quantized(total, 0.05, 130, torch.uint8), 0.05, 130, torch.uint8)


def test_units_of_a_program_are_compared_and_explained(tmp_path: Path) -> None:
    sample = (np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32),)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(_Block(), tensors(sample)), path)
    names = load(path).quantized
    assert len(names) == 3
    load(path).write_exposed(tmp_path / "whole.pt2", sample)
    (output,) = frameworks.load("pytorch", str(path))(sample)
    exposed = frameworks.load("pytorch", str(tmp_path / "whole.pt2"))(sample)
    assert [array.dtype.name for array in exposed] == ["float32", *["uint8"] * 3]
    np.testing.assert_array_equal(exposed[0], output)

    found = measured_units(path, [sample])
    assert found.integer is None
    assert found.floating
    assert (found.floating.units, found.floating.elements, found.floating.different) == (3, 3 * 64, 0)
    assert found.ours
    assert (found.ours.elements, found.ours.different) == (3 * 64, 0)
    flipped = flipped_ties(path, [sample], [[np.asarray(qdialect.compile(path)(*sample))]])
    assert flipped
    assert flipped.different == 0
