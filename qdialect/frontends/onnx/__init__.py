"""ONNX models, with QLinear operators or between DequantizeLinear and QuantizeLinear."""

from qdialect.frontends.onnx.importer import import_onnx, nodes_of
from qdialect.frontends.onnx.operators import supported_operators

__all__ = ["import_onnx", "nodes_of", "supported_operators"]
