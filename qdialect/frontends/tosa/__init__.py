"""Text of MLIR, with networks in upstream's `tosa` dialect or in `qnn` already."""

from qdialect.frontends.tosa.importer import import_tosa, nodes_of, supported_operators

__all__ = ["import_tosa", "nodes_of", "supported_operators"]
