"""Chains of contractions, from zeros to a write of their sums -> products of matrix tiles.

The sums of a contraction [..., rows, lanes] are a tile for each of the outer positions.  They are carried from one
contraction to the next, through loops too, as tiles: from zeros on, until they are written to memory.

    %0 = arith.constant dense<0>
    %1 = scf.for ... iter_args(%acc = %0) { %2 = vector.contract data, weights, %acc; scf.yield %2 }
    vector.transfer_write %1, %sums

Each contraction multiplies unsigned by signed bytes.  Innermost in the data are rows, K groups and four taps; in the
weights K groups, then lanes and four taps, which lie side by side.  A chain with anything else in it is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from qdialect._mlir import arith, ir, scf
from qdialect.lowering.functions import functions
from qdialect.lowering.indexing_maps import Point, at
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.threads.accesses import accesses
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.delayed_epilogue import delay_epilogue
from qdialect.lowering.x86.instruction_set import instruction_set_of
from qdialect.lowering.x86.instructions.tiles import (
    ROWS,
    AmxRegisters,
    PortableRegisters,
    Shape,
    TileMemory,
    TileRegisters,
)
from qdialect.lowering.x86.memory import buffer_problem, transfer_problem
from qdialect.lowering.x86.narrow_contraction import BYTES, NarrowContraction, Side, narrow_contraction
from qdialect.lowering.x86.tile_prefetch import fetch_weights
from qdialect.passes.pattern import MatchFailure, explain, is_explained
from qdialect.target import Target
from qdialect.target.machine import Machine

_NAME = "tile-chain"
_TAPS = 4
_LANES = (4, 8, 16)
# Of a factor, and of the tiles in sums.
_RANK, _OUTER = 3, 2
# Registers for sums, data and weights.
_FACTORS = 2
_COUNTS = (4, _FACTORS, _FACTORS)
_FIRST_DATA, _FIRST_WEIGHTS = 4, 6


def contract_in_tiles(module: ir.Module, target: Target) -> None:
    """Multiply in tiles whatever can be, in place, where `target` has them; needs a current context and location.

    At the end of a function that does, registers are released.
    """
    instructions = instruction_set_of(target)
    if instructions is None or not instructions.has_tiles:
        return
    for function in functions(module):
        chains = list(_chains(function))
        if chains:
            for chain in chains:
                delay_epilogue(chain, _read_chain(chain.operands[0], {})[0][-1], accesses(function))
            block = function.regions[0].blocks[0]
            registers = PortableRegisters(block) if target.is_portable else AmxRegisters()
            _emit(block, chains, _Emission(registers, instructions.machine))
            with ir.InsertionPoint(list(block.operations)[-1]):
                registers.release()


def _chains(function: ir.Operation) -> Iterator[ir.Operation]:
    """The writes of chains of `function`."""
    writes: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.transfer_write" and b.is_vector_of(op.operands[0], 32):
            writes.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    for write in writes:
        problem = _chain_problem(write)
        if problem is None:
            yield write
        elif problem and is_explained():
            explain(_NAME, write, MatchFailure(problem))


def _emit(block: ir.Block, chains: Sequence[ir.Operation], emission: _Emission) -> None:
    """Emit `chains` in `block`; registers are configured before the outermost op that holds chains of one shape."""
    by_op: dict[ir.Operation, list[ir.Operation]] = {}
    for chain in chains:
        by_op.setdefault(_top_in(chain, block), []).append(chain)
    configured = None
    for top, inside in by_op.items():
        shapes = {_shapes(chain) for chain in inside}
        if len(shapes) > 1:
            _emit_inside(top, inside, emission)
            configured = None
            continue
        if shapes != configured:
            at_op = _first_op(top) if top in inside else top
            with ir.InsertionPoint(at_op), at_op.location:
                emission.registers.configure(*shapes)
        configured = shapes
        for chain in inside:
            emission.write(chain)


def _emit_inside(op: ir.Operation, chains: Sequence[ir.Operation], emission: _Emission) -> None:
    """Emit `chains` in the blocks of `op`."""
    for region in op.regions:
        for block in region.blocks:
            _emit(block, [chain for chain in chains if _top_in(chain, block).block == block], emission)


def _top_in(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that is `op` or holds it."""
    while op.block != block and op.parent:
        op = op.parent.operation
    return op


def _first_op(chain: ir.Operation) -> ir.Operation:
    """The first op of a chain: the one that uses the zeros."""
    op, value = chain, chain.operands[0]
    while not isinstance(value.owner, ir.Block) and value.owner.name in ("scf.for", "vector.contract"):
        op = value.owner.operation
        value = _first_sums(op) if op.name == "scf.for" else op.operands[2]
    return op


