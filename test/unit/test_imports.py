"""Imports between folders go the way that CONTRIBUTING.md's tables state, and imports between files make no circle.

A table is about the package or one of its folders. A name in it is a folder or a module, as a path without suffix; a
file belongs to the longest name that it lies under, and the `__init__.py` of the table's own folder to `__init__`.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "qdialect"
OWN = "__init__"
TABLE = re.compile(r"^#+ [^\n]*`qdialect/([\w/]*)`[^\n]*\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]*`) \|([^|]*)\|([^|]*)\|$", re.MULTILINE)
NAME = re.compile(r"`([\w/]+)`")


@dataclass(frozen=True)
class Row:
    """A row of a table: folders and modules that may import each other, and what else they may import."""

    names: tuple[str, ...]
    allowed: frozenset[str]


@dataclass(frozen=True)
class Table:
    """What a folder holds, lowest first; all of it may import the names of the first row."""

    folder: str
    rows: tuple[Row, ...]

    def name_of(self, path: str) -> str:
        """The name in this table under which a file or a module lies; `path` starts at the table's folder."""
        names = [name for row in self.rows for name in row.names if f"{path}/".startswith(f"{name}/")]
        return max(names, key=len, default=OWN if "/" not in path else path.partition("/")[0])


@dataclass(frozen=True)
class Import:
    """The module `source` imports the module `target`; both are paths from the package's folder, without suffix."""

    source: str
    target: str
    line: int


def tables_of(text: str) -> list[Table]:
    """The tables below headings that name a folder of the package."""
    return [Table(folder.rstrip("/"), _rows(section)) for folder, section in TABLE.findall(text)]


def _rows(section: str) -> tuple[Row, ...]:
    found = ROW.findall(section)
    return tuple(Row(tuple(NAME.findall(names)), frozenset(NAME.findall(allowed))) for names, _, allowed in found)


def imports_of(root: Path) -> list[Import]:
    """Every import between the package's files, those in functions and for types included."""
    modules = _modules(root)
    return [
        Import(name, target, line)
        for name, path in modules.items()
        for node in ast.walk(ast.parse(path.read_text()))
        for target, line in _targets(root, path, node, modules)
    ]


def imports_of_modules(root: Path) -> dict[str, set[str]]:
    """Module: the modules that it imports while it is imported, and those of its types."""
    modules = _modules(root)
    return {
        name: {
            target
            for node in _outside_functions(ast.parse(path.read_text()))
            for target, _ in _targets(root, path, node, modules)
        }
        - {name}
        for name, path in modules.items()
    }


def _modules(root: Path) -> dict[str, Path]:
    paths = sorted(root.rglob("*.py"))
    return {path.relative_to(root).with_suffix("").as_posix().removesuffix("/__init__"): path for path in paths}


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from _outside_functions(child)


def _targets(root: Path, path: Path, node: ast.AST, modules: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    """The modules of the package that a statement imports: of a folder the `__init__.py`, where the name is its own."""
    for name in _names(root, path, node):
        package, _, target = name.replace(".", "/").partition("/")
        if package == root.name:
            while target and target not in modules:
                target = target.rpartition("/")[0]
            yield target or OWN, getattr(node, "lineno", 0)


def _names(root: Path, path: Path, node: ast.AST) -> list[str]:
    """The absolute names of what a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    own = [root.name, *path.relative_to(root).parent.parts]
    base = own[: len(own) - node.level + 1] if node.level else []
    prefix = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{prefix}.{alias.name}" for alias in node.names]


def imports_inside(table: Table, imports: Iterable[Import]) -> list[tuple[str, str, Import]]:
    """Imports between two names of a table."""
    prefix = f"{table.folder}/" if table.folder else ""
    inside = [one for one in imports if f"{one.source}/".startswith(prefix) and f"{one.target}/".startswith(prefix)]
    named = [
        (table.name_of(_below(one.source, prefix)), table.name_of(_below(one.target, prefix)), one) for one in inside
    ]
    return [(source, target, one) for source, target, one in named if source != target]


def _below(module: str, prefix: str) -> str:
    """The path of a module from a table's folder; that of the folder's own `__init__.py` is its name."""
    return module.removeprefix(prefix) if f"{module}/" != prefix else OWN


def violations(table: Table, imports: Iterable[Import]) -> list[str]:
    """Imports that a table does not allow."""
    of_name = {name: row for row in table.rows for name in row.names}
    return [
        f"{one.source}:{one.line}: {source} imports {target}"
        for source, target, one in imports_inside(table, imports)
        if target not in {*table.rows[0].names, *of_name[source].names, *of_name[source].allowed}
    ]


TABLES = tables_of((ROOT / "CONTRIBUTING.md").read_text())
each_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.folder or PACKAGE)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return imports_of(ROOT / PACKAGE)


def test_three_folders_have_a_table() -> None:
    assert [table.folder for table in TABLES] == ["", "lowering", "frontends"]


@each_table
def test_every_folder_and_module_stands_in_one_row(table: Table) -> None:
    names = [name for row in table.rows for name in row.names]
    folder = ROOT / PACKAGE / table.folder
    assert len(names) == len(set(names))
    assert [name for name in names if not _exists(folder / name)] == []
    present = [path.stem for path in folder.glob("*.py") if table.folder == "" or path.stem != OWN]
    present += [path.parent.name for path in folder.glob("*/__init__.py")]
    assert sorted(set(present) - set(names)) == []


def _exists(path: Path) -> bool:
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@each_table
def test_every_import_is_allowed(table: Table, imports: list[Import]) -> None:
    assert violations(table, imports) == []


@each_table
def test_rows_import_only_what_stands_above(table: Table) -> None:
    for index, row in enumerate(table.rows):
        above = {name for other in table.rows[:index] for name in other.names}
        assert row.allowed <= above, row.names


@each_table
def test_what_is_allowed_is_used(table: Table, imports: list[Import]) -> None:
    used = {(source, target) for source, target, _ in imports_inside(table, imports)}
    for row in table.rows:
        unused = [name for name in row.allowed if not any((source, name) in used for source in row.names)]
        assert not unused, row.names


def test_files_import_each_other_in_no_circle() -> None:
    try:
        TopologicalSorter(imports_of_modules(ROOT / PACKAGE)).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_a_circle_is_seen(tmp_path: Path) -> None:
    package = tmp_path / PACKAGE
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("if True:\n    from qdialect import b\n")
    (package / "b.py").write_text("def f():\n    from qdialect import a\n")
    TopologicalSorter(imports_of_modules(package)).prepare()
    (package / "b.py").write_text("from .a import f\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports_of_modules(package)).prepare()


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
    table = Table("", (Row(("base",), frozenset()), Row(("low",), frozenset()), Row(("high",), frozenset({"low"}))))
    assert violations(table, imports_of(package)) == [f"low/part:{number}: low imports high"]


def test_a_file_belongs_to_the_longest_name() -> None:
    table = Table("phase", (Row(("part/low",), frozenset()), Row(("part",), frozenset({"part/low"}))))
    up = Import("phase/part/low/file", "phase/part/high", 3)
    down = Import("phase/part/high", "phase/part/low/file", 4)
    assert violations(Table("phase", (Row(("base",), frozenset()), *table.rows)), [up, down]) == [
        "phase/part/low/file:3: part/low imports part"
    ]
