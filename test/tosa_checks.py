"""Modules of `tosa` ops, imported, against the specification's pseudo-code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosa_spec
import tosa_spec_elements
import tosa_spec_windows
from numpy.typing import NDArray
from together import check_compiled

import qdialect
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.frontends.tosa import import_tosa
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Array = NDArray[Any]

EVALUATORS = (tosa_spec_elements, tosa_spec_windows)
"""What these modules compute, `tosa_spec` knows by having imported them."""


def inputs_of(module: ir.Module, seed: int, bits: int = 32) -> list[Array]:
    """Random values; integers of 32 bits keep to `bits`."""
    rng = np.random.default_rng(seed)
    function = module.body.operations[0].operation
    types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
    return [_drawn(rng, dtype_of(type_), shape_of(type_), bits) for type_ in types]


def _drawn(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], bits: int) -> Array:
    if dtype.kind == "f":
        return (rng.normal(size=shape) * 3).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    width = min(dtype.itemsize * 8, bits)
    low = 0 if dtype.kind == "u" else -(2 ** (width - 1))
    return rng.integers(low, low + 2**width, shape).astype(dtype)


def check_spec(text: str, inputs: Sequence[Array] | None = None, bits: int = 32, ulps: int = 0) -> ir.Module:
    """The specification, the reference and machine code agree in every element; floats up to `ulps`.

    Returns the imported module, fused.
    """
    source = qdialect.parse(text)
    arrays = list(inputs or inputs_of(source, len(text), bits))
    wanted = tosa_spec.run(source, arrays)
    module = import_tosa(text)
    reference = interpreter.run(module, arrays)
    qdialect.PassManager.parse("fuse-qnn").run(module)
    check_compiled(module, "host", [arrays], [reference])
    for found, right in zip(reference, wanted, strict=True):
        assert found.dtype == right.dtype
        if ulps and right.dtype == np.float32:
            np.testing.assert_array_max_ulp(found, right, ulps)
        else:
            np.testing.assert_array_equal(found, right)
    return module


def check_export(module: ir.Module, inputs: Sequence[Array] | None = None) -> ir.Module:
    """As `tosa` ops `module` gives by the specification what the reference gives, and so it does read back.

    Returns the `tosa` module, which upstream verifies.
    """
    arrays = list(inputs or inputs_of(module, 5))
    wanted = interpreter.run(module, arrays)
    exported = qdialect.parse(str(module))
    qdialect.PassManager.parse("qnn-to-tosa").run(exported)
    assert exported.operation.verify()
    names = {op.operation.name for op in exported.body.operations[0].operation.regions[0].blocks[0].operations}
    assert all(name.startswith("tosa.") or name == "func.return" for name in names)
    found = tosa_spec.run(exported, arrays)
    back = interpreter.run(import_tosa(str(exported)), arrays)
    for result, again, right in zip(found, back, wanted, strict=True):
        assert result.dtype == again.dtype == right.dtype
        np.testing.assert_array_equal(result, right)
        np.testing.assert_array_equal(again, right)
    return exported


def export_notes(module: ir.Module) -> str:
    """The notes of an export that is impossible."""
    with pytest.raises(qdialect.PassError) as caught:
        qdialect.PassManager.parse("qnn-to-tosa").run(module)
    return "\n".join(note.message for diagnostic in caught.value.diagnostics for note in diagnostic.notes)
