"""The operations of a network, the throughput of an executable, and the peaks of this CPU and its memory."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial

import numpy as np

from qdialect import targets
from qdialect.bench.clock import Clock, agree, common_state, seconds_of
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.ir.context import make_context
from qdialect.lowering.instructions.instruction_set import InstructionSet, instruction_set_of
from qdialect.lowering.instructions.tiles import ROW_BYTES, ROWS, TDPBUSD, Shape, configuration
from qdialect.lowering.x86_to_llvm.to_llvm import keep_to_target
from qdialect.runtime import memory
from qdialect.runtime.base import Executable
from qdialect.runtime.compiler import MachineCode
from qdialect.runtime.native import BoundCall
from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import Array
from qdialect.targets import Target
from qdialect.targets.machine import Machine

_CONTRACTIONS = ("conv2d", "dense", "conv_transpose2d", "matmul")
_WARM_UP_CALLS = 3
_ROUNDS = 5


def multiply_accumulates(module: ir.Module) -> int:
    """Products that the convolutions and matrix products of a `qnn` module sum up, those with padding included."""
    total = 0
    for function in module.body.operations:
        for op in function.operation.regions[0].blocks[0].operations:
            kind = op.operation.name.removeprefix("qnn.").removeprefix("fused_").removeprefix("i16_")
            if kind in _CONTRACTIONS:
                total += _macs(kind, op.operation)
    return total


def _macs(kind: str, op: ir.Operation) -> int:
    data, weight = (shape_of(operand.type) for operand in list(op.operands)[:2])
    outputs = math.prod(shape_of(op.results[0].type))
    match kind:
        case "matmul":
            return outputs * data[-1]
        case "conv_transpose2d":
            # Each pixel of the data meets the whole kernel, whatever padding cuts off.
            return math.prod(data[:-1]) * math.prod(weight)
        case _:
            return outputs * math.prod(weight[1:])


@dataclass(frozen=True)
class Speed:
    """The result of a measurement."""

    seconds: float
    """Median of one call, in one state of the clock."""
    peak: float | None
    """Multiply-accumulates per second of bare dot products around those calls; None where the CPU has none."""
    loop: str | None = "vpdpbusd"
    """The instructions of that loop."""

    def rate(self, macs: int) -> float:
        """Multiply-accumulates per second of a call that has `macs`."""
        return macs / self.seconds

    def share(self, macs: int) -> float | None:
        """The rate as a share of the bare instruction's, at most 1."""
        return min(self.rate(macs) / self.peak, 1.0) if self.peak else None


def measure(
    executable: Executable, inputs: Sequence[Array], seconds: float = 1.0, target: str | Target = "host"
) -> Speed:
    """Call `executable` again and again for `seconds` seconds, in turns with the bare loop of `target`.

    `inputs` are contiguous. Raises `InputError` where they do not fit.
    """
    call = _call(executable, inputs)
    for _ in range(_WARM_UP_CALLS):
        call()
    chosen = with_dot_products(targets.resolve(target))
    title = loop_title(chosen)
    clock = Clock(bare_loop(chosen))
    samples = [clock.sample(partial(times_of, call, seconds / _ROUNDS)) for _ in range(_ROUNDS)]
    state = common_state([one.rate for one in samples])
    within = [one for one in samples if agree(one.rate, state)]
    return Speed(statistics.median([once for one in within for once in one.found]), state or None, title)


