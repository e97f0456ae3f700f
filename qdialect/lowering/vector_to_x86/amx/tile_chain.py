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
from collections.abc import Iterator, Mapping

from qdialect.ir._mlir import ir, ops_in
from qdialect.lowering.instructions.instruction_set import instruction_set_of
from qdialect.lowering.instructions.tiles import ROWS, AmxRegisters, PortableRegisters, Shape, TileRegisters
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.accesses import accesses
from qdialect.lowering.ir.flat_address import buffer_problem, transfer_problem
from qdialect.lowering.ir.functions import functions, op_in
from qdialect.lowering.ir.views import static_strides
from qdialect.lowering.vector_to_x86.amx.delayed_epilogue import delay_epilogue
from qdialect.lowering.vector_to_x86.amx.tile_products import FACTORS, TAPS, Chain, first_sums, yielded
from qdialect.lowering.vector_to_x86.integer_products import BYTES, NarrowContraction, narrow_contraction
from qdialect.passes.pattern import MatchFailure, explain, is_explained
from qdialect.targets import Target

_NAME = "tile-chain"
_LANES = (4, 8, 16)
# Of a factor, and of the tiles in sums.
_RANK, _OUTER = 3, 2
# Registers for sums, data and weights.
_COUNTS = (4, FACTORS, FACTORS)


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
        problem = _chain_problem(write)
        if problem is None:
            yield write
        elif problem and is_explained():
            explain(_NAME, write, MatchFailure(problem))


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


def _chain_problem(write: ir.Operation) -> str | None:
    """Why the write is not that of a chain of contractions; empty if it has no contraction."""
    contractions, problem = _read_chain(write.operands[0], {})
    if not contractions:
        return ""
    problem = problem or next(filter(None, map(_contraction_problem, contractions)), None)
    if problem is None and len({b.shape_of(op.operands[0])[-2] for op in contractions}) > 1:
        problem = "contractions must have equal numbers of K groups"
    return problem or _write_problem(write) or _order_problem(write, len(contractions))


def _order_problem(write: ir.Operation, count: int) -> str | None:
    """Why other chains could need the registers before the `count` contractions of a chain are written."""
    first = _first_op(write)
    if first.block != write.block:
        return "sums must be written where they start"
    ops = [op.operation for op in write.block.operations]
    until = (inner for op in ops[ops.index(first) : ops.index(write)] for inner in ops_in(op))
    found = sum(op.name == "vector.contract" for op in until)
    return "sums must be written before others are computed" if found > count else None


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
    inside, own = _read_chain(yielded(block), {**starts, block.arguments[1]: True})
    return [*before, *inside], problem or own or _uses_problem(value)


def _uses_problem(sums: ir.Value) -> str | None:
    return "sums must be used once" if len(list(sums.uses)) > 1 else None


def _contraction_problem(op: ir.Operation) -> str | None:
    """Why the innermost loops of a contraction are not tiles."""
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
    if {k_group, tap} & set(result) or k_group not in weights or extents[tap] != TAPS:
        return "innermost loops of the data must be K groups and four taps, which are summed up"
    if max(extents[row], extents[k_group]) > ROWS or extents[lane] not in _LANES:
        sizes = f"{extents[row]} x {extents[k_group]} x {extents[lane]}"
        return f"tiles must have at most 16 rows and K groups, and 4, 8 or 16 lanes, but got {sizes}"
    tiles = [math.prod(extents[loop] for loop in loops if loop in result[:-2]) for loops in (result, data, weights)]
    # If each data tile is multiplied by only one weight tile, the next data tile may reuse its register.
    if tiles[0] > _COUNTS[0] or tiles[2] > _COUNTS[2] or (tiles[1] > _COUNTS[1] and tiles[2] > 1):
        return f"there must be at most {_COUNTS} tiles of sums, data and weights, but got {tiles}"
    sides = (found.data, found.weights)
    if not all(side.read.moving[-1] == 1 and b.is_innermost_contiguous(side.read.buffer, 2) for side in sides):
        return "taps must lie side by side"
    return None


def _write_problem(write: ir.Operation) -> str | None:
    """Why the accumulators are not written unchanged, row by row."""
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
    shapes = Shape(sums[-2], sums[-1], 32), Shape(sums[-2], TAPS * k_groups, 8), Shape(k_groups, TAPS * sums[-1], 8)
    return tuple(shape for shape, count in zip(shapes, _COUNTS, strict=True) for _ in range(count))
