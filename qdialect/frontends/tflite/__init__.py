"""TensorFlow Lite models."""

from qdialect.frontends.tflite.importer import TENSOR_ATTRIBUTE, import_tflite
from qdialect.frontends.tflite.operators import supported_operators
from qdialect.frontends.tflite.seeded_mobilenet import write_mobilenet

__all__ = ["TENSOR_ATTRIBUTE", "import_tflite", "supported_operators", "write_mobilenet"]
