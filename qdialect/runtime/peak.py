"""How fast this CPU's dot-product instruction is by itself: the rate that kernels are measured against."""

from __future__ import annotations

import time
from enum import Enum, auto
from functools import cache

from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.context import make_context
from qdialect.diagnostics import CompileError
from qdialect.lowering.code_attributes import keep_to_target
from qdialect.lowering.x86.instruction_set import InstructionSet, instruction_set_of
from qdialect.runtime.bare_loops import BareLoop, TileLoop, VectorLoop
from qdialect.runtime.bound_call import BoundCall
from qdialect.runtime.jit import MachineCode
from qdialect.target import Target
from qdialect.target.machine import Machine

_SAMPLES = 5
# Intel's order of operands, destination last: sums, a product, two factors.
_VNNI = "vpdpbusd $3, $2, $0"
_WORDS = "vpmaddwd $3, $2, $1\\0Avpaddd $1, $0, $0"
_OLD_WORDS = "movdqa $2, $1\\0Apmaddwd $3, $1\\0Apaddd $1, $0"
_PAIRS = "vpmaddubsw $3, $2, $1\\0Avpmaddwd $2, $1, $1\\0Avpaddd $1, $0, $0"
_OLD_PAIRS = "movdqa $2, $1\\0Apmaddubsw $3, $1\\0Apmaddwd $2, $1\\0Apaddd $1, $0"


class Dots(Enum):
    """By which products of bytes a kernel is made, where its target has several."""

    FASTEST = auto()
    """The target's fastest that bound no weights: matrix tiles, or else those of vectors."""
    VECTORS = auto()
    """Four products a lane, or two of words."""
    PAIRS = auto()
    """Pairs of bytes, for weights that allow it."""


def loop_title(target: Target, dots: Dots = Dots.FASTEST) -> str | None:
    """What the bare loop of `target` consists of; None where there is none that this CPU has."""
    loop = _loop_of(target, dots)
    return loop.title if loop and target.kind.features <= targets.host_features() else None


def bare_vector_bits(target: Target) -> int:
    """Bits of the vectors that code for `target` multiplies; raises `CompileError` where it has no dot products."""
    instructions = instruction_set_of(target)
    if instructions is None:
        raise _without_dots(target)
    return 32 * instructions.lanes


def products_per_cycle(target: Target, machine: Machine) -> float:
    """Multiply-accumulates that the loop of vectors does in a cycle of `machine`; raises `CompileError` without one."""
    instructions = instruction_set_of(target)
    if instructions is None:
        raise _without_dots(target)
    return _vector_loop(target, instructions).products_per_cycle(machine)


def _known_loop(target: Target, dots: Dots) -> BareLoop:
    loop = _loop_of(target, dots)
    if loop is None:
        raise _without_dots(target)
    return loop


def _without_dots(target: Target) -> CompileError:
    return CompileError(f"target '{target.name}' has no dot products, whose rate could be measured")


def with_dot_products(target: Target) -> Target:
    """The target whose loop code for `target` is measured against: vector code alone may use all that this CPU has."""
    return targets.host() if target.is_generic or target.is_portable else target


def dot_product_rate(target: Target, dots: Dots = Dots.FASTEST) -> float:
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
    return loop.iterations * loop.products / min(_seconds(call) for _ in range(_SAMPLES))


def _loop_of(target: Target, dots: Dots) -> BareLoop | None:
    instructions = instruction_set_of(target)
    if instructions is None or target.is_portable:
        return None
    if dots is Dots.FASTEST and instructions.has_tiles:
        return TileLoop()
    if dots is Dots.PAIRS:
        return _pairs_loop(target, instructions)
    return _vector_loop(target, instructions)


def _vector_loop(target: Target, instructions: InstructionSet) -> VectorLoop:
    if not instructions.multiplies_words:
        prefix = "" if target.kind.has_vnni else "{vex} "
        return VectorLoop("vpdpbusd", prefix + _VNNI, instructions.lanes, 4)
    prefix, assembly = ("v", _WORDS) if "avx" in target.kind.code_features else ("", _OLD_WORDS)
    return VectorLoop(f"{prefix}pmaddwd and {prefix}paddd", assembly, instructions.lanes, 2)


def _pairs_loop(target: Target, instructions: InstructionSet) -> VectorLoop | None:
    if not instructions.pair_dots:
        return None
    prefix, assembly = ("v", _PAIRS) if "avx" in target.kind.code_features else ("", _OLD_PAIRS)
    title = f"{prefix}pmaddubsw, {prefix}pmaddwd and {prefix}paddd"
    return VectorLoop(title, assembly, instructions.lanes, 4)


def _seconds(loop: BoundCall) -> float:
    start = time.perf_counter()
    loop.call()
    return time.perf_counter() - start


@cache
def _code(loop: BareLoop, target: Target) -> BoundCall:
    with make_context():
        module = ir.Module.parse(loop.module())
        keep_to_target(module, target)
        code = MachineCode(module)
    memory = loop.memory()
    call = code.bind("loop", (loop.iterations, memory.ctypes.data), keep=(memory,))
    call.call()
    return call
