"""Every PyTorch operator between dequantize and quantize against what PyTorch computes, for all quantized values."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from compiled_ops import variants_together
from drawn_graphs import op_names
from tolerances import assert_within, loosest
from torch import Tensor, nn
from torch_models import Function, check, dequantized, drawn, operators_of, quantized, refused

from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.operators.registry import is_supported
from qdialect.reference.interpreter import run

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """An operator on quantized values of `shapes`; results are quantized by `scale` and `zero_point`."""

    function: Callable[..., Any]
    shapes: Shapes
    scale: float = 0.03
    zero_point: int = 3
    dtype: torch.dtype = torch.int8
    ops: tuple[str, ...] = ()
    """The ops of the dialect that it must become, without constants and the return."""


def single(scale: float) -> float:
    """A double that is no simple fraction of others, and a float32 number only by chance."""
    return scale * (np.pi / 3)


class Between(nn.Module):
    """A function between dequantize and quantize."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *values: Tensor) -> Tensor:
        scales = (2**0.5 / 28, 3**0.5 / 80, 5**0.5 / 70)
        points = (7, 100, 0)
        f32_values = [dequantized(*given, values[0].dtype) for given in zip(values, scales, points, strict=False)]
        return quantized(
            self.case.function(*f32_values), single(self.case.scale), self.case.zero_point, self.case.dtype
        )


IMAGE = (2, 5, 7, 6)
LUT = ("qnn.lut",)


def one(function: Callable[[Any], Any], shapes: Shapes = (IMAGE,), **options: Any) -> Case:
    return Case(function, shapes, **options)


def two(function: Callable[[Any, Any], Any], shapes: Shapes = (IMAGE, IMAGE), **options: Any) -> Case:
    return Case(function, shapes, **options)


