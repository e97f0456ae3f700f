"""Subgraphs between 8-bit tensors that depend on one of them alone, whatever branches they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from qdialect._mlir import ir
from qdialect.dialect import ClipOp, LutOp, RequantizeOp, UnaryOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.lut_pattern import LutMatch, LutPattern, tabulated
from qdialect.passes.matching import producer, quantization_difference, users
from qdialect.passes.pattern import MatchFailure
from qdialect.passes.tabulate import BINARY_NAMES, is_eight_bit_function, uniform_value
from qdialect.quant_math import QuantParams

Node = BinaryOp | LutOp | UnaryOp | RequantizeOp | ClipOp

# An activation that an exporter wrote out has fewer ops.
_MAX_OPS = 16
_DIAMOND = 3


class ComposeDag(LutPattern):
    """A function of two tensors that depend on one alone, through branches that share ops, is a table of that one."""

    name: ClassVar[str] = "compose-dag"
    roots: ClassVar[tuple[str, ...]] = BINARY_NAMES

    def check(self, op: BinaryOp) -> LutMatch | MatchFailure | None:
        subgraph = _subgraph(op)
        if subgraph is None:
            return None
        source, nodes = subgraph
        # One function on each side, or on one, is the diamond's.
        if len(nodes) < _DIAMOND or shape_of(source.type) != shape_of(op.output.type):
            return None
        reason = _used_outside(nodes) or _disagreement(source, nodes)
        if reason:
            return MatchFailure(reason)
        before = next((own for node in nodes for value, own in _inputs(node) if value == source and own), None)
        return None if before is None else tabulated(op, source, before, op.output_params)


def _subgraph(root: BinaryOp) -> tuple[ir.Value, list[Node]] | None:
    """The one tensor on which `root` depends, nearest first, and the ops between, `root` among them."""
    nodes: list[Node] = [root]
    open_ = _variable_inputs(root)
    while len(open_) > 1:
        # A value on which another open one depends may be the source: it waits.
        value = next((v for v in open_ if not any(_depends(u, v) for u in open_ if u != v)), None)
        node = None if value is None else _node(value)
        if value is None or node is None or len(nodes) == _MAX_OPS:
            return None
        nodes.append(node)
        open_.remove(value)
        open_ += [v for v in _variable_inputs(node) if v not in open_]
    return (open_[0], nodes) if open_ else None


def _node(value: ir.Value) -> Node | None:
    op = producer(value)
    if isinstance(op, BinaryOp):
        return op
    return op if isinstance(op, LutOp | UnaryOp | RequantizeOp | ClipOp) and is_eight_bit_function(op) else None


def _variable_inputs(node: Node) -> list[ir.Value]:
    values = list(dict.fromkeys(node.operation.operands))
    return [value for value in values if uniform_value(value) is None]


def _depends(value: ir.Value, on: ir.Value) -> bool:
    """Whether `value` is computed from `on` by few nodes."""
    pending, seen = [value], 0
    while pending and seen < 2 * _MAX_OPS:
        seen += 1
        node = _node(pending.pop())
        inputs = [] if node is None else _variable_inputs(node)
        if on in inputs:
            return True
        pending += inputs
    return False


def _used_outside(nodes: list[Node]) -> str | None:
    inside = [node.operation for node in nodes]
    for node in nodes[1:]:
        outside = [user for user in users(node.operation.results[0]) if user.operation not in inside]
        if outside:
            name = node.operation.name
            return f"needs the result of '{name}' alone, but '{outside[0].name}' uses it too"
    return None


def _inputs(node: Node) -> Iterator[tuple[ir.Value, QuantParams | None]]:
    """The operands of a node and what it takes their quantized values to mean; a clip does not say."""
    if isinstance(node, BinaryOp):
        yield node.lhs, node.lhs_params
        yield node.rhs, node.rhs_params
    elif isinstance(node, RequantizeOp):
        yield node.input, QuantParams(node.input_scale, next(iter(node.input_zero_points)))
    else:
        yield node.input, None if isinstance(node, ClipOp) else node.input_params


def _disagreement(source: ir.Value, nodes: list[Node]) -> str | None:
    """Why the quantized values between the nodes do not mean the same to both sides."""
    meant: dict[ir.Value, QuantParams] = {}
    for node in nodes:
        if not isinstance(node, ClipOp):
            meant[node.operation.results[0]] = node.output_params
    for node in nodes:
        for value, own in _inputs(node):
            known = meant.get(value)
            if value == source and own is not None:
                known = meant.setdefault(value, own)
            reason = None if own is None or known is None else quantization_difference("input", known, own)
            if reason:
                return reason
    return None
