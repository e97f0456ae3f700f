"""The engines that are timed on a model, each set up for speed on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from qdialect.bench.engines.inductor import package_of, session
from qdialect.bench.engines.model_files import LiteRtSession, OnnxRuntimeSession, OpenVinoSession
from qdialect.bench.frameworks import Array, imported

INDUCTOR = "inductor"
"""PyTorch's compiler, whose packages are made before anything is timed."""
# Suffix: the engines that are timed on such a file.
TIMED = {".onnx": ("onnx_runtime", "open_vino"), ".tflite": ("litert", "open_vino"), ".pt2": (INDUCTOR,)}

Call = Callable[[], None]

_ROWS_OF_BYTES = 4
"""The `accuracy_level` of MatMulNBits at which rows are quantized."""
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
    # By default it quantizes the rows that meet weights of few bits: the function of level 4.
    rows = {} if path.endswith(".onnx") and _quantizes_rows(path) else {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    compiled = package.Core().compile_model(path, "CPU", {**_SETTINGS, **rows})
    return OpenVinoSession(package, compiled, inputs, outputs).call


def _quantizes_rows(path: str) -> bool:
    """Whether the products of a model in ONNX are of level 4."""
    attributes = (one for node in imported("onnx").load(path).graph.node for one in node.attribute)
    return any(one.name == "accuracy_level" and one.i == _ROWS_OF_BYTES for one in attributes)


def _inductor(path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Call:
    """The package that is beside the model; its results are new tensors."""
    del outputs
    torch = imported("torch")
    torch.set_num_threads(1)
    return session(torch, package_of(Path(path)), inputs).call


_LOADERS: Mapping[str, Callable[..., Call]] = {
    INDUCTOR: _inductor,
    "litert": _litert,
    "onnx_runtime": _onnx_runtime,
    "open_vino": _open_vino,
}
