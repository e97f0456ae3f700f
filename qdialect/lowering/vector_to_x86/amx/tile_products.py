"""Emission of chains of contractions in registers of matrix tiles; `tile_chain` defines a chain.

A chain zeroes the accumulator tiles, computes the products, and stores the accumulators.  A store of a tile takes as
long as a product, and the next product waits for it, because the core finds no independent one in time.  If the
epilogue is delayed into the next block, so are the stores: each register is stored just before its first product in
the next block, while the product before is still computed.

    for block:                  for block:
      zero 0, 1, ...              for k:
      for k:                        load
        load                 ->     if k is the first: store 0, zero 0
        multiply 0                  multiply 0
        multiply 1                  if k is the first: store 1, zero 1
      store 0, 1, ...               multiply 1
                                store 0, 1, ...

The first block stores tiles that nothing reads: no epilogue is pending then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from qdialect.ir._mlir import arith, ir, scf
from qdialect.lowering.instructions.tiles import TileMemory, TileRegisters
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.functions import Point, at, bounds
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.vector_to_x86.amx.delayed_epilogue import TRIPS
from qdialect.lowering.vector_to_x86.integer_products import NarrowContraction, Side, narrow_contraction
from qdialect.lowering.vector_to_x86.prefetch import has_inner_columns, prefetch_weights
from qdialect.targets.machine import Machine

TAPS = 4
"""Bytes of a K group."""
FACTORS = 2
"""Number of registers for data, and for weights."""
_FIRST_DATA, _FIRST_WEIGHTS = 4, 6


@dataclass(frozen=True)
class _First:
    """Whether a step is the first one of a block, and the share of such steps."""

    condition: ir.Value
    share: float


@dataclass(frozen=True)
class Chain:
    """A chain to emit."""

    registers: TileRegisters
    machine: Machine
    write: ir.Operation
    """The write of its accumulators to memory."""
    first: ir.Operation
    """The first of its contractions."""
    end: ir.Operation | None
    """Where the last block is stored, if each block is stored by the next one; None if each stores its own."""

    def emit(self) -> None:
        """Emit the chain in place."""
        sums = self.write.operands[0]
        self._add(sums, self.write)
        with ir.InsertionPoint(self.end or self.write), self.write.location:
            for register in range(self._count):
                self._store(register)
        self.write.erase()
        _erase_unused(sums)

    @property
    def _count(self) -> int:
        """Number of accumulator registers."""
        return math.prod(b.shape_of(self.write.operands[0])[:-2])

    def _store(self, register: int) -> None:
        """Store an accumulator tile."""
        sums, buffer, *indices = self.write.operands
        shape, strides = b.shape_of(sums), static_strides(ir.MemRefType(buffer.type))
        assert strides is not None, "it was checked"
        position = map(int, np.unravel_index(register, shape[:-2]))
        steps = [*[0] * (len(indices) - len(shape)), *position, 0, 0]
        self.registers.store(register, TileMemory(buffer, b.shifted(indices, steps), len(indices) - 2, strides[-2]))

    def _add(self, value: ir.Value, user: ir.Operation) -> None:
        """Emit the ops that leave the accumulators `value` in the first registers; `user` is the op that uses them."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return
        if owner.name == "scf.for":
            self._loop(owner.operation)
        elif owner.name == "vector.contract":
            self._add(owner.operands[2], owner.operation)
            self._products(owner.operation)
        elif self.end is None:
            with ir.InsertionPoint(user), user.location:
                for register in range(self._count):
                    self.registers.zero(register)

    def _loop(self, loop: ir.Operation) -> None:
        """Replace `loop` by one without loop-carried values, which takes its body."""
        self._add(first_sums(loop), loop)
        index = _index_of(loop)
        *body, end = loop.regions[0].blocks[0].operations
        with ir.InsertionPoint(loop), loop.location:
            other = scf.ForOp(*list(loop.operands)[:3])
        with ir.InsertionPoint(other.body), loop.location:
            last = scf.YieldOp([])
        for op in body:
            op.operation.move_before(last.operation)
        index.replace_all_uses_with(other.induction_variable)
        total = end.operands[0]
        self._add(total, last.operation)
        end.operation.erase()
        _erase_unused(total)

    def _load_weights(self, op: ir.Operation, found: NarrowContraction) -> Callable[[int, TileMemory], None]:
        """The function that loads a tile of the weights that `op` multiplies, and prefetches the following ones."""
        rows, size = found.loops.extents[found.data.loops[-2]], math.prod(b.shape_of(found.weights.read.buffer))
        is_fetched, passes = size >= self.machine.fetched_stream, _displace_data(found, self.machine)
        stay = size < self.machine.long_stream // 4

        def load(register: int, memory: TileMemory) -> None:
            if passes and has_inner_columns(op, memory.indices):
                self.registers.load(register, memory, stays=False)
                return
            self.registers.load(register, memory)
            if is_fetched:
                prefetch_weights(memory, rows, op, stay)

        return load

    def _products(self, op: ir.Operation) -> None:
        """The products of a contraction."""
        found = narrow_contraction(op)
        assert isinstance(found, NarrowContraction), "it was checked"
        loops, data, weights = found.loops, found.data, found.weights
        (row, lane), (k_group, tap) = loops.result[-2:], data.loops[-2:]
        starts = self.end is not None and op == self.first
        load = self._load_weights(op, found)
        with ir.InsertionPoint(op), op.location:
            is_first = self._is_first(op) if starts else None
            for term in loops.points([loop for loop in loops.reduced if loop not in (k_group, tap)]):
                a = _Factor(self.registers.load, _FIRST_DATA, data, row, (k_group, tap))
                matrix = _Factor(load, _FIRST_WEIGHTS, weights, k_group, (lane, tap))
                for register, point in enumerate(loops.points(loops.result[:-2])):
                    step = {**point, **term}
                    factors = a.at(step), matrix.at(step)
                    if starts:
                        self._start(register, is_first)
                    self.registers.multiply(register, *factors)
                starts = False

    def _is_first(self, op: ir.Operation) -> _First | None:
        """Whether the products of `op` are the first of a block; None where no loop repeats them."""
        found: _First | None = None
        while op.block != self.write.block:
            assert op.parent is not None, "it is inside of the block"
            op = op.parent.operation
            extent, begins = bounds(op), arith.cmpi(arith.CmpIPredicate.eq, _index_of(op), op.operands[0])
            share = 1 / extent[2] if extent and extent[2] else 1.0
            found = _First(arith.andi(found.condition, begins), found.share * share) if found else _First(begins, share)
        return found

    def _start(self, register: int, is_first: _First | None) -> None:
        """Store the accumulator of the previous block, and zero it."""
        if is_first:
            with _where(is_first):
                self._start(register, None)
            return
        self._store(register)
        self.registers.zero(register)


