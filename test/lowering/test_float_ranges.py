"""Chains of float ops, sums in order, and the ranges of tensors."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from compiled_ops import Array, Attributes, check, tensor, variants_together
from drawn_graphs import graph
from quantized_layers import clamp

import qdialect
from qdialect import targets
from qdialect.arithmetic import Activation, transcendental
from qdialect.dialect import AddOp, F32MaxOp, F32MinOp, RangeScaleOp, RangeZeroPointOp, build
from qdialect.dialect.f32_ops import IN_FLOAT64
from qdialect.ir._mlir import arith, ir
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.bodies import addition
from qdialect.passes.float_chains import build_activation, match_activation, uniform_constant
from qdialect.passes.pattern import producer
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from tools.evidence import float_sweep
from tools.evidence.float_sweep import Function, Subject, compared, numbers, of_torch, pairs, rows, torch

SOURCE = "func.func @main(%x: tensor<6x50xf32>) -> tensor<6x50xf32> {\n  return %x : tensor<6x50xf32>\n}"


def module_of(body: Callable[[ir.Value], ir.Value]) -> tuple[ir.Module, ir.Value]:
    """A function that returns `body` of its argument, and the value it returns."""
    module = qdialect.parse(SOURCE)
    block = module.body.operations[0].regions[0].blocks[0]
    end = block.operations[0]
    with module.context, ir.InsertionPoint(end), ir.Location.unknown():
        value = body(block.arguments[0])
    end.operation.operands[0] = value
    module.operation.verify()
    return module, value


def test_a_function_that_is_evaluated_in_float64_is_no_stage() -> None:
    _module, value = module_of(lambda x: build_activation(Activation.TANH, x))
    op = producer(value)
    assert op is not None
    assert match_activation(value) is not None
    op.operation.attributes[IN_FLOAT64] = ir.UnitAttr.get(op.context)
    assert match_activation(value) is None


def test_operands_of_sums_and_products_may_be_swapped() -> None:
    def swapped(x: ir.Value) -> ir.Value:
        ramp = clamp(arith.addf(uniform_constant(3.0, x.type), x), 0.0, 6.0)
        return arith.divf(arith.mulf(ramp, x), uniform_constant(6.0, x.type))

    _module, value = module_of(swapped)
    found = match_activation(value)
    assert found is not None
    assert found.activation is Activation.HARDSWISH


def test_other_constants_and_other_orders_are_other_functions() -> None:
    def wider(x: ir.Value) -> ir.Value:
        ramp = clamp(arith.addf(x, uniform_constant(3.0, x.type)), 0.0, 6.5)
        return arith.divf(arith.mulf(x, ramp), uniform_constant(6.0, x.type))

    def divided_first(x: ir.Value) -> ir.Value:
        return arith.mulf(x, build_activation(Activation.HARDSIGMOID, x))

    for body in (wider, divided_first):
        _module, value = module_of(body)
        assert match_activation(value) is None


# Sums as ONNX Runtime has them: recorded where a product that is rounded by itself gives another code.

# Scales and zero points of both operands and the sum, two quantized values, and what ONNX Runtime 1.31.1 makes of them.
RECORDED = [
    ((0.05353185161948204, 0.03582951799035072, 0.045797303318977356), (113, 169, 254), (165, 83), 248),
    ((0.04218011721968651, 0.05837279558181763, 0.013826764188706875), (255, 127, 8), (252, 157), 126),
    ((0.06921231001615524, 0.051151737570762634, 0.031609680503606796), (238, 81, 79), (239, 109), 127),
]


# And large ratios, of which 32 bits hold few numbers; what ONNX Runtime makes of those was not recorded.
SUMS = [
    *RECORDED[:2],
    ((3.3872272968292236, 3.427267074584961, 1.0632202625274658), (161, 73, 250), (0, 0), None),
    ((7.364745140075684, 1.8394681215286255, 0.345777690410614), (72, 111, 67), (0, 0), None),
]
WAYS = ("multiply_add_sum", "fixed_point_sum")


@pytest.mark.parametrize(
    ("target", "refused"), [(target, refused) for target in ("avx512vnni,portable", "generic") for refused in range(3)]
)
@pytest.mark.parametrize(("scales", "zero_points", "quantized", "expected"), SUMS)
def test_kernels_equal_the_reference_on_all_pairs(
    scales: tuple[float, ...],
    zero_points: tuple[int, ...],
    quantized: tuple[int, int],
    expected: int | None,
    target: str,
    refused: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the first of the ways that finds numbers, and step by step where none does."""
    found: list[bool] = []

    def noted(way: Callable[..., object], is_refused: bool, *given: object) -> object:
        numbers = None if is_refused else way(*given)
        found.append(numbers is not None)
        return numbers

    for index, name in enumerate(WAYS):
        monkeypatch.setattr(addition, name, partial(noted, getattr(addition, name), index < refused))
    values: dict[str, Any] = {}
    for name, scale, zero_point in zip(("lhs", "rhs", "output"), scales, zero_points, strict=True):
        values |= {f"{name}_scale": scale, f"{name}_zero_point": zero_point}
    once: dict[str, Any] = {"arithmetic": "float_once", "output_min": 0, "output_max": 255}
    shifted: dict[str, Any] = {"arithmetic": "shifted_fixed", "rounding": "fixed32_double", "output_min": 20}

    def add(lhs: ir.Value, rhs: ir.Value) -> list[ir.Value]:
        hows: list[dict[str, Any]] = [once, {**shifted, "output_max": 200}]
        return [build(AddOp, lhs, rhs, element="ui8", **values, **how).output for how in hows]

    module = graph(["tensor<256x256xui8>"] * 2, add)
    left, right = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8), indexing="ij")
    pairs = [np.ascontiguousarray(left), np.ascontiguousarray(right)]
    wanted = interpreter.run(module, pairs)
    assert expected in (None, wanted[0][quantized])
    for one, other in zip(compile_module(module, target=target)(*pairs), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(found) == (refused < 2)


# Float functions off the middle of their range, compiled, compared with PyTorch, ONNX Runtime and LiteRT.

_UNARY = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erfc", "exp", "expm1", "hardshrink", "log1p"),
    *("sign", "sin", "sinh", "softshrink", "tan", "0.3 pow", "1.0 pow", "fmod number", "remainder number"),
)
_BINARY = (
    *("addcmul", "div floor", "div trunc", "floor_divide", "fmod", "hypot", "lerp", "lerp high", "logaddexp"),
    *("logaddexp2", "pow", "remainder"),
)
_ROWS = ("std", "var biased", "logsumexp", "norm", "norm 1")
_FINITE = np.array([row for row in rows(1) if np.abs(row).max() < 1e37])
"""The sums of larger ones overflow."""
_NUMBERS = {"one": (numbers(1, 1)[::5],), "two": tuple(one[::5] for one in pairs(1)), "rows": (_FINITE,)}