CASES: dict[str, Case] = {
    "sigmoid": one(torch.sigmoid, scale=1 / 256, ops=LUT),
    "silu": one(nnf.silu, ops=LUT),
    "tanh": one(torch.tanh, scale=1 / 128, ops=LUT),
    "hardsigmoid": one(nnf.hardsigmoid, scale=1 / 200, ops=LUT),
    "hardswish": one(nnf.hardswish, ops=LUT),
    "leaky_relu": one(lambda x: nnf.leaky_relu(x, 0.1), ops=LUT),
    "gelu": one(nnf.gelu, ops=LUT),
    "gelu_tanh": one(lambda x: nnf.gelu(x, approximate="tanh"), ops=LUT),
    "elu": one(lambda x: nnf.elu(x, 0.7), ops=LUT),
    "relu": one(torch.relu, ops=("qnn.lut", "qnn.clip")),
    "relu6": one(nnf.relu6, ops=("qnn.lut", "qnn.clip")),
    "relu_in_place": one(lambda x: torch.relu_(x + 1), ops=("qnn.lut", "qnn.clip")),
    "hardtanh": one(lambda x: nnf.hardtanh(x, -0.5, 0.7), ops=("qnn.lut", "qnn.clip")),
    "clamp": one(lambda x: torch.clamp(x, min=-0.5), ops=("qnn.lut", "qnn.clip")),
    "exp": one(torch.exp, scale=0.5, ops=LUT),
    "abs": one(torch.abs, ops=LUT),
    "neg": one(torch.neg, ops=LUT),
    "sqrt": one(lambda x: torch.sqrt(torch.relu(x)), ops=LUT),
    "rsqrt": one(lambda x: torch.rsqrt(torch.relu(x) + 0.1), ops=LUT),
    "add_scalar": one(lambda x: x + 0.7, ops=LUT),
    "sub_scalar": one(lambda x: 0.7 - x, ops=LUT),
    "mul_scalar": one(lambda x: x * 0.3, ops=LUT),
    "div_scalar": one(lambda x: x / 3, ops=LUT),
    "swish_by_hand": one(lambda x: x * torch.sigmoid(x), ops=LUT),
    "hardswish_by_hand": one(lambda x: x * nnf.relu6(x + 3) / 6, ops=LUT),
    "add": two(lambda x, y: x + y, ops=("qnn.add",)),
    "add_broadcast": two(lambda x, y: x + y, ((2, 5, 7, 6), (5, 1, 1)), ops=("qnn.add",)),
    "add_relu": two(lambda x, y: torch.relu(x + y), ops=("qnn.add", "qnn.clip")),
    "mul": two(lambda x, y: x * y, ops=("qnn.mul",)),
    "mul_channels": two(lambda x, y: x * y, ((2, 5, 7, 6), (2, 5, 1, 1)), ops=("qnn.mul",)),
    "cat": two(lambda x, y: torch.cat([x, y], 1), ops=("qnn.lut", "qnn.lut", "qnn.concat")),
    "cat_last": two(lambda x, y: torch.cat([x, y], -1), ops=("qnn.lut", "qnn.lut", "qnn.concat")),
    "mean": one(lambda x: x.mean((2, 3)), ((2, 5, 7, 5),), scale=0.01, ops=("qnn.mean",)),
    "mean_kept": one(lambda x: x.mean((-1,), keepdim=True), ((3, 5, 7),), scale=0.01, ops=("qnn.mean",)),
    "mean_of_all": one(lambda x: x.mean(), ((3, 5, 7),), scale=0.01, ops=("qnn.mean",)),
    "global_pool": one(lambda x: nnf.adaptive_avg_pool2d(x, 1), ((2, 5, 7, 5),), scale=0.01, ops=("qnn.mean",)),
    "max_pool": one(
        lambda x: nnf.max_pool2d(x, 3, 2, 1), ops=("qnn.transpose", "qnn.max_pool2d", "qnn.lut", "qnn.transpose")
    ),
    "avg_pool": one(lambda x: nnf.avg_pool2d(x, 3, 2), scale=0.017),
    "avg_pool_padded": one(lambda x: nnf.avg_pool2d(x, 3, 1, 1), scale=0.017),
    "avg_pool_ceil": one(lambda x: nnf.avg_pool2d(x, 3, 2, 1, ceil_mode=True), scale=0.017),
    "avg_pool_of_elements": one(lambda x: nnf.avg_pool2d(x, 3, 2, 1, count_include_pad=False), scale=0.017),
    "avg_pool_divisor": one(lambda x: nnf.avg_pool2d(x, 3, 2, divisor_override=7), scale=0.017),
    "max_pool_ceil": one(lambda x: nnf.max_pool2d(x, 2, 2, ceil_mode=True)),
    "adaptive_max_pool": one(lambda x: nnf.adaptive_max_pool2d(x, (2, 3))),
    "adaptive_pool": one(lambda x: nnf.adaptive_avg_pool2d(x, (2, 1)), ((1, 3, 6, 5),), scale=0.017),
    "float_mean": one(lambda x: (x * 2.0 + x.mean((2, 3), keepdim=True)) * 0.3),
    "float_softmax": one(lambda x: torch.softmax(torch.softmax(x, 1), -1), ((3, 11),), scale=0.01),
    "log_softmax": one(lambda x: torch.log_softmax(x, 1), ((3, 11),), scale=0.05),
    "float_cat": two(lambda x, y: (torch.cat([x * 2, y, x], 1) + 1) * torch.cat([y, x, y], 1)),
    "mean_of_sum": two(
        lambda x, y: torch.mean(nnf.max_pool2d(x, 1) * y, (2, 3)), ((2, 5, 5, 7), (2, 5, 5, 7)), scale=0.01
    ),
    "float_avg_pool": one(lambda x: nnf.avg_pool2d(nnf.avg_pool2d(x, 2), 3, 1, 1)),
    "softmax": one(lambda x: torch.softmax(x, -1), ((3, 11),), scale=1 / 256, zero_point=-128, ops=("qnn.softmax",)),
    "flatten": one(lambda x: torch.flatten(x, 1), ops=("qnn.reshape", "qnn.lut")),
    "view": one(lambda x: x.view(-1, 14), ops=("qnn.reshape", "qnn.lut")),
    "reshape": one(lambda x: x.reshape(7, -1), ops=("qnn.reshape", "qnn.lut")),
    "permute": one(lambda x: x.permute(2, 0, 3, 1), ops=("qnn.transpose", "qnn.lut")),
    "transpose": one(lambda x: x.transpose(1, -1), ops=("qnn.transpose", "qnn.lut")),
    "matrix_transpose": one(lambda x: x.t(), ((5, 3),), ops=("qnn.transpose", "qnn.lut")),
    "unsqueeze": one(lambda x: x.unsqueeze(1), ops=("qnn.reshape", "qnn.lut")),
    "squeeze": one(lambda x: x.squeeze(0), ((1, 5, 3),), ops=("qnn.reshape", "qnn.lut")),
    "dropout": one(lambda x: nnf.dropout(x, 0.3, training=False), ops=LUT),
    "contiguous": one(lambda x: x.transpose(0, 1).contiguous(), ops=("qnn.transpose", "qnn.lut")),
    "slice": one(lambda x: x[:, 1:-1, ::2], ops=("qnn.slice", "qnn.slice", "qnn.lut")),
    "select": one(lambda x: x[:, -1], ops=("qnn.slice", "qnn.reshape", "qnn.lut")),
    "chunk": one(lambda x: torch.chunk(x, 2, -1)[1], ops=("qnn.slice", "qnn.slice", "qnn.lut")),
    "split": one(lambda x: torch.relu(torch.split(x, [2, 3], 1)[1])),
    "moved_sum": two(lambda x, y: (x + y).flatten(1), ops=("qnn.add", "qnn.reshape")),
    "pooled_sum": two(lambda x, y: nnf.max_pool2d(x + y, 2)),
}


