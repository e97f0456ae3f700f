"""docs/status.md: what exists for each op, found in the code rather than kept by hand."""

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import kind_table
from lit_tests import first_function
from op_pages import constraints_of, family_of, labels_of, short_name

from qdialect.dialect import OPS, ConstantOp, QnnOp
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context, parse
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.support.diagnostics import QDialectError
from qdialect.targets import GENERIC

INTRODUCTION = """\
# Status

The verifier, the lowering and the front ends of each op; `qdialect.reference` runs every one:

- **verifier**: the number of labelled constraints that it checks; each has a test that is refused, in the
  `-invalid.mlir` of the op or of its base class. Counts, attributes and types are checked and tested for every op.
- **lowering**: the example of the op's page compiles, after fusion, to kernels over planned memory.
- **vectorized**: those kernels are vector code at the phase `vector`.
- **front ends**: the formats whose importer builds the op. Other ops come from fusion or from a text.
"""
_FRONTENDS = "qdialect.frontends."
# Operands that a kernel needs at compile time.
_WEIGHTS = re.compile(r"(?:,\s*)?%(weight|bias|recurrence|scales|zero_points): (tensor<[^>]*>)")
_SIGNATURE = re.compile(r"func\.func @\w+\((?P<arguments>[^)]*)\)[^{]*\{\n")


def page(root: Path, tests: Path) -> str:
    """The text of the page."""
    importers = sorted((root / "qdialect" / "frontends").glob("*/importer.py"))
    formats = {path.parent.name: _names_used(path.parent) for path in importers}
    rows = ["| op | verifier | lowering | vectorized | front ends |", "|---|---|---|---|---|"]
    context = make_context()
    lowered = {short_name(op_class): _lowered(op_class, tests, context) for op_class in OPS}
    rows += [_row(op_class, formats, lowered[short_name(op_class)]) for op_class in OPS]
    kinds = kind_table.table(_networks(tests, lowered), context)
    return "\n".join([INTRODUCTION, *rows, "", *kinds, ""])


def _networks(tests: Path, lowered: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The example of each op that lowers as a network, by a link to its page."""
    found: dict[str, str] = {}
    for op_class in OPS:
        name = short_name(op_class)
        if lowered[name][0] == "yes":
            found[_link(op_class)] = _as_network(first_function(tests / f"{name}.mlir"))
    return found


def _lowered(op_class: type[QnnOp], tests: Path, context: ir.Context) -> tuple[str, str]:
    return ("data", "data") if op_class is ConstantOp else _lowering(tests / f"{short_name(op_class)}.mlir", context)


def _row(op_class: type[QnnOp], formats: dict[str, set[str]], lowered: tuple[str, str]) -> str:
    count = sum(len(labels_of(item)) for item in constraints_of(op_class))
    verified = f"{count} constraint{'s' * (count > 1)}"
    builders = ", ".join(sorted(name for name, names in formats.items() if op_class.__name__ in names))
    return f"| {_link(op_class)} | {' | '.join([verified, *lowered, builders])} |"


def _link(op_class: type[QnnOp]) -> str:
    name = short_name(op_class)
    return f"[`{name}`](ops/{family_of(op_class)}.md#qnn{name})"


def _tick(holds: bool) -> str:
    return "yes" if holds else "no"


def _lowering(test: Path, context: ir.Context) -> tuple[str, str]:
    """Whether the example lowers, and whether what comes out is vector code."""
    network = parse(_as_network(first_function(test)), context)
    try:
        kernels = lower(network, GENERIC, Phase.LINALG).module
    except QDialectError:
        return "no", "no"
    try:
        module = lower(kernels, GENERIC, Phase.VECTOR).module
    except QDialectError:
        return "yes", "no"
    return "yes", _tick("vector." in str(module))


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
