"""The stubs promise nothing that the pinned packages do not have."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STUBS = Path(__file__).resolve().parents[2] / "typings"
# The buffer protocol is one of C; a dialect gets its three bases when its class is made.
UNSEEN = (".__buffer__", ".Dialect.Operation", ".Dialect.Type", ".Dialect.Attribute")


def modules() -> list[str]:
    files = (path.relative_to(STUBS).with_suffix("") for path in STUBS.rglob("*.pyi"))
    return sorted(".".join(part for part in file.parts if part != "__init__") for file in files)


def missing(body: list[ast.stmt], holder: Any, where: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or f"{where}.{node.name}".endswith(UNSEEN):
            continue
        if not hasattr(holder, node.name):
            yield f"{where}.{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield from missing(node.body, getattr(holder, node.name), f"{where}.{node.name}")


@pytest.mark.parametrize("module", modules())
def test_every_declared_name_exists(module: str) -> None:
    path = STUBS / Path(*module.split("."))
    stub = path.with_suffix(".pyi") if path.with_suffix(".pyi").exists() else path / "__init__.pyi"
    body = ast.parse(stub.read_text()).body
    declared = [node for node in body if not (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")]
    assert list(missing(declared, importlib.import_module(module), module)) == []
