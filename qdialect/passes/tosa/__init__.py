"""From ops of upstream's `tosa` dialect to `qnn` ops: one converter for each op, found by its name."""

# Imported for the converters they register.
from qdialect.passes.tosa import contraction, elementwise, movement, pool, reduction, rescale
from qdialect.passes.tosa.conversion import Conversion, UnsupportedError, convert, converted_ops

__all__ = [
    "Conversion",
    "UnsupportedError",
    "contraction",
    "convert",
    "converted_ops",
    "elementwise",
    "movement",
    "pool",
    "reduction",
    "rescale",
]