def quantized_of(shape: tuple[int, ...], seed: int, dtype: torch.dtype) -> Tensor:
    bounds = torch.iinfo(dtype)
    generator = np.random.default_rng(seed)
    return torch.tensor(generator.integers(bounds.min, bounds.max + 1, shape)).to(dtype)


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    case, dtype = CASES[name], (torch.int8, torch.uint8)[len(name) % 2]
    values = tuple(quantized_of(shape, seed, dtype) for seed, shape in enumerate(case.shapes))
    model = Between(case)
    exported = torch.export.export(model, values)
    module = import_torch(exported)
    (found,) = run(module, [code.numpy() for code in values])
    assert_within(found, model(*values).numpy(), loosest(".pt2", operators_of(exported)))
    assert not case.ops or tuple(op_names(module)) == case.ops


POOLS: dict[str, Callable[[Any], Any]] = {
    "avg_pool2d": lambda x: nnf.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: nnf.adaptive_avg_pool2d(x, (3, 4)),
    "mean_of_seven": lambda x: x.mean(1),
    "avg_pool_of_nine": lambda x: nnf.avg_pool2d(x, 3),
}


# Equal as float32, of which the second is a text with six digits.
CLOSE = (0.17717300355434418, 0.177173)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("scales", [(0.0139, 0.0139), CLOSE, CLOSE[::-1], (0.5, 1.0)])
def test_means_between_two_values(name: str, scales: tuple[float, float]) -> None:
    """With the scale of the input a quarter of the means lie halfway; the order of the sum decides, and it is kept.

    Where no order rounds, a factor that does would decide.
    """

    def pooled(values: Tensor) -> Tensor:
        return quantized(POOLS[name](dequantized(values, scales[0], 5, torch.int8)), scales[1], 5, torch.int8)

    check(pooled, quantized_of((4, 7, 12, 16), 1, torch.int8))


