"""The tool that measures callers and batches for the page on deploying."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import qdialect

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return import_module("deployment_tables")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def test_tables_are_measured(tool: Any) -> None:
    network = tool.Network("small", qdialect.parse(tool.dense_layers((8, 4))))
    callers = tool.callers_table([network], 0.02).splitlines()
    assert callers[2].startswith("| small | ")
    assert {line.count("|") for line in callers} == {7}
    assert len(callers) == 3
    batches = tool.batches_table([network], 0.02).splitlines()
    assert [line.split(" | ")[1] for line in batches[2:]] == ["1", "8", "64"]


def test_a_page_gets_its_tables(tool: Any) -> None:
    page = (ROOT / "docs" / "deploying.md").read_text()
    for name in (tool.CALLERS, tool.BATCHES):
        once = tool.with_table(page, name, "| new |")
        assert "| new |\n<!-- end -->" in once
        assert tool.with_table(once, name, "| new |") == once
    with pytest.raises(ValueError, match="page must have a table other between comments"):
        tool.with_table(page, "other", "")
