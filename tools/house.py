"""How large and how tangled the package is, measured on its sources.

    python tools/house.py [ROOT]
    python tools/house.py --against GIT_REVISION

A *stay* of a walk is a function of the package that is entered while one small op is lowered to the phase `linalg`, and
that a network without the op does not enter. The stays of a weight are the functions that get an array of its size.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import runpy
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TypeGuard

PACKAGE = "qdialect"
SMALL = 80
# Folders whose own folders are told apart, too.
DIVIDED = ("", "lowering", "frontends")
SIGNATURE = "func.func @main(%x: tensor<4x64xi8>) -> tensor<4x64xi{}> {{\n{}}}\n"
EMPTY = SIGNATURE.format(8, "  return %x : tensor<4x64xi8>\n")
TABLE = """  %0 = "qnn.tanh"(%x) {input_scale = 2.0 : f64, input_zero_point = -3 : i64, output_scale = 0.00390625 : f64,
    output_zero_point = 0 : i64, entries = "half_away_divide", nan = "max"} : (tensor<4x64xi8>) -> tensor<4x64xi8>
  return %0 : tensor<4x64xi8>
"""
CONTRACTION = """  %w = "qnn.constant"() {value = dense<3> : tensor<64x64xi8>} : () -> tensor<64x64xi8>
  %0 = "qnn.dense"(%x, %w) {input_scale = 0.5 : f64, input_zero_point = 7 : i64, weight_scales = array<f64: 0.25>,
    weight_zero_points = array<i64: 0>} : (tensor<4x64xi8>, tensor<64x64xi8>) -> tensor<4x64xi32>
  return %0 : tensor<4x64xi32>
