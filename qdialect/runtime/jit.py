"""Machine code of a module, made and called in this process."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from qdialect._mlir import ExecutionEngine, ir
from qdialect.context import captured_diagnostics
from qdialect.diagnostics import CompileError

OPTIMIZATION_LEVEL = 3
# Its argument needs no conversion, which would cost as much as the call.
_FUNCTION = ctypes.CFUNCTYPE(None)


class MachineCode:
    """A module of the LLVM dialect as machine code for this machine's CPU.

    Functions live as long as this object; `symbols` are the addresses of functions that it calls and does not have.
    Raises `CompileError` where LLVM refuses the module.
    """

    def __init__(self, module: ir.Module, symbols: Mapping[str, int] = MappingProxyType({})) -> None:
        with captured_diagnostics(module.context) as said:
            try:
                self._engine = ExecutionEngine(module, opt_level=OPTIMIZATION_LEVEL, enable_object_dump=False)
            except RuntimeError as error:
                raise CompileError("module cannot be turned into machine code", tuple(said)) from error
        for name, address in symbols.items():
            self._engine.raw_register_runtime(name, ctypes.c_void_p(address))

    def bind(self, name: str, values: Sequence[int], keep: Sequence[object] = ()) -> BoundCall:
        """A call of the function `name` with these values for its arguments, 64 bits each.

        It keeps what is in `keep` alive. Raises `CompileError` where the module has no such function.
        """
        # The engine has a wrapper for every function, which takes an array of pointers to its arguments.
        address = self._engine.raw_lookup(name)
        if not address:
            raise CompileError(f"module must have a function '{name}' that can be called")
        return BoundCall(address, values, (self, *keep))


class BoundCall:
    """A function and the values of its arguments in one block: calling it again costs no more than the call."""

    def __init__(self, address: int, values: Sequence[int], keep: Sequence[object]) -> None:
        self._keep = tuple(keep)
        self._values = (ctypes.c_int64 * len(values))(*values)
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.addressof(self._values) + 8 * i for i in range(len(values)))
        )
        self.call: Callable[[], object] = partial(_FUNCTION(address), ctypes.byref(pointers))
        """Call the function, without the interpreter's lock; as an attribute, with no frame of Python's in between."""

    def writer(self, count: int) -> Callable[..., None]:
        """What replaces the first `count` values by its arguments."""
        return partial(struct.Struct(f"={count}q").pack_into, self._values, 0)
