"""Rows of 32-bit numbers transposed by shuffles: the same numbers, in as few instructions as there are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from together import variants_together

from qdialect.dialect import MatMulOp, TransposeOp, build
from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.vector_to_x86.instruction_pattern import apply_instructions
from qdialect.lowering.vector_to_x86.transpositions import TransposedSquare


def transposition(shape: Sequence[int], order: Sequence[int], element: str = "i32") -> str:
    source, result = (f"vector<{'x'.join(map(str, sizes))}x{element}>" for sizes in (shape, [shape[i] for i in order]))
    return f"""
      func.func @f(%x: {source}) -> {result} {{
        %0 = vector.transpose %x, {list(order)} : {source} to {result}
        return %0 : {result}
      }}"""


def rewritten(text: str, lanes: int) -> str:
    module = parse(text)
    with module.context, ir.Location.unknown():
        apply_instructions(module, [TransposedSquare(lanes)])
    return str(module)


@pytest.mark.parametrize(("lanes", "stages"), [(4, 2), (8, 3), (16, 4)])
@pytest.mark.parametrize("element", ["i32", "f32"])
def test_a_square_takes_an_instruction_for_each_vector_and_stage(lanes: int, stages: int, element: str) -> None:
    found = rewritten(transposition((1, 1, lanes, lanes), (0, 1, 3, 2), element), lanes)
    assert found.count("vector.shuffle") == lanes * stages
    assert "vector.transpose" not in found


@pytest.mark.parametrize(
    ("shape", "order", "element"),
    [
        ((16, 16), (1, 0), "i8"),
        ((2, 16, 16), (0, 2, 1), "i32"),
        ((16, 3), (1, 0), "i32"),
        ((16, 17), (1, 0), "i32"),
        ((1, 16, 16), (1, 0, 2), "i32"),
    ],
)
def test_other_transpositions_are_left_alone(shape: Sequence[int], order: Sequence[int], element: str) -> None:
    assert "vector.transpose" in rewritten(transposition(shape, order, element), 16)


@variants_together
@pytest.mark.parametrize("rows", [4, 5, 8, 16, 37])
@pytest.mark.parametrize("columns", [4, 7, 16, 24])
def test_transposed_numbers(rows: int, columns: int) -> None:
    def body(source: ir.Value) -> ir.Value:
        return build(TransposeOp, source, element="i32", permutation=(0, 2, 1)).output

    check(
        graph([tensor((2, rows, columns), "i32")], body),
        [np.arange(2 * rows * columns, dtype=np.int32).reshape(2, rows, columns)],
    )


@variants_together
@pytest.mark.parametrize(("depth", "columns"), [(16, 8), (32, 16), (64, 21), (80, 133), (128, 40)])
def test_packed_matrices(depth: int, columns: int) -> None:
    """What `emit_packing` makes of a transposed right operand."""

    def body(left: ir.Value, right: ir.Value) -> ir.Value:
        turned = build(TransposeOp, right, element="ui8", permutation=(0, 2, 1)).output
        points: dict[str, Any] = {"input_zero_point": 3, "weight_zero_points": (77,)}
        return build(MatMulOp, left, turned, element="i32", input_scale=0.5, weight_scales=(0.25,), **points).output

    check(graph([tensor((2, 9, depth), "ui8"), tensor((2, columns, depth), "ui8")], body))
