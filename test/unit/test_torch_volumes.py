"""Convolutions and averages of volumes, against PyTorch; transposed ones are left to it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch_functions import check, drawn

import qdialect
from qdialect.diagnostics import ImportModelError
from qdialect.frontends.torch import import_torch

EXPORT: Any = import_module("torch.export")


def test_convolutions() -> None:
    first, second, third = drawn(1, 3, 4, 2, 3, 3), drawn(2, 6, 2, 3, 1, 3), drawn(3, 4, 1, 2, 2, 2)

    def convolved(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.conv3d(x, first, drawn(4, 3), padding=1),
            nnf.conv3d(x, second, None, (2, 1, 2), (1, 0, 1), 1, 2),
            nnf.conv3d(x, third, drawn(5, 4), 1, (2, 0, 1), (2, 1, 3), 4),
            nnf.conv3d(x, drawn(6, 3, 4, 3, 3, 3), None, padding="same"),
        )

    check(convolved, drawn(7, 2, 4, 4, 5, 6))


def test_averages() -> None:
    def averaged(x: Tensor) -> tuple[Tensor, ...]:
        return (
            nnf.avg_pool3d(x, 2),
            nnf.avg_pool3d(x, (2, 3, 3), (1, 2, 2), 1),
            nnf.avg_pool3d(x, (2, 3, 3), (1, 2, 2), 1, ceil_mode=True, count_include_pad=False),
            nnf.avg_pool3d(x, (3, 1, 2), divisor_override=4),
            nnf.local_response_norm(x[:, :, 0], 3),
        )

    check(averaged, drawn(8, 2, 4, 4, 5, 6))


def test_transposed_convolutions_are_left_to_pytorch(tmp_path: Path) -> None:
    model, given = nn.ConvTranspose3d(2, 3, 2, 2).eval(), drawn(9, 1, 2, 3, 4, 5)
    program: Any = EXPORT.export(model, (given,))
    with pytest.raises(ImportModelError) as caught:
        import_torch(program)
    assert "aten.conv_transpose3d.input" in caught.value.render()
    EXPORT.save(program, tmp_path / "model.pt2")
    with pytest.warns(qdialect.FallbackWarning, match="PyTorch runs 1 of 1 nodes"):
        executable = qdialect.compile(tmp_path / "model.pt2")
    with torch.no_grad():
        wanted: Any = model(given)
    np.testing.assert_array_equal(executable(given.numpy()), wanted.numpy())
