"""How fast this CPU reads memory from each level, by a loop of vector loads compiled here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from qdialect.bench.clock import seconds_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.runtime import memory
from qdialect.runtime.jit import MachineCode

# Loads of an iteration, each into a sum of its own, so that no load waits for an addition.
_LOADS = 8
_LINE = 64
_ITERATION = _LOADS * _LINE
_VECTOR = "vector<16xi32>"
_SAMPLES = 7
# A sample reads so much, however small the block.
_SAMPLE_BYTES = 1 << 28

LEVELS: Mapping[str, int] = {"L1": 16 << 10, "L2": 512 << 10, "L3": 8 << 20, "DRAM": 256 << 20}
"""Bytes of the block that is read again and again, for each level it fits in and no smaller one."""


def read_rate(size: int) -> float:
    """Bytes per second of reading a block of `size` bytes, a multiple of 512, over and over; the best of a few."""
    block = memory.allocate(size)
    block.fill(1)
    sink = memory.allocate(_LINE)
    iterations = max(_SAMPLE_BYTES // size, 1)
    values = (iterations, size // _ITERATION, block.ctypes.data, sink.ctypes.data)
    loop = _code().bind("read", values, keep=(block, sink))
    loop.call()
    return iterations * size / min(seconds_of(loop.call) for _ in range(_SAMPLES))


@cache
def _code() -> MachineCode:
    with make_context():
        return MachineCode(ir.Module.parse(_module()))


def _module() -> str:
    """Two loops, over iterations and over the block; the sums are stored, so that the loads are done at all."""
    sums = [f"%a{i}" for i in range(_LOADS)]
    inner = [f"%b{i}" for i in range(_LOADS)]
    after = [f"%d{i}" for i in range(_LOADS)]
    types = ", ".join([_VECTOR] * _LOADS)
    body: list[str] = []
    for i in range(_LOADS):
        body += [
            f"%o{i} = llvm.mlir.constant({i * _LINE} : i64) : i64",
            f"%p{i} = llvm.getelementptr %at[%o{i}] : (!llvm.ptr, i64) -> !llvm.ptr, i8",
            f"%x{i} = llvm.load %p{i} {{alignment = {_LINE} : i64}} : !llvm.ptr -> {_VECTOR}",
            f"%d{i} = llvm.add {inner[i]}, %x{i} : {_VECTOR}",
        ]
    total = [f"%s{i + 1} = llvm.add {f'%s{i}' if i else sums[0]}, {sums[i + 1]} : {_VECTOR}" for i in range(_LOADS - 1)]
    lines = "\n  ".join

    def arguments(names: list[str]) -> str:
        return ", ".join(f"{name}: {_VECTOR}" for name in names)

    return f"""
llvm.func @read(%iterations: i64, %rows: i64, %block: !llvm.ptr, %sink: !llvm.ptr) {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %stride = llvm.mlir.constant({_ITERATION} : i64) : i64
  %zero = llvm.mlir.constant(dense<0> : {_VECTOR}) : {_VECTOR}
  llvm.br ^iteration(%c0, {", ".join(["%zero"] * _LOADS)} : i64, {types})
^iteration(%t: i64, {arguments(sums)}):
  // Opaque, so that the reads of one iteration are not those of the last.
  llvm.inline_asm has_side_effects "", "~{{memory}}" : () -> ()
  %more_iterations = llvm.icmp "slt" %t, %iterations : i64
  llvm.cond_br %more_iterations, ^row(%c0, %block, {", ".join(sums)} : i64, !llvm.ptr, {types}), ^end
^row(%i: i64, %at: !llvm.ptr, {arguments(inner)}):
  {lines(body)}
  %next_i = llvm.add %i, %c1 : i64
  %next_at = llvm.getelementptr %at[%stride] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %more = llvm.icmp "slt" %next_i, %rows : i64
  llvm.cond_br %more, ^row(%next_i, %next_at, {", ".join(after)} : i64, !llvm.ptr, {types}), ^done
^done:
  %next_t = llvm.add %t, %c1 : i64
  llvm.br ^iteration(%next_t, {", ".join(after)} : i64, {types})
^end:
  {lines(total)}
  llvm.store %s{_LOADS - 1}, %sink {{alignment = {_LINE} : i64}} : {_VECTOR}, !llvm.ptr
  llvm.return
}}
"""
