"""From `qnn` ops to ops of upstream's `tosa` dialect: one exporter for each op, found by its name.

A new file of this package may register more: all of them are imported here.
"""

from __future__ import annotations

from qdialect.passes.tosa_export.export import Export, export_function
from qdialect.support.registry import import_modules

import_modules(__name__, __path__)

__all__ = ["Export", "export_function"]
