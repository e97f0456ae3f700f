"""The engines that are timed on a model, each set up for speed on one thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qdialect.bench.cases import Session
from qdialect.bench.engines import inductor
from qdialect.bench.engines.model_files import (
    FLOAT_ROWS,
    litert_session,
    onnx_runtime_session,
    open_vino_session,
    open_vino_settings,
)
from qdialect.bench.frameworks import Array, imported

INDUCTOR = "inductor"
"""PyTorch's compiler, whose packages are made before anything is timed."""
# Suffix: the engines that are timed on such a file.
TIMED = {".onnx": ("onnx_runtime", "open_vino"), ".tflite": ("litert", "open_vino"), ".pt2": (INDUCTOR,)}

_ROWS_OF_BYTES = 4
"""The `accuracy_level` of MatMulNBits at which rows are quantized."""


def load(name: str, path: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> Session:
    """The model at `path` in the framework `name`.

    Its inputs are in their buffers, and so are its outputs where the framework allows it; `outputs` have their shapes
    and dtypes.  Raises `ImportError` where it is not installed, and whatever it raises for the model.
    """
    match name:
        case "litert":
            return litert_session(imported("ai_edge_litert.interpreter"), path, inputs, 1)
        case "onnx_runtime":
            return onnx_runtime_session(imported("onnxruntime"), path, inputs, 1)
        case "open_vino":
            package = imported("openvino")
            # By default it quantizes the rows that meet weights of few bits: the function of level 4.
            rows = {} if path.endswith(".onnx") and _quantizes_rows(path) else FLOAT_ROWS
            compiled = package.Core().compile_model(path, "CPU", {**open_vino_settings(1), **rows})
            return open_vino_session(package, compiled, inputs, outputs)
        case _:
            torch = imported("torch")
            torch.set_num_threads(1)
            # The package that is beside the model.
            return inductor.session(torch, inductor.package_of(Path(path)), inputs)


def _quantizes_rows(path: str) -> bool:
    """Whether the products of a model in ONNX are of level 4."""
    attributes = (one for node in imported("onnx").load(path).graph.node for one in node.attribute)
    return any(one.name == "accuracy_level" and one.i == _ROWS_OF_BYTES for one in attributes)
