"""OpenVINO's CPU plugin, tuned for the latency of one call."""

from __future__ import annotations

from collections.abc import Sequence

from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.packages import imported

_SETTINGS = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}


def load(path: str, *, timed: bool) -> Runner:
    """A compiled model; the same for both uses."""
    del timed
    compiled = imported("openvino").Core().compile_model(path, "CPU", _SETTINGS)
    request = compiled.create_infer_request()

    def run(inputs: Sequence[Array]) -> list[Array]:
        found = request.infer(list(inputs))
        return [found[output] for output in compiled.outputs]

    return run
