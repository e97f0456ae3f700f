"""The cases that the package `onnx` has of every operator: each is computed as it says, or refused with a reason."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import onnx.backend.test.case.node as package
import pytest
from onnx import defs
from onnx_node_cases import NodeCase, node_cases
from together import check_compiled, variants_together

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx.folding import is_evaluated
from qdialect.frontends.onnx.operators.registry import supported_operators
from qdialect.reference import interpreter

_LARGE = ("averagepool", "lppool", "maxpool")
"""Modules that draw images for longer than all others together."""
_AS_ONNX_RUNTIME = tuple(f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("cubic", "linear"))
"""ONNX Runtime takes the extents that are rounded down, the package those before."""
_NATIVE = [
    *("acos", "asin", "atan", "attention", "bitshift", "center_crop_pad", "clip", "col2im", "compress", "dropout"),
    *("eyelike", "lrn", "matmul", "pow", "reversesequence", "spacetodepth"),
]
"""Modules whose first case that is not refused is compiled as well."""


_NEWEST = 24
"""The operator set up to which the page names operators."""
_DOCS = Path(__file__).parents[2] / "docs" / "onnx.md"
_DOMAIN, _CPU = "com.microsoft.", "CPUExecutionProvider"
_READ_WITHOUT_A_PLANNER = {"Constant", "Shape", "Size"}


def _cases() -> Iterator[NodeCase]:
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _LARGE:
            yield from node_cases(module.name)


def _wrong(case: NodeCase) -> list[str]:
    """What is wrong with a case, in words; its outputs or the message."""
    try:
        module, inputs = case.imported()
    except ImportModelError as error:
        return [] if ": " in str(error) else [f"refused without a reason: {error}"]
    return case.differences(interpreter.run(module, inputs))


def test_no_case_is_computed_wrongly() -> None:
    wrong = {case.name: _wrong(case) for case in _cases() if case.name not in _AS_ONNX_RUNTIME}
    assert {name: found for name, found in wrong.items() if found} == {}


def _compiled(module: str) -> NodeCase:
    """The first case that is not refused."""
    for case in node_cases(module):
        try:
            case.imported()
        except ImportModelError:
            continue
        return case
    raise AssertionError(f"all cases of {module} are refused")


@variants_together
@pytest.mark.parametrize("module", _NATIVE)
def test_operators_that_have_no_other_test_compiled(module: str) -> None:
    case = _compiled(module)
    network, inputs = case.imported()
    found = interpreter.run(network, inputs)
    assert case.differences(found) == []
    check_compiled(network, "host", [inputs], [found])


@pytest.mark.parametrize("name", ["test_attention_4d_attn_mask_bool", "test_attention_causal_boolmask_nan_robustness"])
def test_booleans_that_say_at_run_time_which_scores_count(name: str) -> None:
    (case,) = (one for one in node_cases("attention") if one.name == name)
    module, inputs = case.imported()
    assert len(inputs) == len(case.inputs)
    assert case.differences(interpreter.run(module, inputs)) == []


def test_an_attribute_that_nothing_reads_is_refused() -> None:
    (case,) = (one for one in node_cases("attention") if one.name == "test_attention_local_window")
    with pytest.raises(ImportModelError, match="attribute 'left_window_size' is not supported, but is 2"):
        case.imported()


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
