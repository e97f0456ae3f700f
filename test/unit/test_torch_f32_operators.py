"""PyTorch operators on f32 tensors, those among them that PyTorch itself decomposes, against what PyTorch computes."""

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
ROWS = drawn(7, 6), drawn(8, 6)
MASK = drawn(9, 8, 8) > -0.5
EMPTY_ROW = torch.cat([MASK[:7], torch.zeros(1, 8, dtype=torch.bool)])


def _put(x: Any, indices: Any, count: int) -> Any:
    return torch.ops.aten.index_put(x, indices, torch.arange(float(count)))


ONE: dict[str, Callable[[Any], Any]] = {
    "layer_norm": lambda x: nnf.layer_norm(x, (6,), *ROWS),
    "layer_norm_of_two": lambda x: nnf.layer_norm(x, (8, 6)),
    "group_norm": lambda x: nnf.group_norm(x, 2, *CHANNELS),
    "group_norm_alone": lambda x: nnf.group_norm(x, 2),
    "instance_norm": lambda x: nnf.instance_norm(x, None, None, *CHANNELS),
    "rms_norm": lambda x: nnf.rms_norm(x, (6,), ROWS[0], 1e-5),
    "batch_norm": lambda x: nnf.batch_norm(x, MEANS, VARIANCES, *CHANNELS),
    "batch_norm_alone": lambda x: nnf.batch_norm(x, MEANS, VARIANCES),
    "pad": lambda x: nnf.pad(x, (1, 2, 0, 1), value=1.5),
    "pad_and_cut": lambda x: nnf.pad(x, (-1, 2, 0, 1)),
    "reflection_pad": lambda x: nnf.pad(x, (1, 2, 0, 1), mode="reflect"),
    "replication_pad": lambda x: nnf.pad(x, (1, 2, 0, 1), mode="replicate"),
    "pixel_shuffle": lambda x: nnf.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: nnf.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: torch.channel_shuffle(x, 2),
    "repeat": lambda x: x.repeat(2, 1, 1, 3),
    "expand": lambda x: x[:, :1].expand(2, 5, 8, 6),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "roll": lambda x: torch.roll(x, (3, -1), (2, 3)),
    "flip": lambda x: torch.flip(x, (1, 3)),
    "amax": lambda x: torch.amax(x, (1, 2)),
    "amin": lambda x: torch.amin(x, 1, keepdim=True),
    "max_dim": lambda x: tuple(torch.max(x, 1)),
    "min_dim": lambda x: tuple(torch.min(x, 1, keepdim=True)),
    "max": torch.max,
    "argmax": lambda x: torch.argmax(x, 1),
    "argmax_of_all": torch.argmax,
    "argmin": lambda x: torch.argmin(x, 1, keepdim=True),
    "sum": lambda x: x.sum((1, 3)),
    "sum_of_all": torch.sum,
    "prod": lambda x: x.prod(1),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "power": lambda x: x.abs() ** 1.7,
    "power_of_two": lambda x: 2.0**x,
    "log": lambda x: torch.log(x.abs() + 0.1),
    "erf": torch.erf,
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 0.1),
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "sign": torch.sign,
    "softplus": lambda x: nnf.softplus(x * 9, 1.5, 10),
    "mish": nnf.mish,
    "selu": nnf.selu,
    "celu": lambda x: nnf.celu(x, 1.3),
    "softsign": nnf.softsign,
    "log_sigmoid": nnf.logsigmoid,
    "tanhshrink": nnf.tanhshrink,
    "softshrink": nnf.softshrink,
    "hardshrink": nnf.hardshrink,
    "threshold": lambda x: nnf.threshold(x, 0.1, 20.0),
    "prelu": lambda x: nnf.prelu(x, CHANNELS[0]),
    "glu": lambda x: nnf.glu(x, 1),
    "adaptive_avg_pool": lambda x: nnf.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive_avg_pool1d": lambda x: nnf.adaptive_avg_pool1d(x[0], 5),
    **{
        name: getattr(torch, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "asinh", "zeros_like", "ones_like")
    },
    "acosh": lambda x: torch.acosh(x.abs() + 1.01),
    "atanh": lambda x: torch.atanh(x.tanh() * 0.99),
    "fmod_of_number": lambda x: torch.fmod(x, 0.7),
    "remainder_of_number": lambda x: x % -0.7,
    "floor_quotient": lambda x: x // 0.7,
    "full_like": lambda x: torch.full_like(x, 3.5) + x.new_ones(6) + x.new_zeros(1),
    "top_k": lambda x: torch.topk(x, 3, 1),
    "least_k": lambda x: torch.topk(x, 3, -1, largest=False),
    "sort": lambda x: torch.sort(x, 1, descending=True),
    "stable_sort": lambda x: torch.sort(x, dim=2, stable=True),
    "argsort": lambda x: torch.argsort(x, 1),
    "kth_value": lambda x: torch.kthvalue(x, 2, 1),
    "median": lambda x: torch.median(x, 2, keepdim=True),
    "median_of_all": torch.median,
    "index_put": lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([2, 3])), torch.ones(2, 8, 6)),
    "index_put_apart": lambda x: _put(x, (torch.tensor([0, 1]), None, torch.tensor([2, -1])), 6),
    "index_put_later": lambda x: _put(x, (None, torch.tensor([0, -1]), torch.tensor([[2], [3]])), 6),
    "mask_put": lambda x: x.index_put((x > 0,), torch.tensor(7.0)),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1]), 5.0),
    "cat_of_many": lambda x: torch.cat([x * i for i in range(20)], 1),
    "avg_pool_ceil": lambda x: nnf.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "avg_pool_ceil_of_image": lambda x: nnf.avg_pool2d(x, (3, 2), (2, 3), 1, True, count_include_pad=False),
    "avg_pool_of_elements": lambda x: nnf.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "avg_pool_divisor": lambda x: nnf.avg_pool2d(x, 3, 2, divisor_override=5),
    "avg_pool1d": lambda x: nnf.avg_pool1d(x[0], 4, 3, 1, ceil_mode=True, count_include_pad=False),
    "avg_pool_of_one": lambda x: nnf.avg_pool2d(x[0], 3, 2),
    "max_pool_of_one": lambda x: nnf.max_pool2d(x[0], 3, 2),
    "cumprod": lambda x: torch.cumprod(x, -1),
    "max_pool1d": lambda x: nnf.max_pool1d(x[0], 4, 3, 1, ceil_mode=True),
    "adaptive_max_pool_of_size": lambda x: nnf.adaptive_max_pool2d(x, (5, 4)),
    "adaptive_max_pool1d": lambda x: nnf.adaptive_max_pool1d(x[0], 4),
    "adaptive_max_pool": lambda x: nnf.adaptive_max_pool2d(x, 1),
    "max_pool": lambda x: nnf.max_pool2d(x, 3, 2, 1),
    "max_pool_ceil": lambda x: nnf.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max_pool_dilated": lambda x: nnf.max_pool2d(x, 2, 1, 0, 2),
    "unbind": lambda x: tuple(part * 2 for part in torch.unbind(x, 1)),
    "chunk": lambda x: torch.chunk(x, 4, 3)[1] * 2,
    "nearest": lambda x: nnf.interpolate(x, scale_factor=2),
    "nearest_of_size": lambda x: nnf.interpolate(x, size=(5, 13)),
    "bilinear": lambda x: nnf.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear_corners": lambda x: nnf.interpolate(x, size=(5, 13), mode="bilinear", align_corners=True),
    "bicubic": lambda x: nnf.interpolate(x, size=(5, 13), mode="bicubic"),
    "cumsum": lambda x: torch.cumsum(x, 1),
    "var": lambda x: x.var((2, 3)),
    "std": lambda x: x.std(1, keepdim=True),
    "norm": lambda x: x.norm(dim=1),
    "normalize": lambda x: nnf.normalize(x, dim=1),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "masked_fill": lambda x: x.masked_fill(x < 0, -1e9),
    "softmin": lambda x: nnf.softmin(x, 1),
    "tril": torch.tril,
    "unfold": lambda x: nnf.unfold(x, 3, padding=1),
    "vector": lambda x: x @ ROWS[0],
    "index_select": lambda x: torch.index_select(x, 1, torch.tensor([2, 0])),
    "index": lambda x: x[:, [2, 0, 1]],
    "index_apart": lambda x: x[[1, 0], :, [2, 3]],
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
    "arange": lambda x: x + torch.arange(6),
    "to_integers": lambda x: (x * 9).to(torch.int64),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "hypot": torch.hypot,
    "stack": lambda x, y: torch.stack([x, y], 1),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "clamp": lambda x, y: torch.clamp(x, y - 1, y + 1),
    "power": lambda x, y: x.abs() ** y,
    "einsum": lambda x, y: torch.einsum("bhij,bhkj->bhik", x, y),
    "einsum_of_rows": lambda x, y: torch.einsum("bhij,bhij->bh", x, y),
    "where": lambda x, y: torch.where(x > y, x, y * 2),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "cosine_similarity": nnf.cosine_similarity,
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
