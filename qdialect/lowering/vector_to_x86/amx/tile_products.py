"""Chains of contractions, from zeros to a write of the accumulators -> products of matrix tiles.

The accumulators of a contraction [..., rows, lanes] are one tile for each of the outer positions.  They stay in tile
registers from one contraction to the next, also through loops: from zeros until they are written to memory.

    %0 = arith.constant dense<0>
    %1 = scf.for ... iter_args(%acc = %0) { %2 = vector.contract data, weights, %acc; scf.yield %2 }
    vector.transfer_write %1, %sums

Each contraction multiplies unsigned by signed bytes.  The innermost dimensions of the data are rows, K groups and four
taps; those of the weights K groups, then lanes and four taps, which are contiguous.  Other chains do not match.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from qdialect.ir._mlir import arith, ir, ops_in, scf
from qdialect.lowering.instructions.instruction_set import instruction_set_of
from qdialect.lowering.instructions.tiles import ROWS, AmxRegisters, PortableRegisters, Shape, TileMemory, TileRegisters
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import accesses
from qdialect.lowering.ir.flat_address import require_access
from qdialect.lowering.ir.functions import Point, at, bounds, functions, op_in
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.vector_to_x86.amx.delayed_epilogue import delay_epilogue
from qdialect.lowering.vector_to_x86.integer_products import BYTES, NarrowContraction, Side, narrow_contraction
from qdialect.lowering.vector_to_x86.prefetch import has_inner_columns, prefetch_weights
from qdialect.passes.pattern import MatchFailure, attempted, explain, is_explained, refuse, require
from qdialect.targets import Target
from qdialect.targets.machine import Machine

# Emission of chains of contractions in registers of matrix tiles.
#
# A chain zeroes the accumulator tiles, computes the products, and stores the accumulators.  A store of a tile takes as
# long as a product, and the next product waits for it, because the core finds no independent one in time.  If the
# epilogue is delayed into the next block, so are the stores: each register is stored just before its first product in
# the next block, while the product before is still computed.
#
#     for block:                  for block:
#       zero 0, 1, ...              for k:
#       for k:                        load
#         load                 ->     if k is the first: store 0, zero 0
#         multiply 0                  multiply 0
#         multiply 1                  if k is the first: store 1, zero 1
#       store 0, 1, ...               multiply 1
#                                 store 0, 1, ...
#
# The first block stores tiles that nothing reads: no epilogue is pending then.

_TAPS = 4
"""Bytes of a K group."""
_FACTORS = 2
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
        assert found is not None, "it was checked"
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
            with b.branch(is_first.condition, is_first.share):
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
    """The tiles of a factor, each loaded once, into `_FACTORS` registers from `first` on by turns."""

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
            self._loaded[position] = self._first + len(self._loaded) % _FACTORS
            self._load(self._loaded[position], self._memory(step))
        return self._loaded[position]

    def _memory(self, step: Point) -> TileMemory:
        read = self._side.read
        inside = [loop if loop in self._outer else -1 for loop in self._side.loops]
        *outer, k_group, _ = read.position(at(step, inside))
        column = arith.muli(k_group, b.index(_TAPS))
        return TileMemory(b.collapse_inner(read.buffer, 2), [*outer, column], self._axis, read.strides[self._axis])


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


# Which contractions are a chain.

_NAME = "tile-chain"
_LANES = (4, 8, 16)
# Of a factor, and of the tiles in sums.
_RANK, _OUTER = 3, 2
# Registers for sums, data and weights.
_COUNTS = (4, _FACTORS, _FACTORS)


def contract_in_tiles(module: ir.Module, target: Target) -> None:
    """Rewrite all matching chains with matrix tiles if `target` has them, in place; needs a context and location.

    A function that uses tiles releases them at its end.
    """
    instructions = instruction_set_of(target)
    if instructions is None or not instructions.has_tiles:
        return
    for function in functions(module):
        chains = list(_chains(function))
        if chains:
            block = function.regions[0].blocks[0]
            registers = PortableRegisters(block) if target.is_portable else AmxRegisters()
            found: dict[ir.Operation, Chain] = {}
            for write in chains:
                contractions, _ = _read_chain(write.operands[0], {})
                end = delay_epilogue(write, contractions, accesses(function), chains)
                found[write] = Chain(registers, instructions.machine, write, contractions[0], end)
            _emit(block, found, registers)
            with ir.InsertionPoint(list(block.operations)[-1]):
                registers.release()


def _chains(function: ir.Operation) -> Iterator[ir.Operation]:
    """The writes of chains of `function`."""
    writes = (op for op in ops_in(function) if op.name == "vector.transfer_write")
    for write in [one for one in writes if b.is_vector_of(one.operands[0], 32)]:
        found = attempted(_is_chain, write)
        if isinstance(found, MatchFailure) and is_explained():
            explain(_NAME, write, found)
        elif found is True:
            yield write


def _emit(block: ir.Block, chains: Mapping[ir.Operation, Chain], registers: TileRegisters) -> None:
    """Emit `chains`, by their writes, in `block`.

    Registers are configured before the outermost op that holds chains of one shape.
    """
    by_op: dict[ir.Operation, list[ir.Operation]] = {}
    for chain in chains:
        by_op.setdefault(op_in(chain, block), []).append(chain)
    configured = None
    for top, inside in by_op.items():
        shapes = {_shapes(chain) for chain in inside}
        if len(shapes) > 1:
            _emit_inside(top, {write: chains[write] for write in inside}, registers)
            configured = None
            continue
        if shapes != configured:
            at_op = _first_op(top) if top in inside else top
            with ir.InsertionPoint(at_op), at_op.location:
                registers.configure(*shapes)
        configured = shapes
        for chain in inside:
            chains[chain].emit()


def _emit_inside(op: ir.Operation, chains: Mapping[ir.Operation, Chain], registers: TileRegisters) -> None:
    """Emit `chains` in the blocks of `op`."""
    for region in op.regions:
        for block in region.blocks:
            own = {write: chain for write, chain in chains.items() if op_in(write, block).block == block}
            _emit(block, own, registers)


def _first_op(chain: ir.Operation) -> ir.Operation:
    """The first op of a chain: the one that uses the zeros."""
    op, value = chain, chain.operands[0]
    while not isinstance(value.owner, ir.Block) and value.owner.name in ("scf.for", "vector.contract"):
        op = value.owner.operation
        value = first_sums(op) if op.name == "scf.for" else op.operands[2]
    return op


def _is_chain(write: ir.Operation) -> bool:
    """Whether the write is that of contractions; raises `MatchFailure` if they are no chain."""
    contractions, problem = _read_chain(write.operands[0], {})
    if not contractions:
        return False
    refuse(problem)
    for op in contractions:
        _check_contraction(op)
    k_groups = {b.shape_of(op.operands[0])[-2] for op in contractions}
    require(len(k_groups) == 1, "contractions must have equal numbers of K groups")
    _check_write(write)
    _check_order(write, len(contractions))
    return True


def _check_order(write: ir.Operation, count: int) -> None:
    """No other chain needs the registers before the `count` contractions of a chain are written."""
    first = _first_op(write)
    require(first.block == write.block, "sums must be written where they start")
    ops = [op.operation for op in write.block.operations]
    until = (inner for op in ops[ops.index(first) : ops.index(write)] for inner in ops_in(op))
    found = sum(op.name == "vector.contract" for op in until)
    require(found <= count, "sums must be written before others are computed")


def _read_chain(value: ir.Value, starts: Mapping[ir.Value, bool]) -> tuple[list[ir.Operation], str | None]:
    """The contractions that compute `value`, and why there is another op; `starts` are those of the loops around."""
    if value in starts or b.splat_value(value) == 0:
        return [], None
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "vector.contract":
        before, problem = _read_chain(owner.operands[2], starts)
        return [*before, owner.operation], problem or _uses_problem(value)
    if isinstance(owner, ir.Block) or owner.name != "scf.for" or len(owner.operation.results) != 1:
        return [], "sums must start at 0 and be added to by contractions alone"
    before, problem = _read_chain(first_sums(owner.operation), starts)
    block = owner.regions[0].blocks[0]
    yielded = list(block.operations)[-1].operands[0]
    inside, own = _read_chain(yielded, {**starts, block.arguments[1]: True})
    return [*before, *inside], problem or own or _uses_problem(value)


def _uses_problem(sums: ir.Value) -> str | None:
    return "sums must be used once" if len(list(sums.uses)) > 1 else None


def _check_contraction(op: ir.Operation) -> None:
    """The innermost loops of a contraction are tiles."""
    found = narrow_contraction(op)
    if found is None or found.factors is not BYTES:
        raise MatchFailure("factors must be an unsigned and a signed byte")
    extents = found.loops.extents
    data, weights, result = found.data.loops, found.weights.loops, found.loops.result
    are_enough = min(len(data), len(weights)) >= _RANK and len(result) >= _OUTER
    require(are_enough, "data must have rows, K groups and taps, weights K groups, lanes and taps")
    (row, lane), (k_group, tap) = result[-2:], data[-2:]
    is_product = weights[-2:] == (lane, tap) and row not in weights and row in data and lane not in data
    require(is_product, "innermost loops of the result must be rows of the data and lanes of the weights")
    is_summed = not {k_group, tap} & set(result) and k_group in weights and extents[tap] == _TAPS
    require(is_summed, "innermost loops of the data must be K groups and four taps, which are summed up")
    fits = max(extents[row], extents[k_group]) <= ROWS and extents[lane] in _LANES
    sizes = f"{extents[row]} x {extents[k_group]} x {extents[lane]}"
    require(fits, f"tiles must have at most 16 rows and K groups, and 4, 8 or 16 lanes, but got {sizes}")
    tiles = [math.prod(extents[loop] for loop in loops if loop in result[:-2]) for loops in (result, data, weights)]
    # If each data tile is multiplied by only one weight tile, the next data tile may reuse its register.
    are_held = tiles[0] <= _COUNTS[0] and tiles[2] <= _COUNTS[2] and (tiles[1] <= _COUNTS[1] or tiles[2] == 1)
    require(are_held, f"there must be at most {_COUNTS} tiles of sums, data and weights, but got {tiles}")
    for side in (found.data, found.weights):
        is_dense = side.read.moving[-1] == 1 and b.is_innermost_contiguous(side.read.buffer, 2)
        require(is_dense, "taps must lie side by side")


def _check_write(write: ir.Operation) -> None:
    """The accumulators are written unchanged, row by row."""
    sums, buffer, *_ = write.operands
    require_access(write, buffer, "destination", 32)
    strides = static_strides(ir.MemRefType(buffer.type)) or (0,)
    is_wide = len(b.shape_of(sums)) >= _OUTER and strides[-1] == 1
    require(is_wide, "destination must have lanes side by side")


def _shapes(write: ir.Operation) -> tuple[Shape, ...]:
    """The shapes of the registers of a chain: sums first, then data, then weights."""
    sums = b.shape_of(write.operands[0])
    contractions, _ = _read_chain(write.operands[0], {})
    found = narrow_contraction(contractions[0])
    assert found is not None, "it was checked"
    k_groups = found.loops.extents[found.data.loops[-2]]
    shapes = Shape(sums[-2], sums[-1], 32), Shape(sums[-2], _TAPS * k_groups, 8), Shape(k_groups, _TAPS * sums[-1], 8)
    return tuple(shape for shape, count in zip(shapes, _COUNTS, strict=True) for _ in range(count))
