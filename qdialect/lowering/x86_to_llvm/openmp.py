"""The parallel region of `main` as calls of an OpenMP runtime, by the names that GCC's code has for it.

GCC's libgomp has them, and LLVM's and Intel's runtimes have them too, in addition to their own: code that calls these
runs with any of the three. The region becomes the function `main_of_thread` that all threads call; `main` hands it to
`GOMP_parallel`. After all arguments of the network `main` takes a pointer to an i32: no more threads than that are
asked for, because a forked process has one. Threads wait for each other in a barrier of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.ir._mlir import arith, func, ir
from qdialect.lowering.ir.functions import constant, entry, op_error
from qdialect.lowering.ir.thread_pool import RECORD, RECORD_BYTES, TASK, WAIT, barrier, pool_entry
from qdialect.lowering.qnn_to_linalg.program.program import element_bytes


@dataclass(frozen=True)
class ThreadPool:
    """How many threads a region asks for, and where in the workspace its calls record the time that threads lost."""

    threads: int
    record: int
    """Bytes from the start."""


def outline(module: ir.Module) -> ThreadPool | None:
    """Make the parallel region of `main` a function and drop `main`; None where there is no region.

    Raises `CompileError` where there is no function `main`, and where the region lacks an attribute of `ThreadPool`.
    """
    main = entry(module)
    block = main.regions[0].blocks[0]
    region = next((op.operation for op in block.operations if op.operation.name == "omp.parallel"), None)
    if region is None:
        return None
    pool = _pool(region, list(block.arguments))
    with module.context, main.location:
        with ir.InsertionPoint(main):
            pointer, i32 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(32)
            inputs = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
            task = func.FuncOp(TASK, ir.FunctionType.get([*inputs, pointer], []))
            func.FuncOp(WAIT, ir.FunctionType.get([pointer, i32], []), visibility="private")
        region.regions[0].blocks[0].append_to(task.regions[0])
        region.erase()
        body = task.regions[0].blocks[0]
        for argument in block.arguments:
            argument.replace_all_uses_with(body.add_argument(argument.type, main.location))
        memory = body.add_argument(pointer, main.location)
        # Constants do not stay where they are used: they stand before the region.
        for op in [op.operation for op in block.operations][-2::-1]:
            op.move_before(body.operations[0])
        _replace([op.operation for op in body.operations], memory)
    main.erase()
    return pool


def add_entry(module: ir.Module, pool: ThreadPool) -> None:
    """Add `main`, and what its threads call, to a module of the LLVM dialect with the function `TASK`."""
    ops = {_name(op.operation): op.operation for op in module.body.operations}
    count = len(ops[TASK].regions[0].blocks[0].arguments) - 1
    with module.context, ir.Location.unknown():
        # The barrier is a definition, where the module has a declaration.
        if WAIT in ops:
            ops.pop(WAIT).erase()
        source = ir.Module.parse("\n".join([barrier(), pool_entry(count, pool.threads, pool.record)]))
        with ir.InsertionPoint(module.body):
            for op in source.body.operations:
                if _name(op.operation) not in ops:
                    op.operation.clone()


def is_divided(module: ir.Module) -> bool:
    """Whether `main` of a module of the LLVM dialect runs on several threads, and takes how many it may ask for."""
    return any(_name(op.operation) == TASK for op in module.body.operations)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""


def _pool(region: ir.Operation, arguments: Sequence[ir.Value]) -> ThreadPool:
    threads = constant(region.operands[0]) if len(region.operands) == 1 else None
    if threads is None or threads < 1:
        raise op_error(region, "must have a constant number of threads")
    record = _record(region, arguments)
    if record is None:
        wanted = f"must be an offset of {RECORD_BYTES} bytes in the last argument of main, a multiple of 8"
        raise op_error(region, f"{RECORD} {wanted}")
    return ThreadPool(threads, record)


def _record(region: ir.Operation, arguments: Sequence[ir.Value]) -> int | None:
    """The offset that the attribute `RECORD` states; None if it is not inside the workspace."""
    memory = arguments[-1].type if arguments else None
    attribute = region.attributes.get(RECORD)
    if not isinstance(attribute, ir.IntegerAttr) or not isinstance(memory, ir.MemRefType):
        return None
    if memory.rank != 1 or not memory.has_static_shape:
        return None
    last = memory.shape[0] * (element_bytes(memory) or 0) - RECORD_BYTES
    return attribute.value if 0 <= attribute.value <= last and attribute.value % 8 == 0 else None


def _replace(ops: Sequence[ir.Operation], memory: ir.Value) -> None:
    """Replace the OpenMP ops among `ops`; `memory` is that of the threads of a call."""
    barriers = 0
    for op in ops:
        with ir.InsertionPoint(op), op.location:
            if op.name == "omp.barrier":
                barriers += 1
                count = arith.constant(ir.IntegerType.get_signless(32), barriers)
                func.CallOp([], ir.FlatSymbolRefAttr.get(WAIT), [memory, count])
            elif op.name == "omp.terminator":
                func.ReturnOp([])
            else:
                continue
        op.erase()
