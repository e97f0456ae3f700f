"""One handler per op: from a `qnn` op to kernel calls. Importing this package registers them all."""

from qdialect.lowering.handlers import (
    binary,
    contraction,
    mean,
    pool,
    real,
    requantize,
    reshape,
    softmax,
    tables,
)

__all__ = [
    "binary",
    "contraction",
    "mean",
    "pool",
    "real",
    "requantize",
    "reshape",
    "softmax",
    "tables",
]
