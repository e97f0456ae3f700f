"""Text of MLIR, with networks in upstream's `tosa` dialect or in `qnn` already: from `tosa` ops to a `qnn` module."""

from __future__ import annotations

from qdialect.frontends.tosa.import_tosa import import_tosa, nodes_of, supported_operators

__all__ = ["import_tosa", "nodes_of", "supported_operators"]
