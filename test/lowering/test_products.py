"""Compiled products of two tensors, weights at run time and functions of two tensors equal the reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, Attributes, check, check_op, drawn, ends, tensor, variants_together
from drawn_graphs import failures, graph
from quantized_layers import add, fused, lut, random_table, requantize

from qdialect import dialect as qnn
from qdialect.arithmetic import AddArithmetic, PairArithmetic, Rounding, SubArithmetic
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, dtype_of, element_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.fuse_requantize import FuseRequantizePass
from qdialect.passes.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.targets import TARGETS

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 1), (1, 1)),
    ((5, 7), (7, 3)),
    ((3, 6, 16), (3, 16, 72)),
    ((4, 2, 3, 5), (5, 9)),
    # The matrices move along dimensions that do not merge.
    ((1, 2, 1, 3, 5), (3, 1, 2, 5, 33)),
    ((2, 3, 1, 6), (1, 3, 6, 17)),
    ((4, 5), (2, 3, 5, 8)),
]


def parameters(data: str, weight: str, channels: int) -> Attributes:
    return {
        "input_scale": 0.05,
        "input_zero_point": ends(data)[1],
        "weight_scales": tuple(0.01 + 0.001 * k for k in range(channels)),
        "weight_zero_points": tuple(ends(weight)[k % 2] for k in range(channels)),
    }


@variants_together
@pytest.mark.parametrize("number", range(len(SHAPES)))
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_products(number: int, data: str) -> None:
    left, right = SHAPES[number]
    weight = EIGHT_BIT[number % 2]
    check_op(qnn.MatMulOp, [tensor(left, data), tensor(right, weight)], "i32", **parameters(data, weight, right[-1]))


def constant_values(shape: tuple[int, ...]) -> Any:
    return drawn(np.dtype(np.int8), shape, np.random.default_rng(3))


def test_one_kernel_computes_the_product_and_its_values() -> None:
    values = parameters("ui8", "i8", 40)
    scales: dict[str, Any] = {name: values[name] for name in ("input_scale", "weight_scales")}

    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        sums = qnn.build(qnn.MatMulOp, data, weight, None, element="i32", **values).output
        how: dict[str, Any] = {"output_scale": 0.5, "output_zero_point": 3, "rounding": "fixed32_double"}
        return qnn.build(qnn.RequantizeOp, sums, element="ui8", axis=2, **scales, **how).output

    module = graph([tensor((3, 4, 8), "ui8"), tensor((3, 8, 40), "i8")], body)
    check(module)
    labels = lower(module, TARGETS["generic"]).labels
    assert [label for label in labels if label.startswith("qnn.")] == ["qnn.fused_matmul"]


@variants_together
@pytest.mark.parametrize(
    ("kernel", "strides", "dilation", "groups"),
    [
        ((4, 4), (2, 2), (1, 1), 1),
        ((2, 1), (3, 2), (1, 1), 1),
        ((3, 3), (2, 3), (2, 3), 1),
        ((3, 2), (2, 2), (1, 1), 3),
        ((3, 3), (2, 2), (1, 2), 12),
    ],
)
def test_transposed_convolutions(
    kernel: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int], groups: int
) -> None:
    weight = constant_values((12, *kernel, 12 // groups))

    def body(data: ir.Value) -> ir.Value:
        window: dict[str, Any] = {"strides": strides, "dilation": dilation, "padding": (1, 0, 0, 1)}
        values: dict[str, Any] = {**parameters("ui8", "i8", 12), **window, "output_padding": (0, 2), "groups": groups}
        return qnn.build(qnn.ConvTranspose2DOp, data, constant(weight), None, element="i32", **values).output

    check(graph([tensor((2, 3, 5, 12), "ui8")], body))


# Of data and weight the shape before a transposition, and its order.
TRANSPOSED = [
    (((1, 5, 3, 8), (0, 2, 1, 3)), ((1, 13, 3, 8), (0, 2, 3, 1))),
    (((2, 9, 2, 5), (0, 2, 1, 3)), ((2, 5, 2, 33), (0, 2, 1, 3))),
    (((1, 1, 2, 64), (0, 2, 1, 3)), ((1, 197, 2, 64), (0, 2, 3, 1))),
    (((7, 24), (0, 1)), ((40, 24), (1, 0))),
    # One K group is no whole number of 32 bits, and the left operand's columns are contiguous: both are copied.
    (((1, 5, 3, 7), (0, 2, 1, 3)), ((1, 9, 3, 7), (0, 2, 3, 1))),
    (((16, 4), (1, 0)), ((16, 3), (0, 1))),
    # A single row, a single column, a single tap.
    (((1, 1, 3, 16), (0, 2, 1, 3)), ((1, 1, 3, 16), (0, 2, 3, 1))),
    (((4, 2, 1), (1, 0, 2)), ((1, 2, 9), (1, 0, 2))),
]


def transposed_product(number: int, elements: tuple[str, str]) -> ir.Module:
    (left, first), (right, second) = TRANSPOSED[number]

    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        turned = qnn.build(qnn.TransposeOp, data, element=elements[0], permutation=first).output
        columns = qnn.build(qnn.TransposeOp, weight, element=elements[1], permutation=second).output
        values = parameters(*elements, right[second[-1]])
        return qnn.build(qnn.MatMulOp, turned, columns, element="i32", **values).output

    return graph([tensor(left, elements[0]), tensor(right, elements[1])], body)


@variants_together
@pytest.mark.parametrize("number", range(len(TRANSPOSED)))
@pytest.mark.parametrize("elements", [("ui8", "i8"), ("i8", "ui8")])
def test_products_of_transposed_operands(number: int, elements: tuple[str, str]) -> None:
    check(transposed_product(number, elements))


def test_transposed_operands_are_read_where_they_are() -> None:
    assert [
        lower(transposed_product(number, ("ui8", "ui8")), TARGETS["generic"]).labels.count("qnn.transpose")
        for number in range(6)
    ] == [0, 0, 0, 0, 1, 1]


def test_a_transposed_tensor_with_another_reader_is_stored() -> None:
    def body(data: ir.Value, weight: ir.Value) -> list[ir.Value]:
        turned = qnn.build(qnn.TransposeOp, weight, element="i8", permutation=(1, 0)).output
        product = qnn.build(qnn.MatMulOp, data, turned, element="i32", **parameters("ui8", "i8", 16)).output
        return [product, turned]

    module = graph([tensor((3, 8), "ui8"), tensor((16, 8), "i8")], body)
    check(module)
    assert lower(module, TARGETS["generic"]).labels.count("qnn.transpose") == 1


def test_a_returned_tensor_is_read_through_its_transposition() -> None:
    def body(data: ir.Value, weight: ir.Value) -> list[ir.Value]:
        cache = qnn.build(qnn.ClipOp, weight, element="ui8", min=3, max=200).output
        turned = qnn.build(qnn.TransposeOp, cache, element="ui8", permutation=(1, 0)).output
        return [qnn.build(qnn.MatMulOp, data, turned, element="i32", **parameters("ui8", "ui8", 16)).output, cache]

    check(graph([tensor((1, 8), "ui8"), tensor((16, 8), "ui8")], body))


# R12: convolution and dense whose weights are known at run time alone, fused and alone, bit for bit.


@dataclass(frozen=True)
class Case:
    """A convolution: element types, shapes of data and weights [OC, KH, KW, IC], how the window moves, zero points."""

    elements: tuple[str, str]
    data: tuple[int, ...]
    weight: tuple[int, ...]
    points: tuple[int, tuple[int, ...]]
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def types(self) -> list[str]:
        depth = (*self.weight[:-1], self.weight[-1] // self.groups)
        return [tensor(shape, element) for shape, element in zip((self.data, depth), self.elements, strict=True)]

    def sums(self, data: ir.Value, weight: ir.Value) -> ir.Value:
        bias = constant(np.arange(self.weight[0], dtype=np.int32) * 1000 - 700)
        return qnn.build(
            qnn.Conv2DOp, data, weight, bias, element="i32", input_scale=0.02, input_zero_point=self.points[0],
            weight_scales=(0.01,), weight_zero_points=self.points[1], strides=self.strides, padding=self.padding,
            dilation=self.dilation, groups=self.groups,
        ).output  # fmt: skip


CASES = (
    Case(("i8", "i8"), (1, 5, 5, 3), (5, 3, 3, 3), (-3, (0,)), padding=(1, 1, 1, 1)),
    Case(("ui8", "ui8"), (2, 7, 6, 5), (7, 3, 2, 5), (200, (128,)), (2, 1), (0, 1, 2, 0), (1, 2)),
    Case(("i8", "ui8"), (1, 6, 7, 6), (9, 2, 3, 6), (-128, tuple(range(100, 109))), (1, 2), (1, 0, 0, 1), (2, 1), 3),
    Case(("i8", "i8"), (1, 4, 3, 17), (19, 1, 1, 17), (7, (-5,))),
    Case(("ui8", "i8"), (1, 3, 3, 1), (2, 3, 3, 1), (255, (-128, 127)), padding=(2, 2, 2, 2)),
    # The weights of one tap suit the first cache, those of all taps do not: tiles follow all of them.
    Case(("ui8", "i8"), (1, 3, 3, 192), (160, 3, 3, 192), (3, (5,))),
)

DEPTHWISE = (
    Case(("ui8", "i8"), (1, 8, 7, 24), (24, 3, 3, 24), (7, (0,)), padding=(1, 1, 1, 1), groups=24),
    Case(("i8", "ui8"), (2, 7, 9, 5), (5, 3, 2, 5), (-128, tuple(range(250, 255))), (2, 1), (0, 1, 2, 0), (1, 2), 5),
    Case(("ui8", "ui8"), (1, 5, 6, 33), (33, 1, 3, 33), (255, (255,)), (1, 2), (0, 2, 0, 0), groups=33),
    Case(("i8", "i8"), (1, 9, 9, 16), (16, 5, 5, 16), (127, tuple(range(-128, -112))), padding=(2, 2, 2, 2), groups=16),
    # Stored as they are, the zero point is 0; one pixel, one tap.
    Case(("ui8", "i8"), (1, 1, 1, 2), (2, 1, 1, 2), (0, (127,)), groups=2),
    Case(("ui8", "ui8"), (3, 11, 1, 47), (47, 7, 1, 47), (1, (3,)), padding=(3, 0, 3, 0), groups=47),
)


def rescaled(value: ir.Value, element: str) -> ir.Value:
    return requantize(value, element, weight_scales=(0.01,))


def convolutions(cases: Sequence[Case], *, alone: bool) -> ir.Module:
    """All cases as one module with an argument for each operand; `alone` without requantization."""

    def body(*arguments: ir.Value) -> list[ir.Value]:
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        sums = [case.sums(*pair) for case, pair in zip(cases, pairs, strict=True)]
        return sums if alone else [rescaled(sum_, case.elements[0]) for case, sum_ in zip(cases, sums, strict=True)]

    return graph([type_ for case in cases for type_ in case.types()], body)


def test_fused_convolutions() -> None:
    module = convolutions(CASES, alone=False)
    PassManager(FuseQnnPass()).run(module)
    assert str(module).count("qnn.fused_conv2d") == len(CASES)
    check(module)


def test_depthwise_convolutions_have_a_kernel_of_their_own() -> None:
    module = convolutions(DEPTHWISE, alone=False)
    PassManager(FuseQnnPass()).run(module)
    check(module)
    # A dense kernel would multiply by the weights of all channels.
    compiled = compile_module(module)
    calls = [call for call in compiled.calls if call.label == "qnn.fused_conv2d"]
    assert len(calls) == len(DEPTHWISE)
    sizes = [prod((*port.shape, *case.weight[1:3])) for port, case in zip(compiled.outputs, DEPTHWISE, strict=True)]
    assert sorted(call.macs for call in calls) == sorted(sizes)


@pytest.mark.parametrize("case", [CASES[1], *DEPTHWISE])
def test_accumulators_at_the_ends_of_the_ranges(case: Case) -> None:
    module = convolutions([case], alone=True)
    types = [ir.RankedTensorType(value.type) for value in module.body.operations[0].regions[0].blocks[0].arguments]
    ends = [(*ELEMENT_RANGES[element_of(type_)], type_) for type_ in types]
    check(
        module,
        [np.full(type_.shape, low, dtype_of(type_)) for low, _, type_ in ends],
        [np.full(type_.shape, high, dtype_of(type_)) for _, high, type_ in ends],
        [np.full(type_.shape, (low, high)[i % 2], dtype_of(type_)) for i, (low, high, type_) in enumerate(ends)],
    )


DENSE = ((("i8", "ui8"), (2, 3, 9), 17, (-3, (77,))), (("i8", "i8"), (2, 2, 33), 3, (1, (1, 2, 3))))


def test_dense() -> None:
    types = [
        type_
        for elements, shape, channels, _ in DENSE
        for type_ in (tensor(shape, elements[0]), tensor((channels, shape[-1]), elements[1]))
    ]

    def body(*arguments: ir.Value) -> list[ir.Value]:
        results: list[ir.Value] = []
        for index, (elements, _, _, (point, points)) in enumerate(DENSE):
            attributes: dict[str, Any] = {"weight_scales": (0.01,), "weight_zero_points": points}
            data, weight = arguments[2 * index : 2 * index + 2]
            sums = qnn.build(
                qnn.DenseOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=point, **attributes
            )
            results.append(rescaled(sums.output, elements[0]))
        return results

    module = graph(types, body)
    PassManager(FuseQnnPass()).run(module)
    assert str(module).count("qnn.fused_dense") == len(DENSE)
    check(module)


def test_weights_that_the_network_computes_and_stages_after_them() -> None:
    case = Case(("ui8", "i8"), (1, 5, 5, 4), (5, 3, 3, 4), (3, (0,)), padding=(1, 1, 1, 1))

    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        limited = qnn.build(qnn.ClipOp, weight, element="i8", min=-100, max=90).output
        quantized = rescaled(case.sums(data, limited), "ui8")
        return lut(add(quantized, fused(quantized, input_scale=0.05)), random_table())

    module = graph(case.types(), body)
    PassManager(FuseQnnPass()).run(module)
    check(module)


@pytest.mark.parametrize(
    "case",
    [
        Case(("i8", "i8"), (1, 24, 24, 8), (24, 3, 3, 8), (5, (-7,)), padding=(1, 1, 1, 1)),
        Case(("i8", "i8"), (1, 48, 48, 64), (64, 3, 3, 64), (5, (-7,)), padding=(1, 1, 1, 1), groups=64),
    ],
)
def test_threads_share_the_work(case: Case) -> None:
    module = convolutions([case], alone=False)
    compiled = compile_module(module, threads=2)
    rng = np.random.default_rng(5)
    inputs = [drawn(port.dtype, port.shape, rng) for port in compiled.inputs]
    np.testing.assert_array_equal(compiled(*inputs), interpreter.run(module, inputs)[0])


def test_a_transposed_convolution_needs_constant_weights() -> None:
    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        sums = qnn.build(
            qnn.ConvTranspose2DOp, data, weight, None, element="i32", input_scale=0.02, input_zero_point=0,
            weight_scales=(0.01,),
        ).output  # fmt: skip
        return rescaled(sums, "ui8")

    module = graph(["tensor<1x3x3x2xui8>", "tensor<4x2x2x2xi8>"], body)
    assert failures(module, FuseRequantizePass()) == ["[fuse-requantize] 'qnn.requantize' needs a constant weight"]


# Compiled functions of two tensors equal the reference: broadcasting, mixed signs, ends of ranges, exact ties.

BROADCASTS = [
    ((2, 5, 7, 19), (2, 5, 7, 19)),
    ((1, 5, 1, 19), (2, 1, 7, 1)),
    ((3, 4), ()),
    ((19,), (4, 3, 19)),
    ((70,), (1,)),
]
TYPES = list(product(EIGHT_BIT, EIGHT_BIT, EIGHT_BIT))
OPS: list[tuple[Any, Attributes]] = [
    *((qnn.SubOp, {"arithmetic": arithmetic}) for arithmetic in SubArithmetic),
    *((qnn.DivOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    *((qnn.PreluOp, {"arithmetic": arithmetic}) for arithmetic in PairArithmetic),
    (qnn.MaximumOp, {}),
    (qnn.MinimumOp, {}),
    (qnn.SquaredDifferenceOp, {}),
]


SUMS_AND_PRODUCTS: list[tuple[Any, Attributes]] = [
    *((qnn.AddOp, {"arithmetic": arithmetic}) for arithmetic in AddArithmetic),
    *((qnn.MulOp, {"rounding": rounding}) for rounding in Rounding),
]
EVERY_PAIR = [*OPS, *SUMS_AND_PRODUCTS]


def pair_parameters(types: tuple[str, str, str], number: int) -> Attributes:
    left, right, result = types
    low, high = ends(result)
    return {
        "lhs_scale": 0.05,
        "lhs_zero_point": ends(left)[number % 2],
        "rhs_scale": (0.05, 0.031, 20.0)[number % 3],
        "rhs_zero_point": ends(right)[number // 2 % 2],
        "output_scale": (0.07, 2.5, 0.0009)[number // 3 % 3],
        "output_zero_point": low + 100,
        "output_min": low + 1,
        "output_max": high - 2,
    }


@variants_together
@pytest.mark.parametrize("number", range(len(EVERY_PAIR)))
@pytest.mark.parametrize("broadcast", range(len(BROADCASTS)))
def test_pair(number: int, broadcast: int) -> None:
    op, how = EVERY_PAIR[number]
    left, right = BROADCASTS[broadcast]
    types = TYPES[(number * len(BROADCASTS) + broadcast) % 8]
    attributes = pair_parameters(types, number + broadcast) | how
    if op in (qnn.AddOp, qnn.SubOp):
        attributes["rounding"] = list(Rounding)[broadcast]
    check_op(op, [tensor(left, types[0]), tensor(right, types[1])], types[2], **attributes)


def test_a_float_sum_is_that_of_the_values() -> None:
    inputs = [grid.astype(np.int8) for grid in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))]
    attributes: Attributes = pair_parameters(("i8", "i8", "i8"), 0) | {"arithmetic": AddArithmetic.FLOAT_ONCE}
    attributes |= {"lhs_scale": 0.3, "rhs_scale": 0.1, "output_scale": 0.2, "output_zero_point": -7}
    check_op(qnn.AddOp, [tensor((256, 256), "i8")] * 2, "i8", inputs, **attributes)


@variants_together
@pytest.mark.parametrize("number", range(len(OPS)))
@pytest.mark.parametrize("element", EIGHT_BIT)
def test_every_pair_of_values(number: int, element: str) -> None:
    op, how = OPS[number]
    low, high = ends(element)
    values = np.arange(low, high + 1).astype(NUMPY_DTYPES[element])
    attributes: Attributes = {"lhs_scale": 0.5, "rhs_scale": 0.25, "output_scale": 1.0, **how}
    attributes |= {"lhs_zero_point": low + 3, "rhs_zero_point": high - 40, "output_zero_point": low + 120}
    attributes |= {"output_min": low, "output_max": high}
    inputs = [values.reshape(256, 1), values.reshape(1, 256)]
    check_op(op, [tensor((256, 1), element), tensor((1, 256), element)], element, inputs, **attributes)


@variants_together
@pytest.mark.parametrize("op", [qnn.MaximumOp, qnn.MinimumOp])
@pytest.mark.parametrize("types", [("i8", "i8", "i8"), ("ui8", "ui8", "ui8"), ("i8", "ui8", "i8")])
def test_extreme_of_one_quantization(op: Any, types: tuple[str, str, str]) -> None:
    attributes: Attributes = {f"{name}_scale": 0.1 for name in ("lhs", "rhs", "output")}
    attributes |= {f"{name}_zero_point": 5 for name in ("lhs", "rhs", "output")}
    low, high = ends(types[2])
    attributes |= {"output_min": low + 9, "output_max": high - 9}
    check_op(op, [tensor((3, 67), types[0]), tensor((3, 67), types[1])], types[2], **attributes)


EPILOGUE = """
func.func @main(%x: tensor<4x13xf32>) -> tensor<{shape}xf32> {{
  %w = "qnn.constant"() {{value = dense<0.5> : tensor<13x13xf32>}} : () -> tensor<13x13xf32>
  %b = "qnn.constant"() {{value = dense<1.0> : tensor<13xf32>}} : () -> tensor<13xf32>
  %0 = "qnn.f32_matmul"(%x, %w) : (tensor<4x13xf32>, tensor<13x13xf32>) -> tensor<4x13xf32>
  %1 = "qnn.broadcast"(%b) {{shape = array<i64: 4, 13>}} : (tensor<13xf32>) -> tensor<4x13xf32>
  %2 = arith.addf %0, %1 : tensor<4x13xf32>
  %3 = "qnn.reshape"(%2) {{shape = array<i64: {extents}>}} : (tensor<4x13xf32>) -> tensor<{shape}xf32>
  return %3 : tensor<{shape}xf32>
}}
"""


@pytest.mark.parametrize("shape", [(52,), (1, 4, 13), (4, 13, 1), (2, 2, 13)], ids=str)
def test_an_epilogue_writes_no_further_than_a_reshaped_result(shape: tuple[int, ...]) -> None:
    text = EPILOGUE.format(shape="x".join(map(str, shape)), extents=", ".join(map(str, shape)))
    x, memory = np.ones((4, 13), np.float32), np.full(128, 3, np.float32)
    compile_module(parse(text)).run([x], [memory[32:84].reshape(shape)])
    assert memory.tolist() == [3.0] * 32 + [7.5] * 52 + [3.0] * 44


@pytest.mark.parametrize("is_column", [False, True])
def test_picked_matrices_whose_products_have_a_bias(is_column: bool) -> None:
    rng = np.random.default_rng(6)
    matrices, bias = (
        rng.normal(size=(3, 4, 5)).astype(np.float32),
        np.arange(1 if is_column else 5, dtype=np.float32) + 7,
    )

    def body(x: ir.Value, i: ir.Value) -> ir.Value:
        picked = qnn.build(qnn.DynamicGatherOp, constant(matrices), i, element="f32", axis=0).output
        sides = (picked, x) if is_column else (x, picked)
        return qnn.build(qnn.F32MatmulOp, *sides, constant(bias), element="f32").output

    module = graph([tensor((2, 5, 1) if is_column else (2, 1, 4), "f32"), tensor((2,), "i32")], body)
    inputs = [rng.normal(size=(2, 5, 1) if is_column else (2, 1, 4)).astype(np.float32), np.array([2, 0], np.int32)]
    (wanted,) = interpreter.run(module, inputs)
    FuseQnnPass().run(module)
    np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
    np.testing.assert_array_equal(compile_module(module)(*inputs), wanted)
