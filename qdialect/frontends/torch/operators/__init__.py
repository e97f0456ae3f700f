"""How each operator becomes tensors of the plan, one family a file.

The first model that is imported imports all modules; a new file is found by being here.
"""

from __future__ import annotations

from qdialect.frontends.torch.operators.registry import Call, is_supported, planner_of, supported_operators

__all__ = ["Call", "is_supported", "planner_of", "supported_operators"]
