"""Element-wise graphs that depend on one integer tensor: their structure, evaluation and thresholds."""

from qdialect.passes.elementwise.graph import (
    UPSTREAM_OPS,
    ElementwiseGraph,
    graph_of,
    is_member,
    per_channel_constant,
    used_outside,
)
from qdialect.passes.elementwise.thresholds import GraphThresholds, thresholds_of_graph

__all__ = [
    "UPSTREAM_OPS",
    "ElementwiseGraph",
    "GraphThresholds",
    "graph_of",
    "is_member",
    "per_channel_constant",
    "thresholds_of_graph",
    "used_outside",
]
