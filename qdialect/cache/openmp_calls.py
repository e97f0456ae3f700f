"""The functions of the OpenMP runtime that compiled code calls, as calls by a table of addresses.

Which runtime a process uses is known when a network is loaded: it may be one that PyTorch brought, or the one that an
environment variable names. So the code depends on none: whoever loads it writes the addresses into the table.
"""

from __future__ import annotations

from qdialect._mlir import ir, walk
from qdialect.aot.object_file import WRAPPER
from qdialect.threads import SYMBOLS

TABLE = "qdialect_openmp"
"""The symbol of the table, an array of pointers in the order of `SYMBOLS`; only code that calls the runtime has it."""

SHOWN_ENTRY = f"{WRAPPER}main"
"""The function of a network's code that is called, with an array of pointers to the arguments of `main`."""

# Parameters and the result of each function.
_TYPES = {
    "GOMP_parallel": ("!llvm.ptr, !llvm.ptr, i32, i32", ""),
    "omp_get_num_threads": ("", "i32"),
    "omp_get_thread_num": ("", "i32"),
}


def add(module: ir.Module) -> None:
    """Define what a module of the LLVM dialect declares of the runtime; one that declares nothing stays as it is."""
    declared = {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in module.body.operations}
    called = [symbol for symbol in SYMBOLS if symbol in declared]
    if not called:
        return
    with module.context, ir.Location.unknown():
        source = ir.Module.parse("\n".join([_table(), *map(_call, called)]))
        with ir.InsertionPoint(module.body):
            for op in list(source.body.operations):
                op.operation.clone()
    for symbol in called:
        declared[symbol].erase()
    _rename_calls(module, called)


def _rename_calls(module: ir.Module, called: list[str]) -> None:
    def visit(op: ir.Operation) -> ir.WalkResult:
        if "callee" in op.attributes and ir.FlatSymbolRefAttr(op.attributes["callee"]).value in called:
            symbol = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(f"{TABLE}.{symbol}", module.context)
        return ir.WalkResult.ADVANCE

    walk(module.operation, visit)


def _table() -> str:
    type_ = f"!llvm.array<{len(SYMBOLS)} x ptr>"
    return (
        f"llvm.mlir.global external @{TABLE}() : {type_} {{ %0 = llvm.mlir.zero : {type_} llvm.return %0 : {type_} }}"
    )


def _call(symbol: str) -> str:
    parameters, result = _TYPES[symbol]
    types = parameters.split(", ") if parameters else []
    typed = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    arguments = ", ".join(f"%a{i}" for i in range(len(types)))
    returned = "%r = " if result else ""
    return f"""
llvm.func internal @{TABLE}.{symbol}({typed}){f" -> {result}" if result else ""} {{
  %table = llvm.mlir.addressof @{TABLE} : !llvm.ptr
  %slot = llvm.getelementptr %table[{SYMBOLS.index(symbol)}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  {returned}llvm.call %function({arguments}) : !llvm.ptr, ({parameters}) -> {result or "()"}
  llvm.return {f"%r : {result}" if result else ""}
}}"""