"""
WEIGHT_ELEMENTS = 64 * 64
# The op that is lowered, and whether only functions that get the weights count.
WALKS = {
    "table": (SIGNATURE.format(8, TABLE), False),
    "weight": (SIGNATURE.format(32, CONTRACTION), True),
    "contraction": (SIGNATURE.format(32, CONTRACTION), False),
}


def modules_of(root: Path) -> dict[str, Path]:
    """The files of the package below `root` by the names of their modules."""
    found: dict[str, Path] = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(tree: ast.Module, known: Iterable[str], *, late: bool) -> Iterator[str]:
    """The modules of `known` that a module imports; with `late` those in functions and for types, too."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if late or not (is_function or is_for_types):
            pending += [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt | ast.excepthandler)]
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in names)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import each other, each with more than one."""
    reached = {module: _reached(graph, module) for module in graph}
    sets = {frozenset(other for other in reached[one] if one in reached[other]) for one in graph}
    return sorted(sorted(found) for found in sets if len(found) > 1)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    pending = [start]
    while pending:
        for target in graph[pending.pop()] - found:
            found.add(target)
            pending.append(target)
    return found


def two_way_ties(graph: dict[str, set[str]], folder: str) -> list[str]:
    """The entries of `folder`, its folders and the modules that lie loose in it, that import each other."""
    prefix = f"{PACKAGE}.{folder}." if folder else f"{PACKAGE}."

    def part(module: str) -> str | None:
        return module.removeprefix(prefix).partition(".")[0] if module.startswith(prefix) else None

    pairs = {(part(one), part(other)) for one, others in graph.items() for other in others}
    both = {(one, other) for one, other in pairs if one and other and one < other and (other, one) in pairs}
    return [f"{one}-{other}" for one, other in sorted(both)]


def line_kinds(text: str, tree: ast.Module) -> dict[str, int]:
    """How many lines are imports, docstrings and comments, blank, and code."""
    kinds = dict.fromkeys(range(1, len(text.splitlines()) + 1), "code")
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        kinds[number] = "blank" if not stripped else "words" if stripped.startswith("#") else "code"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kind = "imports"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kind = "words"
        else:
            continue
        kinds.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), kind))
    return {kind: sum(found == kind for found in kinds.values()) for kind in ("code", "imports", "words", "blank")}


def without_example(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """How many functions the package exports, and how many of them have no example in their docstring."""
    exported = next((node.value for node in trees[PACKAGE].body if _is_assigned(node, "__all__")), None)
    names: list[str] = ast.literal_eval(exported) if exported else []
    found = [node for name in names if isinstance(node := _definition(trees, PACKAGE, name), ast.FunctionDef)]
    documented = [ast.get_docstring(node) or "" for node in found]
    return len(found), sum("::" not in text and ">>>" not in text for text in documented)


def _is_assigned(node: ast.AST, name: str) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name


def _definition(trees: dict[str, ast.Module], module: str, name: str) -> ast.FunctionDef | ast.ClassDef | None:
    """What defines `name` of `module`, which may import it."""
    for node in ast.walk(trees[module]) if module in trees else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(trees, node.module, alias.name)
    return None


def test_figures(root: Path) -> dict[str, int]:
    """Files, lines and test functions of the Python files below ``test``."""
    texts = [path.read_text() for path in sorted((root / "test").rglob("*.py"))]
    tests = (node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return {
        "test files": len(texts),
        "test lines": sum(len(text.splitlines()) for text in texts),
        "tests": sum(node.name.startswith("test_") for node in tests),
    }


def stays(source: str, *, of_weight: bool) -> set[tuple[str, str]]:
    """File and name of the functions that are entered while the command lowers `source` to the phase `linalg`."""
    entered: set[tuple[str, str]] = set()
    package = f"{os.sep}{PACKAGE}{os.sep}"

    def is_handed_weights(frame: FrameType) -> bool:
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount]
        values = [frame.f_locals[name] for name in names if name in frame.f_locals]
        return any(type(value).__name__ == "ndarray" and value.size == WEIGHT_ELEMENTS for value in values)

    def enter(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or package not in code.co_filename or code.co_name.startswith("<"):
            return
        if not of_weight or is_handed_weights(frame):
            entered.add((code.co_filename, code.co_qualname))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.mlir"
        path.write_text(source)
        options = ("--compile-to=linalg", "--target=x86-64-v4", "-o", f"{folder}/linalg.mlir")
        sys.argv = ["qdialect-opt", str(path), *options]
        for profile in (None, enter):
            # What is imported, or computed once for all networks, is so in the first run.
            sys.setprofile(profile)
            try:
                runpy.run_module(f"{PACKAGE}.cli.opt", run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise
            finally:
                sys.setprofile(None)
    return entered


def walk(name: str) -> list[int]:
    """The stays of the walk `name`, as functions and as files."""
    source, of_weight = WALKS[name]
    found = stays(source, of_weight=of_weight) - stays(EMPTY, of_weight=of_weight)
    return [len(found), len({file for file, _ in found})]


def figures(root: Path, *, walks: bool = True) -> dict[str, int]:
    """Every figure of the sources below `root` by its name."""
    modules = modules_of(root)
    texts = {name: path.read_text() for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    at_start = {name: set(imports_of(tree, modules, late=False)) - {name} for name, tree in trees.items()}
    graph = {name: set(imports_of(tree, modules, late=True)) - {name} for name, tree in trees.items()}
    kinds: dict[str, int] = defaultdict(int)
    for name, text in texts.items():
        for kind, count in line_kinds(text, trees[name]).items():
            kinds[kind] += count
    exported, bare = without_example(trees)
    found = {
        "lines": sum(kinds.values()),
        "lines of code": kinds["code"],
        "lines of imports": kinds["imports"],
        "lines of docstrings and comments": kinds["words"],
        "blank lines": kinds["blank"],
        "files": len(modules),
        f"files under {SMALL} lines": sum(len(text.splitlines()) < SMALL for text in texts.values()),
        "entries of the root": sum(path.name != "__pycache__" for path in (root / PACKAGE).iterdir()),
        "circles of files": len(circles(at_start)),
        "circles with late imports and those for types": len(circles(graph)),
        **{f"two-way ties in {PACKAGE}/{folder}": len(two_way_ties(graph, folder)) for folder in DIVIDED},
        "exported functions": exported,
        "exported ones without an example": bare,
        **test_figures(root),
    }
    for name in WALKS if walks else ():
        # A process of its own: it imports the package below `root`.
        environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
        command = [sys.executable, str(Path(__file__).resolve()), "--walk", name]
        output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        for kind, count in zip(("functions", "files"), json.loads(output), strict=True):
            found[f"stays of a {name}, {kind}"] = count
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how large and how tangled the package is.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument(
        "--against", metavar="GIT_REVISION", help="the figures of this revision, too, before the others"
    )
    parser.add_argument("--no-walks", action="store_true", help="leave out the walks, which lower an op each")
    parser.add_argument("--walk", choices=WALKS, help="print the stays of one walk of the installed package, and end")
    arguments = parser.parse_args()
    if arguments.walk:
        print(json.dumps(walk(arguments.walk)))
        return 0
    columns = [figures(arguments.root, walks=not arguments.no_walks)]
    if arguments.against:
        paths = ["git", "-C", str(arguments.root), "archive", arguments.against, PACKAGE, "test"]
        with tempfile.TemporaryDirectory() as folder:
            archive = io.BytesIO(subprocess.run(paths, check=True, capture_output=True).stdout)
            with tarfile.open(fileobj=archive) as members:
                members.extractall(folder, filter="data")
            columns.insert(0, figures(Path(folder), walks=not arguments.no_walks))
    for name in columns[-1]:
        print(f"{name:45}", *(f"{column[name]:>9,}" for column in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
