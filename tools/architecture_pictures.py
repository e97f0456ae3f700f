"""docs/phases.svg and docs/memory.svg: a layer in each phase, and the planned memory of a network, drawn from them."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from qdialect import PassManager, parse, read_model
from qdialect.bench.random_networks import draw_network
from qdialect.bench.tflite_writer import write_tflite
from qdialect.ir._mlir import ir
from qdialect.lowering.pipeline.phases import Phase, compile_to
from qdialect.targets import resolve

ROOT = Path(__file__).resolve().parents[1]
TARGET = "avx512vnni"
_LAYER = re.compile(r"^```mlir file=layer\.mlir\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What carries the product, the rounding and the table on their way down.
_TELLING = (
    *("qnn.conv2d", "qnn.requantize", "qnn.sigmoid", "qnn.fused_conv2d", "linalg.generic", "tensor.extract"),
    *("vector.contract", "vector.gather", "scf.for", "vpdpbusd", "pshuf.b", "arith.muli"),
    *("llvm.mul", "arith.shrsi", "llvm.ashr", "llvm.cond_br"),
)
_SHOWN = 5
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.title{font-weight:bold;text-anchor:middle}.note{fill:#666;font-size:11px}"
    "rect{fill:#e8f0fb;stroke:#4a78b5}path{fill:none;stroke:#666}#back{fill:#fff;stroke:none}"
)
_COLUMN, _ROW, _MARGIN = 172, 18, 16


@dataclass
class Life:
    """A buffer of the arena: where it is, and the first and last call that use it."""

    offset: int
    bytes: int
    first: int
    last: int


def phases() -> str:
    """The layer of the tutorial in each phase: which ops it is made of, and how many of each."""
    found = _LAYER.search((ROOT / "docs" / "down-to-vpdpbusd.md").read_text())
    assert found, "the tutorial has a layer"
    columns: list[tuple[str, list[str]]] = []
    for phase in Phase:
        module = parse(found[1])
        if phase is not Phase.QNN:
            PassManager.parse("fuse-qnn").run(module)
        lowered = compile_to(module, phase, resolve(TARGET))
        counts = Counter(_op_names(lowered.operation))
        columns.append((phase.value, [f"{counts[name]} {name}" for name in _TELLING if counts[name]][:_SHOWN]))
    height = 60 + _SHOWN * _ROW + 14
    lines: list[str] = []
    for index, (title, rows) in enumerate(columns):
        left = _MARGIN + index * _COLUMN
        lines.append(f'<rect x="{left}" y="34" width="{_COLUMN - 26}" height="{height - 46}" rx="4"/>')
        lines.append(f'<text class="title" x="{left + (_COLUMN - 26) / 2}" y="24">{title}</text>')
        if index:
            middle = height / 2
            lines.append(f'<path d="M{left - 24} {middle}H{left - 4}m-6 -5l6 5l-6 5"/>')
        lines += [f'<text x="{left + 8}" y="{56 + row * _ROW}">{escape(text)}</text>' for row, text in enumerate(rows)]
    return svg(2 * _MARGIN + len(columns) * _COLUMN - 26, height, lines)


def memory() -> str:
    """The arena of a MobileNet: each buffer from its first to its last call, at its place."""
    module = read_model(write_tflite(draw_network("mobilenet_v1_025")[0]))
    PassManager.parse("fuse-qnn").run(module)
    lowered = compile_to(module, Phase.LINALG, resolve(TARGET))
    lives, calls, total = _lives(lowered)
    width, height, left, top = 860, 300, 60, 20
    across, up = (width - left - _MARGIN) / calls, (height - top - 40) / total
    lines = [
        f'<rect x="{left + one.first * across:.1f}" y="{top + (total - one.offset - one.bytes) * up:.1f}" '
        f'width="{(one.last - one.first + 1) * across:.1f}" height="{max(1.0, one.bytes * up):.1f}"/>'
        for one in lives
    ]
    bottom = height - 40
    lines += [
        f'<path d="M{left} {top}V{bottom}H{width - _MARGIN}"/>',
        f'<text class="note" x="4" y="{top + 10}">{total // 1024} KiB</text>',
        f'<text class="note" x="{left}" y="{bottom + 18}">kernel calls in order, {calls} of them</text>',
        f'<text class="note" x="4" y="{bottom}">0</text>',
    ]
    return svg(width, height, lines)


def _op_names(op: ir.Operation) -> Iterator[str]:
    for region in op.regions:
        for block in region.blocks:
            for one in block.operations:
                yield _name(one.operation)
                yield from _op_names(one.operation)


def _name(op: ir.Operation) -> str:
    """The name; for an instruction by its intrinsic, that of the intrinsic."""
    if op.name != "llvm.call_intrinsic":
        return op.name
    return ir.StringAttr(op.attributes["intrin"]).value.removeprefix("llvm.x86.avx512.").removesuffix(".512")


def _lives(module: ir.Module) -> tuple[list[Life], int, int]:
    """Buffers of the arena, the number of calls, and the bytes of the arena."""
    # The one function that is not a kernel comes last.
    *_, main = (op for op in module.body.operations if op.operation.name == "func.func")
    block = main.regions[0].blocks[0]
    arena = block.arguments[len(block.arguments) - 1]
    places: dict[ir.Value, tuple[int, int]] = {}
    lives: list[Life] = []
    calls = 0
    for op in block.operations:
        name = op.operation.name
        if name == "memref.view" and op.operands[0] == arena:
            offset = ir.IntegerAttr(ir.OpResult(op.operands[1]).owner.attributes["value"]).value
            places[op.results[0]] = (offset, _bytes(op.results[0].type))
        elif name in ("func.call", "call"):
            for value in op.operands:
                if value in places:
                    _use(lives, *places[value], calls)
            calls += 1
    return lives, calls, _bytes(arena.type)


def _bytes(kind: ir.Type) -> int:
    """Bytes of a view: elements have 8, 32 or 64 bits."""
    shaped = ir.MemRefType(kind)
    element = shaped.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    return math.prod(shaped.shape) * max(8, width) // 8


def _use(lives: list[Life], offset: int, size: int, call: int) -> None:
    """Note a use: it prolongs the last buffer at this place, unless another one lay over it since."""
    for one in reversed(lives):
        if one.offset == offset and one.bytes == size:
            one.last = call
            return
        if one.offset < offset + size and offset < one.offset + one.bytes:
            break
    lives.append(Life(offset, size, call, call))


def svg(width: float, height: float, lines: Sequence[str], style: str = _STYLE) -> str:
    """A picture of these elements on a page."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
            f"<style>{style}</style>",
            '<rect id="back" width="100%" height="100%"/>',
            *lines,
            "</svg>\n",
        ]
    )
