"""PyTorch operators on integers of several types, bytes and booleans, against what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from together import variants_together
from torch import Tensor
from torch_functions import Function, check, drawn

from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ImportModelError

IDS = torch.tensor(np.random.default_rng(1).integers(-4, 9, (3, 5)))
TABLE = drawn(2, 9, 6)

CASES: dict[str, Callable[[Any], Any]] = {
    "index": lambda i: TABLE[i],
    "index_of_pairs": lambda i: TABLE[i.clamp(0, 5), i.clamp(0, 5) % 6],
    "reversed_difference": lambda i: 3 - i,
    "sorted": lambda i: torch.sort(i, dim=1, stable=True),
    "largest_two": lambda i: torch.topk(i, 2, 1)[0],
    "root": lambda i: torch.sqrt(i + 4),
    "arc": lambda i: torch.asin(i / 9),
    "sum_of_booleans": lambda i: (i > 3) + (i < 7),
    "product_of_booleans": lambda i: (i > 3) * (i < 7),
    "extremes_of_booleans": lambda i: (torch.maximum(i > 3, i < 2), torch.minimum(i > 3, i < 7)),
    "order_of_booleans": lambda i: ((i > 3) < (i < 7), (i > 3) >= (i < 5), torch.clamp_max(i > 3, i < 7)),
    "one_hot": lambda i: nnf.one_hot(i.clamp(0, 8), 9),
    "to_narrow": lambda i: i.to(torch.int32).to(torch.int8),
    "joined_types": lambda i: i * 0.5,
    "compared_types": lambda i: i > torch.tensor(2, dtype=torch.int32),
    "joined_with_narrow_ones": lambda i: torch.cat([i.to(torch.int32), i, i > 3]),
    "joined_with_floats": lambda i: torch.cat([i * 0.5, i]),
    "full": lambda i: i + torch.full((5,), 7) + torch.ones(5, dtype=torch.int32),
}


@variants_together
@pytest.mark.parametrize("name", CASES)
def test_of_integers(name: str) -> None:
    check(CASES[name], IDS)


def test_of_booleans() -> None:
    def joined(mask: Tensor) -> tuple[Tensor, ...]:
        return torch.logical_xor(mask, mask[:1]), mask.to(torch.int64) + 1

    check(joined, IDS > 2)


def test_of_unsigned_bytes() -> None:
    """Numbers above 127, which signed bytes lack."""

    def computed(x: Tensor) -> tuple[Tensor, ...]:
        floats = x.float(), x / 3, x * 0.5, torch.relu(x.float() / 255 - 0.5), x.float().mean(1)
        ends = x.amax(1), x.amin(0), x.max(), x.clamp(10, 200), torch.minimum(x, x.flip(0))
        return *floats, *ends, x > 200, x >> 1, x << 1, x >> 9, x << x, -x, x % 7, x.sum(), x.prod(), x.sort(1)[0]

    check(computed, torch.tensor([[0, 100, 127, 128], [255, 254, 7, 200], [129, 1, 250, 64]], dtype=torch.uint8))


def test_of_signed_bytes() -> None:
    def computed(x: Tensor) -> tuple[Tensor, ...]:
        return x.float() * 2, x.amax(1), x.amin(), x.clamp(-100, 100), x >> 2, x << 9, x >> 9, x.abs(), x // 3, x == 300

    check(computed, torch.tensor([[-128, 127, -1], [5, 0, 100]], dtype=torch.int8))


def test_indices_outside_name_the_nearest_element() -> None:
    def rows(i: Tensor) -> Tensor:
        return nnf.embedding(i, TABLE)

    module = import_torch(torch.export.export(Function(rows), (IDS.clamp(0, 8),)))
    far = np.full(IDS.shape, 10**12)
    assert np.array_equal(run(module, [far])[0], np.broadcast_to(TABLE.numpy()[8], (*IDS.shape, 6)))


def test_scatters_that_reduce() -> None:
    def scattered(x: Tensor, i: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        kinds = ("sum", "prod", "mean", "amax", "amin")
        reduced = (x.scatter_reduce(1, i, y, kind, include_self=own) for kind in kinds for own in (False, True))
        added = torch.scatter_add(x, 0, i % 3, y), x.index_add(1, i[0], x[:, :5], alpha=2)
        return *reduced, *added, torch.index_put(x, (i[0] % 3,), x[:1], accumulate=True)

    check(scattered, drawn(3, 3, 9), torch.tensor([[1, 0, 8, 1, 1], [4, 4, 4, 4, 2]]), drawn(4, 3, 7))


def test_scatters_of_integers_that_reduce() -> None:
    def scattered(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        means = (x.scatter_reduce(0, i, x, "mean", include_self=own) for own in (False, True))
        return *means, x.scatter_reduce(0, i, x, "amax"), x.index_reduce(0, i[:, 0], x, "amin")

    check(scattered, IDS, IDS.clamp(0, 2))


def test_parts_in_memory() -> None:
    """Windows and diagonals, also as strides."""

    def taken(x: Tensor) -> tuple[Tensor, ...]:
        strided = torch.as_strided(x, (4, 3, 2), (5, 1, 2), 3), (x * 2).as_strided((2, 2), (0, 7))
        return *strided, x.unfold(1, 3, 2), x.diagonal(), x.diagonal(-2)

    check(taken, drawn(1, 6, 7))


def test_strides_of_what_is_not_contiguous_are_refused() -> None:
    def taken(x: Tensor) -> Tensor:
        return torch.as_strided(x.t(), (2, 2), (1, 2))

    with pytest.raises(ImportModelError) as caught:
        import_torch(torch.export.export(Function(taken), (drawn(1, 6, 7),)))
    assert "aten.as_strided: operand must be contiguous" in caught.value.render()
