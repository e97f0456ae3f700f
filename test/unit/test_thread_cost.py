"""What ops are thought to take when threads get their parts."""

import pytest

from qdialect.ir._mlir import ir
from qdialect.ir.context import parse
from qdialect.lowering.cost.op_cycles import cycles
from qdialect.lowering.ir.functions import functions
from qdialect.lowering.ir.lowered import Phase
from qdialect.lowering.pipeline.phases import lower
from qdialect.targets import resolve

DENSE = """
func.func @main(%x: tensor<64x256xui8>) -> tensor<64x64xi32> {
  %w = "qnn.constant"() {value = dense<3> : tensor<64x256xi8>} : () -> tensor<64x256xi8>
  %0 = "qnn.dense"(%x, %w) {
    input_scale = 0.5 : f64, input_zero_point = 0 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>
  } : (tensor<64x256xui8>, tensor<64x256xi8>) -> tensor<64x64xi32>
  return %0 : tensor<64x64xi32>
}
"""


def costs(target: str) -> tuple[list[float], float]:
    """The cycles of each contraction of `DENSE` by itself, and those of all loops."""
    module = lower(parse(DENSE), resolve(target), Phase.VECTOR).module
    single: list[float] = []
    outermost: list[float] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.contract":
            single.append(cycles(op))
        if op.name == "scf.for" and op.parent is not None and op.parent.name == "func.func":
            outermost.append(cycles(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return single, sum(outermost)


def test_a_contraction_in_matrix_tiles_takes_what_its_products_do() -> None:
    # 2 x 2 tiles of sums, and 16 K groups in each step of the loop.
    single, whole = costs("amxint8")
    assert single == [4 * 16]
    products = 64 * 64 * 256 / 1024
    # Beside them there are loads and stores, and the way of the sums through memory.
    assert products <= whole <= 6 * products


def test_a_contraction_of_dot_products_takes_what_these_do() -> None:
    single, whole = costs("avx512vbmi")
    assert single
    products = 64 * 64 * 256 / 64
    assert products <= whole <= 3.5 * products


@pytest.mark.parametrize("first", [0, 1])
def test_a_tile_of_one_row_or_column_takes_what_a_tile_does(first: int) -> None:
    tile, row = ("(m, k, t)", "vector<16x8x4x{}>"), ("(k, t)", "vector<8x4x{}>")
    (left, a), (right, b) = (tile, row) if first else (row, tile)
    contraction = f"""
    func.func @main(%a: {a.format("i8")}, %b: {b.format("i8")}, %c: vector<16xi32>) {{
      %0 = arith.extui %a : {a.format("i8")} to {a.format("i32")}
      %1 = arith.extsi %b : {b.format("i8")} to {b.format("i32")}
      %2 = vector.contract {{
        indexing_maps = [affine_map<(m, k, t) -> {left}>, affine_map<(m, k, t) -> {right}>,
                         affine_map<(m, k, t) -> (m)>],
        iterator_types = ["parallel", "reduction", "reduction"], kind = #vector.kind<add>
      }} %0, %1, %c : {a.format("i32")}, {b.format("i32")} into vector<16xi32>
      return
    }}"""
    module = parse(contraction)
    ops = functions(module)[0].regions[0].blocks[0].operations
    assert [cycles(op.operation) for op in ops if op.operation.name == "vector.contract"] == [16]
