"""Element-wise graphs that depend on one integer tensor: their structure, evaluation and thresholds."""

from qdialect.passes.elementwise.graph import UPSTREAM_OPS as UPSTREAM_OPS
from qdialect.passes.elementwise.graph import ElementwiseGraph as ElementwiseGraph
from qdialect.passes.elementwise.graph import graph_of as graph_of
from qdialect.passes.elementwise.graph import per_channel_constant as per_channel_constant
from qdialect.passes.elementwise.graph import used_outside as used_outside
from qdialect.passes.elementwise.thresholds import GraphThresholds as GraphThresholds
from qdialect.passes.elementwise.thresholds import thresholds_of_graph as thresholds_of_graph
