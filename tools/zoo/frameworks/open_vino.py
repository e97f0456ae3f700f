"""OpenVINO's CPU plugin, tuned for the latency of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdialect.bench.engines.open_vino import OpenVinoSession
from tools.zoo.frameworks.runner import Array
from tools.zoo.packages import imported

_SETTINGS = {
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,
    "PERFORMANCE_HINT": "LATENCY",
    # The default may be bfloat16, which is another function.
    "INFERENCE_PRECISION_HINT": "f32",
}


def load_call(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """An infer request with its tensors."""
    package = imported("openvino")
    compiled = package.Core().compile_model(path, "CPU", _SETTINGS)
    return OpenVinoSession(package, compiled, inputs, outputs).call
