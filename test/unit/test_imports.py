"""Every import between packages stands in the table of CONTRIBUTING.md, and the table allows no more than is used."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "qdialect"
PUBLIC = "__init__"
ROW = re.compile(r"^\| (`[^|]*`) \|([^|]*)\|([^|]*)\|$", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")


@dataclass(frozen=True)
class Row:
    """A row of the table: packages and modules that may import each other, and what else they may import."""

    names: tuple[str, ...]
    allowed: frozenset[str]


@dataclass(frozen=True)
class Import:
    """`source`, a package or module of the project, imports `target`, another one."""

    source: str
    target: str
    location: str


def rows_of(text: str) -> list[Row]:
    """The rows below the heading of the table."""
    section = text.split("## Where things are")[1].split("\n## ")[0]
    return [Row(tuple(NAME.findall(names)), frozenset(NAME.findall(found))) for names, _, found in ROW.findall(section)]


def imports_of(root: Path) -> list[Import]:
    """Every import between packages and modules directly below `root`, those in functions and for types included."""
    names = {path.stem if path.suffix else path.name for path in root.iterdir()}
    return [one for path in sorted(root.rglob("*.py")) for one in _imports_of_file(root, path, names)]


def _imports_of_file(root: Path, path: Path, names: set[str]) -> Iterator[Import]:
    source = path.relative_to(root).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        for module in _modules(root, path, node):
            parts = module.split(".")
            target = parts[1] if len(parts) > 1 and parts[1] in names else PUBLIC
            if parts[0] == root.name and target != source:
                yield Import(source, target, f"{path.relative_to(root.parent)}:{getattr(node, 'lineno', 0)}")


def _modules(root: Path, path: Path, node: ast.AST) -> list[str]:
    """The absolute names of what a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    own = [root.name, *path.relative_to(root).parent.parts]
    base = own[: len(own) - node.level + 1] if node.level else []
    prefix = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{prefix}.{alias.name}" for alias in node.names]


def violations(rows: list[Row], imports: list[Import]) -> list[str]:
    """Imports that the table does not allow; names in the first row may be imported from everywhere."""
    of_name = {name: row for row in rows for name in row.names}
    shared = rows[0].names
    return [
        f"{one.location}: {one.source} imports {one.target}"
        for one in imports
        if one.target not in shared
        and one.target not in of_name[one.source].names
        and one.target not in of_name[one.source].allowed
    ]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return rows_of((ROOT / "CONTRIBUTING.md").read_text())


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return imports_of(ROOT / PACKAGE)


def test_every_package_and_module_stands_in_one_row(rows: list[Row]) -> None:
    named = [name for row in rows for name in row.names]
    present = [path.stem for path in (ROOT / PACKAGE).glob("*.py")]
    present += [path.parent.name for path in (ROOT / PACKAGE).glob("*/__init__.py")]
    assert sorted(named) == sorted(present)


def test_every_import_is_allowed(rows: list[Row], imports: list[Import]) -> None:
    assert violations(rows, imports) == []


def test_rows_import_only_what_stands_above(rows: list[Row]) -> None:
    for index, row in enumerate(rows):
        above = {name for other in rows[:index] for name in other.names}
        assert row.allowed <= above, row.names


def test_what_is_allowed_is_used(rows: list[Row], imports: list[Import]) -> None:
    used = {(one.source, one.target) for one in imports}
    for row in rows:
        unused = [name for name in row.allowed if not any((source, name) in used for source in row.names)]
        assert not unused, row.names


@pytest.mark.parametrize(
    "line",
    [
        "import qdialect.high.part",
        "from qdialect.high.part import f",
        "from qdialect import high",
        "from ..high import f",
        "def f():\n    from qdialect.high import g",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from qdialect.high import g",
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, line: str) -> None:
    package = tmp_path / PACKAGE
    for name in ("base", "low", "high"):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").touch()
    (package / "low" / "part.py").write_text(f"{line}\n")
    number = line.count("\n") + 1
    rows = [Row(("base",), frozenset()), Row(("low",), frozenset()), Row(("high",), frozenset({"low"}))]
    assert violations(rows, imports_of(package)) == [f"qdialect/low/part.py:{number}: low imports high"]
