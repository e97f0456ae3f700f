"""How each operator of the schema becomes `qnn` ops, one family a file.

A new file of this package is a new family: all of them are imported here.
"""

from __future__ import annotations

from qdialect.frontends.tflite.operators.registry import Emission, plan, supported_operators
from qdialect.registry import import_modules

import_modules(__name__, __path__)

__all__ = ["Emission", "plan", "supported_operators"]
