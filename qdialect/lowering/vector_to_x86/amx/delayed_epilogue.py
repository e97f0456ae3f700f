"""The epilogue of a block of matrix tiles, computed between the products of the next block.

Tile products leave the vector units idle, and an epilogue leaves the tile unit idle; the out-of-order window of a core
is too small to overlap them.  So the epilogue of a block is delayed: it is split into pieces, which the loop over K
tiles of the next block computes one by one:

    for block:                              pending = none
      for k:                                for block:
        products                              for k:
      sums to scratch                  ->       products
      for piece: epilogue(block)                piece of epilogue(pending)
                                              sums to scratch
                                              pending = block
                                            for piece: epilogue(pending)

The accumulators of the pending block stay in scratch until all of its pieces are done, before the next accumulators
are stored there: one scratch buffer is enough.  `block` is the indices of the loops around it.  They are kept in
memory, so that the next block may belong to another iteration of any of the loops.  A block of one K tile has no loop:
the whole epilogue follows its products.

If nothing else reads scratch, and all blocks use the same, `tile_products` may leave the accumulators in tile
registers and store them between the first products of the next block, which come before the first piece.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from qdialect.ir._mlir import arith, ir, memref, scf
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import Access, effects_of
from qdialect.lowering.ir.functions import bounds
from qdialect.lowering.ir.views import buffer_of, is_view

_LOOP = "scf.for"


@dataclass(frozen=True)
class _Range:
    """The indices of a loop whose bounds are known."""

    loop: ir.Operation
    first: int
    step: int
    trips: int

    @property
    def index(self) -> ir.Value:
        """The index as a value in the body."""
        return _body(self.loop).arguments[0]

    def index_at(self, position: ir.Value) -> ir.Value:
        """The index of its iteration number `position`."""
        return arith.addi(arith.muli(position, b.index(self.step)), b.index(self.first))

    def position(self) -> ir.Value:
        """The number of the current iteration."""
        return arith.divui(arith.subi(self.index, b.index(self.first)), b.index(self.step))


@dataclass(frozen=True)
class _Epilogue:
    """Loops over pieces, and the ops of a piece."""

    loops: tuple[_Range, ...]
    ops: tuple[ir.Operation, ...]

    @cached_property
    def pieces(self) -> int:
        return math.prod(loop.trips for loop in self.loops)

    @cached_property
    def inputs(self) -> list[ir.Value]:
        """The values that a piece uses and does not compute."""
        inside = _body(self.loops[-1].loop)
        return [value for op in self.ops for value in op.operands if _block_of(value) != inside]


@dataclass(frozen=True)
class _Block:
    """A block of products that a loop repeats, and its epilogue."""

    around: tuple[ir.Operation, ...]
    """Loops whose indices identify the block, innermost first."""
    steps: tuple[_Range, ...]
    """Loops over K tiles, outermost first, in the block."""
    last: ir.Operation
    """The last product of a step."""
    write: ir.Operation
    """The write of the accumulators to scratch."""
    epilogue: _Epilogue


def delay_epilogue(
    write: ir.Operation, products: Sequence[ir.Operation], accesses: Sequence[Access], others: Sequence[ir.Operation]
) -> ir.Operation | None:
    """Overlap the epilogue of the accumulators that `write` stores with the next products, if its time does not matter.

    `products` are the contractions whose sums are written; `accesses` are those of the function, and `others` its
    writes of sums.  Returns the op before which the last sums are to be written, where sums may wait in registers for
    the next block; None where each block must write its own.
    """
    epilogue, first_steps, steps = _epilogue_behind(write), *(_steps(products[end], write) for end in (0, -1))
    if epilogue is None or first_steps is None or steps is None:
        return None
    around = _loops_around(write, epilogue, accesses)
    if all(_is_once(loop) for loop in around) or not all(_is_found_again(one, around[-1]) for one in epilogue.inputs):
        return None
    top, loop = around[-1], epilogue.loops[0].loop
    inside = [access for access in accesses if _is_inside(access.op, top) and not _is_inside(access.op, loop)]
    places = {access.argument for access in inside if access.op == write}
    is_own = [access.op for access in inside if access.argument in places] == [write]
    is_fixed = all(_is_fixed(value, top) for value in list(write.operands)[1:])
    has_others = any(other != write and _is_inside(other, top) for other in others)
    end = _delay(_Block(around, steps, products[-1], write, epilogue))
    if has_others or not (is_own and is_fixed):
        return None
    known: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(top), write.location:
        for position in range(1, len(write.operands)):
            write.operands[position] = _again(write.operands[position], known, top)
    return end


def _body(loop: ir.Operation) -> ir.Block:
    return loop.regions[0].blocks[0]


def _is_pure(op: ir.Operation) -> bool:
    """Whether `op` may be computed again where the epilogue goes: it depends on indices of loops alone."""
    return op.name.startswith("arith.") or is_view(op)


def _is_once(loop: ir.Operation) -> bool:
    found = bounds(loop)
    return found is not None and found[2] == 1


def _is_inside(op: ir.Operation, loop: ir.Operation) -> bool:
    while op.parent is not None and op != loop:
        op = op.parent.operation
    return op == loop


def _epilogue_behind(write: ir.Operation) -> _Epilogue | None:
    """The loops after `write`, if its block does nothing else there."""
    ops = [op.operation for op in write.block.operations]
    ops = ops[ops.index(write) + 1 : -1]
    loops: list[_Range] = []
    while loop := _only_loop(ops):
        found = bounds(loop)
        if found is None or len(_body(loop).arguments) > 1:
            return None
        loops.append(_Range(loop, *found))
        ops = [op.operation for op in _body(loop).operations][:-1]
    # Accesses are known only to the function's arguments.
    is_known = all(not len(op.regions) and _is_of_arguments(op) for op in ops)
    return _Epilogue(tuple(loops), tuple(ops)) if loops and is_known else None


def _is_of_arguments(op: ir.Operation) -> bool:
    """Whether `op` accesses only memory of its function's arguments."""
    effects = effects_of(op)
    buffers = (buffer_of(op.operands[number]) for number in (*effects.reads, *effects.writes))
    return effects.is_known and all(isinstance(one, ir.Value) and isinstance(one.owner, ir.Block) for one in buffers)


