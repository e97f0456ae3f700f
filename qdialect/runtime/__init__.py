"""Running compiled networks: machine code in this process, NumPy arrays in and out."""

from qdialect.runtime.compiler import compile_module
from qdialect.runtime.executable import Executable

__all__ = ["Executable", "compile_module"]
