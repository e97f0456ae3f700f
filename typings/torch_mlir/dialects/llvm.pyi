"""The `llvm` dialect: op classes and builders are generated; what is not is stated."""

from typing import Any

from torch_mlir.ir import Operation

# The answer is LLVM IR as text.
def translate_module_to_llvmir(module: Operation) -> str: ...
def __getattr__(name: str) -> Any: ...
