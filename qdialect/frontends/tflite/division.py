"""A .tflite model divided between this compiler and LiteRT."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import tflite

from qdialect._mlir import ir
from qdialect.diagnostics import ImportModelError
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frameworks import litert
from qdialect.frontends.budget import Budget
from qdialect.frontends.common import Interface, UnsupportedError, content_of, converting, unsupported_interfaces
from qdialect.frontends.extents import Extents
from qdialect.frontends.planning.division import Division, OpenInterface, PartRefusedError, Runner, refused_nodes
from qdialect.frontends.planning.partition import Part, PartitionNode
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.frontends.tflite.importer import ELEMENTS, import_graph, read_model
from qdialect.frontends.tflite.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.operators import plan
from qdialect.frontends.tflite.operators.activation_range import f32_bounds
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT
from qdialect.frontends.tflite.operators.left_to_litert import keeps_state
from qdialect.frontends.tflite.products import products
from qdialect.frontends.tflite.reader import read_options
from qdialect.frontends.tflite.submodel import extract
from qdialect.profiles import TFLITE, TFLITE_XNNPACK

_BLOCK_STEP = 32
"""Blocks that XNNPACK's delegate takes are multiples of this."""

_STATEFUL = "the network keeps a state between calls"


class TfliteDivision(Division):
    """A model whose operators are judged one by one: every tensor of the file has a type and a shape."""

    framework = litert.FRAMEWORK.name

    def __init__(
        self,
        source: str | Path | bytes,
        *,
        profile: str = "",
        signature: str = "",
        batch: int = 1,
        dims: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Raises `ImportModelError` for a file that cannot be read."""
        whole, self.name = read_model(source, signature, Extents(batch, dims))
        self._content, _ = content_of(source, self.name)
        # Unless a profile is asked for, all parts have the numbers of LiteRT's default run.
        self._profile = profile or TFLITE_XNNPACK.name
        self._graph = self._folded(whole)
        self._constant_in_file = {tensor.index for tensor in whole.tensors if tensor.data is not None}
        counts = Counter(tensor.name for tensor in self._graph.tensors)
        # Names of tensors need not differ.
        self._names = [
            tensor.name if counts[tensor.name] == 1 else f"{tensor.name}#{tensor.index}"
            for tensor in self._graph.tensors
        ]
        self._tensors = dict(zip(self._names, self._graph.tensors, strict=True))
        given = {tensor.index for operator in self._graph.operators for tensor in operator.outputs}
        self._computed = given | {tensor.index for tensor in self._graph.inputs}
        self.nodes = self._partition_nodes()
        self.inputs = [self._open(tensor) for tensor in self._graph.inputs]
        self.outputs = [self._open(tensor) for tensor in self._graph.outputs]
        known = [tensor for tensor in self._graph.outputs if tensor.data is not None]
        self.constants = {self._names[tensor.index]: tensor.data for tensor in known if tensor.data is not None}

    def _folded(self, whole: Graph) -> Graph:
        """Nodes that stand for trips of a loop are in no part that LiteRT runs: either all is ours or loops stay."""
        graph = fold_constants(whole)
        if not whole.others:
            return graph
        try:
            import_graph(graph, self.name, self._profile)
        except ImportModelError:
            return fold_constants(whole, unrolls=False)
        return replace(graph, budget=Budget(whole.budget.maximum))

    def module(self, part: Part) -> ir.Module:
        operators = tuple(self._fresh(self._graph.operators[index]) for index in part.nodes)
        inputs, outputs = (tuple(self._tensors[name] for name in names) for names in (part.inputs, part.outputs))
        reasons: dict[str, str] = {}
        for tensor in (*inputs, *outputs):
            name = self._names[tensor.index]
            unsupported = unsupported_interfaces("", [Interface(name, tensor.shape, tensor.element)], ELEMENTS)
            reasons.update(dict.fromkeys([name] * len(unsupported), "".join(unsupported[:1]).partition(": ")[2]))
        if reasons:
            raise PartRefusedError(refused_nodes(part, self.nodes, {}, reasons))
        graph = Graph(self._graph.tensors, operators, inputs, outputs, self._budget())
        try:
            return import_graph(graph, self.name, self._profile)
        except ImportModelError as error:
            blamed = {index for index in part.nodes if f"{self.nodes[index].title}: " in str(error)}
            if not blamed:
                raise
            raise PartRefusedError(dict.fromkeys(blamed, error.message)) from error

    def runner(self, part: Part, threads: int) -> Runner:
        operators = [self._graph.operators[index] for index in part.nodes]
        read = [tensor for operator in operators for tensor in operator.inputs if tensor is not None]
        folded = {t.index: t.data for t in read if t.data is not None and t.index not in self._constant_in_file}
        inputs, outputs = ([self._tensors[name].index for name in names] for names in (part.inputs, part.outputs))
        shapes = {self._tensors[name].index: self._tensors[name].shape for name in part.inputs}
        numbers = [operator.index for operator in operators]
        content = extract(self._content, numbers, inputs, outputs, folded, shapes, self._graph.subgraph)
        for operator in operators:
            reason = _death(operator)
            if reason:
                raise ImportModelError(f"{operator.title}: {reason}")
        divided = [operator for operator in operators if any(t is not None and t.block for t in operator.inputs)]
        for operator in divided:
            self._check_blocks(operator)
        return litert.load(content, threads, is_reference=self._profile == TFLITE.name, needs_delegate=bool(divided))

    def _check_blocks(self, operator: Operator) -> None:
        """LiteRT's own kernels take no notice of scales by block; raises `ImportModelError` where they would run."""
        weight = next(tensor for tensor in operator.inputs if tensor is not None and tensor.block)
        held = f"'{weight.name}' has a scale for each {weight.block} elements, which only XNNPACK's delegate reads"
        is_read = self._profile != TFLITE.name and operator.kind == "FULLY_CONNECTED"
        try:
            f32_bounds(read_options(operator, tflite.FullyConnectedOptions, lambda o: o.FusedActivationFunction()))
        except (UnsupportedError, ImportModelError):
            is_read = False
        if not is_read or weight.element != "blockwise int4" or weight.block % _BLOCK_STEP:
            wanted = f"profile '{TFLITE_XNNPACK.name}' for FULLY_CONNECTED of int4 in blocks of {_BLOCK_STEP}, 64 ..."
            raise ImportModelError(f"{operator.title}: {held}: with {wanted}, at most a clamp fused")

    def _budget(self) -> Budget:
        return Budget(self._graph.budget.maximum)

    def _fresh(self, operator: Operator) -> Operator:
        """`operator` with all of the budget: a part that is refused has spent some of it."""
        return replace(operator, budget=self._budget())

    def _partition_nodes(self) -> list[PartitionNode]:
        copied: set[str] = set()
        found: list[PartitionNode] = []
        # A state and what sets it up, reads and writes it are one.
        is_whole = any(keeps_state(operator.kind) for operator in self._graph.operators)
        for operator in self._graph.operators:
            # A tensor that nothing gives is a constant, or what an operator keeps from call to call.
            read = (t for t in operator.inputs if t is not None and t.data is None and t.index in self._computed)
            reads = tuple(dict.fromkeys(self._names[tensor.index] for tensor in read))
            reason = self._reason(operator) or _STATEFUL * is_whole
            is_copied = not reason and all(name in copied for name in reads)
            gives = tuple(self._names[tensor.index] for tensor in operator.outputs)
            copied.update(gives if is_copied else ())
            found.append(
                PartitionNode(
                    operator.title,
                    reads,
                    gives,
                    products(operator),
                    sum(math.prod(tensor.shape) for tensor in operator.outputs),
                    reason,
                    is_copied=is_copied,
                    is_narrow=all(tensor.element != "f32" for tensor in operator.outputs),
                    is_kept=not reason and bool(_death(operator)),
                )
            )
        return found

    def _reason(self, operator: Operator) -> str:
        try:
            with converting():
                plan(self._fresh(operator))
        except UnsupportedError as error:
            return str(error)
        return ""

    def _open(self, tensor: Tensor) -> OpenInterface:
        dtype = NUMPY_DTYPES[tensor.element].name if tensor.element in NUMPY_DTYPES else tensor.element
        scale, zero_point = (tensor.scale, tensor.zero_point) if len(tensor.scales) == 1 else (None, None)
        return OpenInterface(self._names[tensor.index], tensor.shape, dtype, scale, zero_point)


_NEEDS_SCALES = (
    *("ADD", "SUB", "SQUARED_DIFFERENCE", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    *("LOG", "SOFTMAX", "SQRT"),
)


def _death(operator: Operator) -> str:
    """Why LiteRT would write or read outside of its memory; empty where it would not."""
    elements = [tensor.element for tensor in operator.inputs[:3] if tensor is not None]
    if operator.kind == "SVDF" and elements[:1] == ["f32"] and elements[2:] == ["i8"]:
        return "LiteRT writes outside of its memory for float32 data with i8 time weights"
    narrow = (tensor for tensor in operator.inputs if tensor is not None and tensor.element in (*EIGHT_BIT, "i16"))
    if operator.kind in _NEEDS_SCALES and any(not tensor.scales for tensor in narrow):
        return "LiteRT reads outside of its memory where an input of few bits is not quantized"
    return ""
