"""LiteRT with its default delegate, XNNPACK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from qdialect.bench.cases import Array, Case, foreign, known_forms

_FORMS = ("tflite", "tflite_f32", "function_tflite", "call_tflite")


class LiteRtSession:
    """An interpreter whose inputs are set."""

    def __init__(self, package: Any, model: str, inputs: Sequence[Array], threads: int) -> None:
        self._interpreter = package.Interpreter(model_path=model, num_threads=threads)
        self._interpreter.allocate_tensors()
        for details, array in zip(self._interpreter.get_input_details(), inputs, strict=True):
            self._interpreter.set_tensor(details["index"], array)
        self.call = self._interpreter.invoke

    def outputs(self) -> Sequence[Array]:
        return [self._interpreter.get_tensor(details["index"]) for details in self._interpreter.get_output_details()]


class LiteRt:
    """The package `ai-edge-litert`."""

    def __init__(self) -> None:
        self._package = foreign("ai_edge_litert.interpreter")

    def version(self) -> str:
        return version("ai-edge-litert")

    def variants(self, case: Case) -> Mapping[str, str]:
        return known_forms(case, _FORMS)

    def load(self, case: Case, variant: str, threads: int) -> LiteRtSession:
        form = case.forms[variant]
        return LiteRtSession(self._package, form.model, form.inputs(), threads)
