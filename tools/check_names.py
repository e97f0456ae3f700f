"""Checks what no linter knows: that names agree, files stay small and lit tests keep to the common subset.

    python tools/check_names.py [ROOT]

Prints one line for each finding, ``path:line: message``, and exits with 1 if there is any.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

LINE_LIMIT = 400
SKIPPED_FOLDERS = {"__pycache__", "build", "dist", "models", "Output"}
TEXT_SUFFIXES = {".py", ".pyi", ".md", ".mlir", ".toml", ".yml", ".json", ".sh", ".c", ".h", ""}

# What no file may contain, and why. This file and its test must name them.
FORBIDDEN = {
    r"(?<![\w.~-])/(?:work|tmp|root|home)/": "a path of one machine",
    r"\b(?:TODO|FIXME|XXX)\b": "a note to oneself; finish it or open an issue",
    r"#\s*(?:type|pyright):\s*ignore": "a silenced type checker; give it the type, or complete typings/",
}
SELF = {"tools/check_names.py", "test/unit/test_check_names.py"}

# What LLVM's FileCheck has and the one from PyPI lacks: it would be ignored in silence, or fail elsewhere.
FORBIDDEN_IN_LIT = {
    r"--?implicit-check-not": "filecheck has no --implicit-check-not",
    r"--?allow-unused-prefixes": "filecheck has no --allow-unused-prefixes",
    r"FILECHECK_OPTS": "filecheck ignores FILECHECK_OPTS",
    r"\[\[#": "filecheck has no numeric expressions",
}

# Phases whose text depends on the CPU, in a command of a lit test; up to the next command.
FOR_A_CPU = re.compile(r"--compile-to=(?:linalg|vector|x86|llvm)\b[^|&]*")

PASS_NAME = re.compile(r"qnn-[a-z0-9]+(?:-[a-z0-9]+)*")


def files(root: Path) -> Iterator[Path]:
    """Every text file of the project, without what was built or downloaded."""
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).parts
        hidden = any(part.startswith(".") and part not in {".ci", ".gitignore"} for part in inside)
        skipped = any(part in SKIPPED_FOLDERS or part.endswith(".egg-info") for part in inside)
        if not hidden and not skipped and path.is_file() and path.suffix in TEXT_SUFFIXES:
            yield path


def forbidden(name: str, text: str, table: dict[str, str]) -> Iterator[str]:
    """One finding for each line that matches a pattern of `table`."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, reason in table.items():
            if re.search(pattern, line):
                yield f"{name}:{number}: {reason}"


def size(name: str, text: str) -> Iterator[str]:
    """A Python file has at most `LINE_LIMIT` lines."""
    lines = len(text.splitlines())
    if name.endswith(".py") and lines > LINE_LIMIT:
        yield f"{name}:{lines}: file must have at most {LINE_LIMIT} lines, but got {lines}"


def lit_test(name: str, text: str) -> Iterator[str]:
    """A lit test runs something and expects something, with what both FileChecks understand."""
    yield from forbidden(name, text, FORBIDDEN_IN_LIT)
    if "RUN:" not in text:
        yield f"{name}:1: lit test must have a RUN line"
    if not re.search(r"CHECK|expected-(?:error|warning|note|remark)|--check-prefix", text):
        yield f"{name}:1: lit test must have a CHECK line or an expected-error"
    if name.startswith("test/lit/lowering/"):
        yield from unnamed_target(name, text)


def unnamed_target(name: str, text: str) -> Iterator[str]:
    """One finding for each RUN line whose outcome depends on the CPU that runs it."""
    for number, line in enumerate(text.splitlines(), 1):
        commands = FOR_A_CPU.findall(line) if "RUN:" in line else []
        if any("--target" not in command for command in commands):
            yield f"{name}:{number}: lit test of a lowering must name its --target"


def pass_names(text: str) -> list[str]:
    """Names that the classes of a module give to passes: ``name = "qnn-..."``, annotated or not, or in a decorator."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            candidates = [*_class_level_names(node), *(a for d in node.decorator_list for a in ast.walk(d))]
            texts = (c.value for c in candidates if isinstance(c, ast.Constant) and isinstance(c.value, str))
            found += [value for value in texts if PASS_NAME.fullmatch(value)]
    return found


def _class_level_names(node: ast.ClassDef) -> Iterator[ast.expr]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value:
            targets, value = [statement.target], statement.value
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
            yield value


def missing_tests(tests: Path, stem: str) -> Iterator[str]:
    """Tests that a pass lacks: what it rewrites, and why it does not, which may stand in the same file."""
    matched = tests / f"{stem}.mlir"
    if not matched.is_file():
        yield matched.name
    elif "expected-remark" not in matched.read_text() and not (tests / f"{stem}-no-match.mlir").is_file():
        yield f"{stem}-no-match.mlir"


def passes(root: Path) -> Iterator[str]:
    """Module, pass and tests share a name: foo_bar.py, qnn-foo-bar, foo-bar.mlir and foo-bar-no-match.mlir.

    The latter may be a part of the former.
    """
    tests = root / "test" / "lit" / "passes"
    known: set[str] = set()
    folders = [root / "qdialect" / "passes", root / "qdialect" / "lowering" / "passes"]
    for path in sorted(path for folder in folders for path in folder.glob("*.py")):
        name = path.relative_to(root).as_posix()
        for found in pass_names(path.read_text()):
            expected = "qnn-" + path.stem.replace("_", "-")
            if found != expected:
                yield f"{name}:1: pass of this file must be named '{expected}', but got '{found}'"
            stem = found.removeprefix("qnn-")
            known |= {stem, f"{stem}-no-match"}
            for test in missing_tests(tests, stem):
                yield f"{name}:1: pass '{found}' must have a test test/lit/passes/{test}"
    for path in sorted(tests.glob("*.mlir")):
        if path.stem not in known and not path.stem.startswith("pipeline-"):
            yield f"{path.relative_to(root).as_posix()}:1: test must be named after a pass, or 'pipeline-...'"


def findings(root: Path, paths: Iterable[Path]) -> Iterator[str]:
    """Everything that is wrong under `root`."""
    for path in paths:
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        yield from size(name, text)
        if name not in SELF:
            yield from forbidden(name, text, FORBIDDEN)
        is_lit = name.startswith("test/lit/") and path.suffix in {".mlir", ".py"}
        if is_lit and path.name != "lit.cfg.py" and "Inputs" not in path.parts:
            yield from lit_test(name, text)
    yield from passes(root)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    found = list(findings(root, files(root)))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
