"""Loops of nothing but the instructions that kernels multiply by, on registers: each as a module of the LLVM dialect.

Each has a function `loop` of a number of iterations and the address of its `memory`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.x86.instructions.tiles import ROW_BYTES, ROWS, TDPBUSD, Shape, configuration
from qdialect.target.machine import Machine

# Independent chains: more than the instruction's latency times its rate, which is 10 on Intel's cores, where as many
# reach 96 % of what 12 do; and registers enough for what is beside them.
_CHAINS = 12
_PAIR = 2
_REPEATS = 4
_ITERATIONS = 200_000
# Tiles of sums, of data and of weights fill the eight registers; a product takes some 16 cycles.
_TILE_SUMS, _TILE_FACTORS = 4, 2
_TILE_ITERATIONS = 15_000


@dataclass(frozen=True)
class BareLoop(ABC):
    """The instructions of a target that multiply and add, again and again."""

    title: str

    @property
    @abstractmethod
    def iterations(self) -> int:
        """As many take about a millisecond."""

    @property
    @abstractmethod
    def products(self) -> int:
        """Multiply-accumulates of an iteration."""

    @abstractmethod
    def memory(self) -> NDArray[np.uint8]:
        """What the function reads and writes."""

    @abstractmethod
    def module(self) -> str:
        """The code."""


@dataclass(frozen=True)
class VectorLoop(BareLoop):
    """Instructions on vectors, which add to `lanes` sums."""

    assembly: str
    lanes: int
    taps: int
    """Products for each sum."""

    @property
    def iterations(self) -> int:
        return _ITERATIONS

    @property
    def products(self) -> int:
        return _REPEATS * _CHAINS * self.lanes * self.taps

    def products_per_cycle(self, machine: Machine) -> float:
        """Multiply-accumulates that `machine` starts in a cycle."""
        if self.taps > _PAIR:
            return machine.dot_products * self.lanes * self.taps
        # An addition goes with each product of words.
        return min(machine.word_dots_started, machine.vector_instructions / 2) * self.lanes * self.taps

    def memory(self) -> NDArray[np.uint8]:
        # The sum goes somewhere, so that it is computed at all.
        return np.zeros(ROW_BYTES, np.uint8)

    def module(self) -> str:
        """The loop, in assembly: nothing of it can be folded or moved out."""
        type_ = f"vector<{self.lanes}xi32>"
        pair = f"!llvm.struct<({type_}, {type_})>"
        last = sums = [f"%a{i}" for i in range(_CHAINS)]
        body: list[str] = []
        for repeat in range(_REPEATS):
            after = [f"%d{repeat}_{i}" for i in range(_CHAINS)]
            for old, new in zip(last, after, strict=True):
                body += [
                    f'{new}_both = llvm.inline_asm has_side_effects "{self.assembly}", "=&x,=&x,x,x,0" %x, %y, {old}'
                    f" : ({type_}, {type_}, {type_}) -> {pair}",
                    f"{new} = llvm.extractvalue {new}_both[0] : {pair}",
                ]
            last = after
        total = [
            f"%s{i + 1} = llvm.add {f'%s{i}' if i else last[0]}, {last[i + 1]} : {type_}" for i in range(_CHAINS - 1)
        ]
        types = f"i64, {', '.join([type_] * _CHAINS)}"
        lines = "\n  ".join
        return f"""
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


@dataclass(frozen=True)
class TileLoop(BareLoop):
    """Products of whole matrix tiles: two tiles of data meet two of weights."""

    title: str = TDPBUSD.name

    @property
    def iterations(self) -> int:
        return _TILE_ITERATIONS

    @property
    def products(self) -> int:
        return _REPEATS * _TILE_SUMS * ROWS * ROWS * ROW_BYTES

    def memory(self) -> NDArray[np.uint8]:
        """A configuration, and a tile of factors."""
        shapes = [Shape(ROWS, ROW_BYTES, 8)] * (_TILE_SUMS + 2 * _TILE_FACTORS)
        factors = np.arange(ROWS * ROW_BYTES, dtype=np.uint8)
        return np.concatenate([configuration(shapes), factors])

    def module(self) -> str:
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
        return f"""
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
