"""PyTorch models that PT2E quantized: ``quantized_decomposed`` operators around those of aten."""

from qdialect.frontends.torch.importer import import_torch, nodes_of
from qdialect.frontends.torch.operators import supported_operators

__all__ = ["import_torch", "nodes_of", "supported_operators"]
