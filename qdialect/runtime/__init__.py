"""Running compiled networks: machine code in this process, NumPy arrays in and out."""

from qdialect.runtime.base import Executable, Region
from qdialect.runtime.compiler import compile_module

__all__ = ["Executable", "Region", "compile_module"]