@pytest.mark.parametrize(
    ("kind", "functions", "names"),
    [("one", float_sweep.UNARY, _UNARY), ("two", float_sweep.BINARY, _BINARY), ("rows", float_sweep.ROWS, _ROWS)],
)
def test_of_pytorch(kind: str, functions: Mapping[str, Function], names: tuple[str, ...]) -> None:
    """Within a few units of the last place of PyTorch or of the truth, with the same ends; all in one program."""
    inputs = _NUMBERS[kind]

    def joined(*given: Any) -> Any:
        return torch.stack([functions[name](*given) for name in names])

    found, theirs = of_torch(joined, inputs)
    truth: Any = joined(*(torch.from_numpy(one).double() for one in inputs))
    for index, name in enumerate(names):
        row = compared(name, "PyTorch", inputs, found[index], theirs[index], truth[index].numpy())
        assert row.is_right, str(row)


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        *((name, "ONNX Runtime") for name in ("Acosh", "Atanh", "Elu", "LpNormalization", "Mod", "ThresholdedRelu")),
        *((name, "LiteRT") for name in ("FLOOR_DIV", "FLOOR_MOD", "SIN")),
    ],
)
def test_of_other_frameworks(name: str, framework: str) -> None:
    (subject,) = (one for one in float_sweep.subjects() if (one.name, one.framework) == (name, framework))
    inputs = _NUMBERS[subject.inputs] if subject.inputs != "rows" else (rows(1),)
    row = subject.row(_divided(subject, inputs))
    assert row.is_right, str(row)
    assert not row.reason


