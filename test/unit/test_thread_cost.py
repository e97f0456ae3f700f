"""What ops are thought to take when threads get their parts."""

from qdialect._mlir import ir
from qdialect.context import parse
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower
from qdialect.lowering.threads.cost import cycles
from qdialect.target import resolve

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