def test_scales_that_are_one_float32_number_keep_the_values() -> None:
    def joined(first: Tensor, second: Tensor) -> Tensor:
        parts = [dequantized(one, scale, 5, torch.int8) for one, scale in zip((first, second), CLOSE, strict=True)]
        return quantized(torch.cat(parts, 1), CLOSE[1], 5, torch.int8)

    values = tuple(quantized_of((2, 9), seed, torch.int8) for seed in (1, 2))
    assert op_names(import_torch(torch.export.export(Function(joined), values))) == ["qnn.concat"]
    check(joined, *values)


SCALES = [0.03, *CLOSE, *np.random.default_rng(3).uniform(0.01, 0.2, 6).tolist()]


@pytest.mark.parametrize("scale", SCALES)
def test_ties_of_float_results(scale: float) -> None:
    """A float input is quantized as PyTorch does, in the reference and compiled: the reciprocal is of the double."""

    x = torch.tensor(((np.arange(-360, 360) + 0.5) * scale).astype(np.float32))
    check(lambda x: quantized(x, scale, 3, torch.int8), x)


@pytest.mark.parametrize("kind", ["quantize", "dequantize"])
def test_scales_of_channels_are_float32(kind: str) -> None:
    """PyTorch computes with float64 scales in float64."""

    class Channels(nn.Module):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            self.scales = nn.Buffer(torch.tensor([0.03, 0.04, 0.05], dtype=dtype))
            self.points = nn.Buffer(torch.tensor([1, 2, 3]))

        def forward(self, x: Tensor) -> Tensor:
            operator = getattr(torch.ops.quantized_decomposed, f"{kind}_per_channel").default
            return operator(x, self.scales, self.points, 1, -128, 127, torch.int8)

    values = quantized_of((40, 3), 1, torch.int8)
    x = values if kind == "dequantize" else (values.to(torch.float32) + 0.5) * torch.tensor([0.03, 0.04, 0.05])
    single = Channels(torch.float32)
    (found,) = run(import_torch(torch.export.export(single, (x,))), [x.numpy()])
    assert np.array_equal(found, single(x).numpy())
    assert "argument 'scales' must be float32, but got float64" in refused(Channels(torch.float64), x)


# PyTorch operators on f32 tensors in forms that the samples of PyTorch itself lack, against what PyTorch computes.

SHAPE = (2, 4, 8, 6)


CHANNELS = drawn(3, 4), drawn(4, 4)
MASK = drawn(9, 8, 8) > -0.5
EMPTY_ROW = torch.cat([MASK[:7], torch.zeros(1, 8, dtype=torch.bool)])


def _put(x: Any, indices: Any, count: int) -> Any:
    return torch.ops.aten.index_put(x, indices, torch.arange(float(count)))


