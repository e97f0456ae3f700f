"""Graphs that Dynamo captured, in operators of PyTorch's registry.

Dynamo records the functions and methods that a model calls, ``torch.sin`` and ``Tensor.view``; quantized models that
PT2E converted call registered operators themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from operator import getitem
from typing import Any

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.torch.calls import first_line


def lowered(module: Any, examples: Sequence[Any]) -> Any:
    """A captured module that calls registered operators alone; `module` itself where it is one.

    It is traced for the extents of this call, which Dynamo then guards.  Raises `ImportModelError` where a function of
    the model cannot be traced.
    """
    if all(map(_is_registered, module.graph.nodes)):
        return module
    _guard_extents(module)
    trace: Callable[..., Any] = import_module("torch.fx.experimental.proxy_tensor").make_fx
    torch: Any = import_module("torch")
    given = [example if isinstance(example, torch.Tensor) else _known(example) for example in examples]
    guards: Any = import_module("torch._guards")
    try:
        # Extents of the trace are known, and no matter of what Dynamo guards.
        with torch.no_grad(), guards.tracing(None):
            return trace(module, pre_dispatch=True, tracing_mode="fake", _allow_non_fake_inputs=True)(*given)
    except Exception as error:
        # Tracing runs the model's own functions, which raise whatever they do.
        raise ImportModelError(f"model must be traced, but PyTorch says: {first_line(error)}") from error


def _is_registered(node: Any) -> bool:
    if node.op in ("call_module", "call_method"):
        return False
    return node.op != "call_function" or hasattr(node.target, "_schema") or node.target is getitem


def _guard_extents(module: Any) -> None:
    for node in module.graph.nodes:
        value = node.meta.get("example_value") if node.op == "placeholder" else None
        for extent in getattr(value, "shape", ()):
            int(extent)


def _known(number: Any) -> Any:
    """A number of this call."""
    return float(number) if "Float" in type(number).__name__ else int(number)