def _only_loop(ops: Sequence[ir.Operation]) -> ir.Operation | None:
    """The only loop of `ops`, if the other ops compute addresses."""
    busy = [op for op in ops if not _is_pure(op)]
    return busy[0] if len(busy) == 1 and busy[0].name == _LOOP else None


def _steps(product: ir.Operation, write: ir.Operation) -> tuple[_Range, ...] | None:
    """The loops between a contraction and its `write`; None if their trip counts are unknown, or too small."""
    found: list[_Range] = []
    op = product
    while op.block != write.block:
        assert op.parent is not None, "it is inside of the block"
        op = op.parent.operation
        known = bounds(op)
        if known is None or not known[2]:
            return None
        found.insert(0, _Range(op, *known))
    return tuple(found)


def _loops_around(write: ir.Operation, epilogue: _Epilogue, accesses: Sequence[Access]) -> tuple[ir.Operation, ...]:
    """The loops around `write`, innermost first, as long as the epilogue may wait for their next iteration."""
    own = [access for access in accesses if _is_inside(access.op, epilogue.loops[0].loop)]
    found: list[ir.Operation] = []
    loop = write.parent.operation if write.parent else None
    while loop is not None and loop.name == _LOOP and len(_body(loop).arguments) == 1:
        others = [one for one in accesses if one not in own and _is_inside(one.op, loop)]
        if any(_depend(one, other, write) for one in own for other in others):
            break
        found.append(loop)
        loop = loop.parent.operation if loop.parent else None
    return tuple(found)


def _depend(own: Access, other: Access, write: ir.Operation) -> bool:
    """Whether the access `own` keeps an epilogue from being delayed past `other`; reads of `write`'s sums do not."""
    if own.argument != other.argument or (other.op == write and not own.is_write):
        return False
    return own.is_write or other.is_write


