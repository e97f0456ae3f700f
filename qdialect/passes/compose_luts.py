"""`qnn-compose-luts`: a chain of 8-bit functions becomes one table, or the clamp or nothing that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from qdialect.arithmetic import QuantParams
from qdialect.dialect import ClipOp, LutOp, RequantizeOp, UnaryOp, build
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.canonicalize import RemoveIdentity
from qdialect.passes.fuse_clamp import Bounds, clamp_of
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, refuse
from qdialect.passes.registry import register
from qdialect.passes.tabulate import Function, LutMatch, LutPattern, is_eight_bit_function, tabulated, uniform_value

Node = BinaryOp | Function
# An activation that an exporter wrote out has fewer ops.
_MAX_OPS = 16


class ComposeDag(LutPattern):
    """``x * f(x)`` and the like: a function of two tensors that depend on one alone is a table of that one.

    Branches between them may share ops.
    """

    roots = (BinaryOp,)

    def check(self, op: BinaryOp) -> LutMatch | None:
        subgraph = _subgraph(op)
        if subgraph is None:
            return None
        source, nodes = subgraph
        # A constant operand makes a function of one tensor, which is a table already.
        if (len(nodes) == 1 and op.lhs != op.rhs) or shape_of(source.type) != shape_of(op.output.type):
            return None
        _require_alone(nodes)
        return tabulated(op, source, _meanings(source, nodes)[source], op.output_params)


def _subgraph(root: BinaryOp) -> tuple[ir.Value, list[Node]] | None:
    """The one tensor on which `root` depends, nearest first, and the ops between, `root` among them."""
    nodes: list[Node] = [root]
    open_ = _variable_inputs(root)
    while len(open_) > 1:
        # A value on which another pending one depends may be the source: it is visited later.
        value = next((v for v in open_ if not any(_depends(u, v) for u in open_ if u != v)), None)
        node = None if value is None else _node(value)
        if value is None or node is None or len(nodes) == _MAX_OPS:
            return None
        nodes.append(node)
        open_.remove(value)
        open_ += [v for v in _variable_inputs(node) if v not in open_]
    return (open_[0], nodes) if open_ else None


def _node(value: ir.Value) -> Node | None:
    op = pattern.producer(value)
    return op if isinstance(op, BinaryOp) or is_eight_bit_function(op) else None


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


def _require_alone(nodes: list[Node]) -> None:
    inside = [node.operation for node in nodes]
    for node in nodes[1:]:
        outside = [user for user in pattern.users(node.operation.results[0]) if user.operation not in inside]
        if outside:
            name = node.operation.name
            raise MatchFailure(f"needs the result of '{name}' alone, but '{outside[0].name}' uses it too")


def _inputs(node: Node) -> Iterator[tuple[ir.Value, QuantParams | None]]:
    """The operands of a node and the quantization that it assumes for them; a clip assumes none."""
    if isinstance(node, BinaryOp):
        yield node.lhs, node.lhs_params
        yield node.rhs, node.rhs_params
    else:
        yield node.input, _parameters(node)[0]


def _meanings(source: ir.Value, nodes: list[Node]) -> dict[ir.Value, QuantParams]:
    """The quantization of `source` and of the values between the nodes; a failure where ops assume different ones."""
    clips = {node.output: node.input for node in nodes if isinstance(node, ClipOp)}
    meant: dict[ir.Value, QuantParams] = {
        node.operation.results[0]: node.output_params for node in nodes if not isinstance(node, ClipOp)
    }
    for value, own in (pair for node in nodes for pair in _inputs(node)):
        if own is None:
            continue
        while value in clips:
            value = clips[value]
        known = meant.setdefault(value, own) if value == source else meant.get(value, own)
        refuse(pattern.quantization_difference("input", known, own))
    return meant


class ComposeChain(LutPattern):
    """``f(g(x))`` of two 8-bit functions is one table."""

    roots = (LutOp, ClipOp, RequantizeOp, UnaryOp)

    def check(self, op: Function) -> LutMatch | None:
        inner = pattern.producer(op.input)
        if not is_eight_bit_function(inner) or not is_eight_bit_function(op):
            return None
        if isinstance(op, ClipOp) and isinstance(inner, ClipOp):
            return None
        before, middle_out = _parameters(inner)
        middle_in, after = _parameters(op)
        refuse(pattern.second_use(op.input))
        if middle_out is not None and middle_in is not None:
            refuse(pattern.quantization_difference("input", middle_out, middle_in))
        before, after = before or middle_in, after or middle_out
        # Two clips are left to the clamp: of two functions, one has parameters.
        assert before is not None
        assert after is not None
        return tabulated(op, inner.input, before, after)


class LutToClip(Replacement[Bounds]):
    """A table that clamps and keeps the parameters is a clip."""

    roots = ("qnn.lut",)

    def check(self, op: LutOp) -> Bounds | None:
        return clamp_of(op)

    def emit(self, op: LutOp, match: Bounds) -> ir.Value:
        return build(ClipOp, op.input, element=element_of(op.output.type), min=match[0], max=match[1]).output


def _parameters(op: Function) -> tuple[QuantParams | None, QuantParams | None]:
    """The quantization of the values before and after `op`; a clip states none."""
    return (None, None) if isinstance(op, ClipOp) else (op.input_params, op.output_params)


@register
class ComposeLutsPass(GraphPass):
    """Compose chains, diamonds and larger subgraphs of 8-bit functions of one tensor into one table each.

    A table that clamps becomes a clip; one that changes nothing is removed.
    """

    name: ClassVar[str] = "qnn-compose-luts"
    rewrites = (RemoveIdentity, ComposeChain, ComposeDag, LutToClip)
