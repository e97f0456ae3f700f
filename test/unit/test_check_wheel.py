"""The copy of the checkout that a wheel is made from."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def check_wheel(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    return importlib.import_module("check_wheel")


def test_the_copy_has_the_checkout_alone(check_wheel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    for folder in ("qdialect", "build", ".venv-bench", ".emulator", "qdialect.egg-info", "qdialect/__pycache__"):
        (checkout / folder).mkdir(parents=True)
    (checkout / "qdialect" / "module.py").touch()
    (checkout / ".emulator" / "points_nowhere").symlink_to("absent")
    monkeypatch.setattr(check_wheel, "ROOT", checkout)
    check_wheel.copied(copy)
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == ["qdialect", "qdialect/module.py"]
