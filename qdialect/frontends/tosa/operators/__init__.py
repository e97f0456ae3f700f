"""From ops of upstream's `tosa` dialect to `qnn` ops: one converter for each op, found by its name.

A new file of this package may register more: all of them are imported here.
"""

from __future__ import annotations

from qdialect.frontends.tosa.operators.conversion import Conversion, convert, converted_ops
from qdialect.support.registry import import_modules

import_modules(__name__, __path__)

__all__ = ["Conversion", "convert", "converted_ops"]