def times_of(call: Callable[[], object], seconds: float) -> list[float]:
    """How long each call takes, of as many as there are in some seconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        times.append(seconds_of(call))
    return times


def _call(executable: Executable, inputs: Sequence[Array]) -> Callable[[], object]:
    """A bound call, or one that allocates its results where their shapes are known after it alone."""
    if any(min(port.shape, default=0) < 0 for port in executable.outputs):
        return lambda: executable(*inputs)
    return executable.bind(inputs, [np.empty(port.shape, port.dtype) for port in executable.outputs])


# How fast this CPU's dot-product instruction is by itself: the rate that kernels are measured against.

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
    """The instruction of the bare loop of `target`; None if this CPU has none."""
    loop = _loop_of(target, dots)
    return loop.title if loop and target.kind.features <= targets.host_features() else None


def bare_loop(target: Target) -> Callable[[], float]:
    """Runs the bare loop of `target`, if this CPU has one: its rate, or 0."""
    return partial(dot_product_rate, target) if loop_title(target) else float


def bare_vector_bits(target: Target) -> int:
    """Bits of the vectors that code for `target` multiplies; raises `CompileError` where it has no dot products."""
    return 32 * _instructions(target).lanes


def products_per_cycle(target: Target, machine: Machine) -> float:
    """Multiply-accumulates that the loop of vectors does in a cycle of `machine`; raises `CompileError` without one."""
    instructions = _instructions(target)
    if not instructions.multiplies_words:
        return machine.dot_products * instructions.lanes * 4
    # An addition goes with each product of words.
    return min(machine.word_dots_started, machine.vector_instructions / 2) * instructions.lanes * 2


def _instructions(target: Target) -> InstructionSet:
    found = instruction_set_of(target)
    if found is None:
        raise _without_dots(target)
    return found


def _without_dots(target: Target) -> CompileError:
    return CompileError(f"target '{target.name}' has no dot products, whose rate could be measured")


def with_dot_products(target: Target) -> Target:
    """The target whose loop code for `target` is measured against: vector code alone may use all that this CPU has."""
    return targets.host() if target.is_generic or target.is_portable else target


def dot_product_rate(target: Target, dots: Dots = Dots.FASTEST) -> float:
    """Multiply-accumulates per second of the target's dot products on registers alone, the best of a few samples.

    Takes some 10 ms, after the first call. Raises `CompileError` where the CPU lacks them, or the target has none.
    """
    loop = _loop_of(target, dots)
    if loop is None:
        raise _without_dots(target)
    missing = target.kind.features - targets.host_features()
    if missing:
        raise CompileError(
            f"the rate of {loop.title} needs a CPU with {', '.join(sorted(missing))}, which this one lacks"
        )
    call = _code(loop, target.kind)
    return loop.iterations * loop.products / min(seconds_of(call.call) for _ in range(_SAMPLES))


def _loop_of(target: Target, dots: Dots) -> BareLoop | None:
    instructions = instruction_set_of(target)
    if instructions is None or target.is_portable:
        return None
    if dots is Dots.FASTEST and instructions.has_tiles:
        return _tile_loop()
    lanes, has_avx = instructions.lanes, "avx" in target.kind.code_features
    v = "v" if has_avx else ""
    if dots is Dots.PAIRS:
        title = f"{v}pmaddubsw, {v}pmaddwd and {v}paddd"
        return _vector_loop(title, _PAIRS if has_avx else _OLD_PAIRS, lanes, 4) if instructions.pair_dots else None
    if not instructions.multiplies_words:
        return _vector_loop("vpdpbusd", ("" if target.kind.has_vnni else "{vex} ") + _VNNI, lanes, 4)
    return _vector_loop(f"{v}pmaddwd and {v}paddd", _WORDS if has_avx else _OLD_WORDS, lanes, 2)


@cache
def _code(loop: BareLoop, target: Target) -> BoundCall:
    with make_context():
        module = ir.Module.parse(loop.module)
        keep_to_target(module, target)
        code = MachineCode(module)
    memory = np.frombuffer(loop.content, np.uint8).copy()
    call = code.bind("loop", (loop.iterations, memory.ctypes.data), keep=(memory,))
    call.call()
    return call


# Loops of nothing but the instructions that kernels multiply by, on registers: each as a module of the LLVM dialect.
#
# Each has a function `loop` of a number of iterations and the address of its memory.

# Independent chains: more than the instruction's latency times its rate, which is 10 on Intel's cores, where as many
# reach 96 % of what 12 do; and leave enough registers for other values.
_CHAINS = 12
_REPEATS = 4
_ITERATIONS = 200_000
# Tiles of sums, of data and of weights fill the eight registers; a product takes some 16 cycles.
_TILE_SUMS, _TILE_FACTORS = 4, 2
_TILE_ITERATIONS = 15_000


@dataclass(frozen=True)
class BareLoop:
    """The instructions of a target that multiply and add, again and again."""

    title: str
    iterations: int
    """As many take about a millisecond."""
    products: int
    """Multiply-accumulates of an iteration."""
    content: bytes
    """Of the memory at first."""
    module: str


def _vector_loop(title: str, assembly: str, lanes: int, taps: int) -> BareLoop:
    """Instructions on vectors, which add `taps` products to each of `lanes` sums.

    They are assembly: nothing of it can be folded or moved out. The sum goes somewhere, so that it is computed at all.
    """
    type_ = f"vector<{lanes}xi32>"
    pair = f"!llvm.struct<({type_}, {type_})>"
    last = sums = [f"%a{i}" for i in range(_CHAINS)]
    body: list[str] = []
    for repeat in range(_REPEATS):
        after = [f"%d{repeat}_{i}" for i in range(_CHAINS)]
        for old, new in zip(last, after, strict=True):
            body += [
                f'{new}_both = llvm.inline_asm has_side_effects "{assembly}", "=&x,=&x,x,x,0" %x, %y, {old}'
                f" : ({type_}, {type_}, {type_}) -> {pair}",
                f"{new} = llvm.extractvalue {new}_both[0] : {pair}",
            ]
        last = after
    total = [f"%s{i + 1} = llvm.add {f'%s{i}' if i else last[0]}, {last[i + 1]} : {type_}" for i in range(_CHAINS - 1)]
    types = f"i64, {', '.join([type_] * _CHAINS)}"
    lines = "\n  ".join
    module = f"""
