"""How each operator becomes tensors of the plan, one family a file.

A new file of this package is a new family: all of them are imported here.
"""

from __future__ import annotations

from qdialect.frontends.onnx.operators.registry import Call, planner_of, supported_operators
from qdialect.registry import import_modules

import_modules(__name__, __path__)

__all__ = ["Call", "planner_of", "supported_operators"]
