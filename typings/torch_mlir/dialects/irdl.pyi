"""The `irdl` dialect: how a dialect written as IR is registered."""

from typing import Any

from torch_mlir.ir import Module

def load_dialects(module: Module) -> None: ...
def __getattr__(name: str) -> Any: ...
