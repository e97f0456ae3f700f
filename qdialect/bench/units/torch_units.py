"""A program of PyTorch cut at its quantized tensors, as `onnx_units` cuts an ONNX network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from qdialect.bench.frameworks import Array, imported
from qdialect.bench.frameworks.pytorch import program, tensors
from qdialect.bench.truth.torch_truth import is_quantization
from qdialect.bench.units import Cut

_GIVEN = "_given"


@dataclass(frozen=True)
class TorchNetwork:
    """A `Network` of a ``.pt2`` archive."""

    path: Path
    inputs: tuple[str, ...]
    quantized: tuple[str, ...]

    def write_exposed(self, path: Path, sample: Sequence[Array]) -> None:
        module = _module(self.path)
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        found: Any = output.args[0]
        _end(module, [*([found] if isinstance(found, fx.Node) else list(found)), *_quantizations(module.graph)])
        _save(module, sample, path)

    def write_units(self, path: Path, tensors: Mapping[str, Array]) -> Cut:
        module = _module(self.path)
        given = _cut(module)
        _save(module, [tensors[name] for name in given], path)
        return Cut(given)


def load(path: Path) -> TorchNetwork:
    """The network of a ``.pt2`` archive."""
    graph = _module(path).graph
    inputs = tuple(node.name for node in _placeholders(graph))
    return TorchNetwork(path, inputs, tuple(node.name for node in _quantizations(graph)))


def _module(path: Path) -> fx.GraphModule:
    """A program whose inputs and outputs are flat lists."""
    module: Any = program(str(path)).module()
    graph: fx.Graph = module.graph
    for guards in [node for node in graph.nodes if node.op == "call_module" and node.target == "_guards_fn"]:
        graph.erase_node(guards)
    graph.set_codegen(imported("torch.fx.graph").CodeGen())
    return fx.GraphModule(module, graph)


def _cut(module: fx.GraphModule) -> tuple[str, ...]:
    """Let a module compute each quantized tensor from others that are inputs; the names of what it then reads."""
    graph = module.graph
    found = _quantizations(graph)
    for node in found:
        readers = [reader for reader in node.users if reader.op != "output"]
        with graph.inserting_after(_placeholders(graph)[-1]):
            given = graph.placeholder(f"{node.name}{_GIVEN}")
        for reader in readers:
            reader.replace_input_with(node, given)
    _end(module, found)
    for unread in [node for node in _placeholders(graph) if not node.users]:
        graph.erase_node(unread)
    module.recompile()
    return tuple(node.name.removesuffix(_GIVEN) for node in _placeholders(graph))


def _save(module: fx.GraphModule, arguments: Sequence[Array], path: Path) -> None:
    exported: Any = torch.export.export(module, tensors(arguments))
    imported("torch").export.save(exported, path)


def _end(module: fx.GraphModule, outputs: Sequence[fx.Node]) -> None:
    (old,) = (node for node in module.graph.nodes if node.op == "output")
    old.args = (tuple(outputs),)
    module.graph.eliminate_dead_code()
    module.recompile()


def _placeholders(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def _quantizations(graph: fx.Graph) -> list[fx.Node]:
    computed, found = set[fx.Node](), list[fx.Node]()
    for node in graph.nodes:
        if node.op == "placeholder" or not computed.isdisjoint(node.all_input_nodes):
            computed.add(node)
            found += [node] if is_quantization(node) else []
    return found
