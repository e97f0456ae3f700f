"""One handler per op: from a `qnn` op to kernel calls. Importing this package registers them all."""

from qdialect.lowering.handlers import contraction, mean, pool, reshape, softmax, tables

__all__ = ["contraction", "mean", "pool", "reshape", "softmax", "tables"]
