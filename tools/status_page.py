"""docs/status.md: what exists for each op, found in the code rather than kept by hand."""

import ast
import re
from pathlib import Path

import operator_tables
from lit_tests import first_function
from op_pages import family_of, short_name

from qdialect._mlir import ir
from qdialect.context import make_context, parse
from qdialect.diagnostics import QDialectError
from qdialect.dialect import OPS, ConstantOp, QnnOp
from qdialect.lowering.pipeline import Phase, lower
from qdialect.reference.interpreter import evaluators
from qdialect.target import GENERIC

INTRODUCTION = """\
# Status

What exists for each op.

- **verifier**: how many texts of `test/lit/dialect/<op>-invalid.mlir` it must refuse, each with its message.
- **reference**: `qdialect.reference` runs the op.
- **lowering**: the example of the op's page compiles, after fusion, to kernels over planned memory.
- **vectorized**: those kernels are vector code at the phase `vector`.
- **front ends**: the formats whose importer builds the op. An op that none builds comes from fusion or from a text.
"""
OPERATORS = """\
# Operators

What the front ends take.

- **becomes**: the ops of the recorded cases with this operator, casts and transposes at their edges included. It is
  empty for operators that only rename codes or are computed while importing.
- **lowering**, **vectorized**: of those ops.
- **exact with**: who gave the numbers of the cases; every element of every case is equal in the tests.
"""
# Operands that a kernel needs at compile time.
_WEIGHTS = re.compile(r"(?:, )?%(weight|bias): (tensor<[^>]*>)")
_SIGNATURE = re.compile(r"func\.func @\w+\((?P<arguments>[^)]*)\)")


def page(root: Path, tests: Path) -> str:
    """The text of the page."""
    used = {
        path.name: _names_used(path) for path in sorted((root / "qdialect" / "frontends").iterdir()) if path.is_dir()
    }
    formats = {name: names for name, names in used.items() if names}
    rows = ["| op | verifier | reference | lowering | vectorized | front ends |", "|---|---|---|---|---|---|"]
    context = make_context()
    lowered = {short_name(op_class): _lowered(op_class, tests, context) for op_class in OPS}
    rows += [_row(op_class, tests, formats, lowered[short_name(op_class)]) for op_class in OPS]
    vectors = root / "test" / "unit" / "vectors"
    return "\n".join([INTRODUCTION, *rows, "", OPERATORS, *operator_tables.tables(vectors, lowered)])


def _lowered(op_class: type[QnnOp], tests: Path, context: ir.Context) -> tuple[str, str]:
    return ("data", "data") if op_class is ConstantOp else _lowering(tests / f"{short_name(op_class)}.mlir", context)


def _row(op_class: type[QnnOp], tests: Path, formats: dict[str, set[str]], lowered: tuple[str, str]) -> str:
    name = short_name(op_class)
    refused = (tests / f"{name}-invalid.mlir").read_text().count("expected-error")
    builders = ", ".join(sorted(name for name, names in formats.items() if op_class.__name__ in names))
    cells = [f"{refused} texts", _tick(op_class.OPERATION_NAME in evaluators.EVALUATORS), *lowered, builders]
    link = f"[`{name}`](ops/{family_of(op_class)}.md#qnn{name})"
    return f"| {link} | {' | '.join(cells)} |"


def _tick(holds: bool) -> str:
    return "yes" if holds else "no"


def _lowering(test: Path, context: ir.Context) -> tuple[str, str]:
    """Whether the example lowers, and whether what comes out is vector code."""
    text = _as_network(first_function(test))
    try:
        lower(parse(text, context), GENERIC, Phase.LINALG)
    except QDialectError:
        return "no", "no"
    try:
        module = lower(parse(text, context), GENERIC, Phase.VECTOR).module
    except QDialectError:
        return "yes", "no"
    return "yes", _tick("vector." in str(module))


def _as_network(function: str) -> str:
    """The function as ``@main`` with its weights as constants."""
    signature = _SIGNATURE.search(function)
    if signature is None:
        raise ValueError(f"example must be a function, but got: {function}")
    arguments = signature["arguments"]
    constants = "".join(
        f'  %{name} = "qnn.constant"() {{value = dense<1> : {type_}}} : () -> {type_}\n'
        for name, type_ in _WEIGHTS.findall(arguments)
    )
    head, body = function.split("\n", 1)
    head = head.replace(arguments, _WEIGHTS.sub("", arguments))
    return f"{re.sub('@[a-z_0-9]+', '@main', head, count=1)}\n{constants}{body}"


def _names_used(folder: Path) -> set[str]:
    """Every name in the code of a front end."""
    trees = (ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py")))
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
