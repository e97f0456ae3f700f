"""What `main` must be to be divided among threads: calls of kernels on its buffers and on views of them."""

from __future__ import annotations

from collections.abc import Mapping

from qdialect._mlir import ir
from qdialect.lowering.errors import error_at, op_error
from qdialect.lowering.functions import MAIN
from qdialect.lowering.ir.loops import constant
from qdialect.lowering.memory.storage import element_bytes
from qdialect.lowering.memory.strides import static_strides

_SUFFIX = "to be divided"


def check_network(main: ir.Operation, kernels: Mapping[str, ir.Operation]) -> None:
    """Raise `CompileError` where `main` does more than call `kernels`, all of them functions of the module."""
    blocks = len(main.regions[0].blocks)
    if blocks != 1:
        raise error_at(main.location, f"function {MAIN} must have one block {_SUFFIX}, but got {blocks}")
    block = main.regions[0].blocks[0]
    for argument in block.arguments:
        if not _is_flat(argument.type) and not isinstance(argument.type, ir.IntegerType | ir.IndexType | ir.FloatType):
            what = f"must be a flat buffer or a number {_SUFFIX}, but got {argument.type}"
            raise error_at(main.location, f"argument {argument.arg_number} of {MAIN} {what}")
    for op in block.operations:
        reason = _reason(op.operation, block, kernels)
        if reason:
            raise op_error(op.operation, reason)


def _reason(op: ir.Operation, block: ir.Block, kernels: Mapping[str, ir.Operation]) -> str | None:
    """Why `op` may not stand in `main`."""
    match op.name:
        case "arith.constant" | "func.return":
            return None
        case "memref.view":
            is_known = op.operands[0].owner == block and constant(op.operands[1]) is not None
            known = is_known and _is_flat(op.results[0].type)
            return None if known else f"must be of an argument of {MAIN}, at a constant offset, {_SUFFIX}"
        case "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            found = kernels.get(callee)
            is_body = found is not None and len(found.regions[0].blocks) == 1
            return None if is_body else f"must call a function with one block {_SUFFIX}, but got {callee}"
        case _:
            return f"must be a call, a constant or a view {_SUFFIX}"


def _is_flat(type_: ir.Type) -> bool:
    """Whether a type is that of a buffer whose elements lie side by side, as many as the type says."""
    if not isinstance(type_, ir.MemRefType) or type_.rank != 1 or not type_.has_static_shape:
        return False
    return static_strides(type_) == (1,) and element_bytes(type_) is not None