def _chain_problem(write: ir.Operation) -> str | None:
    """Why the write is not that of a chain of contractions; empty where nothing is contracted."""
    contractions, problem = _read_chain(write.operands[0], {})
    if not contractions:
        return ""
    problem = problem or next(filter(None, map(_contraction_problem, contractions)), None)
    if problem is None and len({_k_groups(op) for op in contractions}) > 1:
        problem = "contractions must have as many K groups each"
    return problem or _write_problem(write) or _order_problem(write, len(contractions))


def _order_problem(write: ir.Operation, count: int) -> str | None:
    """Why registers could be wanted for something else before the `count` contractions of a chain are written."""
    first = _first_op(write)
    if first.block != write.block:
        return "sums must be written where they start"
    inside: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        inside.extend([op] if op.name == "vector.contract" else [])
        return ir.WalkResult.ADVANCE

    ops = [op.operation for op in write.block.operations]
    for op in ops[ops.index(first) : ops.index(write)]:
        op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return "sums must be written before others are computed" if len(inside) > count else None


def _k_groups(op: ir.Operation) -> int:
    return b.shape_of(op.operands[0])[-2]


def _read_chain(value: ir.Value, starts: Mapping[ir.Value, bool]) -> tuple[list[ir.Operation], str | None]:
    """The contractions whose sums `value` are, and why there is something else; `starts` are those of loops around."""
    if value in starts or b.splat_value(value) == 0:
        return [], None
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "vector.contract":
        before, problem = _read_chain(owner.operands[2], starts)
        return [*before, owner.operation], problem or _uses_problem(value)
    if isinstance(owner, ir.Block) or owner.name != "scf.for" or len(owner.operation.results) != 1:
        return [], "sums must start at 0 and be added to by contractions alone"
    before, problem = _read_chain(_first_sums(owner.operation), starts)
    block = owner.regions[0].blocks[0]
    inside, own = _read_chain(_yielded(block), {**starts, block.arguments[1]: True})
    return [*before, *inside], problem or own or _uses_problem(value)


def _uses_problem(sums: ir.Value) -> str | None:
    return "sums must be used once" if len(list(sums.uses)) > 1 else None


def _first_sums(loop: ir.Operation) -> ir.Value:
    return loop.operands[3]


def _yielded(block: ir.Block) -> ir.Value:
    return list(block.operations)[-1].operands[0]


def _contraction_problem(op: ir.Operation) -> str | None:
    """Why the innermost loops of a contraction are no tiles."""
    found = narrow_contraction(op)
    if isinstance(found, MatchFailure):
        return found.reason
    if found is None or found.factors is not BYTES:
        return "factors must be an unsigned and a signed byte"
    extents = found.loops.extents
    data, weights, result = found.data.loops, found.weights.loops, found.loops.result
    if min(len(data), len(weights)) < _RANK or len(result) < _OUTER:
        return "data must have rows, K groups and taps, weights K groups, lanes and taps"
    (row, lane), (k_group, tap) = result[-2:], data[-2:]
    if weights[-2:] != (lane, tap) or row in weights or row not in data or lane in data:
        return "innermost loops of the result must be rows of the data and lanes of the weights"
    if {k_group, tap} & set(result) or k_group not in weights or extents[tap] != _TAPS:
        return "innermost loops of the data must be K groups and four taps, which are summed up"
    if max(extents[row], extents[k_group]) > ROWS or extents[lane] not in _LANES:
        sizes = f"{extents[row]} x {extents[k_group]} x {extents[lane]}"
        return f"tiles must have at most 16 rows and K groups, and 4, 8 or 16 lanes, but got {sizes}"
    tiles = [math.prod(extents[loop] for loop in loops if loop in result[:-2]) for loops in (result, data, weights)]
    # Where each tile of data meets one of weights, the next may take its register.
    if tiles[0] > _COUNTS[0] or tiles[2] > _COUNTS[2] or (tiles[1] > _COUNTS[1] and tiles[2] > 1):
        return f"there must be at most {_COUNTS} tiles of sums, data and weights, but got {tiles}"
    sides = (found.data, found.weights)
    if not all(side.read.moving[-1] == 1 and b.is_innermost_contiguous(side.read.buffer, 2) for side in sides):
        return "taps must lie side by side"
    return None


def _write_problem(write: ir.Operation) -> str | None:
    """Why the sums are not written as they are, row by row."""
    buffer = write.operands[1]
    reason = buffer_problem(buffer, 32) or transfer_problem(write, buffer, others=2)
    if reason:
        return f"destination {reason}"
    shape, strides = b.shape_of(write.operands[0]), static_strides(ir.MemRefType(buffer.type))
    is_narrow = len(shape) < _OUTER or not strides or strides[-1] != 1
    return "destination must have lanes side by side" if is_narrow else None


