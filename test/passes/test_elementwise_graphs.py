"""Element-wise graphs, against every number tried, and the epilogues of results."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from compiled_ops import Array, check, tensor, variants_together
from compiled_ops import Array as AnyArray
from drawn_graphs import drawn_graph, graph

from qdialect import parse, targets
from qdialect.arithmetic import accumulator_range
from qdialect.dialect import (
    BroadcastOp,
    DynamicConv2DOp,
    DynamicDenseOp,
    F32Conv2DOp,
    F32MatmulOp,
    PadOp,
    ReshapeOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.passes.elementwise import ElementwiseGraph, graph_of, thresholds_of_graph
from qdialect.passes.elementwise.thresholds import Interval, monotonic_intervals
from qdialect.passes.fuse_qnn import FuseQnnPass
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


def test_a_comparison_divides_the_range_where_it_changes() -> None:
    body = f"""
      %z = arith.constant dense<-7> : {TYPE}
      %0 = arith.subi %x, %z : {TYPE}
      %1 = math.absi %0 : {TYPE}"""
    module = of_i32(body, "%1")
    intervals = monotonic_intervals(returned(module), Interval(np.array([-1000]), np.array([2000])))
    assert not isinstance(intervals, str)
    assert [(int(i.low[0]), int(i.high[0])) for i in intervals] == [(-1000, -8), (-7, 2000)]


def test_a_sum_that_wraps_is_not_monotonic() -> None:
    module = of_i32(f"%c = arith.constant dense<2147483647> : {TYPE}\n%0 = arith.addi %x, %c : {TYPE}", "%0")
    graph = returned(module)
    assert isinstance(monotonic_intervals(graph, Interval(np.array([-9]), np.array([0]))), list)
    assert "'arith.addi' may rise and fall" in str(monotonic_intervals(graph, Interval(np.array([-9]), np.array([1]))))


def test_what_a_select_leaves_out_may_be_undefined() -> None:
    body = f"""
      %z = arith.constant dense<0> : {TYPE}
      %c = arith.constant dense<100> : {TYPE}
      %0 = arith.cmpi ne, %x, %z : {TYPE}
      %1 = arith.divsi %c, %x : {TYPE}
      %2 = arith.select %0, %1, %z : tensor<2x3xi1>, {TYPE}"""
    module = of_i32(body, "%2")
    numbers = np.arange(-5, 6)[:, None]
    chosen = returned(module)
    evaluation = chosen.evaluate(numbers)
    assert not evaluation.is_undefined(chosen.result)
    assert [int(v) for v in evaluation.values[chosen.result][:, 0]] == [
        -20,
        -25,
        -33,
        -50,
        -100,
        0,
        100,
        50,
        33,
        25,
        20,
    ]
    divided = graph_of(chosen.ops[-2].operation.results[0])
    assert isinstance(divided, ElementwiseGraph)
    assert divided.evaluate(numbers).is_undefined(divided.result)


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
    assert not isinstance(found, MatchFailure)
    assert (found.minimum, found.maximum) == (7, 20)
    np.testing.assert_array_equal(found.thresholds.first[:, 0], 7 * np.arange(8, 21))


def test_accumulators_stay_in_their_range_and_reach_its_ends() -> None:
    rng = np.random.default_rng(3)
    weights, bias = rng.integers(-200, 200, (4, 9)), rng.integers(-1000, 1000, 4)
    low, high = accumulator_range(weights, bias, (-7, 248))
    for ends, extreme in ((low, np.where(weights > 0, -7, 248)), (high, np.where(weights > 0, 248, -7))):
        np.testing.assert_array_equal(ends, bias + (weights * extreme).sum(axis=1))
    drawn = bias + rng.integers(-7, 249, (1000, 9)) @ weights.T
    assert np.all((low <= drawn) & (drawn <= high))


@pytest.mark.parametrize("is_view", [True, False])
def test_a_number_that_changes_its_sign_by_its_type_is_not_monotonic(is_view: bool) -> None:
    if is_view:
        body, source = "%2 = tensor.bitcast %x : tensor<2x3xui8> to tensor<2x3xi8>", "ui8"
    else:
        source = "i32"
        body = f"""
          %0 = arith.sitofp %x : {TYPE} to tensor<2x3xf32>
          %2 = arith.fptoui %0 : tensor<2x3xf32> to tensor<2x3xi8>"""
    module = parse(
        f"func.func @main(%x: tensor<2x3x{source}>) -> tensor<2x3xi8> {{\n{body}\nreturn %2 : tensor<2x3xi8>\n}}"
    )
    graph = returned(module)
    assert isinstance(monotonic_intervals(graph, Interval(np.array([0]), np.array([127]))), list)
    assert isinstance(monotonic_intervals(graph, Interval(np.array([0]), np.array([255]))), str)


@pytest.mark.parametrize(
    "text",
    [
        "func.func @main(%x: i32) -> i32 {\n%0 = arith.addi %x, %x : i32\nreturn %0 : i32\n}",
        "func.func @main(%x: vector<4xi8>) -> vector<4xi8> {\n%0 = arith.addi %x, %x : vector<4xi8>\n"
        "return %0 : vector<4xi8>\n}",
        "func.func @main(%x: tensor<?xi8>) -> tensor<?xi8> {\n%0 = arith.addi %x, %x : tensor<?xi8>\n"
        "return %0 : tensor<?xi8>\n}",
        "func.func @main(%x: tensor<2xi8>, %c: i1) -> tensor<2xi8> {\n%0 = arith.select %c, %x, %x : tensor<2xi8>\n"
        "return %0 : tensor<2xi8>\n}",
        "func.func @main(%x: tensor<2xi8>) -> tensor<2xi8> {\n%0 = arith.sitofp %x : tensor<2xi8> to tensor<2xf64>\n"
        "%1 = arith.fptosi %0 : tensor<2xf64> to tensor<2xi8>\nreturn %1 : tensor<2xi8>\n}",
        "func.func @main(%x: tensor<2xi4>) -> tensor<2xi8> {\n%0 = arith.extsi %x : tensor<2xi4> to tensor<2xi8>\n"
        "return %0 : tensor<2xi8>\n}",
    ],
    ids=["scalar", "vector", "dynamic", "scalar condition", "f64", "i4"],
)
def test_what_is_no_static_tensor_of_a_known_type_is_left_alone(text: str) -> None:
    module = parse(text)
    before = str(module)
    FuseQnnPass().run(module)
    assert str(module) == before


# Element-wise ops on a product's result are computed in its kernel, with the bits that they have apart.

Product = Callable[[ir.Value, int], ir.Value]


def f32(*shape: int) -> AnyArray:
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(np.float32)


def bytes_of(*shape: int) -> AnyArray:
    return np.random.default_rng(shape[0]).integers(-128, 128, shape).astype(np.int8)


def dynamic_conv(x: ir.Value, channels: int) -> ir.Value:
    parameters = constant(np.array(0.01, np.float32)), constant(np.array(3, np.int8))
    weight = constant(bytes_of(channels, 1, 3, shape_of(x.type)[-1]))
    return build(DynamicConv2DOp, x, weight, *parameters, element="f32", weight_scales=(0.02,)).output


def dynamic_dense(x: ir.Value, channels: int) -> ir.Value:
    parameters = constant(np.array(0.01, np.float32)), constant(np.array(3, np.int8))
    weight = constant(bytes_of(channels, shape_of(x.type)[-1]))
    return build(DynamicDenseOp, x, weight, *parameters, element="f32", weight_scales=(0.02,)).output


def conv(x: ir.Value, channels: int) -> ir.Value:
    return build(F32Conv2DOp, x, constant(f32(channels, 1, 2, shape_of(x.type)[-1])), element="f32").output


def grouped_conv(x: ir.Value, channels: int) -> ir.Value:
    weight = constant(f32(channels, 1, 2, shape_of(x.type)[-1] // 2))
    return build(F32Conv2DOp, x, weight, element="f32", groups=2).output


def depthwise_conv(x: ir.Value, _: int) -> ir.Value:
    groups = shape_of(x.type)[-1]
    return build(F32Conv2DOp, x, constant(f32(groups, 1, 2, 1)), element="f32", groups=groups).output


def matmul(x: ir.Value, channels: int) -> ir.Value:
    return build(F32MatmulOp, x, constant(f32(shape_of(x.type)[-1], channels)), element="f32").output


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
    return build(BroadcastOp, constant(array), element="f32", shape=tuple(shape_of(like.type))).output


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
            value = build(ReshapeOp, value, element="f32", shape=(1, *shape_of(value.type)[-2:])).output
        result = EPILOGUES[epilogue](value)
        if also_reads:
            return [result, first]
        if is_last:
            return [result]
        sides = (0,) * (len(shape_of(result.type)) - 2)
        return [build(PadOp, result, element="f32", low=(*sides, 2, 0), high=(*sides, 0, 0), value=0).output]

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


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("is_flat", [False, True])
def test_one_kernel_computes_both(product: str, is_flat: bool) -> None:
    labels = lower(network(product, 16, "bias and slopes", is_flat), targets.host(), Phase.LINALG).labels
    assert labels
    assert not {"arith.select", "arith.addf", "qnn.reshape"} & set(labels)


def test_a_slow_function_is_a_kernel_of_its_own() -> None:
    def body(x: ir.Value) -> list[ir.Value]:
        return [op("math.exp", matmul(x, 16))]

    assert "math.exp" in lower(graph([tensor((5, 12), "f32")], body), targets.host(), Phase.LINALG).labels


@pytest.mark.parametrize("product", ["dynamic convolution", "convolution in groups"])
def test_on_two_threads(product: str) -> None:
    module = network(product, 64, "bias and slopes", True)
    _, shape, element = PRODUCTS[product]
    x = f32(*shape) if element == "f32" else bytes_of(*shape)
    (wanted,) = interpreter.run(module, [x])
    np.testing.assert_array_equal(compile_module(module, threads=2, min_cycles=1)(x), wanted)
