"""Measures a model in a fresh process: a module is run with the model's file and prints one JSON object."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from qdialect.bench.cases import Case
from qdialect.bench.engines.base import EngineError
from qdialect.diagnostics import QDialectError

Fields = dict[str, Any]

_FORMS = ("qdq", "onnx", "tflite")
_LAST_CHARACTERS = 300


def measured_apart(module: str, case: Case) -> Fields:
    """What ``python -m MODULE MODEL BATCH`` prints of the network; raises `EngineError` where that fails."""
    form = next(case.forms[name] for name in _FORMS if name in case.forms)
    first = form.inputs()[0]
    batch = first.shape[0] if first.ndim else 1
    command = [sys.executable, "-m", module, form.model, str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        what, said = module.rpartition(".")[2], done.stderr.strip()[-_LAST_CHARACTERS:]
        raise EngineError(f"{what} of '{case.name}' ended with status {done.returncode}: {said}")
    return json.loads(done.stdout)


def print_measured(measure: Callable[[str, int], Fields], arguments: Sequence[str]) -> int:
    """The child's side: print what `measure` finds of the model with this batch; the exit status."""
    model, batch = arguments
    try:
        fields = measure(model, int(batch))
    except QDialectError as error:
        print(error.render(), file=sys.stderr)
        return 1
    print(json.dumps(fields))
    return 0
