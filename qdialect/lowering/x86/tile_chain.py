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

from collections.abc import Mapping, Sequence

import numpy as np

from qdialect._mlir import arith, ir, scf
from qdialect.lowering.indexing_maps import Point, at
from qdialect.lowering.matrix_tiles import ROWS
from qdialect.lowering.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_set import instruction_set_of
from qdialect.lowering.x86.instructions.tiles import TDPBUSD, TileMemory, tile_load, tile_store, tile_zero
from qdialect.lowering.x86.memory import buffer_problem, transfer_problem
from qdialect.lowering.x86.narrow_contraction import BYTES, NarrowContraction, Side, narrow_contraction
from qdialect.passes.pattern import MatchFailure, explain, is_explained
from qdialect.target import Target

_NAME = "tile-chain"
_TAPS = 4
_LANES = (4, 8, 16)
# Of a factor, and of the tiles in sums.
_RANK, _OUTER = 3, 2


def contract_in_tiles(module: ir.Module, target: Target) -> None:
    """Multiply in tiles whatever can be, in place, where `target` has them; needs a current context and location."""
    instructions = instruction_set_of(target)
    if instructions is None or not instructions.has_tiles:
        return
    writes: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "vector.transfer_write" and b.is_vector_of(op.operands[0], 32):
            writes.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for write in writes:
        problem = _chain_problem(write)
        if problem is None:
            _rewrite(write)
        elif problem and is_explained():
            explain(_NAME, write, MatchFailure(problem))


def _chain_problem(write: ir.Operation) -> str | None:
    """Why the write is not that of a chain of contractions; empty where nothing is contracted."""
    contractions, problem = _read_chain(write.operands[0], {})
    if not contractions:
        return ""
    problem = problem or next(filter(None, map(_contraction_problem, contractions)), None)
    return problem or _write_problem(write)


def _read_chain(value: ir.Value, starts: Mapping[ir.Value, bool]) -> tuple[list[ir.Operation], str | None]:
    """The contractions whose sums `value` are, and why there is something else; `starts` are those of loops around."""
    if value in starts or b.splat_value(value) == 0:
        return [], None
    owner = value.owner
    if len(list(value.uses)) > 1:
        return [], "sums must be used once"
    if not isinstance(owner, ir.Block) and owner.name == "vector.contract":
        before, problem = _read_chain(owner.operands[2], starts)
        return [*before, owner.operation], problem
    if isinstance(owner, ir.Block) or owner.name != "scf.for" or len(owner.operation.results) != 1:
        return [], "sums must start at 0 and be added to by contractions alone"
    before, problem = _read_chain(_first_sums(owner.operation), starts)
    block = owner.regions[0].blocks[0]
    inside, own = _read_chain(_yielded(block), {**starts, block.arguments[1]: True})
    return [*before, *inside], problem or own


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


def _rewrite(write: ir.Operation) -> None:
    """Emit the chain in tiles and write them."""
    sums, buffer, *indices = write.operands
    shape = b.shape_of(sums)
    tiles = _tiles_of(sums, {})
    stride = (static_strides(ir.MemRefType(buffer.type)) or ())[-2]
    with ir.InsertionPoint(write), write.location:
        for position, tile in zip(_positions(shape), tiles, strict=True):
            steps = [*[0] * (len(indices) - len(shape)), *position, 0, 0]
            tile_store(TileMemory(buffer, b.shifted(indices, steps), len(indices) - 2, stride), tile)
    write.erase()
    _erase_unused(sums)


def _tiles_of(value: ir.Value, carried: Mapping[ir.Value, Sequence[ir.Value]]) -> Sequence[ir.Value]:
    """The tiles of sums in the order of their positions; `carried` has those of the arguments of loops."""
    if value in carried:
        return carried[value]
    owner = value.owner
    assert not isinstance(owner, ir.Block), "arguments are carried"
    if owner.name == "scf.for":
        return _carry(owner.operation, carried)
    if owner.name == "vector.contract":
        return _products(owner.operation, _tiles_of(owner.operands[2], carried))
    *_, rows, lanes = shape = b.shape_of(value)
    # Each its own: there is no move between tiles.
    with ir.InsertionPoint(owner), ir.Location.unknown():
        return [tile_zero(rows, lanes) for _ in _positions(shape)]


