"""How each operator of the schema becomes `qnn` ops, one family a file.

A module is imported when a model has one of its operators; ``make docs`` notes which they are.
"""

from __future__ import annotations

from qdialect.frontends.tflite.operators.registry import Emission, plan, supported_operators

__all__ = ["Emission", "plan", "supported_operators"]