ONE: dict[str, Callable[[Any], Any]] = {
    "instance_norm": lambda x: nnf.instance_norm(x, None, None, *CHANNELS),
    "index_put": lambda x: x.index_put((torch.tensor([0, 1]), torch.tensor([2, 3])), torch.ones(2, 8, 6)),
    "index_put_apart": lambda x: _put(x, (torch.tensor([0, 1]), None, torch.tensor([2, -1])), 6),
    "index_put_later": lambda x: _put(x, (None, torch.tensor([0, -1]), torch.tensor([[2], [3]])), 6),
    "index_put_rows": lambda x: _put(x, (None, torch.tensor([[0, -1], [2, 0]])), 6),
    "index_put_row": lambda x: _put(x.flatten(2), (None, torch.tensor([[0, -1], [2, 0]])), 48),
    "index_copy_rows": lambda x: torch.index_copy(
        x.flatten(2)[None], 2, torch.tensor([3, 1, 3]), x.flatten(2)[None, :, :3]
    ),
    "mask_put": lambda x: x.index_put((x > 0,), torch.tensor(7.0)),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1]), 5.0),
    "cat_of_many": lambda x: torch.cat([x * i for i in range(20)], 1),
    "cat_of_nothing": lambda x: torch.cat([torch.tensor([]), x, x + 1], -2),
    "cat_of_nothing_else": lambda x: torch.cat([torch.tensor([]), x], -2) * 2,
    "cat_of_empty_parts": lambda x: torch.cat([x[..., 6:] * 2, x, x[..., :0].relu()], -1),
    "cat_of_no_integers": lambda x: torch.cat([torch.zeros(0, dtype=torch.int64), (x * 9).to(torch.int64)], 1),
    "avg_pool_of_one": lambda x: nnf.avg_pool2d(x[0], 3, 2),
    "max_pool_of_one": lambda x: nnf.max_pool2d(x[0], 3, 2),
    "bicubic": lambda x: nnf.interpolate(x, size=(5, 13), mode="bicubic"),
    "nearest_of_kept_and_doubled": lambda x: nnf.interpolate(x, scale_factor=(1.1, 2.1)),
    "bilinear_of_kept": lambda x: nnf.interpolate(x, scale_factor=(1.1, 1.5), mode="bilinear"),
    "unfold": lambda x: nnf.unfold(x, 3, padding=1),
    "index_apart": lambda x: x[[1, 0], :, [2, 3]],
    "to_integers": lambda x: (x * 9).to(torch.int64),
    # The rounding error of the product, which a sum rounded once has.
    "multiple_in_a_sum": lambda x: torch.add(x * -0.1, x, alpha=0.1) * 2**30,
    "multiple_in_a_difference": lambda x: (
        (torch.sub(x * 0.1, x, alpha=0.1) + torch.rsub(x, x * 0.1, alpha=0.1)) * 2**30
    ),
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


# The core operators of PyTorch.

_DOCS = Path(__file__).parents[2] / "docs" / "formats.md"


def test_extents_that_depend_on_data_are_refused() -> None:
    wanted = "'nonzero' aten.nonzero: extents of a result must be known before the program runs, but depend"
    assert wanted in refused(torch.nonzero, torch.ones(3))


def _core_operators() -> set[Any]:
    """Those that PyTorch calls core; what takes apart symbolic numbers or has an `out` is no such."""
    found: set[Any] = set()
    # What PyTorch knows of its own operators is not public.
    names: Any = import_module("torch._C")
    for given in names._dispatch_get_all_op_names():
        name, _, overload = given.removeprefix("aten::").partition(".")
        operator = getattr(getattr(torch.ops.aten, name, None), overload or "default", None)
        if torch.Tag.core in getattr(operator, "tags", ()) and overload != "out" and not name.startswith("sym_"):
            found.add(operator)
    return found


def test_the_page_names_every_operator_that_is_not_compiled() -> None:
    """Of the others each has a planner, or PyTorch decomposes it."""
    section = _DOCS.read_text().partition("### Core operators that PyTorch runs\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")][1:]
    told = {f"aten.{name.strip().strip('`')}" for row in rows for name in row.split(",")}
    others = {one for one in _core_operators() if str(one).removesuffix(".default") not in told}
    assert len(_core_operators()) == len(others) + len(told)
    assert not {name for name in told if is_supported(name) or is_supported(f"{name}.default")}
    decomposed = import_module("torch._decomp").decomposition_table.keys()
    left = {str(one) for one in others - decomposed if not is_supported(str(one))}
    # Of numbers, which are known, and of compositions of others.
    assert left == {f"aten.{name}.default" for name in ("scalar_tensor", "avg_pool1d", "adaptive_avg_pool1d")}


# PyTorch operators on integers of several types, bytes and booleans, against what PyTorch computes.

IDS = torch.tensor(np.random.default_rng(1).integers(-4, 9, (3, 5)))
TABLE = drawn(2, 9, 6)

