"""Operators that are made of others: what one of these gives stands for a part of the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qdialect.frontends.onnx.operators.registry import Call, planner_of
from qdialect.frontends.planning.tensors import Tensor

_VERSION = 13
"""The operator set whose form of the parts is meant."""


def part_of(call: Call, kind: str, tensors: Sequence[Tensor], **attributes: Any) -> Tensor:
    """What the operator `kind` of operator set 13, which has one output, gives for `tensors`."""
    node = replace(call.node, kind=kind, attributes=attributes, version=_VERSION)
    found = planner_of(kind)(Call(call.plan, node, tuple(tensors)))
    assert not isinstance(found, tuple)
    return found
