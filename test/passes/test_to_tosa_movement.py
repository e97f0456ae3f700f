"""Data movement, reductions, rows at indices, upstream ops and whole networks as `tosa` ops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from drawn_graphs import graph
from numpy.typing import NDArray
from tosa_graphs import check_export, export_notes, network

import qdialect
from qdialect.arithmetic.choices import Coordinates, Nearest, Ratio
from qdialect.dialect import (
    ArgMaxOp,
    ArgMinOp,
    BlockDenseOp,
    BlockGatherOp,
    BroadcastOp,
    CumSumOp,
    DynamicGatherOp,
    DynamicScatterOp,
    F32Conv2DOp,
    F32MatmulOp,
    F32MaxOp,
    F32MinOp,
    F32ProdOp,
    F32SumOp,
    GatherOp,
    IntMaxOp,
    IntMinOp,
    IntSumOp,
    PadOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReshapeOp,
    ResizeNearestOp,
    SliceOp,
    TransposeOp,
    build,
)
from qdialect.dialect.constants import constant
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir

Array = NDArray[Any]
ELEMENTS = ("i1", "i8", "ui8", "i16", "i32", "f32")
MOVEMENTS: list[tuple[Any, dict[str, Any]]] = [
    (ReshapeOp, {"shape": (6, 20)}),
    (TransposeOp, {"permutation": (3, 0, 2, 1)}),
    (PadOp, {"low": (0, 1, 0, 2), "high": (1, 0, 0, 0), "value": 1}),
    (SliceOp, {"begin": (0, 1, 0, 1), "size": (2, 2, 4, 3), "strides": (1, 1, 1, 1)}),
    (SliceOp, {"begin": (1, 0, 1, 0), "size": (1, 2, 2, 3), "strides": (1, 2, 2, 2)}),
    (GatherOp, {"axis": 2, "indices": (3, 0, 0, 2, 1, 3)}),
    (GatherOp, {"axis": 3, "indices": (4, 3, 2, 1, 0)}),
    (BroadcastOp, {"shape": (3, 2, 3, 4, 5)}),
    (ResizeNearestOp, {"size": (7, 3), "coordinates": Coordinates.HALF_PIXEL, "nearest": Nearest.FLOOR}),
]


def of(op_class: Any, types: Sequence[str], element: str, **attributes: Any) -> ir.Module:
    def body(*operands: ir.Value) -> ir.Value:
        return build(op_class, *operands, element=element, **attributes).operation.results[0]

    return graph(types, body)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(("op_class", "attributes"), MOVEMENTS)
def test_movement(op_class: Any, attributes: dict[str, Any], element: str) -> None:
    ratio = {"ratio": Ratio.DIVIDE} if op_class is ResizeNearestOp else {}
    check_export(of(op_class, [tensor((2, 3, 4, 5), element)], element, **attributes, **ratio))


REDUCTIONS = [
    (ReduceMaxOp, "i8"),
    (ReduceMinOp, "ui8"),
    *((op_class, "i32") for op_class in (IntSumOp, IntMaxOp, IntMinOp)),
    *((op_class, "f32") for op_class in (F32SumOp, F32ProdOp, F32MaxOp, F32MinOp)),
]


@pytest.mark.parametrize(("op_class", "element"), REDUCTIONS)
@pytest.mark.parametrize("axes", [(1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions(op_class: Any, element: str, axes: tuple[int, ...], keep: bool) -> None:
    check_export(of(op_class, [tensor((3, 4, 5), element)], element, axes=axes, keep_dims=keep))


@pytest.mark.parametrize("op_class", [F32MaxOp, F32MinOp])
def test_extremes_for_which_a_nan_is_zero(op_class: Any) -> None:
    x = np.array([[1, np.nan, 2], [-1, np.nan, -2], [np.nan] * 3, [-np.nan, np.inf, -np.inf]], np.float32)
    how = {"axes": (1,), "from_zero": True, "nan_as_zero": True}
    check_export(of(op_class, [tensor(x.shape, "f32")], "f32", **how), [x])


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 64), (1,)), ((2, 3, 37), (0, 2)), ((2, 3, 70), (1, 2)), ((50,), (0,))]
)
def test_sums_along_long_rows(shape: tuple[int, ...], axes: tuple[int, ...], in_order: bool) -> None:
    check_export(of(F32SumOp, [tensor(shape, "f32")], "f32", axes=axes, in_order=in_order))


@pytest.mark.parametrize("op_class", [ArgMaxOp, ArgMinOp])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("element", ["i8", "ui8"])
def test_positions_of_extremes(op_class: Any, last: bool, element: str) -> None:
    x = np.random.default_rng(1).integers(0, 5, (4, 30, 3)).astype({"i8": np.int8, "ui8": np.uint8}[element])
    check_export(of(op_class, [tensor(x.shape, element)], "i32", axis=1, last=last, keep_dims=last), [x])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("element", ["ui8", "f32", "i32"])
def test_rows_at_indices(axis: int, element: str) -> None:
    dtype = {"ui8": np.uint8, "f32": np.float32, "i32": np.int32}[element]
    data = np.random.default_rng(1).integers(0, 200, (4, 5, 6)).astype(dtype)
    indices = np.array([[0, 3, -1], [-4, 9, -20]], np.int32)
    module = of(DynamicGatherOp, [tensor(data.shape, element), tensor(indices.shape, "i32")], element, axis=axis)
    check_export(module, [data, indices])


def scatter(indices: Sequence[int]) -> ir.Module:
    def body(data: ir.Value, updates: ir.Value) -> ir.Value:
        where = constant(np.array(indices, np.int64))
        return build(DynamicScatterOp, data, where, updates, element="ui8").output

    return graph([tensor((6, 3, 2), "ui8"), tensor((3, 3, 2), "ui8")], body)


def test_rows_that_are_written() -> None:
    check_export(scatter([4, -6, 9]))
    assert "'qnn.dynamic_scatter' op indices must name different rows, but got [1, -5, 2]" in export_notes(
        scatter([1, -5, 2])
    )


def whole(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)


def test_contractions_of_floats() -> None:
    types = [tensor((2, 3, 4, 5), "f32"), tensor((5, 6), "f32")]
    check_export(of(F32MatmulOp, types, "f32"), [whole(2, 3, 4, 5), whole(5, 6)])
    for groups, depth in ((1, 4), (4, 1)):

        def body(x: ir.Value, depth: int = depth, groups: int = groups) -> ir.Value:
            how: dict[str, Any] = {"strides": (2, 1), "dilation": (1, 2), "groups": groups}
            return build(F32Conv2DOp, x, constant(whole(8, 3, 2, depth)), element="f32", **how).output

        check_export(graph([tensor((2, 8, 7, 4), "f32")], body), [whole(2, 8, 7, 4)])


@pytest.mark.parametrize("has_points", [False, True])
def test_packed_weights_become_floats(has_points: bool) -> None:
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, (6, 16)).astype(np.uint8), np.ldexp(np.ones((6, 2), np.float32), [1, 0])]
    parts += [rng.integers(0, 256, (6, 1)).astype(np.uint8)] if has_points else []

    def read(op_class: Any, x: ir.Value) -> ir.Value:
        return build(op_class, x, *map(constant, parts), element="f32", bits=4, block=16).output

    product, rows = (partial(read, op_class) for op_class in (BlockDenseOp, BlockGatherOp))
    check_export(graph([tensor((2, 3, 32), "f32")], product), [whole(2, 3, 32)])
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


def test_upstream_ops() -> None:
    check_export(qdialect.parse(FLOAT_OPS))


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


def test_upstream_ops_on_integers() -> None:
    check_export(qdialect.parse(INTEGER_OPS))


def test_what_tosa_lacks_is_named() -> None:
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
        of(CumSumOp, [tensor((2, 3), "i32")], "i32", axis=1)
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