def _displace_data(found: NarrowContraction, machine: Machine) -> bool:
    """Whether a column of the weights evicts the data of a block, which the next column multiplies, from L1.

    If both just fill it, most of the data stays, and prefetching weights from L3 is better.
    """
    loops, data, weights = found.loops, found.data, found.weights
    columns, *column = b.shape_of(weights.read.buffer)
    vectors, pixels = (
        math.prod(loops.extents[loop] for loop in side.loops if loop in loops.result) for side in (weights, data)
    )
    read = math.prod(column) // vectors * pixels
    return columns > 1 and read <= machine.l1_bytes < math.prod(column) + read


class _Factor:
    """The tiles of a factor, each loaded once, into `FACTORS` registers from `first` on by turns."""

    def __init__(
        self, load: Callable[[int, TileMemory], None], first: int, side: Side, rows: int, columns: tuple[int, int]
    ) -> None:
        self._load, self._first, self._side = load, first, side
        self._axis = len(side.read.indices) - len(side.loops) + side.loops.index(rows)
        self._outer = [loop for loop in side.loops if loop not in (rows, *columns)]
        self._loaded: dict[tuple[int, ...], int] = {}

    def at(self, step: Point) -> int:
        """The register with the tile at a step of the loops that are not in it."""
        position = at(step, self._outer)
        if position not in self._loaded:
            self._loaded[position] = self._first + len(self._loaded) % FACTORS
            self._load(self._loaded[position], self._memory(step))
        return self._loaded[position]

    def _memory(self, step: Point) -> TileMemory:
        read = self._side.read
        inside = [loop if loop in self._outer else -1 for loop in self._side.loops]
        *outer, k_group, _ = read.position(at(step, inside))
        column = arith.muli(k_group, b.index(TAPS))
        return TileMemory(b.collapse_inner(read.buffer, 2), [*outer, column], self._axis, read.strides[self._axis])


@contextmanager
def _where(first: _First) -> Generator[None]:
    """A branch around what is emitted inside the `with`."""
    branch = scf.IfOp(first.condition)
    branch.attributes[TRIPS] = ir.FloatAttr.get_f64(first.share)
    with ir.InsertionPoint(branch.then_block):
        end = scf.YieldOp([])
    with ir.InsertionPoint(end):
        yield


def _erase_unused(value: ir.Value) -> None:
    """Erase the op that defines `value`, and the ops that become dead."""
    owner = value.owner
    if isinstance(owner, ir.Block) or any(len(list(result.uses)) for result in owner.operation.results):
        return
    operands = list(owner.operation.operands)
    owner.operation.erase()
    for operand in operands:
        _erase_unused(operand)


def _index_of(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def first_sums(loop: ir.Operation) -> ir.Value:
    """The initial value of a loop that carries accumulators."""
    return loop.operands[3]


def yielded(block: ir.Block) -> ir.Value:
    """The value that the body of such a loop yields."""
    return list(block.operations)[-1].operands[0]
