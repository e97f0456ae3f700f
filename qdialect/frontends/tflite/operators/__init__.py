"""How each operator of the schema becomes `qnn` ops, one family a file.

The first model that is imported imports all modules; a new file is found by being here.
"""

from __future__ import annotations

from qdialect.frontends.tflite.operators.registry import Emission, plan, supported_operators

__all__ = ["Emission", "plan", "supported_operators"]
