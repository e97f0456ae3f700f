"""How each operator becomes tensors of the plan, one family a file.

A module is imported when a model has one of its operators; ``make docs`` notes which they are.
"""

from __future__ import annotations

from qdialect.frontends.torch.operators.registry import Call, is_supported, planner_of, supported_operators

__all__ = ["Call", "is_supported", "planner_of", "supported_operators"]
