"""One handler per op: from a `qnn` op to kernel calls. Importing this package registers them all."""

from qdialect.lowering.handlers import (
    binary,
    broadcast,
    concat,
    contraction,
    gather,
    mean,
    pad,
    pool,
    real,
    requantize,
    reshape,
    slice,
    softmax,
    tables,
    transpose,
    transposed_convolution,
)

__all__ = [
    "binary",
    "broadcast",
    "concat",
    "contraction",
    "gather",
    "mean",
    "pad",
    "pool",
    "real",
    "requantize",
    "reshape",
    "slice",
    "softmax",
    "tables",
    "transpose",
    "transposed_convolution",
]
