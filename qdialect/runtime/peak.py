"""How fast this CPU's dot-product instruction is by itself: the rate that kernels are measured against."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.diagnostics import CompileError
from qdialect.lowering.code_attributes import keep_to_target
from qdialect.lowering.x86.instruction_set import InstructionSet, instruction_set_of
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.jit import MachineCode
from qdialect.target import Target
from qdialect.target.machine import Machine

# Independent chains: more than the instruction's latency times its rate, which is 10 on Intel's cores, where as many
# reach 96 % of what 12 do; and registers enough for what is beside them.
_CHAINS = 12
_REPEATS = 4
_ITERATIONS = 200_000
_SAMPLES = 5
# Intel's order of operands, destination last: sums, a product, two factors.
_VNNI = "vpdpbusd $3, $2, $0"
_WORDS = "vpmaddwd $3, $2, $1\\0Avpaddd $1, $0, $0"
_OLD_WORDS = "movdqa $2, $1\\0Apmaddwd $3, $1\\0Apaddd $1, $0"
_PAIRS = "vpmaddubsw $3, $2, $1\\0Avpmaddwd $2, $1, $1\\0Avpaddd $1, $0, $0"
_OLD_PAIRS = "movdqa $2, $1\\0Apmaddubsw $3, $1\\0Apmaddwd $2, $1\\0Apaddd $1, $0"


@dataclass(frozen=True)
class _Loop:
    """The instructions of a target that multiply and add, on `lanes` sums."""

    title: str
    assembly: str
    lanes: int
    taps: int
    """Products for each sum."""


class Dots(Enum):
    """By which products of bytes a kernel is made, where its target has several."""

    USUAL = auto()
    """Those that every contraction can have: four products a lane, or two of words."""
    PAIRS = auto()
    """Pairs of bytes, for weights that allow it."""


def loop_title(target: Target, dots: Dots = Dots.USUAL) -> str | None:
    """What the bare loop of `target` consists of; None where there is none that this CPU has."""
    loop = _loop_of(target, dots)
    return loop.title if loop and target.kind.features <= targets.host_features() else None


def bare_vector_bits(target: Target) -> int:
    """Bits of the vectors that code for `target` multiplies; raises `CompileError` where it has no dot products."""
    return 32 * _known_loop(target).lanes


def products_per_cycle(target: Target, machine: Machine) -> float:
    """Multiply-accumulates that the loop does in a cycle of `machine`; raises `CompileError` where there is none."""
    loop = _known_loop(target)
    # An addition goes with each product of words.
    dots = machine.dot_products if loop.taps > 2 else min(machine.dot_products, machine.vector_instructions / 2)
    return dots * loop.lanes * loop.taps


def _known_loop(target: Target, dots: Dots = Dots.USUAL) -> _Loop:
    loop = _loop_of(target, dots)
    if loop is None:
        raise CompileError(f"target '{target.name}' has no dot products, whose rate could be measured")
    return loop


def with_dot_products(target: Target) -> Target:
    """The target whose loop code for `target` is measured against: vector code alone may use all that this CPU has."""
    return targets.host() if target.is_generic or target.is_portable else target


def dot_product_rate(target: Target, dots: Dots = Dots.USUAL) -> float:
    """Multiply-accumulates per second of the target's dot products on registers alone, the best of a few samples.

    Takes some 10 ms, after the first call. Raises `CompileError` where the CPU lacks them, or the target has none.
    """
    loop = _known_loop(target, dots)
    missing = target.kind.features - targets.host_features()
    if missing:
        raise CompileError(
            f"the rate of {loop.title} needs a CPU with {', '.join(sorted(missing))}, which this one lacks"
        )
    call = _code(loop, target.kind)
    work = _ITERATIONS * _REPEATS * _CHAINS * loop.lanes * loop.taps
    return work / min(_seconds(call) for _ in range(_SAMPLES))


def _loop_of(target: Target, dots: Dots = Dots.USUAL) -> _Loop | None:
    instructions = instruction_set_of(target)
    if instructions is None or target.is_portable:
        return None
    if dots is Dots.PAIRS:
        return _pairs_loop(target, instructions)
    if not instructions.multiplies_words:
        prefix = "" if target.kind.has_vnni else "{vex} "
        return _Loop("vpdpbusd", prefix + _VNNI, instructions.lanes, 4)
    has_avx = "avx" in target.kind.code_features
    title, assembly = ("vpmaddwd and vpaddd", _WORDS) if has_avx else ("pmaddwd and paddd", _OLD_WORDS)
    return _Loop(title, assembly, instructions.lanes, 2)


def _pairs_loop(target: Target, instructions: InstructionSet) -> _Loop | None:
    if not instructions.pair_dots:
        return None
    prefix, assembly = ("v", _PAIRS) if "avx" in target.kind.code_features else ("", _OLD_PAIRS)
    title = f"{prefix}pmaddubsw, {prefix}pmaddwd and {prefix}paddd"
    return _Loop(title, assembly, instructions.lanes, 4)


def _seconds(loop: BoundCall) -> float:
    start = time.perf_counter()
    loop.call()
    return time.perf_counter() - start


@cache
def _code(loop: _Loop, target: Target) -> BoundCall:
    with make_context():
        module = ir.Module.parse(_module(loop))
        keep_to_target(module, target)
        code = MachineCode(module)
    # The sum goes somewhere, so that it is computed at all.
    sink = (ctypes.c_int64 * 8)()
    call = code.bind("loop", (_ITERATIONS, ctypes.addressof(sink)), keep=(sink,))
    call.call()
    return call


def _module(loop: _Loop) -> str:
    """The loop, in assembly: nothing of it can be folded or moved out."""
    type_ = f"vector<{loop.lanes}xi32>"
    pair = f"!llvm.struct<({type_}, {type_})>"
    last = sums = [f"%a{i}" for i in range(_CHAINS)]
    body: list[str] = []
    for repeat in range(_REPEATS):
        after = [f"%d{repeat}_{i}" for i in range(_CHAINS)]
        for old, new in zip(last, after, strict=True):
            body += [
                f'{new}_both = llvm.inline_asm has_side_effects "{loop.assembly}", "=&x,=&x,x,x,0" %x, %y, {old}'
                f" : ({type_}, {type_}, {type_}) -> {pair}",
                f"{new} = llvm.extractvalue {new}_both[0] : {pair}",
            ]
        last = after
    total = [f"%s{i + 1} = llvm.add {f'%s{i}' if i else last[0]}, {last[i + 1]} : {type_}" for i in range(_CHAINS - 1)]
    types = f"i64, {', '.join([type_] * _CHAINS)}"
    lines = "\n  ".join
    return f"""
llvm.func @loop(%n: i64, %sink: !llvm.ptr) {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(dense<0> : {type_}) : {type_}
  %x = llvm.mlir.constant(dense<196611> : {type_}) : {type_}
  %y = llvm.mlir.constant(dense<-131074> : {type_}) : {type_}
  llvm.br ^loop(%c0, {", ".join(["%zero"] * _CHAINS)} : {types})
^loop(%i: i64, {", ".join(f"{name}: {type_}" for name in sums)}):
  {lines(body)}
  %next = llvm.add %i, %c1 : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^loop(%next, {", ".join(last)} : {types}), ^end
^end:
  {lines(total)}
  llvm.store %s{_CHAINS - 1}, %sink {{alignment = 8 : i64}} : {type_}, !llvm.ptr
  llvm.return
}}
"""