CASES_INTEGERS: dict[str, Callable[[Any], Any]] = {
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
    "far_shifts": lambda i: (
        i << 40,
        i >> 2,
        i.to(torch.int32) << 27,
        (i * 2**40) >> 35,
        i << i,
        i.to(torch.int16) << 13,
    ),
    "one_hot": lambda i: nnf.one_hot(i.clamp(0, 8), 9),
    "to_narrow": lambda i: i.to(torch.int32).to(torch.int8),
    "joined_types": lambda i: i * 0.5,
    "compared_types": lambda i: i > torch.tensor(2, dtype=torch.int32),
    "joined_with_narrow_ones": lambda i: torch.cat([i.to(torch.int32), i, i > 3]),
    "joined_with_floats": lambda i: torch.cat([i * 0.5, i]),
    "full": lambda i: i + torch.full((5,), 7) + torch.ones(5, dtype=torch.int32),
}


@variants_together
@pytest.mark.parametrize("name", CASES_INTEGERS)
def test_of_integers(name: str) -> None:
    check(CASES_INTEGERS[name], IDS)


def test_of_unsigned_bytes() -> None:
    """Numbers above 127, which signed bytes lack."""

    def computed(x: Tensor) -> tuple[Tensor, ...]:
        floats = x.float(), x / 3, x * 0.5, torch.relu(x.float() / 255 - 0.5), x.float().mean(1)
        ends = x.amax(1), x.amin(0), x.max(), x.clamp(10, 200), torch.minimum(x, x.flip(0))
        return (
            *floats,
            *ends,
            x > 200,
            x >> 1,
            x << 1,
            x >> 9,
            x << x,
            -x,
            x % 7,
            x.abs(),
            x.sum(),
            x.prod(),
            x.sort(1)[0],
        )

    check(computed, torch.tensor([[0, 100, 127, 128], [255, 254, 7, 200], [129, 1, 250, 64]], dtype=torch.uint8))


def test_of_signed_bytes() -> None:
    def computed(x: Tensor) -> tuple[Tensor, ...]:
        return x.float() * 2, x.amax(1), x.amin(), x.clamp(-100, 100), x >> 2, x << 9, x >> 9, x.abs(), x // 3, x == 300

    check(computed, torch.tensor([[-128, 127, -1], [5, 0, 100]], dtype=torch.int8))


