"""Every extra that the Makefile, the docs or a message names is one of pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# As pip is told of one (``.[test]``, ``qdialect[onnx]``) and as sentences name it.
NAMED = re.compile(r"(?:qdialect|\.)\[([a-z,]+)\]|extra ['`]+([a-z]+)['`]")


def sources() -> list[Path]:
    written = [ROOT / name for name in ("Makefile", "README.md", "CONTRIBUTING.md", "pyproject.toml")]
    return [*written, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "qdialect").rglob("*.py"))]


def named(text: str) -> set[str]:
    return {name for several, one in NAMED.findall(text) for name in (several or one).split(",")}


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", [path for path in sources() if named(path.read_text())], ids=lambda path: path.name)
def test_an_extra_that_is_named_exists(path: Path) -> None:
    assert named(path.read_text()) <= extras()


def test_environments_of_the_makefile_are_found() -> None:
    assert {"test", "bench", "zoo"} <= named((ROOT / "Makefile").read_text())
