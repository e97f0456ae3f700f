"""Tables of the operators each front end takes: what they become, and with whose numbers they were compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import recordings
from tolerances import tolerance_of

from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.frontends import onnx, tflite
from qdialect.frontends.common import GraphNode
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.model_files import FORMATS

# Who gave the numbers of a file of recorded cases, by the first word of the file's name.
_RECORDED_WITH = {
    "tflite": "LiteRT 2.3.0, reference kernels",
    "xnnpack": "LiteRT 2.3.0, XNNPACK delegate",
    "onnx": "ONNX Runtime 1.31.1",
}
# With whose numbers tests compare the formats that have no recorded cases.
_COMPARED_WITH = {".pt2": "PyTorch 2.13.0", ".mlir": "upstream's lowering"}


@dataclass
class Operator:
    """What is known of an operator: the ops it becomes, and how many recorded cases have it, by who recorded them."""

    ops: dict[str, None] = field(default_factory=dict[str, None])
    cases: dict[str, int] = field(default_factory=dict[str, int])


def tables(vectors: Path, lowered: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """The lines of a table for each format; `lowered` says of each op whether it is lowered, and vectorized."""
    known = _recorded(vectors)
    for suffix in (".tflite", ".onnx"):
        yield f"## Operators of {suffix} files\n"
        yield "| operator | becomes | reference | lowering | vectorized | compared with | results are |"
        yield "|---|---|---|---|---|---|---|"
        for name in FORMATS[suffix].operators():
            yield _row(suffix, name, known.get((suffix, name), Operator()), lowered)
        yield ""
    for suffix, who in _COMPARED_WITH.items():
        kind = "TOSA ops" if suffix == ".mlir" else "Operators"
        yield f"## {kind} of {suffix} files\n"
        yield f"The tests compare with {who} while they run.\n"
        yield "| operator | results are |"
        yield "|---|---|"
        yield from (f"| `{name}` | {tolerance_of(suffix, name)} |" for name in FORMATS[suffix].operators())
        yield ""


def _row(suffix: str, name: str, operator: Operator, lowered: Mapping[str, tuple[str, str]]) -> str:
    ops = [op.removeprefix("qnn.") for op in operator.ops]
    marks = [_all(lowered.get(op, ("yes", "yes"))[step] for op in ops) for step in (0, 1)] if ops else ["", ""]
    cases = ", ".join(f"{who} ({count} case{'s' * (count != 1)})" for who, count in operator.cases.items())
    results = str(tolerance_of(suffix, name)) if cases else ""
    cells = [f"`{name}`", ", ".join(f"`{op}`" for op in ops), "yes", *marks, cases, results]
    return f"| {' | '.join(cells)} |"


def _all(marks: Iterator[str]) -> str:
    return "yes" if all(mark in ("yes", "data") for mark in marks) else "in part"


def _recorded(vectors: Path) -> dict[tuple[str, str], Operator]:
    """By format and operator."""
    known: dict[tuple[str, str], Operator] = {}
    context = make_context()
    for path, source in _sources(vectors):
        for model in recordings.read_models(path).values():
            suffix, nodes, ops = _read(source, model, context)
            for kind in dict.fromkeys(_subjects(nodes)):
                entry = known.setdefault((suffix, kind), Operator())
                entry.ops |= dict.fromkeys(ops)
                who = _RECORDED_WITH[source]
                entry.cases[who] = entry.cases.get(who, 0) + 1
    return known


def _sources(vectors: Path) -> Iterator[tuple[Path, str]]:
    """The files of quantized operators, each with the first word of its name; f32 networks are left out."""
    for path in sorted(vectors.glob("*.npz")):
        source = path.stem.split("_")[0]
        if source in _RECORDED_WITH:
            yield path, source


def _read(source: str, content: bytes, context: ir.Context) -> tuple[str, Sequence[GraphNode], list[str]]:
    if source == "onnx":
        return ".onnx", onnx.nodes_of(content), _ops(onnx.import_onnx(content, context))
    profile = "tflite-xnnpack" if source == "xnnpack" else "tflite"
    return ".tflite", tflite.nodes_of(content), _ops(tflite.import_tflite(content, context, profile=profile))


def _subjects(nodes: Sequence[GraphNode]) -> list[str]:
    """The operators a case is about: those between quantizations, where there are any."""
    inner = [node.kind for node in nodes if not node.kind.endswith(("QuantizeLinear", "DequantizeLinear"))]
    return inner or [node.kind for node in nodes]


def _ops(module: ir.Module) -> list[str]:
    found = [op.operation.name for op in main_function(module).regions[0].blocks[0].operations]
    return sorted({name for name in found if name not in (*CONSTANT_OPS, "func.return")})
