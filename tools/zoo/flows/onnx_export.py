"""A network of PyTorch to float ONNX, prepared for quantization as ONNX Runtime's guide says."""

from __future__ import annotations

from pathlib import Path

from tools.zoo.flows.samples import TEST_SEEDS
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported
from tools.zoo.tensors import tensors

_TORCHSCRIPT_OPSET = 17


def export(built: Built, exporter: str, path: Path) -> None:
    """Write the float model of `built` with shapes inferred and batch norms folded; inputs are ``x0``, ``x1``, ..."""
    raw = path.with_suffix(".raw.onnx")
    example = tensors(built.draw(1, TEST_SEEDS[0]))
    names = [f"x{index}" for index in range(len(example))]
    write = imported("torch.onnx").export
    if exporter == "dynamo":
        write(built.model, example, dynamo=True, verbose=False, input_names=names).save(raw)
    else:
        write(built.model, example, raw, opset_version=_TORCHSCRIPT_OPSET, dynamo=False, input_names=names)
    try:
        _prepare(raw, path)
    finally:
        raw.unlink(missing_ok=True)
        raw.with_name(f"{raw.name}.data").unlink(missing_ok=True)


def _prepare(raw: Path, path: Path) -> None:
    prepare = imported("onnxruntime.quantization.shape_inference").quant_pre_process
    try:
        prepare(raw, path, skip_symbolic_shape=False)
    # ONNX Runtime's symbolic inference raises plain exceptions at operators that it does not know.
    except Exception:
        prepare(raw, path, skip_symbolic_shape=True)
