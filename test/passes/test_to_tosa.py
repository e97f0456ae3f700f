"""`qnn` modules as `tosa` ops: by the specification they give what the reference gives, and they read back."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from drawn_graphs import copied, graph
from op_texts import functions, with_choices
from tosa_graphs import Array, check_export, export_notes, inputs_of, network

import qdialect
from qdialect import dialect as qnn
from qdialect.arithmetic import AddArithmetic, FloatRounding, NanPolicy, Rounding, Scaling, SubArithmetic
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export.export import EXPORTERS

Attributes = dict[str, Any]
ROUNDINGS = list(Rounding)
EIGHT_BIT = ("i8", "ui8")


def of(op_class: Any, types: Sequence[str], element: str, **attributes: Any) -> ir.Module:
    def body(*operands: ir.Value) -> ir.Value:
        return qnn.build(op_class, *operands, element=element, **attributes).operation.results[0]

    return graph(types, body)


def drawn(*shape: int, dtype: str = "int8", seed: int = 0) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, int(info.max) + 1, shape).astype(dtype)


# Every op by its round-trip texts, and with every value of its attributes that are choices.

ROUND_TRIPS = {
    path.stem: path
    for path in sorted((Path(__file__).parents[1] / "lit" / "dialect").glob("*.mlir"))
    if f"qnn.{path.stem}" in EXPORTERS
}
# Their texts have i64, or rows that are written twice; their own tests are below.
ELSEWHERE = {
    *("arg_max", "arg_min", "block_dense", "block_gather", "dynamic_gather", "dynamic_scatter", "int_max", "int_min"),
    "int_sum",
}


def whole(module: ir.Module) -> list[Array]:
    """Arrays for the module; floats are whole numbers, whose sums are exact in any order."""
    return [np.asarray(np.rint(one) if one.dtype.kind == "f" else one) for one in inputs_of(module, 5)]


@pytest.mark.parametrize("name", sorted(ROUND_TRIPS.keys() - ELSEWHERE))
def test_every_op(name: str) -> None:
    modules = [module for _, module in functions(ROUND_TRIPS[name].read_text())]
    exported = 0
    for variant in (*modules, *with_choices(modules[0])):
        try:
            qdialect.PassManager.parse("qnn-to-tosa").run(copied(variant))
        except qdialect.PassError:
            continue
        exported += 1
        try:
            check_export(variant, whole(variant))
        except qdialect.ImportModelError as error:
            if "known at run time only" not in str(error):
                raise
    assert exported > 0


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("source", "target"), list(product(["i8", "ui8", "i16", "i32"], ["i8", "ui8", "i16"])))
def test_requantization(rounding: Rounding, source: str, target: str) -> None:
    attributes: Attributes = {
        "input_scale": 0.37,
        "output_scale": 0.9 if source != "i32" else 900.0,
        "rounding": rounding,
    }
    points: Attributes = {"input_zero_points": (0 if source == "i32" else 7,), "output_zero_point": 3}
    check_export(of(qnn.RequantizeOp, [tensor((7, 300), source)], target, **attributes, **points))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_ties_of_both_signs(rounding: Rounding) -> None:
    near = np.arange(-20_000, 20_000, dtype=np.int32)
    how: Attributes = {"input_scale": 0.75, "output_scale": 12.0, "output_zero_point": 5, "rounding": rounding}
    check_export(of(qnn.RequantizeOp, [tensor(near.shape, "i32")], "i16", **how), [near])


def convolution(data: str, weight: Array, groups: int, **window: Any) -> ir.Module:
    points: Attributes = {"input_zero_point": 11, "weight_zero_points": (3,), "groups": groups}

    def body(x: ir.Value) -> ir.Value:
        bias = constant(drawn(len(weight), dtype="int16").astype(np.int32))
        scales: Attributes = {"input_scale": 0.5, "weight_scales": (0.25,)}
        sums = qnn.build(qnn.Conv2DOp, x, constant(weight), bias, element="i32", **scales, **points, **window).output
        how: Attributes = {
            "input_scale": 0.5,
            "weight_scales": (0.25,),
            "output_scale": 60.0,
            "output_zero_point": 4,
            "axis": 3,
        }
        return qnn.build(qnn.RequantizeOp, sums, element="ui8", **how, rounding=Rounding.FIXED32_DOUBLE).output

    return graph([data], body)


WINDOWS = [
    {"strides": (1, 1), "padding": (1, 1, 1, 1)},
    {"strides": (2, 3), "padding": (0, 1, 1, 0)},
    {"strides": (3, 2), "padding": (0, 0, 0, 0), "dilation": (2, 1)},
]


@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("groups", "channels"), [(1, 5), (2, 6), (4, 4), (4, 8)])
def test_convolution(element: str, window: Attributes, groups: int, channels: int) -> None:
    weight = drawn(channels, 3, 2, 4 // groups, dtype="uint8" if groups == 1 else "int8")
    check_export(convolution(tensor((2, 9, 10, 4), element), weight, groups, **window))


SUMS = [arithmetic for arithmetic in AddArithmetic if arithmetic is not AddArithmetic.FLOAT_ONCE]


def parameters(lhs: str, rhs: str, output: str) -> Attributes:
    low, high = ELEMENT_RANGES[output]
    zero = {"i8": -3, "ui8": 120}
    points: Attributes = {
        "lhs_zero_point": zero[lhs],
        "rhs_zero_point": zero[rhs] + 9,
        "output_zero_point": zero[output] + 4,
    }
    scales: Attributes = {"lhs_scale": 0.037, "rhs_scale": 0.0213, "output_scale": 0.041}
    return {**points, **scales, "output_min": low + 5, "output_max": high}


def every_pair() -> list[Array]:
    return [np.repeat(np.arange(256), 256).astype(np.uint8), np.tile(np.arange(256), 256).astype(np.uint8)]


def pair(op_class: Any, **how: Any) -> ir.Module:
    types = [tensor((65536,), "ui8"), tensor((65536,), "i8")]
    return of(op_class, types, "ui8", **parameters("ui8", "i8", "ui8"), **how)


@pytest.mark.parametrize("arithmetic", SUMS)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_sums_of_every_pair(arithmetic: AddArithmetic, rounding: Rounding) -> None:
    if arithmetic is not AddArithmetic.REQUANTIZE_EACH and rounding is not Rounding.FIXED64_UP:
        return
    lhs, rhs = every_pair()
    check_export(pair(qnn.AddOp, arithmetic=arithmetic, rounding=rounding), [lhs, rhs.view(np.int8)])


@pytest.mark.parametrize("arithmetic", list(SubArithmetic))
def test_differences_of_every_pair(arithmetic: SubArithmetic) -> None:
    lhs, rhs = every_pair()
    check_export(pair(qnn.SubOp, arithmetic=arithmetic), [lhs, rhs.view(np.int8)])


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_products_of_every_pair(rounding: Rounding) -> None:
    lhs, rhs = every_pair()
    check_export(pair(qnn.MulOp, rounding=rounding), [lhs, rhs.view(np.int8)])


FLOATS = np.concatenate([np.linspace(-40, 40, 5001), [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40]]).astype(np.float32)


@pytest.mark.parametrize("scale", [0.25, 0.1, 0.0371])
@pytest.mark.parametrize("scaling", list(Scaling))
@pytest.mark.parametrize("rounding", list(FloatRounding))
@pytest.mark.parametrize("element", ["i8", "ui8", "i16"])
def test_quantize(scale: float, scaling: Scaling, rounding: FloatRounding, element: str) -> None:
    # Ties of the quotient, and what is next to them.
    ties = (np.arange(-300, 300) + 0.5) * scale
    near = [np.nextafter(ties.astype(np.float32), np.float32(side)) for side in (-np.inf, np.inf)]
    values = np.concatenate([FLOATS, ties.astype(np.float32), *near])
    how: Attributes = {"rounding": rounding, "scaling": scaling, "nan": NanPolicy.MAX}
    module = of(qnn.QuantizeOp, [tensor(values.shape, "f32")], element, scales=(scale,), zero_points=(5,), **how)
    check_export(module, [values])


def long_rows() -> ir.Module:
    """A dense layer whose accumulators 32 bits do not hold."""
    weight = np.full((1, 70_000), -128, np.int8)

    def body(x: ir.Value) -> ir.Value:
        scales: dict[str, Any] = {"input_scale": 0.5, "input_zero_point": 0, "weight_scales": (0.25,)}
        return qnn.build(qnn.DenseOp, x, constant(weight), None, element="i32", **scales).output

    return graph([tensor((1, 70_000), "ui8")], body)


def rescaled_words(**how: Any) -> ir.Module:
    return of(qnn.RequantizeOp, [tensor((4,), "i32")], "i32", input_scale=1.0, output_zero_point=0, **how)


Unsupported = tuple[Callable[[], ir.Module], str]
UNSUPPORTED: list[Unsupported] = [
    (lambda: pair(qnn.AddOp, arithmetic=AddArithmetic.FLOAT_ONCE), "'qnn.add' op arithmetic must be one without fused"),
    (
        lambda: rescaled_words(output_scale=2.0, rounding=Rounding.F32_RNE_ZP_LAST),
        "'qnn.requantize' op rounding must be a fixed-point mode for results in",
    ),
    (
        lambda: rescaled_words(output_scale=0.5, rounding=Rounding.FIXED64_UP),
        "'qnn.requantize' op scales must give a multiplier that RESCALE takes",
    ),
    (
        lambda: of(
            qnn.MatMulOp,
            [tensor((2, 3), "i8"), tensor((3, 2), "i8")],
            "i32",
            input_scale=0.5,
            input_zero_point=0,
            weight_scales=(0.25,),
            weight_zero_points=(1, 2),
        ),
        "'qnn.matmul' op weight_zero_points must be equal, but got [1, 2]",
    ),
    (long_rows, "'qnn.dense' op accumulators must have 32 bits, but may reach 2284800000"),
]


@pytest.mark.parametrize(("make", "message"), UNSUPPORTED)
def test_ops_that_tosa_lacks_are_named(make: Callable[[], ir.Module], message: str) -> None:
    module = make()
    before = str(module)
    assert message in export_notes(module)
    assert str(module) == before


# Reductions, rows at indices, upstream ops and whole networks.


@pytest.mark.parametrize("op_class", [qnn.F32MaxOp, qnn.F32MinOp])
def test_extremes_for_which_a_nan_is_zero(op_class: Any) -> None:
    x = np.array([[1, np.nan, 2], [-1, np.nan, -2], [np.nan] * 3, [-np.nan, np.inf, -np.inf]], np.float32)
    how = {"axes": (1,), "from_zero": True, "nan_as_zero": True}
    check_export(of(op_class, [tensor(x.shape, "f32")], "f32", **how), [x])


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 64), (1,)), ((2, 3, 37), (0, 2)), ((2, 3, 70), (1, 2)), ((50,), (0,))]
)
def test_sums_along_long_rows(shape: tuple[int, ...], axes: tuple[int, ...], in_order: bool) -> None:
    check_export(of(qnn.F32SumOp, [tensor(shape, "f32")], "f32", axes=axes, in_order=in_order))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("element", ["ui8", "f32", "i32"])
def test_rows_at_indices(axis: int, element: str) -> None:
    dtype = {"ui8": np.uint8, "f32": np.float32, "i32": np.int32}[element]
    data = np.random.default_rng(1).integers(0, 200, (4, 5, 6)).astype(dtype)
    indices = np.array([[0, 3, -1], [-4, 9, -20]], np.int32)
    module = of(qnn.DynamicGatherOp, [tensor(data.shape, element), tensor(indices.shape, "i32")], element, axis=axis)
    check_export(module, [data, indices])


def scatter(indices: Sequence[int]) -> ir.Module:
    def body(data: ir.Value, updates: ir.Value) -> ir.Value:
        where = constant(np.array(indices, np.int64))
        return qnn.build(qnn.DynamicScatterOp, data, where, updates, element="ui8").output

    return graph([tensor((6, 3, 2), "ui8"), tensor((3, 3, 2), "ui8")], body)


def test_rows_that_are_written() -> None:
    check_export(scatter([4, -6, 9]))
    assert "'qnn.dynamic_scatter' op indices must name different rows, but got [1, -5, 2]" in export_notes(
        scatter([1, -5, 2])
    )


def whole_numbers(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)


def test_contractions_of_floats() -> None:
    types = [tensor((2, 3, 4, 5), "f32"), tensor((5, 6), "f32")]
    check_export(of(qnn.F32MatmulOp, types, "f32"), [whole_numbers(2, 3, 4, 5), whole_numbers(5, 6)])
    for groups, depth in ((1, 4), (4, 1)):

        def body(x: ir.Value, depth: int = depth, groups: int = groups) -> ir.Value:
            how: dict[str, Any] = {"strides": (2, 1), "dilation": (1, 2), "groups": groups}
            return qnn.build(qnn.F32Conv2DOp, x, constant(whole_numbers(8, 3, 2, depth)), element="f32", **how).output

        check_export(graph([tensor((2, 8, 7, 4), "f32")], body), [whole_numbers(2, 8, 7, 4)])


@pytest.mark.parametrize("has_points", [False, True])
def test_packed_weights_become_floats(has_points: bool) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, (6, 16)).astype(np.uint8), np.ldexp(np.ones((6, 2), np.float32), [1, 0])]
    parts += [rng.integers(0, 256, (6, 1)).astype(np.uint8)] if has_points else []

    def read(op_class: Any, x: ir.Value) -> ir.Value:
        return qnn.build(op_class, x, *map(constant, parts), element="f32", bits=4, block=16).output

    product, rows = (partial(read, op_class) for op_class in (qnn.BlockDenseOp, qnn.BlockGatherOp))
    check_export(graph([tensor((2, 3, 32), "f32")], product), [whole_numbers(2, 3, 32)])
    check_export(graph([tensor((2, 2), "i32")], rows), [np.array([[0, -1], [9, -20]], np.int32)])


FLOAT_OPS = """
func.func @main(%x: tensor<40xf32>, %y: tensor<40xf32>, %k: tensor<40xi32>) -> (tensor<40xf32>, tensor<40xi32>) {
  %four = "qnn.constant"() {value = dense<4.0> : tensor<40xf32>} : () -> tensor<40xf32>
  %three = "qnn.constant"() {value = dense<3> : tensor<40xi32>} : () -> tensor<40xi32>
  %a = arith.addf %x, %y : tensor<40xf32>
  %s = arith.subf %a, %four : tensor<40xf32>
  %m = arith.mulf %s, %y : tensor<40xf32>
  %d = arith.divf %m, %four : tensor<40xf32>
  %n = arith.negf %d : tensor<40xf32>
  %u = arith.maximumf %n, %x : tensor<40xf32>
  %v = arith.minimumf %u, %y : tensor<40xf32>
  %e = math.exp %v : tensor<40xf32>
  %c = math.ceil %e : tensor<40xf32>
  %p = arith.cmpf olt, %x, %y : tensor<40xf32>
  %q = arith.cmpf une, %x, %y : tensor<40xf32>
  %r = arith.cmpf uge, %x, %y : tensor<40xf32>
  %pq = arith.andi %p, %q : tensor<40xi1>
  %pqr = arith.xori %pq, %r : tensor<40xi1>
  %z = arith.select %pqr, %c, %x : tensor<40xi1>, tensor<40xf32>
  %w = arith.fptosi %x : tensor<40xf32> to tensor<40xi32>
  %t = arith.shrsi %k, %three : tensor<40xi32>
  %l = arith.shrui %k, %three : tensor<40xi32>
  %h = arith.xori %t, %l : tensor<40xi32>
  %g = arith.cmpi slt, %h, %k : tensor<40xi32>
  %b = arith.extui %g : tensor<40xi1> to tensor<40xi32>
  %f = arith.addi %b, %w : tensor<40xi32>
  %i = math.ctlz %k : tensor<40xi32>
  %j = arith.muli %f, %i : tensor<40xi32>
  %o = arith.trunci %j : tensor<40xi32> to tensor<40xi8>
  %oo = arith.extsi %o : tensor<40xi8> to tensor<40xi32>
  return %z, %oo : tensor<40xf32>, tensor<40xi32>
}
"""


INTEGER_OPS = """
func.func @main(%a: tensor<40xi32>, %b: tensor<40xi32>) -> (tensor<40xi32>, tensor<40xf32>) {
  %three = arith.constant dense<3> : tensor<40xi32>
  %s = arith.subi %a, %b : tensor<40xi32>
  %m = arith.maxsi %s, %a : tensor<40xi32>
  %n = arith.minsi %m, %b : tensor<40xi32>
  %o = arith.ori %n, %three : tensor<40xi32>
  %l = arith.shli %o, %three : tensor<40xi32>
  %r = arith.shrsi %l, %three : tensor<40xi32>
  %u = arith.shrui %s, %three : tensor<40xi32>
  %x = arith.xori %r, %u : tensor<40xi32>
  %i = math.absi %x : tensor<40xi32>
  %f = arith.sitofp %a : tensor<40xi32> to tensor<40xf32>
  %g = math.absf %f : tensor<40xf32>
  %h = math.floor %g : tensor<40xf32>
  return %i, %h : tensor<40xi32>, tensor<40xf32>
}
"""


@pytest.mark.parametrize("text", [FLOAT_OPS, INTEGER_OPS], ids=["floats", "integers"])
def test_upstream_ops(text: str) -> None:
    check_export(qdialect.parse(text))


def test_upstream_ops_that_tosa_lacks_are_named() -> None:
    text = """
      func.func @main(%x: tensor<4xf32>, %y: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
        %three = "qnn.constant"() {value = dense<3.0> : tensor<4xf32>} : () -> tensor<4xf32>
        %0 = arith.divf %x, %three : tensor<4xf32>
        %1 = math.sqrt %0 : tensor<4xf32>
        %2 = arith.addi %y, %y : tensor<4xi64>
        return %1, %2 : tensor<4xf32>, tensor<4xi64>
      }"""
    found = export_notes(qdialect.parse(text))
    assert "'arith.divf' op divisor must be powers of two, since TOSA has no division, but got [3.]" in found
    assert "'math.sqrt' op has no counterpart in tosa" in found
    assert "'arith.addi' op must have operands and results of" in found
    assert "'qnn.cumsum' op has no counterpart in tosa" in export_notes(
        of(qnn.CumSumOp, [tensor((2, 3), "i32")], "i32", axis=1)
    )


@pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND"])
def test_a_network_comes_back(mode: str) -> None:
    text = network(mode)
    source = text.render(list(text.types)[-1])
    module = import_tosa(source)
    again = import_tosa(str(check_export(module)))
    fused: list[list[str]] = []
    for one in (module, again):
        qdialect.PassManager.parse("fuse-qnn").run(one)
        body = one.body.operations[0].operation.regions[0].blocks[0].operations
        fused.append([op.operation.name for op in body])
    check_export(module)
    assert fused[0] == fused[1]
