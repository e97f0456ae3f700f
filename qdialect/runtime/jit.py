"""Machine code of a module, made and called in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from qdialect._mlir import ExecutionEngine, ir
from qdialect.context import captured_diagnostics
from qdialect.diagnostics import CompileError

_OPTIMIZATION_LEVEL = 3
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class MachineCode:
    """A module of the LLVM dialect as machine code for this machine's CPU.

    Functions live as long as this object. Raises `CompileError` where LLVM refuses the module.
    """

    def __init__(self, module: ir.Module) -> None:
        with captured_diagnostics(module.context) as said:
            try:
                self._engine = ExecutionEngine(module, opt_level=_OPTIMIZATION_LEVEL, enable_object_dump=False)
            except RuntimeError as error:
                raise CompileError("module cannot be turned into machine code", tuple(said)) from error

    def function(self, name: str) -> Function:
        """The function of this name; raises `CompileError` where the module has none."""
        # The engine has a wrapper for every function, which takes an array of pointers to its arguments.
        address = self._engine.raw_lookup(name)
        if not address:
            raise CompileError(f"module must have a function '{name}' that can be called")
        return Function(self, address)


class Function:
    """A function of `MachineCode`, which it keeps alive."""

    def __init__(self, code: MachineCode, address: int) -> None:
        self._code = code
        self._call = _FUNCTION(address)

    def bind(self, arguments: Sequence[ctypes.c_int64], keep: Sequence[object] = ()) -> BoundCall:
        """A call with these arguments, whose values are read when it is made; it keeps what is in `keep` alive."""
        return BoundCall(self, arguments, keep)

    def call(self, pointers: int) -> None:
        """Call with the array of pointers to arguments at this address; without the interpreter's lock."""
        self._call(pointers)


class BoundCall:
    """A function and where its arguments are: calling it again costs no more than the call."""

    def __init__(self, function: Function, arguments: Sequence[ctypes.c_int64], keep: Sequence[object]) -> None:
        self._function = function
        self._keep = tuple(keep)
        self._arguments = tuple(arguments)
        addresses = [ctypes.addressof(argument) for argument in self._arguments]
        self._pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        self._address = ctypes.addressof(self._pointers)

    def __call__(self) -> None:
        self._function.call(self._address)


class Descriptor(ctypes.Structure):
    """What generated code calls a memref of rank 1."""

    _fields_ = (
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("stride", ctypes.c_int64),
    )

    def __init__(self, size: int, address: int = 0) -> None:
        super().__init__(address, address, 0, size, 1)

    def point_to(self, address: int) -> None:
        """Describe the memory at this address."""
        self.allocated = address
        self.aligned = address
