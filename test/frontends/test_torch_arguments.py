"""Arguments of PyTorch operators are read, or the call is refused; embeddings and activations."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from tolerances import assert_within, tolerance_of
from torch import Tensor
from torch.nn import functional
from torch_models import Function, check, dequantized, drawn, quantized, refused

from qdialect.arithmetic import Activation, Rounding, Scaling, activate, requantize_f32
from qdialect.arithmetic.activations import STAGE_ACTIVATIONS
from qdialect.frontends.building.checks import UnsupportedError
from qdialect.frontends.planning.tensors import Plan
from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.operators import Call, supported_operators
from qdialect.frontends.torch.operators.registry import NOTED, OF_NO_EFFECT
from qdialect.frontends.torch.program.model import Node
from qdialect.frontends.torch.program.pytorch_operators import defaults_of, schema_of
from qdialect.support.diagnostics import ImportModelError

DECOMPOSED: Any = torch.ops.quantized_decomposed


def _refusal(kind: str, name: str) -> str:
    """What is said of an argument that a planner does not ask for, where it asks for all others."""
    schema = schema_of(kind)
    node = Node("node", kind, {**defaults_of(schema, {}), name: "another"}, (), "")
    read = {argument.name for argument in schema.arguments if argument.name != name}
    try:
        Call(Plan(), node, {}, {}, names_read=read).check_read()
    except UnsupportedError as error:
        return str(error)
    return ""


def test_arguments_that_no_planner_reads_are_refused_by_name() -> None:
    wrong: list[str] = []
    kinds = [kind for kind in supported_operators() if schema_of(kind) is not None]
    for kind in kinds:
        for argument in schema_of(kind).arguments:
            is_free = argument.name in OF_NO_EFFECT | NOTED
            if (f"argument '{argument.name}' must" in _refusal(kind, argument.name)) == is_free:
                wrong.append(f"{kind}: {argument.name}")
    assert wrong == []
    assert len(kinds) > 290


INTEGERS = torch.arange(-20, 20, dtype=torch.int32).reshape(2, 20) % 7


def test_results_of_another_type_arerefused() -> None:
    def wide(x: Tensor) -> list[Tensor]:
        return [torch.softmax(x.float(), -1, dtype=torch.float64), x.float().mean(dtype=torch.float64)]

    message = refused(wide, INTEGERS.to(torch.int8))
    for node, element in (("softmax", "float64"), ("mean", "float64")):
        assert f"node '{node}'" in message
        assert element in message.partition(f"node '{node}'")[2].partition("\n")[0]


def test_arguments_that_others_make_idle() -> None:
    """A divisor says what windows are divided by, and an index that is padding is one of the table."""

    def idle(x: Tensor, i: Tensor) -> list[Tensor]:
        pooled = torch.nn.functional.avg_pool2d(x, 2, padding=1, count_include_pad=False, divisor_override=3)
        rows = torch.nn.functional.embedding(i, x[0, 0], padding_idx=1, scale_grad_by_freq=True)
        return [pooled, rows, torch.nn.functional.dropout(x, 0.3, training=False)]

    check(idle, drawn(7, 1, 2, 6, 6), torch.tensor([0, 1, 5]))


def test_zero_points_that_are_floats() -> None:
    """Whole ones are integers; others make floats of constants, as PyTorch computes them, and are refused elsewhere."""
    weight = torch.tensor(drawn(1, 6, 8).numpy() * 50).to(torch.int8)
    scales, whole = drawn(2, 6).abs() + 0.1, torch.tensor([3.0, -2, 0, 0, 7, 128])
    parts, bounds = whole + drawn(3, 6), (-128, 127, torch.int8)
    dequantize, quantize = DECOMPOSED.dequantize_per_channel.default, DECOMPOSED.quantize_per_channel.default

    def rows(i: Tensor, x: Tensor) -> list[Tensor]:
        tables = [dequantize(weight, scales, points, 0, *bounds) for points in (whole, parts)]
        columns = dequantize(weight.T, scales, parts, 1, *bounds)
        found = [torch.nn.functional.embedding(i, table) for table in tables]
        return [
            *found,
            x @ columns,
            dequantize(quantize(x, scales[:5], whole[:5], 0, *bounds), scales[:5], whole[:5], 0, *bounds),
        ]

    check(rows, torch.tensor([[0, 5, 2], [1, 1, 4]]), drawn(4, 5, 8))
    assert "must be whole numbers where the input is not constant" in refused(
        lambda x: quantize(x, scales, parts, 0, *bounds), drawn(5, 6, 8)
    )
    assert "must be whole numbers where the input is not constant" in refused(
        lambda q: dequantize(q, scales, parts, 0, *bounds), weight
    )
    # In the type of both PyTorch's difference wraps around.
    assert "must be int32 or int64, but got int8" in refused(
        lambda q: dequantize(q, scales, whole.to(torch.int8), 0, *bounds), weight
    )


def test_equal_numbers_are_in_the_order_of_pytorch() -> None:
    """Unstable orders are those of the algorithms of libstdc++, each of which has its own for few elements."""

    def ordered(i: Tensor, x: Tensor) -> list[Tensor]:
        values = [torch.sort(i)[0], torch.topk(i, 3)[0], torch.kthvalue(i, 2)[0], torch.median(i, 1)[1]]
        stable = [torch.sort(i, stable=True)[1], torch.sort(i[:, :16])[1], torch.argsort(i, stable=True)]
        return [*values, *stable, *torch.topk(x, 3)]

    def unstable(i: Tensor) -> list[Tensor]:
        few = [*torch.topk(i, 1), *torch.topk(i, 2, largest=False), *torch.topk(i, 2, 0)]
        many = [*torch.topk(i, 60), *torch.topk(i, 50, largest=False), *torch.topk(i, 40, sorted=False), *i.topk(3, 0)]
        return [*few, *many, *torch.sort(i), *torch.sort(i, 0, descending=True), torch.argsort(i)]

    def quantized_places(x: Tensor) -> Tensor:
        return torch.topk(dequantized(quantized(x, 0.5, 3, torch.int8), 0.5, 3, torch.int8), 9)[1]

    check(ordered, INTEGERS, drawn(6, 3, 30))
    places = torch.round(drawn(8, 3, 150))
    places[0] = 1
    places[1] = places[1].sort()[0]
    for dtype in (torch.float32, torch.int64, torch.int8):
        check(unstable, places.to(dtype))
    check(quantized_places, places)
    assert "index must not be read" in refused(lambda i: torch.kthvalue(i, 2)[1], places)
    assert "must be stable where indices of at least 32768 integers" in refused(
        lambda i: torch.sort(i)[1], torch.zeros(1 << 15, dtype=torch.int32)
    )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_blended_by_pytorch(mode: str) -> None:
    image = torch.zeros(1, 3, 5, 6, dtype=torch.uint8)
    assert "operand must not be ui8: PyTorch's kernel" in refused(
        lambda x: nnf.interpolate(x, size=(7, 9), mode=mode), image
    )
    check(lambda x: [nnf.interpolate(x, size=(7, 9))], image)


def test_an_order_for_which_a_heap_takes_over() -> None:
    """Medians of three that are always extreme: after so many cuts of a range libstdc++ takes a heap."""
    count = 400
    killer = [0] * count
    for index in range(0, count // 2, 2):
        killer[index : index + 2] = index + 1, count // 2 + index + 1
    killer[count // 2 :] = range(2, count + 2, 2)
    worst = torch.tensor([killer, killer[::-1]], dtype=torch.int32)
    check(lambda i: [*torch.sort(-i), *torch.sort(i, descending=True), *torch.topk(i, 180)], worst)


def test_a_nan_of_either_sign_is_the_largest_in_order_and_the_extreme_of_both_ends() -> None:
    x = drawn(7, 24, 9)
    x[::2, 3], x[::3, 5], x[4, 1:], x[5] = float("nan"), -float("nan"), float("-inf"), -float("nan")
    assert torch.signbit(x[3, 5])

    def ordered(x: Tensor) -> list[Tensor]:
        sorted_ = [*torch.sort(x, stable=True), *torch.sort(x, dim=0, descending=True, stable=True)]
        parts = [torch.topk(x, 4)[0], torch.topk(x, 4, largest=False)[0], torch.kthvalue(x, 7)[0]]
        middle = [*torch.median(x, 1), *torch.median(x[:, :8], 0), torch.median(x), torch.median(x[0])]
        ends = [*torch.max(x, 1), *torch.min(x, 1), torch.argmax(x, 0), torch.argmin(x, 0), torch.argmin(x)]
        return [*sorted_, *parts, *middle, *ends]

    check(ordered, x)


def test_a_nan_is_the_integer_0_once_it_is_quantized() -> None:
    """With scales that are in the dialect, or far from 1; with a reciprocal that is infinite, 0 is a NaN as well."""
    x = torch.tensor([[float("nan"), 1.0, float("inf"), -float("inf"), 0.0]] * 2)
    scales, points = torch.tensor([0.5, 0.25]), torch.tensor([3, -5])

    def both(x: Tensor) -> list[Tensor]:
        channels = DECOMPOSED.quantize_per_channel.default(x, scales, points, 0, -128, 127, torch.int8)
        kinds = [
            (0.5, torch.int16),
            *((scale, dtype) for scale in (0.5, 1e30, 1e-39) for dtype in (torch.int8, torch.uint8)),
        ]
        return [quantized(x, scale, 7, dtype) for scale, dtype in kinds] + [channels]

    check(both, x)
    check(
        lambda x: [one for part in (x.relu(), x.T.clamp(-2, 1).T, torch.cat([x, -x], 1).relu()) for one in both(part)],
        x,
    )
    check(lambda x: both(nnf.max_pool1d(x, 2)), x)
    small = torch.arange(-20, 20, dtype=torch.int8)
    check(lambda q: [quantized(torch.log(dequantized(q, 0.5, 3, torch.int8)).relu(), 0.5, 7, torch.int8)], small)
    without = refused(lambda x: DECOMPOSED.quantize_per_tensor.default(x, 0.5, 7, 1, 250, torch.uint8), x)
    assert "quantized values must lie in [0, 255] of ui8 and have 0, but got [1, 250]" in without


def test_a_range_with_a_nan_has_the_zero_point_of_pytorch() -> None:
    def chosen(x: Tensor) -> list[Tensor]:
        kinds = (-128, 127, torch.int8), (0, 255, torch.uint8)
        pairs = [DECOMPOSED.choose_qparams.tensor(x, low, high, 1e-7, dtype) for low, high, dtype in kinds]
        return [
            DECOMPOSED.quantize_per_tensor.tensor(x, *pair, *kind) for pair, kind in zip(pairs, kinds, strict=True)
        ] + [point for _, point in pairs]

    check(chosen, torch.tensor([1.0, float("nan"), -3.0]))


# Sums, means and maxima of rows of a table, against PyTorch.

EXPORT: Any = import_module("torch.export")
TABLE = drawn(1, 9, 6)
BAGS = torch.tensor(np.random.default_rng(2).integers(0, 9, (4, 3)))


def test_bags_of_one_size() -> None:
    def bags(indices: Tensor) -> tuple[Tensor, ...]:
        starts = torch.arange(0, 12, 3)
        modes = (nnf.embedding_bag(indices, TABLE, mode=mode) for mode in ("sum", "mean", "max"))
        weighted = nnf.embedding_bag(indices, TABLE, mode="sum", per_sample_weights=drawn(3, 4, 3))
        return *modes, weighted, nnf.embedding_bag(indices.flatten(), TABLE, starts, mode="sum")

    check(bags, BAGS)


def test_bags_of_many_sizes_are_named() -> None:
    def bags(indices: Tensor) -> Tensor:
        return nnf.embedding_bag(indices.flatten(), TABLE, torch.tensor([0, 5, 9]), mode="sum")

    program: Any = EXPORT.export(Function(bags), (BAGS,))
    with pytest.raises(ImportModelError, match=r"bags must have the same number of indices, but got \[3, 4, 5\]"):
        import_torch(program)


# The activations' formulas against PyTorch's CPU kernels: equal quantized values, whatever the last bits of floats.

ALPHA = 0.1
KERNELS: dict[Activation, Callable[[torch.Tensor], torch.Tensor]] = {
    Activation.LEAKY_RELU: lambda x: functional.leaky_relu(x, ALPHA),
    Activation.ELU: lambda x: functional.elu(x, ALPHA),
    Activation.HARDSWISH: functional.hardswish,
    Activation.HARDSIGMOID: functional.hardsigmoid,
    Activation.SIGMOID: torch.sigmoid,
    Activation.SILU: functional.silu,
    Activation.TANH: torch.tanh,
    Activation.GELU: functional.gelu,
    Activation.GELU_TANH: lambda x: functional.gelu(x, approximate="tanh"),
}
# Steps of arithmetic alone, in the same order: the same float32 numbers.
SAME_FLOATS = (Activation.LEAKY_RELU, Activation.HARDSWISH, Activation.HARDSIGMOID)


def test_every_activation_has_a_kernel() -> None:
    assert set(KERNELS) == set(STAGE_ACTIVATIONS)


@pytest.mark.parametrize("activation", KERNELS)
def test_values_are_those_of_pytorch(activation: Activation) -> None:
    x = (np.random.default_rng(1).normal(size=1 << 17) * 4).astype(np.float32)
    found = activate(activation, ALPHA, x)
    wanted = KERNELS[activation](torch.tensor(x)).numpy()
    how = (0.03, 5, -128, 127, Rounding.F32_RNE_ZP_LAST, Scaling.RECIPROCAL)
    name = activation.removesuffix("_tanh")
    tolerance = tolerance_of(".pt2", f"aten.{name}.default")
    assert_within(requantize_f32(found, *how), requantize_f32(wanted, *how), tolerance)
    if activation in SAME_FLOATS:
        np.testing.assert_array_equal(found, wanted)
