"""How each operator becomes tensors of the plan, one family a file.

A module is imported when a model has one of its operators; ``make docs`` notes which they are.
"""

from __future__ import annotations

from qdialect.frontends.onnx.operators.registry import Call, planner_of, supported_operators

__all__ = ["Call", "planner_of", "supported_operators"]