def _carry(loop: ir.Operation, carried: Mapping[ir.Value, Sequence[ir.Value]]) -> Sequence[ir.Value]:
    """The loop over tiles in front of the one over sums, whose body moves there."""
    first = _tiles_of(_first_sums(loop), carried)
    block = loop.regions[0].blocks[0]
    index, sums = block.arguments
    with ir.InsertionPoint(loop), loop.location:
        other = scf.ForOp(*list(loop.operands)[:3], list(first))
    *body, end = block.operations
    with ir.InsertionPoint(other.body), loop.location:
        last = scf.YieldOp(list(other.inner_iter_args))
    for op in body:
        op.operation.move_before(last.operation)
    index.replace_all_uses_with(other.induction_variable)
    total = end.operands[0]
    with ir.InsertionPoint(last), loop.location:
        scf.YieldOp(list(_tiles_of(total, {**carried, sums: list(other.inner_iter_args)})))
    last.operation.erase()
    end.operation.erase()
    _erase_unused(total)
    return list(other.results)


def _products(op: ir.Operation, sums: Sequence[ir.Value]) -> Sequence[ir.Value]:
    """The tiles after the products of a contraction."""
    found = narrow_contraction(op)
    assert isinstance(found, NarrowContraction), "it was checked"
    loops, data, weights = found.loops, found.data, found.weights
    (row, lane), (k_group, tap) = loops.result[-2:], data.loops[-2:]
    a, matrix = _Factor(data, row, (k_group, tap), found), _Factor(weights, k_group, (lane, tap), found)
    total: list[ir.Value] = []
    with ir.InsertionPoint(op), op.location:
        for point, tile in zip(loops.points(loops.result[:-2]), sums, strict=True):
            for term in loops.points([loop for loop in loops.reduced if loop not in (k_group, tap)]):
                step = {**point, **term}
                tile = TDPBUSD.emit(tile, a.tile(step), matrix.tile(step))
            total.append(tile)
    return total


class _Factor:
    """The tiles of a factor, each loaded once."""

    def __init__(self, side: Side, rows: int, columns: tuple[int, int], found: NarrowContraction) -> None:
        self._side, self._columns = side, found.loops.terms(columns)
        self._rows = found.loops.extents[rows]
        self._axis = len(side.read.indices) - len(side.loops) + side.loops.index(rows)
        self._outer = [loop for loop in side.loops if loop not in (rows, *columns)]
        self._loaded: dict[tuple[int, ...], ir.Value] = {}

    def tile(self, step: Point) -> ir.Value:
        """The tile at a step of the loops that are not in it."""
        position = at(step, self._outer)
        if position not in self._loaded:
            self._loaded[position] = tile_load(self._memory(step), self._rows, self._columns)
        return self._loaded[position]

    def _memory(self, step: Point) -> TileMemory:
        read = self._side.read
        inside = [loop if loop in self._outer else -1 for loop in self._side.loops]
        *outer, k_group, _ = read.position(at(step, inside))
        column = arith.muli(k_group, b.index(_TAPS))
        return TileMemory(b.collapse_inner(read.buffer, 2), [*outer, column], self._axis, read.strides[self._axis])


def _positions(shape: Sequence[int]) -> list[tuple[int, ...]]:
    return list(np.ndindex(*shape[:-2]))


def _erase_unused(value: ir.Value) -> None:
    """Erase what defines `value`, and what that alone has used."""
    owner = value.owner
    if isinstance(owner, ir.Block) or any(len(list(result.uses)) for result in owner.operation.results):
        return
    operands = list(owner.operation.operands)
    owner.operation.erase()
    for operand in operands:
        _erase_unused(operand)
