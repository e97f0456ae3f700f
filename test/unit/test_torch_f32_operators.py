"""PyTorch operators on f32 tensors in forms that the samples of PyTorch itself lack, against what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as nnf
from together import variants_together
from torch_functions import check, drawn

SHAPE = (2, 4, 8, 6)


CHANNELS = drawn(3, 4), drawn(4, 4)
MEANS, VARIANCES = drawn(5, 4), drawn(6, 4).abs() + 0.5
MASK = drawn(9, 8, 8) > -0.5
EMPTY_ROW = torch.cat([MASK[:7], torch.zeros(1, 8, dtype=torch.bool)])


def _put(x: Any, indices: Any, count: int) -> Any:
    return torch.ops.aten.index_put(x, indices, torch.arange(float(count)))


ONE: dict[str, Callable[[Any], Any]] = {
    "instance_norm": lambda x: nnf.instance_norm(x, None, None, *CHANNELS),
    "index_put": lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([2, 3])), torch.ones(2, 8, 6)),
    "index_put_apart": lambda x: _put(x, (torch.tensor([0, 1]), None, torch.tensor([2, -1])), 6),
    "index_put_later": lambda x: _put(x, (None, torch.tensor([0, -1]), torch.tensor([[2], [3]])), 6),
    "mask_put": lambda x: x.index_put((x > 0,), torch.tensor(7.0)),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1]), 5.0),
    "cat_of_many": lambda x: torch.cat([x * i for i in range(20)], 1),
    "avg_pool_of_one": lambda x: nnf.avg_pool2d(x[0], 3, 2),
    "max_pool_of_one": lambda x: nnf.max_pool2d(x[0], 3, 2),
    "bicubic": lambda x: nnf.interpolate(x, size=(5, 13), mode="bicubic"),
    "unfold": lambda x: nnf.unfold(x, 3, padding=1),
    "index_apart": lambda x: x[[1, 0], :, [2, 3]],
    "to_integers": lambda x: (x * 9).to(torch.int64),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "einsum_of_rows": lambda x, y: torch.einsum("bhij,bhij->bh", x, y),
    "attention": lambda x, y: nnf.scaled_dot_product_attention(x, y, y),
    "attention_causal": lambda x, y: nnf.scaled_dot_product_attention(x, y, y, is_causal=True, scale=0.3),
    "attention_masked": lambda x, y: nnf.scaled_dot_product_attention(x, y, y, attn_mask=MASK),
    "attention_of_nothing": lambda x, y: nnf.scaled_dot_product_attention(x, y, y, attn_mask=EMPTY_ROW),
    "attention_biased": lambda x, y: nnf.scaled_dot_product_attention(x, y, y, attn_mask=drawn(11, 8, 8)),
}


@variants_together
@pytest.mark.parametrize("name", ONE)
def test_of_one(name: str) -> None:
    check(ONE[name], drawn(1, *SHAPE))


@variants_together
@pytest.mark.parametrize("name", TWO)
def test_of_two(name: str) -> None:
    check(TWO[name], drawn(1, *SHAPE), drawn(2, *SHAPE))
