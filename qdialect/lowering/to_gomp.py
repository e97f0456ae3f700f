"""The parallel region of `main` as calls of an OpenMP runtime, by the names that GCC's code has for it.

GCC's libgomp has them, and LLVM's and Intel's runtimes have them too, beside their own: what calls these runs with any
of the three. The region becomes the function `main_of_thread` that all threads call; `main` hands it to
`GOMP_parallel`. After all arguments of the network `main` takes a pointer to an i32: no more threads than that are
asked for, because a forked process has one.
"""

from __future__ import annotations

from qdialect._mlir import func, ir
from qdialect.lowering.errors import op_error
from qdialect.lowering.functions import entry
from qdialect.lowering.threads.accesses import constant

_TASK = "main_of_thread"


def outline(module: ir.Module) -> int:
    """Make the parallel region of `main` a function and drop `main`; returns the number of threads, 1 without one.

    Raises `CompileError` where there is no function `main`, and where the region's number of threads is unknown.
    """
    main = entry(module)
    block = main.regions[0].blocks[0]
    region = next((op.operation for op in block.operations if op.operation.name == "omp.parallel"), None)
    if region is None:
        return 1
    threads = constant(region.operands[0]) if len(region.operands) == 1 else None
    if threads is None or threads < 1:
        raise op_error(region, "must have a constant number of threads")
    with module.context, main.location:
        with ir.InsertionPoint(main):
            type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
            task = func.FuncOp(_TASK, type_)
            func.FuncOp("GOMP_barrier", ir.FunctionType.get([], []), visibility="private")
        region.regions[0].blocks[0].append_to(task.regions[0])
        region.erase()
        body = task.regions[0].blocks[0]
        for argument in block.arguments:
            argument.replace_all_uses_with(body.add_argument(argument.type, main.location))
        # Constants do not stay where they are used: they stand before the region.
        for op in [op.operation for op in block.operations][-2::-1]:
            op.move_before(body.operations[0])
        for op in [op.operation for op in body.operations]:
            _replace(op)
    main.erase()
    return threads


def add_entry(module: ir.Module, threads: int) -> None:
    """Add `main`, for so many threads, to a module of the LLVM dialect with `main_of_thread`."""
    task = next(op.operation for op in module.body.operations if _name(op.operation) == _TASK)
    count = len(task.regions[0].blocks[0].arguments)
    with module.context, ir.Location.unknown():
        source = ir.Module.parse(_text(count, threads))
        with ir.InsertionPoint(module.body):
            for op in list(source.body.operations)[1:]:
                op.operation.clone()


def is_divided(module: ir.Module) -> bool:
    """Whether `main` of a module of the LLVM dialect runs on several threads, and takes how many it may ask for."""
    return any(_name(op.operation) == _TASK for op in module.body.operations)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


def _replace(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        if op.name == "omp.barrier":
            func.CallOp([], ir.FlatSymbolRefAttr.get("GOMP_barrier"), [])
        elif op.name == "omp.terminator":
            func.ReturnOp([])
        else:
            return
    op.erase()


def _text(count: int, threads: int) -> str:
    arguments = [f"%a{i}" for i in range(count)]
    typed = ", ".join(f"{name}: !llvm.ptr" for name in arguments)
    pointers = ", ".join(["!llvm.ptr"] * count)
    slots = [f"%s{i} = llvm.getelementptr %block[{i}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr" for i in range(count)]
    stores = [f"llvm.store {name}, %s{i} : !llvm.ptr, !llvm.ptr" for i, name in enumerate(arguments)]
    loads = [f"{name} = llvm.load %s{i} : !llvm.ptr -> !llvm.ptr" for i, name in enumerate(arguments)]
    lines = "\n  ".join
    return f"""
llvm.func @{_TASK}({pointers})
llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
llvm.func internal @task(%block: !llvm.ptr) {{
  {lines([*slots, *loads])}
  llvm.call @{_TASK}({", ".join(arguments)}) : ({pointers}) -> ()
  llvm.return
}}
llvm.func @main({typed}, %limit: !llvm.ptr) {{
  %count = llvm.mlir.constant({count} : i32) : i32
  %block = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
  {lines([*slots, *stores])}
  %task = llvm.mlir.addressof @task : !llvm.ptr
  %wanted = llvm.mlir.constant({threads} : i32) : i32
  %allowed = llvm.load %limit : !llvm.ptr -> i32
  %threads = llvm.intr.smin(%wanted, %allowed) : (i32, i32) -> i32
  %flags = llvm.mlir.constant(0 : i32) : i32
  llvm.call @GOMP_parallel(%task, %block, %threads, %flags) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  llvm.return
}}
"""
