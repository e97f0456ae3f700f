"""Archives that `torch.export.save` writes, taken apart, changed and put together again."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn
from torch_models import dequantized, quantized

ROOT = "archive/"
PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"

Members = dict[str, bytes]
"""The members of an archive by their names below its root."""


class Boom:
    """Makes the file `marker` when it is unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[list[str]], int], tuple[list[str]]]:
        return subprocess.call, (["touch", self.marker],)


def pickled(marker: str) -> bytes:
    """As `torch.save` writes an object."""
    stream = io.BytesIO()
    torch.save(Boom(marker), stream)
    return stream.getvalue()


def bare_pickle(marker: str) -> bytes:
    return pickle.dumps(Boom(marker))


class Net(nn.Module):
    """A quantized linear layer whose weight is quantized by the program itself, and an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(-6.0, 6.0).reshape(3, 4) / 8)
        self.offset = nn.Buffer(torch.tensor([0.5, -0.25, 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        weight = dequantized(quantized(self.weight * 2, 0.125, 0, torch.int8), 0.125, 0, torch.int8)
        product = nnf.linear(dequantized(x, 0.25, 0, torch.int8), weight, self.offset)
        left, right = torch.chunk(torch.relu(product), 2, 1)
        return quantized(torch.cat([right, left], 1), 0.25, 1, torch.int8)


def content_of(program: Any) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


@cache
def program() -> Any:
    import_module("torch.ao.quantization.fx._decomposed")
    return torch.export.export(Net(), (torch.zeros((2, 4), dtype=torch.int8),))


@cache
def good_content() -> bytes:
    return content_of(program())


def good() -> Members:
    return members_of(good_content())


def members_of(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def packed(members: Members, compression: int = zipfile.ZIP_STORED, root: str = ROOT) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(root + name, content)
    return stream.getvalue()


def directory(content: bytes | bytearray) -> int:
    """Where the directory of an archive begins, an entry for each member in order."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.start_dir


def edited(member: str, change: Callable[[Any], None], **others: bytes) -> Members:
    """The good members, the JSON of `member` changed in place."""
    members = good()
    held = json.loads(members[member])
    change(held)
    return {**members, member: json.dumps(held).encode(), **others}


def graph_of(held: Any) -> Any:
    return held["graph_module"]["graph"]


def argument(name: str, kind: str, value: object, position: int = 1) -> dict[str, Any]:
    return {"name": name, "arg": {kind: value}, "kind": position}


def tensor(name: str) -> dict[str, Any]:
    return {"as_tensor": {"name": name}}


def node(target: str, name: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "target": target,
        "inputs": list(arguments),
        "outputs": [tensor(name)],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": name,
    }


def with_node(inserted: dict[str, Any]) -> Members:
    """The good members, but the weight is what a node gives that comes first."""

    def change(held: Any) -> None:
        graph = graph_of(held)
        name = inserted["name"]
        graph["tensor_values"][name] = graph["tensor_values"]["p_weight"]
        for other in graph["nodes"]:
            for given in other["inputs"]:
                if given["arg"] == tensor("p_weight"):
                    given["arg"] = tensor(name)
        graph["nodes"].insert(0, inserted)

    return edited(PROGRAM, change)


def with_nodes(nodes: list[dict[str, Any]], shapes: dict[str, list[int]] | None = None) -> Members:
    """A program of `nodes` between `numbers`, the dequantized input of shape 2x4, and the last one, which is quantized.

    Results have the input's shape unless `shapes` has another; `p_weight` is the constant of shape 3x4.
    """

    def change(held: Any) -> None:
        graph = graph_of(held)
        values = graph["tensor_values"]
        values["numbers"] = {**values["x"], "dtype": 7}
        for entry in nodes:
            shape = (shapes or {}).get(entry["name"], [2, 4])
            dtype = 2 if ".quantize_per" in entry["target"] else 7
            sizes = [{"as_int": extent} for extent in shape]
            values[entry["name"]] = {**values["numbers"], "sizes": sizes, "dtype": dtype}
        values["quantized"] = {**values[nodes[-1]["name"]], "dtype": 2}
        graph["nodes"] = [
            quantization("dequantize", "numbers", "x"),
            *nodes,
            quantization("quantize", "quantized", nodes[-1]["name"]),
        ]
        graph["outputs"] = [tensor("quantized")]

    return edited(PROGRAM, change)


def quantization(what: str, name: str, source: str, scale: float = 0.25) -> dict[str, Any]:
    """A node that quantizes or dequantizes by `scale` to or from int8."""
    return node(
        f"torch.ops.quantized_decomposed.{what}_per_tensor.default",
        name,
        {"name": "input", "arg": tensor(source), "kind": 1},
        argument("scale", "as_float", scale),
        argument("zero_point", "as_int", 0),
        argument("quant_min", "as_int", -128),
        argument("quant_max", "as_int", 127),
        argument("dtype", "as_scalar_type", 2),
    )


def call(kind: str, name: str, *sources: str, **options: Mapping[str, object]) -> dict[str, Any]:
    """A node of an operator of aten on tensors ``self`` and ``other``; `options` are arguments by their kinds."""
    operands = [
        {"name": key, "arg": tensor(source), "kind": 1} for key, source in zip(("self", "other"), sources, strict=False)
    ]
    others = [{"name": key, "arg": value, "kind": 1} for key, value in options.items()]
    return node(f"torch.ops.aten.{kind}", name, *operands, *others)
