"""Loads and stores by one index: the same bytes as by the indices of the buffer's dimensions."""

import numpy as np
import pytest

from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.ir import building
from qdialect.lowering.ir.flat_address import flat_address
from qdialect.lowering.ir.upstream import load_kernel_dialects
from qdialect.lowering.x86_to_llvm.to_llvm import to_llvm
from qdialect.runtime.jit import MachineCode

LANES = 4
BYTES = 200
# Type, offset and sizes of views of rank 2 and 3: with gaps, with an offset, and with what run time alone knows.
VIEWS = {
    "rows": ("5x7xi8, strided<[11, 1]>", "[0], sizes: [5, 7], strides: [11, 1]", 0, (11, 1)),
    "steps": ("3x4x2xi8, strided<[40, 5, 2], offset: 9>", "[9], sizes: [3, 4, 2], strides: [40, 5, 2]", 9, (40, 5, 2)),
    "offset": ("5x7xi8, strided<[11, 1], offset: ?>", "[%start], sizes: [5, 7], strides: [11, 1]", 13, (11, 1)),
    "size": ("?x7xi8, strided<[11, 1], offset: ?>", "[%start], sizes: [%five, 7], strides: [11, 1]", 13, (11, 1)),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("distance", [0, 1, 37])
def test_bytes_are_read_and_written_where_the_indices_say(name: str, distance: int) -> None:
    type_, view, offset, strides = VIEWS[name]
    source, target = np.arange(BYTES, dtype=np.uint8), np.zeros(BYTES, np.uint8)
    with make_context() as context, ir.Location.unknown(context):
        load_kernel_dialects(ir.Module.create())
        module = ir.Module.parse(_copy_function(type_, view, offset))
        *_, read, write, end = module.body.operations[0].regions[0].blocks[0].operations
        _copy(read.results[0], write.results[0], end, len(strides), distance)
        to_llvm(module)
        MachineCode(module).bind("main", [source.ctypes.data, target.ctypes.data]).call()
    first = offset + distance + sum(index * stride for index, stride in enumerate(strides, start=1))
    wanted = np.where((np.arange(BYTES) >= first) & (np.arange(BYTES) < first + LANES), source, 0)
    np.testing.assert_array_equal(target, wanted)


def _copy_function(type_: str, view: str, offset: int) -> str:
    whole = f"memref<{BYTES}xi8>"
    return f"""
    func.func @main(%source: {whole}, %target: {whole}) {{
      %start = arith.constant {offset} : index
      %five = arith.constant 5 : index
      %read = memref.reinterpret_cast %source to offset: {view} : {whole} to memref<{type_}>
      %write = memref.reinterpret_cast %target to offset: {view} : {whole} to memref<{type_}>
      return
    }}"""


def _copy(read: ir.Value, write: ir.Value, end: ir.OpView, rank: int, distance: int) -> None:
    """Copy a vector from the indices 1, 2 ... and `distance` further on."""
    with ir.InsertionPoint(end):
        indices = [building.index(index) for index in range(1, 1 + rank)]
        loaded = flat_address(read, indices).further(distance).load(LANES)
        flat_address(write, indices).further(distance).store(loaded)