def _divided(subject: Subject, inputs: Any) -> Any:
    return [one[inputs[1] != 0] for one in inputs] if subject.name == "FLOOR_DIV" else inputs


def test_a_remainder_is_exact_for_every_quotient() -> None:
    """In the steps of a kernel, for operands of all sizes."""
    x, y = (one.astype(np.float64) for one in pairs(2))
    with np.errstate(all="ignore"):
        found = transcendental.remainder(transcendental.NUMPY, x, y)
        wanted = np.fmod(x, y)
    np.testing.assert_array_equal(found, wanted)
    ends = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[ends]), np.signbit(wanted[ends]))


# Scale and zero point of a whole tensor's range: both ends found at once, with the bits of two reductions.

NEGATIVE_NAN = float(np.array(0xFFC00000, np.uint32).view(np.float32))
VALUES: dict[str, tuple[float, float]] = {
    "both signs": (-3.0, 7.0),
    "positive": (2.0, 5.0),
    "negative": (-9.0, -0.25),
    "zeros": (0.0, 0.0),
    "negative zeros": (-0.0, -0.0),
    "zeros of both signs": (-0.0, 0.0),
    "infinity": (-1.0, np.inf),
    "negative infinity": (-np.inf, -2.0),
    "subnormal": (-1e-45, 1e-40),
    "NaN": (-3.0, np.nan),
    "negative NaN": (NEGATIVE_NAN, 4.0),
    "NaN alone": (np.nan, np.nan),
}
SHAPES = [(132, 9), (1, 1, 136, 32), (2, 5, 7, 19), (3, 1), (70,), (5, 64), (1,)]


def ranges(shape: tuple[int, ...]) -> ir.Module:
    def body(x: ir.Value) -> list[ir.Value]:
        axes: Attributes = {"axes": tuple(range(len(shape))), "keep_dims": True}
        low, high = (build(op, x, element="f32", **axes).output for op in (F32MinOp, F32MaxOp))
        return [build(op, low, high, element="f32").output for op in (RangeScaleOp, RangeZeroPointOp)]

    return graph([tensor(shape, "f32")], body)


def drawn(shape: tuple[int, ...], ends: tuple[float, float], first: int) -> Array:
    """Numbers between the ends, which stand at two places."""
    size = int(np.prod(shape))
    finite = [end if np.isfinite(end) else 1.0 for end in ends]
    values = np.random.default_rng(3).uniform(min(finite), max(finite), size).astype(np.float32)
    if ends[0] == ends[1] == 0:
        values = np.zeros(size, np.float32) * np.float32(np.copysign(1, ends[0]))
    values[first % size], values[-1 - first % size] = ends
    return values.reshape(shape)


@variants_together
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ranges(shape: tuple[int, ...]) -> None:
    check(ranges(shape), *([drawn(shape, ends, first)] for ends in VALUES.values() for first in (0, 11, 133)))


def test_one_call_finds_both_ends() -> None:
    labels = list(lower(ranges((5, 64)), targets.host(), Phase.LINALG).labels)
    assert labels.count("qnn.f32_range") == 1
    assert not {"qnn.f32_min", "qnn.f32_max"} & set(labels)


def test_ends_that_something_else_reads_are_exact() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        axes: Attributes = {"axes": (0, 1), "keep_dims": True}
        low, high = (build(op, x, element="f32", **axes).output for op in (F32MinOp, F32MaxOp))
        return [build(RangeScaleOp, low, high, element="f32").output, low]

    check(graph([tensor((5, 64), "f32")], body), [drawn((5, 64), (2.0, 5.0), 3)], [drawn((5, 64), (-9.0, -1.0), 3)])
