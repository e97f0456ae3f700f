"""The extension for Google's Model Explorer, which looks for it by the name of this module, and data for its nodes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from qdialect.cli.explorer.data import Explored, Json, modules_of
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.frontends.building.checks import GraphNode
from qdialect.frontends.model_files import FORMATS, format_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import names_of
from qdialect.lowering.ir.functions import MAIN, functions, has_body, name_of
from qdialect.lowering.ir.lowered import Phase, phase_of
from qdialect.lowering.pipeline.phases import lower
from qdialect.support.options import ImportOptions
from qdialect.targets import Target, host

_EXPLORER = "model_explorer"
_PHASES = (Phase.QNN, Phase.FUSED, Phase.LINALG, Phase.VECTOR)
_OF_KERNELS = tuple(map(str, _PHASES[2:]))
_LONGEST = 200
# Frameworks' names of layers are paths, of nodes or, in PyTorch, of the module behind a node.
_LAYER = re.compile(r"(?:node .*\(')?([^';]*)/")
_MODULE = re.compile(r"node '[^']*' \S+ \(([\w.]+)\)")
_COLD, _HOT = "#fff7ec", "#ef6548"
_FOREIGN = "#f4a6a6"


# Data for the nodes of the model itself, which Model Explorer lays over any graph whose nodes write these tensors.


def node_data(found: Explored) -> dict[str, Json]:
    """By kind (``time``, ``bound``, ``kernel``, ``runner``): the content of a file of node data, keyed by tensors.

    A kernel that stands for several nodes counts for the first of them, so that the times add up. ``time`` is in
    microseconds, ``bound`` in percent; without measured times both are absent.
    """
    owned: dict[int, list[Json]] = {}
    seen: set[int] = set()
    for node in found.nodes:
        owned[node["id"]] = [found.calls[call] for call in node["calls"] if call not in seen]
        seen.update(node["calls"])

    def column(name: str, values: Mapping[int, Any], **style: Any) -> Json:
        keys = {node["id"]: node["outputs"][0] for node in found.nodes if node["outputs"]}
        return {"name": name, "results": {keys[one]: value for one, value in values.items() if one in keys}, **style}

    kernels: dict[int, list[str]] = {
        node["id"]: [found.calls[call]["kernel"] for call in node["calls"]] for node in found.nodes
    }
    columns = {
        "kernel": column("kernel", {one: {"value": ", ".join(names)} for one, names in kernels.items() if names}),
        "runner": column("runner", {node["id"]: _runner(found, node) for node in found.nodes}),
    }
    measured = {one: [call for call in calls if "seconds" in call] for one, calls in owned.items()}
    times = {one: sum(call["seconds"] for call in calls) for one, calls in measured.items() if calls}
    if times:
        times_us = {one: {"value": round(1e6 * seconds, 3)} for one, seconds in times.items()}
        columns["time"] = column("time us", times_us, gradient=_gradient(_COLD, _HOT))
        shares = {one: _share([call for call in measured[one] if call["bound"] is not None]) for one in times}
        known = {one: {"value": round(100 * share, 1)} for one, share in shares.items() if share is not None}
        columns["bound"] = column("of bound %", known, gradient=_gradient(_HOT, _COLD))
    return columns


def _gradient(low: str, high: str) -> list[Json]:
    return [{"stop": stop, "bgColor": color, "textColor": "#000000"} for stop, color in enumerate((low, high))]


def _runner(found: Explored, node: Json) -> Json:
    number: int | None = node["region"]
    if number is None or found.regions[number]["compiled"]:
        return {"value": "qdialect"}
    return {"value": found.regions[number]["runner"], "bgColor": _FOREIGN}


def _share(calls: Sequence[Json]) -> float | None:
    seconds = sum(call["seconds"] for call in calls)
    return sum(call["bound"] * call["seconds"] for call in calls) / seconds if seconds else None


# Graphs in Model Explorer's form.


def graphs(path: Path, options: ImportOptions, target: Target) -> list[Json]:
    """The model's own nodes, its modules in the phases `qnn` and `fused`, and their kernels in `linalg` and `vector`.

    Raises what reading and lowering raise.
    """
    regions, modules = modules_of(path, target, options)
    nodes = format_of(path).nodes(path, options)
    layers = layers_of(nodes)
    found = [_model(nodes, layers)]
    for number, module in enumerate(modules):
        for phase in _PHASES:
            if module is None or phase.number < phase_of(module).number:
                continue
            name = f"region {number}: {phase}" if regions else str(phase)
            found.append(_graph(name, lower(module, target, phase).module, layers))
    return found


def layers_of(nodes: Sequence[GraphNode]) -> dict[str, str]:
    """The layer of each tensor, that of its node; one without a layer that quantizes has that of what it reads."""
    found: dict[str, str] = {}
    for node in nodes:
        read = found.get(node.inputs[0], "") if node.inputs and "quantize" in node.kind.lower() else ""
        found.update(dict.fromkeys(node.outputs, _layer(node.title) or read))
    return found


def _model(nodes: Sequence[GraphNode], layers: Mapping[str, str]) -> Json:
    writers = {name: (index, place) for index, node in enumerate(nodes) for place, name in enumerate(node.outputs)}
    made = [
        _node(
            *(str(index), node.kind, layers.get(next(iter(node.outputs), ""), ""), {"node": node.title}),
            edges=[writers.get(name) for name in node.inputs],
            outputs=[{"tensor_name": name} for name in node.outputs],
        )
        for index, node in enumerate(nodes)
    ]
    return {"id": "model", "nodes": made}


def _graph(name: str, module: ir.Module, layers: Mapping[str, str]) -> Json:
    nodes: list[Json] = []
    writers: dict[ir.Value, tuple[int, int]] = {}

    def add(label: str, namespace: str, attributes: Mapping[str, str], op: ir.Operation | None, values: Any) -> None:
        edges = [writers.get(value) for value in op.operands] if op else []
        types = [{"tensor_shape": str(value.type)} for value in values]
        for place, value in enumerate(values):
            writers[value] = len(nodes), place
        nodes.append(_node(str(len(nodes)), label, namespace, attributes, edges=edges, outputs=types))

    kernels = [one for one in functions(module) if has_body(one) and name_of(one) != MAIN]
    # With kernels all that is left of `main` are their calls, in the order of their names.
    for function in kernels or filter(has_body, functions(module)):
        own = "" if name_of(function) == MAIN else name_of(function)
        add("arguments", own, {}, None, list(function.regions[0].blocks[0].arguments))
        for op, namespace in _ops(function, own, layers):
            add(op.name, namespace, _attributes(op), op, list(op.results))
    return {"id": name, "nodes": nodes}


def _ops(parent: ir.Operation, namespace: str, layers: Mapping[str, str]) -> Iterator[tuple[ir.Operation, str]]:
    """The ops inside `parent`, without constants; those of a loop are inside it. `layers` are those of nodes."""
    inside = 0
    for op in (op.operation for region in parent.regions for block in region.blocks for op in block.operations):
        if op.name in CONSTANT_OPS:
            continue
        node = next(iter(names_of(op.location)), "")
        home = namespace or layers.get(node) or _layer(node)
        yield op, home
        if len(op.regions):
            inside += 1
            yield from _ops(op, f"{home}/{op.name} {inside}".lstrip("/"), layers)


def _attributes(op: ir.Operation) -> dict[str, str]:
    found = {"nodes": ", ".join(names_of(op.location))} if names_of(op.location) else {}
    return {**found, **{name: str(op.attributes[name])[:_LONGEST] for name in op.attributes}}


def _layer(title: str) -> str:
    found = _MODULE.fullmatch(title) or _LAYER.match(title)
    return found[1].replace(".", "/") if found else ""


def _node(
    name: str,
    label: str,
    namespace: str,
    attributes: Mapping[str, str],
    *,
    edges: Sequence[tuple[int, int] | None],
    outputs: Sequence[Mapping[str, str]],
) -> Json:
    return {
        "id": name,
        "label": label,
        "namespace": namespace,
        "attrs": _pairs(attributes),
        "incomingEdges": [
            {"sourceNodeId": str(edge[0]), "sourceNodeOutputId": str(edge[1]), "targetNodeInputId": str(place)}
            for place, edge in enumerate(edges)
            if edge is not None
        ],
        "outputsMetadata": [{"id": str(place), "attrs": _pairs(known)} for place, known in enumerate(outputs)],
    }


def _pairs(values: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _convert(_self: object, model_path: str, _settings: object) -> Json:
    path = Path(model_path)
    collection: Any = import_module(f"{_EXPLORER}.graph_builder").GraphCollection
    found = graphs(path, ImportOptions(), host())
    kernels = [graph for graph in found if graph["id"].endswith(_OF_KERNELS)]
    # The largest graph of the first collection is shown first.
    others = [graph for graph in found if graph not in kernels]
    collections = {path.name: others, f"{path.name}: kernels": kernels}
    return {"graphCollections": [collection(label=label, graphs=own) for label, own in collections.items() if own]}


# Only Model Explorer needs it, and it takes a second to import.
if _EXPLORER in sys.modules:
    # Make the class of the extension: that it is made tells Model Explorer of it.
    explorer: Any = import_module(_EXPLORER)
    metadata: Any = explorer.AdapterMetadata(
        id="qdialect",
        name="qdialect",
        description="The model's nodes, its modules in the phases qnn and fused, and its kernels in linalg and vector.",
        fileExts=[suffix.removeprefix(".") for suffix in FORMATS],
    )
    type("QDialectAdapter", (explorer.Adapter,), {"metadata": metadata, "convert": _convert, "__module__": __name__})
