"""docs/fusion.svg: a small graph before and after fusion, drawn from its ops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from qdialect import PassManager, parse
from qdialect.dialect import AnyFused
from qdialect.ir._mlir import ir
from tools.architecture_pictures import svg

# A residual block as an importer writes it: two convolutions, the first with a hardswish, and an addition.
GRAPH = """
func.func @main(%image: tensor<1x16x16x8xui8>) -> tensor<1x16x16x8xui8> {
  %w0 = "qnn.constant"() {value = dense<3> : tensor<8x3x3x8xi8>} : () -> tensor<8x3x3x8xi8>
  %w1 = "qnn.constant"() {value = dense<-2> : tensor<8x3x3x8xi8>} : () -> tensor<8x3x3x8xi8>
  %bias = "qnn.constant"() {value = dense<7> : tensor<1x1x1x8xi32>} : () -> tensor<1x1x1x8xi32>
  %all = "qnn.broadcast"(%bias) {shape = array<i64: 1, 16, 16, 8>} : (tensor<1x1x1x8xi32>) -> tensor<1x16x16x8xi32>
  %0 = "qnn.conv2d"(%image, %w0) {
    padding = array<i64: 1, 1, 1, 1>, input_scale = 0.05 : f64, input_zero_point = 128 : i64,
    weight_scales = array<f64: 0.02>, weight_zero_points = array<i64: 0>
  } : (tensor<1x16x16x8xui8>, tensor<8x3x3x8xi8>) -> tensor<1x16x16x8xi32>
  %1 = arith.addi %0, %all : tensor<1x16x16x8xi32>
  %2 = "qnn.requantize"(%1) {
    input_scale = 0.05 : f64, weight_scales = array<f64: 0.02>, input_zero_points = array<i64: 0>,
    output_scale = 0.06 : f64, output_zero_point = 128 : i64, axis = 3 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<1x16x16x8xi32>) -> tensor<1x16x16x8xui8>
  %3 = "qnn.hardswish"(%2) {
    input_scale = 0.06 : f64, input_zero_point = 128 : i64, output_scale = 0.06 : f64, output_zero_point = 9 : i64,
    entries = "half_away_divide", nan = "max"
  } : (tensor<1x16x16x8xui8>) -> tensor<1x16x16x8xui8>
  %4 = "qnn.conv2d"(%3, %w1) {
    padding = array<i64: 1, 1, 1, 1>, input_scale = 0.06 : f64, input_zero_point = 9 : i64,
    weight_scales = array<f64: 0.02>, weight_zero_points = array<i64: 0>
  } : (tensor<1x16x16x8xui8>, tensor<8x3x3x8xi8>) -> tensor<1x16x16x8xi32>
  %5 = "qnn.requantize"(%4) {
    input_scale = 0.06 : f64, weight_scales = array<f64: 0.02>, input_zero_points = array<i64: 0>,
    output_scale = 0.07 : f64, output_zero_point = 120 : i64, axis = 3 : i64, rounding = "fixed64_up",
    multiplier = "f64"
  } : (tensor<1x16x16x8xi32>) -> tensor<1x16x16x8xui8>
  %6 = "qnn.add"(%5, %image) {
    lhs_scale = 0.07 : f64, lhs_zero_point = 120 : i64, rhs_scale = 0.05 : f64, rhs_zero_point = 128 : i64,
    output_scale = 0.08 : f64, output_zero_point = 125 : i64, output_min = 0 : i64, output_max = 255 : i64,
    arithmetic = "requantize_each", rounding = "fixed64_up", multiplier = "f64"
  } : (tensor<1x16x16x8xui8>, tensor<1x16x16x8xui8>) -> tensor<1x16x16x8xui8>
  return %6 : tensor<1x16x16x8xui8>
}
"""
_CONSTANTS = ("qnn.constant", "qnn.broadcast", "arith.constant")
"""Ops on constants, which are not drawn."""
_WIDTH, _HEIGHT, _GAP, _LINE, _COLUMN, _MARGIN, _TOP = 190, 30, 26, 16, 340, 30, 60
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#222}.title{font-weight:bold}.type{font-size:11px;fill:#666}"
    ".stage{font-size:12px}rect{fill:#e8f0fb;stroke:#4a78b5}.port{fill:#f3f3f3;stroke:#999}path{fill:none;stroke:#666}"
    "#back{fill:#fff;stroke:none}"
)


@dataclass(frozen=True)
class Box:
    """An op of the graph: its lines of text, and the numbers of the boxes that it reads."""

    lines: tuple[str, ...]
    reads: tuple[int, ...]
    type: str
    is_port: bool = False

    @property
    def height(self) -> int:
        """How high it is drawn."""
        return _HEIGHT + _LINE * (len(self.lines) - 1)


def picture() -> str:
    """The text of the picture."""
    module = parse(GRAPH)
    before = _boxes(module)
    PassManager.parse("fuse-qnn").run(module)
    after = _boxes(module)
    bodies = [_column(boxes, index) for index, boxes in enumerate((before, after))]
    height = _TOP + sum(box.height + _GAP for box in before)
    width = 2 * _COLUMN
    titles = (f"imported: {len(before) - 2} ops", f"fused: {len(after) - 2} ops, one kernel each")
    named = (f'<text class="title" x="{_middle(i)}" y="30">{escape(text)}</text>' for i, text in enumerate(titles))
    return svg(width, height, [*named, *(line for body in bodies for line in body)], _STYLE)


def _boxes(module: ir.Module) -> list[Box]:
    """The argument, the ops in order and the result of the one function."""
    (function,) = module.body.operations
    block = function.regions[0].blocks[0]
    numbers: dict[ir.Value, int] = {}
    boxes: list[Box] = []
    for value in block.arguments:
        numbers[value] = len(boxes)
        boxes.append(Box(("input",), (), _type(value), is_port=True))
    for op in block.operations:
        name = op.operation.name
        if name in _CONSTANTS:
            continue
        reads = tuple(numbers[value] for value in op.operation.operands if value in numbers)
        if name == "func.return":
            boxes.append(Box(("output",), reads, "", is_port=True))
            continue
        numbers[op.operation.results[0]] = len(boxes)
        stages = [f"then {stage.name}" for stage in op.epilogue] if isinstance(op, AnyFused) else []
        boxes.append(Box((name, *stages), reads, _type(op.operation.results[0])))
    return boxes


def _type(value: ir.Value) -> str:
    """As in ``1x16x16x8 ui8``."""
    shape, _, element = str(value.type).removeprefix("tensor<").removesuffix(">").rpartition("x")
    return f"{shape} {element}"


def _middle(column: int) -> int:
    return _MARGIN + _WIDTH // 2 + 45 + column * _COLUMN


def _column(boxes: Sequence[Box], column: int) -> Iterator[str]:
    middle, tops, top = _middle(column), [0] * len(boxes), _TOP
    for number, box in enumerate(boxes):
        tops[number] = top
        top += box.height + _GAP
    for number, box in enumerate(boxes):
        for read in box.reads:
            yield _edge(middle, tops[read] + boxes[read].height, tops[number], number - read == 1)
        kind = ' class="port"' if box.is_port else ""
        x = middle - _WIDTH // 2
        yield f'<rect{kind} x="{x}" y="{tops[number]}" width="{_WIDTH}" height="{box.height}" rx="4"/>'
        for index, line in enumerate(box.lines):
            kind = ' class="stage"' if index else ""
            yield f'<text{kind} x="{middle}" y="{tops[number] + 20 + index * _LINE}">{escape(line)}</text>'
        if box.type:
            yield f'<text class="type" x="{middle + 70}" y="{tops[number] + box.height + 17}">{escape(box.type)}</text>'


def _edge(middle: int, start: int, end: int, is_next: bool) -> str:
    """A line down to the next box, or around those between."""
    if is_next:
        return f'<path d="M{middle} {start}V{end}"/>'
    side = middle - _WIDTH // 2 - 25
    return f'<path d="M{middle} {start}V{start + 8}H{side}V{end - 8}H{middle}V{end}"/>'
