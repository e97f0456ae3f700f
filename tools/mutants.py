"""Which faults the tests find: drawn changes of the package, and whether a test that executes the line fails.

    python -m tools.mutants --record [TEST ...]     # which test executes which lines; an hour of one core
    python -m tools.mutants --seed 1 --count 80     # draw mutants and run their tests; a row for each

Needs coverage.py (``pip install coverage``). A mutant changes one place: a comparison, an operation, a constant, a
condition or a statement. Its tests are those that execute its line, the quickest of every test file first, until one
fails or `SECONDS` of recorded time are reached. A missed mutant lacks a test, or changes nothing that a user sees.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, cast

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutants"
SECONDS, LIMIT = 20.0, 200.0
"""Of recorded time the tests of a mutant, and how long they may take."""

_swapped: dict[type[ast.AST], type[ast.AST]] = {ast.Mod: ast.Mult, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}
for _one, _other in (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.LShift, ast.RShift), (ast.BitOr, ast.BitAnd), (ast.And, ast.Or)),
):
    _swapped |= {_one: _other, _other: _one}


@dataclass(frozen=True)
class Mutant:
    """A place of a file of the package, and the text that takes its place."""

    file: str
    node: ast.expr | ast.stmt
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.node.lineno}\t{' '.join(ast.unparse(self.node).split())[:90]}\t{self.text[:90]}"

    def applied(self, source: str) -> str:
        """The file with the change; offsets of nodes count bytes."""
        lines = source.encode().splitlines(keepends=True)
        first, last = self.node.lineno - 1, (self.node.end_lineno or self.node.lineno) - 1
        before, after = lines[first][: self.node.col_offset], lines[last][self.node.end_col_offset :]
        return b"".join([*lines[:first], before, self.text.encode(), after, *lines[last + 1 :]]).decode()


def mutants(file: str, tree: ast.AST) -> Iterator[Mutant]:
    """All mutants of a file; annotations, decorators and texts have none."""
    for node in _executed(tree):
        for changed in _changes(node):
            text = ast.unparse(changed)
            yield Mutant(file, node, f"({text})" if isinstance(node, ast.expr) else text)


def _executed(node: ast.AST) -> Iterator[Any]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "keywords") and not isinstance(node, ast.Call):
            continue
        children = cast("list[Any]", value) if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom):
                yield child
                yield from _executed(child)


def _changes(node: Any) -> Iterator[ast.AST]:
    new = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[op]):
            new.ops = [_swapped[type(op)]()]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _swapped:
            new.op = _swapped[type(op)]()
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.UnaryOp(op=ast.Not()):
            new = node.operand
        case ast.If(body=[ast.Raise() | ast.Return() | ast.Continue()], orelse=[]):
            new = ast.Pass()
        case ast.Expr(value=ast.Call()):
            new = ast.Pass()
        case _:
            return
    yield new


class _Recorder:
    """Notes for coverage.py which test runs, and how long."""

    def __init__(self) -> None:
        self._coverage = import_module("coverage").Coverage(str(FOLDER / "lines"), source=[str(ROOT / "qdialect")])
        self._coverage.start()
        self._seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        start = time.process_time()
        found = yield
        self._seconds[item.nodeid] = time.process_time() - start
        return found

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        (FOLDER / "seconds.json").write_text(json.dumps(self._seconds))


class Lines:
    """Which tests execute a line of the package, and how long they take."""

    def __init__(self) -> None:
        self._data = import_module("coverage").CoverageData(str(FOLDER / "lines"))
        self._data.read()
        self._seconds: dict[str, float] = json.loads((FOLDER / "seconds.json").read_text())
        self._files: dict[str, str] = {name.rpartition("/qdialect/")[2]: name for name in self._data.measured_files()}

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that look for it, the quickest of every file first; none where nothing executes it."""
        by_line = self._data.contexts_by_lineno(self._files.get(mutant.file.removeprefix("qdialect/"), ""))
        span = range(mutant.node.lineno, (mutant.node.end_lineno or mutant.node.lineno) + 1)
        found = {name for line in span for name in by_line.get(line, ())}
        if not found - {""}:
            # Executed while the module is imported, or where no record was made: whoever names the module may see it.
            name, folder = mutant.file.removesuffix(".py").replace("/", "."), mutant.file.split("/")[1]
            tests = sorted((ROOT / "test" / folder).rglob("test_*.py"))
            return [str(path.relative_to(ROOT)) for path in tests if name in path.read_text(encoding="utf-8")]
        files: dict[str, list[str]] = {}
        for name in sorted(found & self._seconds.keys(), key=lambda name: self._seconds[name]):
            files.setdefault(name.partition("::")[0], []).append(name)
        turns = [name for turn in zip_longest(*files.values()) for name in turn if name]
        ends = accumulate(self._seconds[name] for name in turns)
        return [name for name, end in zip(turns, ends, strict=True) if end <= SECONDS] or turns[:1]


def outcome(mutant: Mutant, tests: list[str], scratch: Path) -> str:
    """``caught``, ``missed`` by those tests, ``too long`` for them, or ``not executed`` by any.

    ``not found`` are tests that have another name since they were recorded, which prove nothing.
    """
    if not tests:
        return "not executed"
    path = scratch / mutant.file
    source = path.read_text()
    path.write_text(mutant.applied(source))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-x", "-q", *tests[:400]]
    environment = {**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return "too long"
    finally:
        path.write_text(source)
    if done.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        return "not found"
    return "missed" if done.returncode == 0 else "caught"


def main() -> int:
    """Record, or draw and run; prints a row for each mutant, and how many were caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", nargs="*", metavar="TEST")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=80)
    given = parser.parse_args()
    if given.record is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        return int(pytest.main(["-p", "no:cacheprovider", "-n", "0", *given.record], plugins=[_Recorder()]))
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "qdialect").rglob("*.py"))]
    kinds: dict[str, list[Mutant]] = {}
    for mutant in (one for file in files for one in mutants(file, ast.parse((ROOT / file).read_text()))):
        kinds.setdefault(type(mutant.node).__name__, []).append(mutant)
    # As many of each kind: most places are constants.
    draw = random.Random(given.seed)
    chosen = [draw.choice(kinds[draw.choice(sorted(kinds))]) for _ in range(given.count)]
    scratch, lines, caught = FOLDER / "scratch", Lines(), 0
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(ROOT, scratch, ignore=shutil.ignore_patterns("build", ".*", "__pycache__", "models"))
    for mutant in chosen:
        found = outcome(mutant, lines.tests(mutant), scratch)
        caught += found == "caught"
        print(f"{found}\t{mutant}", flush=True)
    print(f"{caught} of {len(chosen)} caught")
    return 0


if __name__ == "__main__":
    sys.exit(main())
