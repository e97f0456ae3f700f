"""Element-wise graphs that depend on one integer tensor: what they are, what they compute, and where they step."""

from qdialect.passes.elementwise.graph import (
    UPSTREAM_OPS,
    ElementwiseGraph,
    graph_of,
    is_member,
    per_channel_constant,
    used_outside,
)
from qdialect.passes.elementwise.steps import GraphSteps, steps_of_graph

__all__ = [
    "UPSTREAM_OPS",
    "ElementwiseGraph",
    "GraphSteps",
    "graph_of",
    "is_member",
    "per_channel_constant",
    "steps_of_graph",
    "used_outside",
]
