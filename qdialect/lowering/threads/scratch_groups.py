"""Which ops at the top of a kernel hand scratch memory to each other.

Nothing is handed over at an op where the memory is dead: every element that is read from there on has been written
since. A loop over blocks of rows and the block of what is left each write a tile of sums and read it again: between
them the memory is dead, and each is divided on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.lowering.ir.loops import bounds
from qdialect.lowering.threads.accesses import Access

_WHOLE_WRITES = (
    *("vector.transfer_write", "vector.store", "memref.store", "memref.copy", "affine.store", "affine.vector_store"),
)


def scratch_groups(tops: Sequence[ir.Operation], touching: Sequence[Access]) -> list[list[ir.Operation]]:
    """`tops` of a block, which make the accesses `touching` of one buffer, cut wherever the buffer is dead.

    All are together where the first reads what none has written: an iteration may then go on with another's elements.
    """
    live = np.zeros(touching[0].extent, np.bool_)
    groups: list[list[ir.Operation]] = [[]]
    for top in reversed(tops):
        groups[-1].append(top)
        for access in reversed(_in_order(top, touching)):
            _step_back(live, access)
        if not live.any():
            groups.append([])
    return [list(tops)] if live.any() else groups[:-1]


def _in_order(top: ir.Operation, touching: Sequence[Access]) -> list[Access]:
    """The accesses that `top` makes, in the order of their ops; an op that does both reads first."""
    position = {op: i for i, op in enumerate(_walk(top))}
    found = [access for access in touching if access.op in position]
    return sorted(found, key=lambda access: (position[access.op], access.is_write))


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    yield op
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield from _walk(child.operation)


def _step_back(live: NDArray[np.bool_], access: Access) -> None:
    """From what is live behind `access` to what is live before it."""
    if not access.is_write:
        live[slice(None) if access.run is None else access.run.mask(len(live))] = True
    elif access.run is not None and _writes_all(access.op):
        live[access.run.mask(len(live))] = False


def _writes_all(op: ir.Operation) -> bool:
    """Whether `op` is certain to write every element of its run."""
    if op.name not in _WHOLE_WRITES or (op.name == "vector.transfer_write" and not _is_whole(op)):
        return False
    holder = op.parent
    while holder and holder.name != "func.func":
        found = bounds(holder.operation) if holder.name == "scf.for" else None
        if found is None or not found[2]:
            return False
        holder = holder.operation.parent
    return True


def _is_whole(op: ir.Operation) -> bool:
    """Whether a write of a vector is without mask and within its buffer."""
    *_, masks = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    return not masks and all(ir.BoolAttr(value).value for value in ir.ArrayAttr(op.attributes["in_bounds"]))
