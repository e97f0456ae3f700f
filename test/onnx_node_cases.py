"""The cases of operators that the package `onnx` comes with, as models whose outputs are known."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from qdialect._mlir import ir
from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx import import_onnx

Array = NDArray[Any]
_NUMBERS = "biuf"


@dataclass(frozen=True)
class NodeCase:
    """A model of one node, and what it gives for `inputs`."""

    name: str
    model: ModelProto
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    relative: float
    absolute: float

    @property
    def operator(self) -> str:
        return self.model.graph.node[0].op_type

    def imported(self) -> tuple[ir.Module, tuple[Array, ...]]:
        """The module, and what it reads: as few inputs as possible are constants. Raises the first error."""
        first: ImportModelError | None = None
        for content, arrays in self._forms():
            try:
                return import_onnx(content), arrays
            except ImportModelError as error:
                first = first or error
        assert first is not None
        raise first

    def _forms(self) -> Iterator[tuple[bytes, tuple[Array, ...]]]:
        """With all inputs, with those of floats and the first one, and with the first one alone."""
        later = range(1, len(self.inputs))
        integers = [index for index in later if self.inputs[index].dtype.kind != "f"]
        for constants in dict.fromkeys(map(tuple, ([], integers, later))):
            yield self._with_constants(constants)

    def _with_constants(self, constants: Sequence[int]) -> tuple[bytes, tuple[Array, ...]]:
        model = ModelProto.FromString(self.model.SerializeToString())
        graph, named = model.graph, list(self.model.graph.input)
        del graph.input[:]
        graph.input.extend(value for index, value in enumerate(named) if index not in constants)
        graph.initializer.extend(numpy_helper.from_array(self.inputs[i], named[i].name) for i in constants)
        free = tuple(array for index, array in enumerate(self.inputs) if index not in constants)
        return model.SerializeToString(), free

    def differences(self, found: Sequence[Array]) -> list[str]:
        """What is wrong with the outputs `found`, in words."""
        return [text for pair in zip(found, self.outputs, strict=False) for text in self._difference(*pair)]

    def _difference(self, found: Array, wanted: Array) -> list[str]:
        if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
            return [f"{found.dtype} of {list(found.shape)}, not {wanted.dtype} of {list(wanted.shape)}"]
        if wanted.dtype.kind != "f":
            return [] if np.array_equal(found, wanted) else ["other integers"]
        is_near = np.allclose(found, wanted, rtol=self.relative, atol=self.absolute, equal_nan=True)
        return [] if is_near else [f"{np.abs(found - wanted).max()} away"]


@cache
def node_cases(module: str) -> tuple[NodeCase, ...]:
    """The cases of a module of the package, whose tensors are of numbers that NumPy has, without expanded ones."""
    base: Any = importlib.import_module("onnx.backend.test.case.node")
    start = len(base._NodeTestCases)
    with np.errstate(all="ignore"):
        importlib.import_module(f"onnx.backend.test.case.node.{module}")
    return tuple(case for one in base._NodeTestCases[start:] if (case := _case(one)) is not None)


def _case(one: Any) -> NodeCase | None:
    inputs, outputs = one.data_sets[0]
    if "_expanded" in one.name or any(isinstance(value, list | TensorProto) for value in (*inputs, *outputs)):
        return None
    given, wanted = (tuple(map(np.asarray, values)) for values in (inputs, outputs))
    if any(array.dtype.kind not in _NUMBERS or array.size == 0 for array in (*given, *wanted)):
        return None
    return NodeCase(one.name, one.model, given, wanted, one.rtol, max(one.atol, 1e-6))