def test_indices_that_take_a_dimension_whole() -> None:
    """Along a dimension of the result of its own, which is the first, in the middle, or not alone."""

    def indexed(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        n, c = torch.arange(2), torch.arange(9)
        middle = x[n.view(2, 1, 1), i[:2, None], c.view(9, 1), i[0] % 3]
        return (
            middle,
            x[0, i, :, 0][c % 5 % 2],
            x[n, i[0, :2], c[:2], 2 - n],
            x[i[:1] % 2, i[:1], c[:, None], i[:1] % 3],
        )

    check(indexed, drawn(1, 2, 5, 9, 3), torch.tensor([[1, 0, 4, -1, 2], [-5, 4, 3, 3, 2]]))


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


def test_bounds_keep_the_sign_of_a_zero() -> None:
    def inverses(x: Tensor) -> tuple[Tensor, ...]:
        bounded = x.relu(), nnf.relu6(x), x.clamp(max=-0.0), x.clamp(0.0, -0.0), x.half().relu().float(), x.clamp_min(0)
        return tuple(1 / one for one in bounded)

    check(inverses, torch.tensor([0.0, -0.0, float("nan"), float("inf"), -2.0, 3.0] * 7))


def test_parts_in_memory() -> None:
    """Windows and diagonals, also as strides."""

    def taken(x: Tensor) -> tuple[Tensor, ...]:
        strided = torch.as_strided(x, (4, 3, 2), (5, 1, 2), 3), (x * 2).as_strided((2, 2), (0, 7))
        return *strided, x.unfold(1, 3, 2), x.diagonal(), x.diagonal(-2)

    check(taken, drawn(1, 6, 7))


def test_strides_of_tensors_that_are_not_contiguous_are_refused() -> None:
    message = refused(lambda x: torch.as_strided(x.t(), (2, 2), (1, 2)), drawn(1, 6, 7))
    assert "aten.as_strided: operand must be contiguous" in message


def test_pixels_between_infinities() -> None:
    """Each counts by its share; PyTorch's decompositions take the difference of neighbours, which is NaN."""
    image, inf = drawn(1, 2, 3, 4, 5), float("inf")
    image[0, 0, 1], image[0, 1, 2, 3], image[1, 2, :, 4], image[1, 0, 0, 0] = inf, -inf, inf, float("nan")

    def resized(x: Tensor) -> list[Tensor]:
        sizes = {"bilinear": (7, 9), "trilinear": (5, 2, 11), "linear": (8,)}
        given = {"bilinear": x, "trilinear": x[None], "linear": x[0]}
        forms = [(mode, aligned) for mode in sizes for aligned in (False, True)]
        plain = [nnf.interpolate(given[mode], sizes[mode], mode=mode, align_corners=one) for mode, one in forms]
        return [*plain, nnf.interpolate(x, scale_factor=(1.5, 0.4), mode="bilinear")]

    check(resized, image)


def test_pixels_at_coordinates_that_are_no_numbers() -> None:
    """A NaN and an infinity are outside of the image, and shares of pixels are NaN; at the border they are inside."""
    grid, inf, nan = drawn(6, 1, 8, 2, 2) * 1.3, float("inf"), float("nan")
    grid[0, :4, 0, 0], grid[0, 2:6, 1, 1] = torch.tensor([nan, inf, -inf, 1e30]), torch.tensor([nan, inf, -inf, -1e9])

    def sampled(image: Tensor, grid: Tensor) -> list[Tensor]:
        forms = [(0, 0, False), (0, 1, True), (0, 2, False), (1, 0, True), (1, 1, False)]
        return [torch.ops.aten.grid_sampler(image, grid, *form) for form in forms]

    check(sampled, drawn(5, 1, 3, 5, 4), grid)


def test_masked_indices_count_from_both_ends() -> None:
    rows, columns = torch.tensor([[-1], [2], [-9], [7]]), torch.tensor([[0, -4, 3]])
    mask = torch.tensor([[True, True, False]])

    def taken(x: Tensor, *indices: Tensor) -> list[Tensor]:
        operator = torch.ops.aten._unsafe_masked_index
        return [operator(x, mask, indices, 5.0), operator(x, mask, [None, indices[1]], -1.0)]

    check(taken, drawn(1, 4, 4), rows, columns)


def test_losses_of_margins_are_those_of_the_kernels() -> None:
    """Which PyTorch's decompositions are not: of NaN, and of labels behind the first negative one."""
    values, inf, nan = drawn(3, 6, 5), float("inf"), float("nan")
    values[0, 1], values[1, 2], values[2, 0], values[3] = nan, inf, -inf, nan
    labels = torch.tensor(
        [[0, 1, -1, 0, 0], [3, -1, 2, -1, 1], [4, 3, 2, 1, 0], [1, -1, -1, -1, -1], [-1] * 5, [2] * 5]
    )
    weight = torch.tensor([0.5, 1, 2, 0.25, 1])

    def losses(x: Tensor, several: Tensor) -> list[Tensor]:
        target = several[:, 0].clamp(min=0)
        return [
            nnf.multilabel_margin_loss(x, several, reduction="none"),
            nnf.multilabel_margin_loss(x[4:], several[4:]),
            nnf.multilabel_margin_loss(x[1], several[0], reduction="sum"),
            nnf.multi_margin_loss(x, target, reduction="none"),
            nnf.multi_margin_loss(x, target, p=2, margin=0.5, weight=weight, reduction="sum"),
            nnf.multi_margin_loss(x[4:], target[4:]),
        ]

    check(losses, values, labels)
