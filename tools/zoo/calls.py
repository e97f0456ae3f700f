"""The engines that are timed on a model, each set up for speed on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from qdialect.bench.engines.inductor import InductorSession, package_of
from qdialect.bench.engines.litert import LiteRtSession
from qdialect.bench.engines.onnx_runtime import OnnxRuntimeSession
from qdialect.bench.engines.open_vino import OpenVinoSession
from qdialect.bench.frameworks.runner import Array, imported

INDUCTOR = "inductor"
"""PyTorch's compiler, whose packages are made before anything is timed."""
# Suffix: the engines that are timed on such a file.
TIMED = {".onnx": ("onnx_runtime", "open_vino"), ".tflite": ("litert", "open_vino"), ".pt2": (INDUCTOR,)}

Call = Callable[[], None]

_SETTINGS = {
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,
    "PERFORMANCE_HINT": "LATENCY",
    # The default may be bfloat16, which is another function.
    "INFERENCE_PRECISION_HINT": "f32",
}


def load_call(name: str, path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """A call of the model at `path` in the framework `name`.

    Its inputs are in their buffers, and so are its outputs where the framework allows it; `outputs` have their shapes
    and dtypes.  Raises `ImportError` where it is not installed, and whatever it raises for the model.
    """
    return _LOADERS[name](path, inputs, outputs)


def _litert(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """An interpreter with XNNPACK whose inputs are set."""
    del outputs
    return LiteRtSession(imported("ai_edge_litert.interpreter"), path, inputs, 1).call


def _onnx_runtime(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """A session with an IO binding."""
    del outputs
    return OnnxRuntimeSession(imported("onnxruntime"), path, inputs, 1).call


def _open_vino(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """An infer request with its tensors, tuned for the latency of one call."""
    package = imported("openvino")
    compiled = package.Core().compile_model(path, "CPU", _SETTINGS)
    return OpenVinoSession(package, compiled, inputs, outputs).call


def _inductor(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """The package that is beside the model; its results are new tensors."""
    del outputs
    torch = imported("torch")
    torch.set_num_threads(1)
    return InductorSession(torch, package_of(Path(path)), inputs).call


_LOADERS: Mapping[str, Callable[..., Call]] = {
    INDUCTOR: _inductor,
    "litert": _litert,
    "onnx_runtime": _onnx_runtime,
    "open_vino": _open_vino,
}
