"""Where cases come from, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tools.evidence.case import Key, Source, measure
from tools.evidence.onnx_cases import OnnxCases
from tools.evidence.outcomes import Outcome
from tools.evidence.recorded_cases import RecordedCases
from tools.evidence.tflite_cases import TfliteCases
from tools.evidence.torch_cases import TorchCases

SOURCES: Mapping[str, type[Source]] = {one.name: one for one in (OnnxCases, TfliteCases, TorchCases, RecordedCases)}


def outcome_of_row(task: tuple[str, Key]) -> Outcome:
    """What a row, the name of its source and its key, ends in; what a worker does."""
    name, key = task
    return measure(SOURCES[name](), key)