llvm.func @loop(%n: i64, %sink: !llvm.ptr) {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(dense<0> : {type_}) : {type_}
  %x = llvm.mlir.constant(dense<196611> : {type_}) : {type_}
  %y = llvm.mlir.constant(dense<131074> : {type_}) : {type_}
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
    return BareLoop(title, _ITERATIONS, _REPEATS * _CHAINS * lanes * taps, bytes(ROW_BYTES), module)


def _tile_loop() -> BareLoop:
    """Products of whole matrix tiles: two tiles of data meet two of weights; memory has a configuration and factors."""
    sums, registers = range(_TILE_SUMS), range(_TILE_SUMS + 2 * _TILE_FACTORS)
    pairs = [(_TILE_SUMS + one // _TILE_FACTORS, _TILE_SUMS + _TILE_FACTORS + one % _TILE_FACTORS) for one in sums]
    body = [
        f'llvm.call_intrinsic "{TDPBUSD.intrinsic}"(%r{one}, %r{a}, %r{b}) : (i8, i8, i8) -> ()'
        for one, (a, b) in zip(sums, pairs, strict=True)
    ]
    names = [f"%r{one} = llvm.mlir.constant({one} : i8) : i8" for one in registers]
    zeros = [f'llvm.call_intrinsic "llvm.x86.tilezero"(%r{one}) : (i8) -> ()' for one in sums]
    loads = [
        f'llvm.call_intrinsic "llvm.x86.tileloadd64"(%r{one}, %factors, %row) : (i8, !llvm.ptr, i64) -> ()'
        for one in registers[_TILE_SUMS:]
    ]
    lines = "\n  ".join
    module = f"""
llvm.func @loop(%n: i64, %memory: !llvm.ptr) {{
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %row = llvm.mlir.constant({ROW_BYTES} : i64) : i64
  {lines(names)}
  %factors = llvm.getelementptr %memory[{ROW_BYTES}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call_intrinsic "llvm.x86.ldtilecfg"(%memory) : (!llvm.ptr) -> ()
  {lines(zeros + loads)}
  llvm.br ^loop(%c0 : i64)
^loop(%i: i64):
  {lines(body * _REPEATS)}
  %next = llvm.add %i, %c1 : i64
  %more = llvm.icmp "slt" %next, %n : i64
  llvm.cond_br %more, ^loop(%next : i64), ^end
^end:
  llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()
  llvm.return
}}
"""
    shapes = [Shape(ROWS, ROW_BYTES, 8)] * len(registers)
    content = configuration(shapes).tobytes() + np.arange(ROWS * ROW_BYTES, dtype=np.uint8).tobytes()
    products = _REPEATS * _TILE_SUMS * ROWS * ROWS * ROW_BYTES
    return BareLoop(TDPBUSD.name, _TILE_ITERATIONS, products, content, module)


# How fast this CPU reads memory from each level, by a loop of vector loads compiled here.

# Loads of an iteration, each into a sum of its own, so that no load waits for an addition.
_LOADS = 8
_LINE = 64
_ITERATION = _LOADS * _LINE
_VECTOR = "vector<16xi32>"
_READ_SAMPLES = 7
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
    loop = _read_loop().bind("read", values, keep=(block, sink))
    loop.call()
    return iterations * size / min(seconds_of(loop.call) for _ in range(_READ_SAMPLES))


@cache
def _read_loop() -> MachineCode:
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
