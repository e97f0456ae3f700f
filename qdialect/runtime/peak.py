"""How fast this CPU's dot-product instruction is by itself: the rate that kernels are measured against."""

from __future__ import annotations

import ctypes
import time
from functools import cache

from qdialect import target
from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.diagnostics import CompileError
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.jit import MachineCode

# Independent chains: more than the instruction's latency times its rate, fewer than the registers.
_CHAINS = 16
_REPEATS = 2
_MACS = 64
_ITERATIONS = 200_000
_SAMPLES = 5
_SUM = "vector<16xi32>"
_BYTES = "vector<64xi8>"
_PAIR = f"!llvm.struct<({_BYTES}, {_BYTES})>"


def vpdpbusd_rate() -> float:
    """Multiply-accumulates per second of a loop of `vpdpbusd` on registers alone, the best of a few samples.

    Takes some 10 ms, after the first call. Raises `CompileError` where the CPU lacks AVX-512 VNNI.
    """
    if not target.host().has_vnni:
        raise CompileError("the rate of vpdpbusd needs a CPU with avx512vnni, which this one lacks")
    loop = _loop()
    work = _ITERATIONS * _REPEATS * _CHAINS * _MACS
    return work / min(_seconds(loop) for _ in range(_SAMPLES))


def _seconds(loop: BoundCall) -> float:
    start = time.perf_counter()
    loop.call()
    return time.perf_counter() - start


@cache
def _loop() -> BoundCall:
    with make_context():
        code = MachineCode(ir.Module.parse(_module()))
    # The sum goes somewhere, so that it is computed at all.
    sink = (ctypes.c_int64 * 8)()
    loop = code.bind("loop", (_ITERATIONS, ctypes.addressof(sink)), keep=(sink,))
    loop.call()
    return loop


def _module() -> str:
    """The loop. An empty piece of assembly makes its operands opaque: nothing can be folded or moved out."""
    sums = [f"%a{i}" for i in range(_CHAINS)]
    body: list[str] = []
    last = sums
    for repeat in range(_REPEATS):
        after = [f"%d{repeat}_{i}" for i in range(_CHAINS)]
        body += [
            f'{new} = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({old}, %x, %y)'
            f" : ({_SUM}, {_BYTES}, {_BYTES}) -> {_SUM}"
            for old, new in zip(last, after, strict=True)
        ]
        last = after
    total = [f"%s{i + 1} = llvm.add {f'%s{i}' if i else last[0]}, {last[i + 1]} : {_SUM}" for i in range(_CHAINS - 1)]
    types = f"i64, {_BYTES}, {_BYTES}, {', '.join([_SUM] * _CHAINS)}"
    lines = "\n  ".join
    return f"""
llvm.func @loop(%n: i64, %sink: !llvm.ptr) {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(dense<0> : {_SUM}) : {_SUM}
  %x0 = llvm.mlir.constant(dense<3> : {_BYTES}) : {_BYTES}
  %y0 = llvm.mlir.constant(dense<-2> : {_BYTES}) : {_BYTES}
  llvm.br ^loop(%c0, %x0, %y0, {", ".join(["%zero"] * _CHAINS)} : {types})
^loop(%i: i64, %xi: {_BYTES}, %yi: {_BYTES}, {", ".join(f"{name}: {_SUM}" for name in sums)}):
  %pair = llvm.inline_asm has_side_effects "", "=v,=v,0,1" %xi, %yi : ({_BYTES}, {_BYTES}) -> {_PAIR}
  %x = llvm.extractvalue %pair[0] : {_PAIR}
  %y = llvm.extractvalue %pair[1] : {_PAIR}
  {lines(body)}
  %next = llvm.add %i, %c1 : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^loop(%next, %x, %y, {", ".join(last)} : {types}), ^end
^end:
  {lines(total)}
  llvm.store %s{_CHAINS - 1}, %sink {{alignment = 8 : i64}} : {_SUM}, !llvm.ptr
  llvm.return
}}
"""
