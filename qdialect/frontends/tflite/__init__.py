"""TensorFlow Lite models."""

from qdialect.frontends.tflite.importer import PROFILES, TENSOR_ATTRIBUTE, import_tflite, nodes_of
from qdialect.frontends.tflite.operators import supported_operators

__all__ = ["PROFILES", "TENSOR_ATTRIBUTE", "import_tflite", "nodes_of", "supported_operators"]
