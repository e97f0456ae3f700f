"""Decoders as the model builder of onnxruntime-genai writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tools.zoo.flows.samples import Sample
from tools.zoo.networks.network import Built
from tools.zoo.packages import imported

GENAI: dict[str, list[str]] = {"genai_int4": [], "genai_int4_k_quant": ["algo_config=k_quant_mixed"]}
"""By flow: options of the builder.  Products are at level 4, the default for CPUs."""
# Of 2^-5, above 127.
_EXPONENT = 122
_TOKENS = {"bos_token_id": 1, "eos_token_id": 2}


def build(built: Built, flow: str, target: Path, sample: Sample) -> None:
    """Write the ONNX model of a causal language model of transformers, with the extents of `sample`."""
    builder = imported("onnxruntime_genai.models.builder")
    with tempfile.TemporaryDirectory() as folder:
        source, result, cache = (str(Path(folder) / name) for name in ("source", "result", "cache"))
        _save(built.model, source)
        found = builder.parse_extra_options("", source, result, "int4", "cpu", cache, GENAI[flow])
        builder.create_model("", source, result, "int4", "cpu", cache, **found)
        onnx = imported("onnx")
        model = onnx.load(Path(result) / "model.onnx")
    _fix_extents(model.graph, sample)
    onnx.save(model, target)


def _save(model: Any, folder: str) -> None:
    """With what the builder reads of every network: two tokens by their numbers, and a tokenizer."""
    model.config.update(_TOKENS)
    model.save_pretrained(folder)
    _add_blocks(f"{folder}/model.safetensors")
    tokenizers = imported("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"word": 0}, "word"))
    imported("transformers").PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)


def _add_blocks(path: str) -> None:
    """Draw weights of the experts of GPT-OSS in MXFP4: the builder reads these alone."""
    package = imported("safetensors.torch")
    weights: dict[str, Tensor] = package.load_file(path)
    experts = [name for name in weights if name.endswith(("experts.gate_up_proj", "experts.down_proj"))]
    for name in experts:
        count, depth, outputs = weights[name].shape
        shape = count, outputs, depth // 32
        weights[f"{name}_blocks"] = torch.randint(256, (*shape, 16), dtype=torch.uint8)
        weights[f"{name}_scales"] = torch.full(shape, _EXPONENT, dtype=torch.uint8)
    package.save_file(weights, path, {"format": "pt"})


def _fix_extents(graph: Any, sample: Sequence[Any]) -> None:
    fix = imported("onnxruntime.tools.onnx_model_utils").make_dim_param_fixed
    for port, array in zip(graph.input, sample, strict=True):
        for dim, extent in zip(port.type.tensor_type.shape.dim, array.shape, strict=True):
            if dim.dim_param:
                fix(graph, dim.dim_param, extent)
