"""Compiled products of two tensors and transposed convolutions equal the reference where their kernels differ."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, Attributes, check, check_op, drawn, drawn_inputs, ends, tensor
from graphs import graph
from together import check_compiled, variants_together

from qdialect.dialect import ClipOp, ConvTranspose2DOp, MatMulOp, RequantizeOp, TransposeOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import lower
from qdialect.reference import interpreter
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
    check_op(MatMulOp, [tensor(left, data), tensor(right, weight)], "i32", **parameters(data, weight, right[-1]))


@variants_together
@pytest.mark.parametrize("data", EIGHT_BIT)
def test_a_zero_point_that_is_stored_as_zero_needs_no_sums(data: str) -> None:
    values: Attributes = {**parameters(data, "i8", 9), "input_zero_point": ends(data)[0], "weight_zero_points": (0,)}
    types = [tensor((2, 5, 6), data), tensor((2, 6, 9), "i8")]

    def body(*operands: ir.Value) -> ir.Value:
        return build(MatMulOp, *operands, element="i32", **values).output

    module = graph(types, body)
    check(module)
    assert "column sums" not in lower(module, TARGETS["generic"]).labels


@variants_together
@pytest.mark.parametrize("side", [0, 1])
def test_either_operand_may_be_constant(side: int) -> None:
    shapes = [(2, 5, 6), (2, 6, 9)]
    quantized = constant_values(shapes[side])

    def body(operand: ir.Value) -> ir.Value:
        pair = [operand, operand]
        pair[side] = constant(quantized)
        return build(MatMulOp, *pair, element="i32", **parameters("i8", "i8", 9)).output

    check(graph([tensor(shapes[1 - side], "i8")], body))


def constant_values(shape: tuple[int, ...]) -> Any:
    return drawn(np.dtype(np.int8), shape, np.random.default_rng(3))


def test_one_kernel_computes_the_product_and_its_values() -> None:
    values = parameters("ui8", "i8", 40)
    scales: dict[str, Any] = {name: values[name] for name in ("input_scale", "weight_scales")}

    def body(data: ir.Value, weight: ir.Value) -> ir.Value:
        sums = build(MatMulOp, data, weight, None, element="i32", **values).output
        how: dict[str, Any] = {"output_scale": 0.5, "output_zero_point": 3, "rounding": "fixed32_double"}
        return build(RequantizeOp, sums, element="ui8", axis=2, **scales, **how).output

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
        return build(ConvTranspose2DOp, data, constant(weight), None, element="i32", **values).output

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
        turned = build(TransposeOp, data, element=elements[0], permutation=first).output
        columns = build(TransposeOp, weight, element=elements[1], permutation=second).output
        values = parameters(*elements, right[second[-1]])
        return build(MatMulOp, turned, columns, element="i32", **values).output

    return graph([tensor(left, elements[0]), tensor(right, elements[1])], body)


@variants_together
@pytest.mark.parametrize("number", range(len(TRANSPOSED)))
@pytest.mark.parametrize("elements", [("ui8", "i8"), ("i8", "ui8")])
def test_products_of_transposed_operands(number: int, elements: tuple[str, str]) -> None:
    check(transposed_product(number, elements))


@pytest.mark.parametrize("target", ["avx2", "sse4.1"])
def test_products_of_transposed_operands_on_older_targets(target: str) -> None:
    module = transposed_product(0, ("ui8", "i8"))
    inputs = drawn_inputs(module)
    check_compiled(module, target, [inputs], [interpreter.run(module, inputs)])


def test_transposed_operands_are_read_where_they_are() -> None:
    assert [
        lower(transposed_product(number, ("ui8", "ui8")), TARGETS["generic"]).labels.count("qnn.transpose")
        for number in range(6)
    ] == [0, 0, 0, 0, 1, 1]


def test_a_transposed_tensor_with_another_reader_is_stored() -> None:
    def body(data: ir.Value, weight: ir.Value) -> list[ir.Value]:
        turned = build(TransposeOp, weight, element="i8", permutation=(1, 0)).output
        product = build(MatMulOp, data, turned, element="i32", **parameters("ui8", "i8", 16)).output
        return [product, turned]

    module = graph([tensor((3, 8), "ui8"), tensor((16, 8), "i8")], body)
    check(module)
    assert lower(module, TARGETS["generic"]).labels.count("qnn.transpose") == 1


def test_a_returned_tensor_is_read_through_its_transposition() -> None:
    def body(data: ir.Value, weight: ir.Value) -> list[ir.Value]:
        cache = build(ClipOp, weight, element="ui8", min=3, max=200).output
        turned = build(TransposeOp, cache, element="ui8", permutation=(1, 0)).output
        return [build(MatMulOp, data, turned, element="i32", **parameters("ui8", "ui8", 16)).output, cache]

    check(graph([tensor((1, 8), "ui8"), tensor((16, 8), "ui8")], body))
