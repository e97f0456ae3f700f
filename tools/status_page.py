"""docs/status.md: what exists for each op, found in the code rather than kept by hand."""

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lit_tests import first_function
from op_pages import constraints_of, family_of, labels_of, short_name

from qdialect.dialect import OPS, ConstantOp, QnnOp
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.diagnostics import QDialectError
from qdialect.targets import GENERIC, TARGETS

INTRODUCTION = """\
# Status

The verifier, the lowering and the front ends of each op; `qdialect.reference` runs every one:

- **verifier**: the number of labelled constraints that it checks; each has a test that is refused, in the
  `-invalid.mlir` of the op or of its base class. Counts, attributes and types are checked and tested for every op.
- **lowering**: what the example of the op's page becomes, after fusion, at the phase `vector`: vector code, scalar
  loops, or nothing where it is not lowered.
- **instructions**: the kinds of target ([targets](targets.md)) for which the code of the example has intrinsics; on
  other kinds, and on `generic` always, LLVM makes instructions of vector ops.
- **front ends**: the formats whose importer builds the op. Other ops come from fusion or from a text.
"""
KINDS = tuple(TARGETS)
_FEW = 3
"""At most so many kinds without instructions are named in place of those with."""
_FRONTENDS = "qdialect.frontends."
# Operands that a kernel needs at compile time.
_WEIGHTS = re.compile(r"(?:,\s*)?%(weight|bias|recurrence|scales|zero_points): (tensor<[^>]*>)")
_SIGNATURE = re.compile(r"func\.func @\w+\((?P<arguments>[^)]*)\)[^{]*\{\n")


def page(root: Path, tests: Path) -> str:
    """The text of the page."""
    importers = sorted((root / "qdialect" / "frontends").glob("*/importer.py"))
    formats = {path.parent.name: _names_used(path.parent) for path in importers}
    rows = ["| op | verifier | lowering | instructions | front ends |", "|---|---|---|---|---|"]
    context = make_context()
    rows += [_row(op_class, formats, _lowering(op_class, tests, context)) for op_class in OPS]
    return "\n".join([INTRODUCTION, *rows, ""])


def _row(op_class: type[QnnOp], formats: dict[str, set[str]], lowered: tuple[str, str]) -> str:
    count = sum(len(labels_of(item)) for item in constraints_of(op_class))
    verified = f"{count} constraint{'s' * (count > 1)}"
    builders = ", ".join(sorted(name for name, names in formats.items() if op_class.__name__ in names))
    name = short_name(op_class)
    cells = [f"[`{name}`](ops/{family_of(op_class)}.md#qnn{name})", verified, *lowered, builders]
    return f"| {' | '.join(cells)} |"


def _lowering(op_class: type[QnnOp], tests: Path, context: ir.Context) -> tuple[str, str]:
    """What the example of an op becomes, and the kinds of target for which that has instructions."""
    if op_class is ConstantOp:
        return "data", ""
    network = _as_network(first_function(tests / f"{short_name(op_class)}.mlir"))
    try:
        module = lower(parse(network, context), GENERIC, Phase.VECTOR).module
        kinds = _kinds_with_instructions(network, context)
    except QDialectError:
        return "no", ""
    return "vectors" if "vector." in str(module) else "loops", kinds


def _kinds_with_instructions(network: str, context: ir.Context) -> str:
    # Fusion asks for no target.
    module = lower(parse(network, context), GENERIC, Phase.FUSED).module
    kinds = [kind for kind in KINDS if "llvm.x86" in str(lower(module, TARGETS[kind], Phase.X86).module)]
    others = [kind for kind in KINDS if kind not in (*kinds, GENERIC.name)]
    if not kinds or len(others) > _FEW:
        return _listed(kinds)
    return f"all but {_listed(others)}" if others else "all"


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds)


def _as_network(function: str) -> str:
    """The function as ``@main`` with its weights as constants."""
    signature = _SIGNATURE.search(function)
    if signature is None:
        raise ValueError(f"example must be a function, but got: {function}")
    constants = "".join(_ones(name, type_) for name, type_ in _WEIGHTS.findall(signature["arguments"]))
    head = signature[0].replace(signature["arguments"], _WEIGHTS.sub("", signature["arguments"]))
    return f"{re.sub('@[a-z_0-9]+', '@main', head, count=1)}{constants}{function[signature.end() :]}"


def _ones(name: str, type_: str) -> str:
    value = f"{{value = dense<{'1.0' if type_.endswith('f32>') else '1'}> : {type_}}}"
    return f'  %{name} = "qnn.constant"() {value} : () -> {type_}\n'


def _names_used(folder: Path) -> set[str]:
    """Every name in the code of a front end, and in what it has in common with others."""
    names: dict[Path, frozenset[str]] = {}
    pending = sorted(folder.rglob("*.py"))
    while pending:
        path = pending.pop()
        if path not in names:
            names[path], imported = _names_in(path)
            pending += _files(folder.parent, imported)
    return {name for found in names.values() for name in found}


@cache
def _names_in(path: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """Every name in the code of a file, and the modules that it imports from."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = tuple(node.module or "" for node in nodes if isinstance(node, ast.ImportFrom))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)), modules


def _files(frontends: Path, modules: Sequence[str]) -> list[Path]:
    """The files below `frontends` among `modules`."""
    inner = [name.removeprefix(_FRONTENDS) for name in modules if name.startswith(_FRONTENDS)]
    return [path for name in inner if (path := frontends.joinpath(*name.split(".")).with_suffix(".py")).is_file()]