def _is_found_again(value: ir.Value, top: ir.Operation) -> bool:
    """Whether `value`, which the epilogue uses, can be recomputed from the indices inside of the loop `top`."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not _is_inside(owner.operation, top):
        return True
    return _is_pure(owner.operation) and all(_is_found_again(one, top) for one in owner.operands)


def _is_fixed(value: ir.Value, top: ir.Operation) -> bool:
    """Whether `value` is invariant in the loop `top`."""
    if isinstance(value.owner, ir.Block):
        return not _is_inside(value.owner.owner.operation, top)
    owner = value.owner.operation
    return not _is_inside(owner, top) or (_is_pure(owner) and all(_is_fixed(one, top) for one in owner.operands))


def _delay(block: _Block) -> ir.Operation:
    """Move the epilogue of `block` into the next one, and after the last; returns where the last begins, if any."""
    pending, top, loop = _Pending(block), block.around[-1], block.epilogue.loops[0].loop
    with block.write.location:
        with ir.InsertionPoint(top):
            pending.is_none()
        with ir.InsertionPoint.at_block_begin(block.write.block):
            waiting = pending.read()
        with ir.InsertionPoint(list(block.last.block.operations)[-1].operation if block.steps else block.write):
            _compute_step(block, waiting)
        with ir.InsertionPoint(loop):
            pending.is_this()
        with ir.InsertionPoint.after(top):
            waiting = pending.read()
            branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ne, waiting.count, b.index(0)))
            waiting.compute(b.index(0), waiting.count, 1)
    loop.erase()
    with ir.InsertionPoint(branch.then_block), block.write.location:
        return scf.YieldOp([]).operation


def _block_of(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _compute_step(block: _Block, waiting: _Waiting) -> None:
    """Compute the pieces of one step."""
    steps, number = math.prod(step.trips for step in block.steps), _number_of_step(block)
    count, average = -(-block.epilogue.pieces // steps), block.epilogue.pieces / steps
    if count == 1:
        waiting.compute_one(number, average)
        return
    first = arith.muli(number, b.index(count))
    waiting.compute(first, arith.minui(arith.addi(first, b.index(count)), waiting.count), average)


def _number_of_step(block: _Block) -> ir.Value:
    number = b.index(0)
    for step in block.steps:
        number = arith.addi(arith.muli(number, b.index(step.trips)), step.position())
    return number


class _Pending:
    """Memory on the stack for the block whose epilogue is pending: its indices, and the number of its pieces."""

    def __init__(self, block: _Block) -> None:
        self._block = block
        function = block.around[-1]
        while function.name != "func.func":
            assert function.parent is not None, "loops are in a function"
            function = function.parent.operation
        type_ = ir.MemRefType.get([len(block.around) + 1], ir.IndexType.get())
        with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
            self._memory = memref.alloca(type_, [], [])

    def is_none(self) -> None:
        """Set that no epilogue is pending; the indices are valid ones."""
        self._write([b.index(0) for _ in self._block.around], 0)

    def is_this(self) -> None:
        """Set the block of this iteration as pending."""
        self._write([_body(loop).arguments[0] for loop in self._block.around], self._block.epilogue.pieces)

    def _write(self, indices: Sequence[ir.Value], count: int) -> None:
        for position, value in enumerate([*indices, b.index(count)]):
            memref.store(value, self._memory, [b.index(position)])

    def read(self) -> _Waiting:
        around, epilogue = self._block.around, self._block.epilogue
        *indices, count = [memref.load(self._memory, [b.index(i)]) for i in range(len(around) + 1)]
        known: dict[ir.Value, ir.Value] = {
            _body(loop).arguments[0]: index for loop, index in zip(around, indices, strict=True)
        }
        for value in epilogue.inputs:
            if _block_of(value) == self._block.write.block:
                _again(value, known, around[-1])
        return _Waiting(epilogue, around[-1], known, count)


@dataclass(frozen=True)
class _Waiting:
    """A pending epilogue; `known` maps the values of the current block to those of the pending one."""

    epilogue: _Epilogue
    top: ir.Operation
    known: Mapping[ir.Value, ir.Value]
    count: ir.Value
    """The number of its pieces that are pending."""

    def compute(self, first: ir.Value, behind: ir.Value, average: float) -> None:
        """Compute the pieces from `first` to before `behind`, `average` of them on average."""
        with b.loop(first, behind, trips=average) as number:
            self._piece(number)

    def compute_one(self, number: ir.Value, average: float) -> None:
        """Compute a piece if it is pending: a branch, which needs no loop counter."""
        with b.branch(arith.cmpi(arith.CmpIPredicate.ult, number, self.count), average):
            self._piece(number)

    def _piece(self, number: ir.Value) -> None:
        known, (outermost, *inner) = dict(self.known), self.epilogue.loops
        for own in reversed(inner):
            known[own.index] = own.index_at(arith.remui(number, b.index(own.trips)))
            number = arith.divui(number, b.index(own.trips))
        known[outermost.index] = outermost.index_at(number)
        for op in self.epilogue.ops:
            _copy(op, known, self.top)


def _copy(op: ir.Operation, known: dict[ir.Value, ir.Value], top: ir.Operation) -> None:
    """The op again, of values that are `known` by those of `op`."""
    operands = [_again(operand, known, top) for operand in op.operands]
    copy = op.clone()
    for position, operand in enumerate(operands):
        copy.operands[position] = operand
    known.update(zip(op.results, copy.results, strict=True))


def _again(value: ir.Value, known: dict[ir.Value, ir.Value], top: ir.Operation) -> ir.Value:
    """A value inside of the loop `top`, computed again; one from outside is as it was."""
    if value not in known and not isinstance(value.owner, ir.Block) and _is_inside(value.owner.operation, top):
        _copy(value.owner.operation, known, top)
    return known.get(value, value)
