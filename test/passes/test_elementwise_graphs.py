"""Element-wise graphs, against every number tried, and the epilogues of results."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from compiled_ops import Array, check, tensor, variants_together
from compiled_ops import Array as AnyArray
from drawn_graphs import drawn_graph, graph

from qdialect import dialect as qnn
from qdialect import parse, targets
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.elementwise.graph import ElementwiseGraph, graph_of
from qdialect.passes.elementwise.thresholds import Interval, monotonic_intervals, thresholds_of_graph
from qdialect.passes.pattern import MatchFailure
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

TYPE = "tensor<2x3xi32>"


def returned(module: ir.Module) -> ElementwiseGraph:
    """The graph that ends in what @main returns; valid as long as the module is held."""
    operations = list(module.body.operations[0].regions[0].blocks[0].operations)
    graph = graph_of(operations[-1].operands[0])
    assert isinstance(graph, ElementwiseGraph)
    return graph


def of_i32(body: str, result: str, element: str = "i32") -> ir.Module:
    type_ = f"tensor<2x3x{element}>"
    return parse(f"func.func @main(%x: {TYPE}) -> {type_} {{\n{body}\nreturn {result} : {type_}\n}}")


@pytest.mark.parametrize("seed", range(40))
def test_intervals_that_are_called_monotonic_are(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    source = str(rng.choice(["i8", "ui8"]))
    module = parse(drawn_graph(rng, source, str(rng.choice(["i8", "ui8"])))[0])
    graph = returned(module)
    low, high = (-128, 127) if source == "i8" else (0, 255)
    intervals = monotonic_intervals(graph, Interval(np.array([low]), np.array([high])))
    if isinstance(intervals, str):
        return
    assert intervals[0].low[0] == low
    assert intervals[-1].high[0] == high
    assert all(left.high[0] + 1 >= right.low[0] for left, right in pairwise(intervals))
    for interval in intervals:
        numbers: Array = np.arange(int(interval.low[0]), int(interval.high[0]) + 1)[:, None]
        found = np.broadcast_to(graph.evaluate(numbers).values[graph.result], numbers.shape).astype(np.int64)
        changes = np.diff(found, axis=0)
        assert np.all(changes >= 0) or np.all(changes <= 0)


@pytest.mark.parametrize("is_proved", [True, False])
def test_thresholds_are_where_each_integer_begins(is_proved: bool) -> None:
    # A remainder is not proved to be monotonic, and every number is tried.
    extra = "" if is_proved else f"%r = arith.remsi %z, %c : {TYPE}\n%3 = arith.addi %2, %r : {TYPE}"
    body = f"""
      %c = arith.constant dense<7> : {TYPE}
      %z = arith.subi %x, %x : {TYPE}
      %0 = arith.floordivsi %x, %c : {TYPE}
      %1 = arith.maxsi %0, %c : {TYPE}
      %t = arith.constant dense<20> : {TYPE}
      %2 = arith.minsi %1, %t : {TYPE}
      {extra}"""
    module = of_i32(body, "%2" if is_proved else "%3")
    found = thresholds_of_graph(returned(module), np.array([-500]), np.array([500]))
    assert (found.minimum, found.maximum) == (7, 20)
    np.testing.assert_array_equal(found.thresholds.first[:, 0], 7 * np.arange(8, 21))


def test_values_that_are_further_apart_than_64_bits_hold_are_many() -> None:
    body = f"""
      %0 = arith.extsi %x : {TYPE} to tensor<2x3xi64>
      %c = arith.constant dense<54> : tensor<2x3xi64>
      %1 = arith.shli %0, %c : tensor<2x3xi64>"""
    module = of_i32(body, "%1", "i64")
    with pytest.raises(MatchFailure, match=f"must have 256 values at most, but has {1000 * 2**54 + 1}"):
        thresholds_of_graph(returned(module), np.array([-500]), np.array([500]))


# Element-wise ops on a product's result are computed in its kernel, with the bits that they have apart.

Product = Callable[[ir.Value, int], ir.Value]


def f32(*shape: int) -> AnyArray:
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(np.float32)


def bytes_of(*shape: int) -> AnyArray:
    return np.random.default_rng(shape[0]).integers(-128, 128, shape).astype(np.int8)


def dynamic_conv(x: ir.Value, channels: int) -> ir.Value:
    parameters = constant(np.array(0.01, np.float32)), constant(np.array(3, np.int8))
    weight = constant(bytes_of(channels, 1, 3, shape_of(x.type)[-1]))
    return qnn.build(qnn.DynamicConv2DOp, x, weight, *parameters, element="f32", weight_scales=(0.02,)).output


def dynamic_dense(x: ir.Value, channels: int) -> ir.Value:
    parameters = constant(np.array(0.01, np.float32)), constant(np.array(3, np.int8))
    weight = constant(bytes_of(channels, shape_of(x.type)[-1]))
    return qnn.build(qnn.DynamicDenseOp, x, weight, *parameters, element="f32", weight_scales=(0.02,)).output


def conv(x: ir.Value, channels: int) -> ir.Value:
    return qnn.build(qnn.F32Conv2DOp, x, constant(f32(channels, 1, 2, shape_of(x.type)[-1])), element="f32").output


def grouped_conv(x: ir.Value, channels: int) -> ir.Value:
    weight = constant(f32(channels, 1, 2, shape_of(x.type)[-1] // 2))
    return qnn.build(qnn.F32Conv2DOp, x, weight, element="f32", groups=2).output


def depthwise_conv(x: ir.Value, _: int) -> ir.Value:
    groups = shape_of(x.type)[-1]
    return qnn.build(qnn.F32Conv2DOp, x, constant(f32(groups, 1, 2, 1)), element="f32", groups=groups).output


def matmul(x: ir.Value, channels: int) -> ir.Value:
    return qnn.build(qnn.F32MatmulOp, x, constant(f32(shape_of(x.type)[-1], channels)), element="f32").output


PRODUCTS: dict[str, tuple[Product, tuple[int, ...], str]] = {
    "dynamic convolution": (dynamic_conv, (1, 1, 9, 8), "i8"),
    "dynamic dense": (dynamic_dense, (7, 12), "i8"),
    "convolution": (conv, (1, 1, 9, 6), "f32"),
    "convolution in groups": (grouped_conv, (1, 1, 9, 6), "f32"),
    "depthwise convolution": (depthwise_conv, (1, 1, 9, 24), "f32"),
    "product": (matmul, (5, 12), "f32"),
}


def op(name: str, *operands: ir.Value, **attributes: Any) -> ir.Value:
    result = operands[-1].type
    if name == "arith.cmpf":
        result = ir.RankedTensorType.get(list(shape_of(result)), ir.IntegerType.get_signless(1))
    return ir.Operation.create(name, [result], list(operands), attributes).result


def spread(array: AnyArray, like: ir.Value) -> ir.Value:
    return qnn.build(qnn.BroadcastOp, constant(array), element="f32", shape=tuple(shape_of(like.type))).output


def biased_prelu(x: ir.Value) -> ir.Value:
    channels = shape_of(x.type)[-1]
    value = op("arith.addf", x, spread(f32(channels), x))
    slope = op("arith.mulf", value, spread(f32(1, channels), value))
    is_positive = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 3)
    guard = op("arith.cmpf", value, spread(np.zeros((), np.float32), value), predicate=is_positive)
    return op("arith.select", guard, value, slope)


def clamped(x: ir.Value) -> ir.Value:
    return op("arith.minimumf", op("arith.maximumf", x, spread(np.zeros((), np.float32), x)), spread(f32(1), x))


EPILOGUES = {"bias and slopes": biased_prelu, "bounds": clamped}


def network(
    product: str, channels: int, epilogue: str, is_flat: bool, *, is_last: bool = False, also_reads: bool = False
) -> ir.Module:
    build_product, shape, element = PRODUCTS[product]

    def body(x: ir.Value) -> list[ir.Value]:
        value = first = build_product(x, channels)
        if is_flat:
            value = qnn.build(qnn.ReshapeOp, value, element="f32", shape=(1, *shape_of(value.type)[-2:])).output
        result = EPILOGUES[epilogue](value)
        if also_reads:
            return [result, first]
        if is_last:
            return [result]
        sides = (0,) * (len(shape_of(result.type)) - 2)
        return [qnn.build(qnn.PadOp, result, element="f32", low=(*sides, 2, 0), high=(*sides, 0, 0), value=0).output]

    return graph([tensor(shape, element)], body)


@variants_together
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("channels", [6, 64])
@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("is_last", [False, True])
def test_epilogues(product: str, channels: int, is_flat: bool, is_last: bool) -> None:
    epilogue = list(EPILOGUES)[(list(PRODUCTS).index(product) + (channels > 6) + is_flat + is_last) % 2]
    check(network(product, channels, epilogue, is_flat, is_last=is_last))


@variants_together
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_result_that_something_else_reads_is_stored(product: str) -> None:
    module = network(product, 16, "bias and slopes", False, also_reads=True)
    assert "arith.select" in lower(module, targets.host(), Phase.LINALG).labels
    check(module)


@pytest.mark.parametrize("product", ["dynamic convolution", "convolution in groups"])
def test_on_two_threads(product: str) -> None:
    module = network(product, 64, "bias and slopes", True)
    _, shape, element = PRODUCTS[product]
    x = f32(*shape) if element == "f32" else bytes_of(*shape)
    (wanted,) = interpreter.run(module, [x])
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(x), wanted)
