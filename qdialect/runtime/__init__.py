"""Running compiled networks: machine code in this process, NumPy arrays in and out."""

from typing import TYPE_CHECKING

from qdialect.runtime.base import Executable, Region
from qdialect.support.late_imports import LATE_IMPORTS

if TYPE_CHECKING:
    from qdialect.runtime.compiler import compile_module


def __getattr__(name: str) -> object:
    # A network that is loaded from a file needs neither the compiler nor its bindings.
    if name != "compile_module":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    with LATE_IMPORTS:
        from qdialect.runtime.compiler import compile_module

    return compile_module


__all__ = ["Executable", "Region", "compile_module"]
