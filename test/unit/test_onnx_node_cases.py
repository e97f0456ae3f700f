"""The cases that the package `onnx` has of every operator: each is computed as it says, or refused with a reason."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator

import onnx.backend.test.case.node as package
from onnx_node_cases import NodeCase, node_cases

from qdialect.diagnostics import ImportModelError
from qdialect.reference import interpreter

_LARGE = ("averagepool", "lppool", "maxpool")
"""Modules that draw images for longer than all others together."""


def _cases() -> Iterator[NodeCase]:
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _LARGE:
            yield from node_cases(module.name)


def _wrong(case: NodeCase) -> list[str]:
    """What is wrong with a case, in words; its outputs or the refusal."""
    try:
        module, inputs = case.imported()
    except ImportModelError as error:
        return [] if ": " in str(error) else [f"refused without a reason: {error}"]
    return case.differences(interpreter.run(module, inputs))


def test_no_case_is_computed_wrongly() -> None:
    wrong = {case.name: _wrong(case) for case in _cases()}
    assert {name: found for name, found in wrong.items() if found} == {}
