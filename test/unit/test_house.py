"""tools/house.py counts what a small tree has, and follows an op through the lowering."""

import ast
import runpy
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "house.py"
FILES = {
    "qdialect/__init__.py": (
        '"""A package."""\n\nfrom qdialect.low.a import g\n\n__all__ = ["f", "g"]\n\n\n'
        'def f():\n    """F::\n\n    f()\n    """\n'
    ),
    "qdialect/py.typed": "",
    "qdialect/low/__init__.py": "",
    "qdialect/low/a.py": "from qdialect.low import b\n\n\ndef g():\n    from qdialect.high import c\n",
    "qdialect/low/b.py": "# A comment.\nimport qdialect.low.a\n",
    "qdialect/high/__init__.py": "",
    "qdialect/high/c.py": "from qdialect.low.a import g\n" + "x = 1\n" * 80,
    "test/test_a.py": "def test_a():\n    pass\n\n\ndef helper():\n    pass\n",
}
EXPECTED = {
    "lines": 100,
    "lines of code": 83,
    "lines of imports": 5,
    "lines of docstrings and comments": 6,
    "blank lines": 6,
    "files": 6,
    "files under 80 lines": 5,
    "entries of the root": 4,
    "circles of files": 1,
    "circles with late imports and those for types": 1,
    "two-way ties in qdialect/": 1,
    "two-way ties in qdialect/lowering": 0,
    "exported functions": 2,
    "exported ones without an example": 1,
    "test files": 1,
    "test lines": 6,
    "tests": 1,
}


def _printed(*arguments: str) -> str:
    return subprocess.run([sys.executable, SCRIPT, *arguments], check=True, capture_output=True, text=True).stdout


def _figures(*arguments: str) -> dict[str, int]:
    return {line[:45].strip(): int(line[45:].replace(",", "")) for line in _printed(*arguments).splitlines()}


def test_figures_of_a_small_tree(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = _figures(str(tmp_path), "--no-walks")
    assert {name: found[name] for name in EXPECTED} == EXPECTED


def test_no_files_of_the_package_import_each_other() -> None:
    house = runpy.run_path(str(SCRIPT))
    modules: dict[str, Path] = house["modules_of"](SCRIPT.parents[1])
    trees = {name: ast.parse(path.read_text()) for name, path in modules.items()}
    graph = {name: set(house["imports_of"](tree, modules, late=False)) - {name} for name, tree in trees.items()}
    assert house["circles"](graph) == []


def test_a_walk_enters_the_lowering() -> None:
    functions, files = map(int, _printed("--walk", "weight").strip("[]\n").split(","))
    assert functions >= files > 1


def test_help() -> None:
    assert "--against GIT_REVISION" in _printed("--help")
