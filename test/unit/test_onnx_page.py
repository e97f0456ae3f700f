"""docs/onnx.md names every operator that ONNX Runtime runs and the package does not compile."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from onnx import defs

from qdialect.frontends.onnx.folding import is_evaluated
from qdialect.frontends.onnx.operators.registry import supported_operators

_NEWEST = 24
"""The operator set up to which the page names operators."""
_DOCS = Path(__file__).parents[2] / "docs" / "onnx.md"
_DOMAIN, _CPU = "com.microsoft.", "CPUExecutionProvider"
_READ_WITHOUT_A_PLANNER = {"Constant", "Shape", "Size"}


def test_the_page_names_every_operator_that_is_not_compiled() -> None:
    """Of the operator sets that are read."""
    told = _told("Operators that ONNX Runtime runs")
    operators = {schema.name for schema in defs.get_all_schemas_with_history() if _is_read(schema)}
    compiled = {name for name in operators if is_evaluated(name)} | set(supported_operators()) | _READ_WITHOUT_A_PLANNER
    assert told == operators - compiled


def test_the_page_names_every_operator_of_onnx_runtime_that_is_not_compiled() -> None:
    told = _told("Operators of ONNX Runtime's own domain")
    run_by_it: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state").get_all_opkernel_def()
    of_a_cpu = {one.op_name for one in run_by_it if (one.domain, one.provider) == ("com.microsoft", _CPU)}
    compiled = {name.removeprefix(_DOMAIN) for name in supported_operators() if name.startswith(_DOMAIN)}
    assert told == of_a_cpu - compiled


def _told(heading: str) -> set[str]:
    """The operators in the table of a section, from its first column."""
    section = _DOCS.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")][1:]
    return {name.strip() for row in rows for name in row.split(",")}


def _is_read(schema: defs.OpSchema) -> bool:
    return schema.domain == "" and schema.since_version <= _NEWEST and not schema.deprecated