def _shapes(write: ir.Operation) -> tuple[Shape, ...]:
    """The shapes of the registers of a chain: sums first, then data, then weights."""
    sums = b.shape_of(write.operands[0])
    contractions, _ = _read_chain(write.operands[0], {})
    found = narrow_contraction(contractions[0])
    assert isinstance(found, NarrowContraction), "it was checked"
    k_groups = found.loops.extents[found.data.loops[-2]]
    shapes = Shape(sums[-2], sums[-1], 32), Shape(sums[-2], _TAPS * k_groups, 8), Shape(k_groups, _TAPS * sums[-1], 8)
    return tuple(shape for shape, count in zip(shapes, _COUNTS, strict=True) for _ in range(count))


@dataclass(frozen=True)
class _Emission:
    """Emits chains of one function."""

    registers: TileRegisters
    machine: Machine

    def write(self, write: ir.Operation) -> None:
        """Emit a chain, and write its tiles."""
        sums, buffer, *indices = write.operands
        shape = b.shape_of(sums)
        strides = static_strides(ir.MemRefType(buffer.type))
        assert strides is not None, "it was checked"
        self._add(sums, write)
        with ir.InsertionPoint(write), write.location:
            for register, position in enumerate(np.ndindex(*shape[:-2])):
                steps = [*[0] * (len(indices) - len(shape)), *position, 0, 0]
                memory = TileMemory(buffer, b.shifted(indices, steps), len(indices) - 2, strides[-2])
                self.registers.store(register, memory)
        write.erase()
        _erase_unused(sums)

    def _add(self, value: ir.Value, user: ir.Operation) -> None:
        """Emit what leaves the sums `value` in the first registers; `user` is the op that uses them."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return
        if owner.name == "scf.for":
            self._loop(owner.operation)
        elif owner.name == "vector.contract":
            self._add(owner.operands[2], owner.operation)
            self._products(owner.operation)
        else:
            with ir.InsertionPoint(user), user.location:
                for register in range(math.prod(b.shape_of(value)[:-2])):
                    self.registers.zero(register)

    def _loop(self, loop: ir.Operation) -> None:
        """A loop that carries nothing in front of `loop`, whose body moves there."""
        self._add(_first_sums(loop), loop)
        index = loop.regions[0].blocks[0].arguments[0]
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

    def _products(self, op: ir.Operation) -> None:
        """The products of a contraction."""
        found = narrow_contraction(op)
        assert isinstance(found, NarrowContraction), "it was checked"
        loops, data, weights = found.loops, found.data, found.weights
        (row, lane), (k_group, tap) = loops.result[-2:], data.loops[-2:]
        is_long = math.prod(b.shape_of(weights.read.buffer)) >= self.machine.fetched_stream
        fetch = partial(fetch_weights, rows=loops.extents[k_group], op=op) if is_long else None
        with ir.InsertionPoint(op), op.location:
            for term in loops.points([loop for loop in loops.reduced if loop not in (k_group, tap)]):
                a = _Factor(self.registers, _FIRST_DATA, data, row, (k_group, tap))
                matrix = _Factor(self.registers, _FIRST_WEIGHTS, weights, k_group, (lane, tap), fetch)
                for register, point in enumerate(loops.points(loops.result[:-2])):
                    step = {**point, **term}
                    self.registers.multiply(register, a.at(step), matrix.at(step))


class _Factor:
    """The tiles of a factor, each loaded once, into `_FACTORS` registers from `first` on by turns.

    `fetch` says what is fetched ahead where a tile is loaded.
    """

    def __init__(
        self,
        registers: TileRegisters,
        first: int,
        side: Side,
        rows: int,
        columns: tuple[int, int],
        fetch: Callable[[TileMemory], None] | None = None,
    ) -> None:
        self._fetch = fetch
        self._registers, self._first, self._side = registers, first, side
        self._axis = len(side.read.indices) - len(side.loops) + side.loops.index(rows)
        self._outer = [loop for loop in side.loops if loop not in (rows, *columns)]
        self._loaded: dict[tuple[int, ...], int] = {}

    def at(self, step: Point) -> int:
        """The register with the tile at a step of the loops that are not in it."""
        position = at(step, self._outer)
        if position not in self._loaded:
            self._loaded[position] = self._first + len(self._loaded) % _FACTORS
            memory = self._memory(step)
            self._registers.load(self._loaded[position], memory)
            if self._fetch:
                self._fetch(memory)
        return self._loaded[position]

    def _memory(self, step: Point) -> TileMemory:
        read = self._side.read
        inside = [loop if loop in self._outer else -1 for loop in self._side.loops]
        *outer, k_group, _ = read.position(at(step, inside))
        column = arith.muli(k_group, b.index(_TAPS))
        return TileMemory(b.collapse_inner(read.buffer, 2), [*outer, column], self._axis, read.strides[self._axis])


def _erase_unused(value: ir.Value) -> None:
    """Erase what defines `value`, and what that alone has used."""
    owner = value.owner
    if isinstance(owner, ir.Block) or any(len(list(result.uses)) for result in owner.operation.results):
        return
    operands = list(owner.operation.operands)
    owner.operation.erase()
    for operand in operands:
        _erase_unused(operand)
