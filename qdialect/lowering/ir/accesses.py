"""Which elements of its buffers a kernel reads and writes, at the vector phase.

An access is a `Run`: a start and, for each loop around it and each dimension of its vector, a stride and an extent.
What a run cannot describe, an access at a position read from a table or one by an op unknown here, covers its whole
buffer. Unknown ops are assumed to read and write everything; known ops and intrinsics are listed with their effects.
MLIR's bindings tell that an op has effects, but not which, so that its interfaces cannot be queried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.ir._mlir import ir, ops_in
from qdialect.lowering.ir.functions import bounds, loop_of, loops_of
from qdialect.lowering.ir.views import buffer_of, element_bytes, is_memory, is_view, linear, start_of, static_strides

# The effects of an op itself, without those of the ops in its regions.


@dataclass(frozen=True)
class Effects:
    """The operands, by number, whose memory is read and written."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    is_known: bool = True
    """Else it may read and write any memory."""


NONE = Effects()
UNKNOWN = Effects(is_known=False)

_INTRINSIC = "llvm.call_intrinsic"
_PURE_DIALECTS = ("arith", "index", "math", "ub")
_OF_DIALECTS = {
    NONE: {
        "vector": """
            bitcast broadcast constant_mask contract create_mask deinterleave extract extract_strided_slice
            extractelement flat_transpose fma from_elements insert insert_strided_slice insertelement interleave mask
            matrix_multiply multi_reduction outerproduct reduction scan shape_cast shuffle splat step to_elements
            transpose type_cast vscale yield
        """,
        "memref": """
            alloc alloca alloca_scope alloca_scope.return assume_alignment cast collapse_shape dim expand_shape
            extract_aligned_pointer_as_index extract_strided_metadata get_global memory_space_cast prefetch rank
            reinterpret_cast subview transpose view
        """,
        "affine": "apply delinearize_index for if linearize_index max min parallel prefetch yield",
        "scf": """
            condition execute_region for forall forall.in_parallel if index_switch parallel reduce reduce.return while
            yield
        """,
        "llvm": """
            add and ashr bitcast extractelement extractvalue fadd fmul fsub getelementptr icmp insertelement insertvalue
            inttoptr lshr mlir.addressof mlir.constant mlir.poison mlir.undef mlir.zero mul or ptrtoint select sext shl
            shufflevector sub trunc xor zext
        """,
        "builtin": "unrealized_conversion_cast",
        "func": "return",
        "omp": "parallel terminator",
    },
    Effects(reads=(0,)): {
        "vector": "expandload gather load maskedload transfer_read",
        "memref": "load",
        "affine": "load vector_load",
        "llvm": "load",
    },
    Effects(writes=(0,)): {"vector": "compressstore maskedstore scatter", "memref": "dealloc"},
    Effects(writes=(1,)): {
        "vector": "store transfer_write",
        "memref": "store",
        "affine": "store vector_store",
        "llvm": "store",
    },
    Effects(reads=(0,), writes=(0,)): {"memref": "generic_atomic_rmw", "llvm": "atomicrmw cmpxchg"},
    Effects(reads=(1,), writes=(1,)): {"memref": "atomic_rmw"},
    Effects(reads=(0,), writes=(1,)): {"memref": "copy"},
}
_BY_NAME = {
    f"{dialect}.{name}": found
    for found, dialects in _OF_DIALECTS.items()
    for dialect, names in dialects.items()
    for name in names.split()
}
_INTRINSICS = {
    **dict.fromkeys(("llvm.x86.tileloadd64", "llvm.x86.tileloaddt164"), Effects(reads=(1,))),
    "llvm.x86.tilestored64": Effects(writes=(1,)),
    "llvm.x86.ldtilecfg": Effects(reads=(0,)),
    **dict.fromkeys(("llvm.x86.tilezero", "llvm.x86.tdpbusd", "llvm.x86.tilerelease"), NONE),
}


def effects_of(op: ir.Operation) -> Effects:
    """The effects of `op` itself on memory."""
    found = _BY_NAME.get(op.name)
    if found is not None:
        return found
    if op.name == _INTRINSIC:
        # The effects of an intrinsic; one not listed that has a result and no pointer operands has none.
        name = ir.StringAttr(op.attributes["intrin"]).value
        if name in _INTRINSICS:
            return _INTRINSICS[name]
        is_value = len(op.results) > 0 and not any(str(value.type).startswith("!llvm.ptr") for value in op.operands)
        return NONE if is_value else UNKNOWN
    return NONE if op.name.partition(".")[0] in _PURE_DIALECTS else UNKNOWN


def only_reads(op: ir.Operation) -> bool:
    """Whether `op`, which has no region, writes nothing."""
    found = effects_of(op)
    return found.is_known and not found.writes and not len(op.regions)


_CALL = "func.call"
"""A called function may access its operands, and memory whose address was taken."""
_INDEXED = frozenset(
    (
        *("vector.transfer_read", "vector.transfer_write", "vector.load", "vector.store"),
        *("vector.maskedload", "vector.maskedstore", "vector.compressstore", "vector.expandload"),
        *("memref.load", "memref.store", "memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.copy"),
        *("affine.load", "affine.store", "affine.vector_load", "affine.vector_store"),
    )
)
"""Ops whose operands bound the elements that they touch: indices after the buffer, and vectors."""
_QUESTIONS = ("memref.dim", "memref.rank", "memref.prefetch", "affine.prefetch")


@dataclass(frozen=True)
class Run:
    """Elements at `start` plus a multiple of each stride: ``(stride, extent)``, the multiples below the extent."""

    start: int
    dims: tuple[tuple[int, int], ...]

    @property
    def end(self) -> int:
        """One past the last element."""
        return self.start + sum(stride * (extent - 1) for stride, extent in self.dims) + 1

    @property
    def is_injective(self) -> bool:
        """Whether no element is reached twice; false also where the strides do not show it."""
        span = 1
        for stride, extent in sorted(self.dims):
            if stride < span:
                return False
            span = stride * (extent - 1) + span
        return True

    def overlaps(self, other: Run) -> bool:
        return self.count_in_common(other) > 0

    def count_in_common(self, other: Run) -> int:
        low, high = max(self.start, other.start), min(self.end, other.end)
        return int((self._mask(low, high) & other._mask(low, high)).sum()) if low < high else 0

    def mask(self, extent: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which elements of a buffer of `extent` it has."""
        found = np.zeros(extent, np.bool_)
        found[self.start : self.end] = self._mask(self.start, self.end)
        return found

    def scaled(self, size: int, offset: int) -> Run:
        """The bytes of elements of `size` bytes, in a block where the buffer starts at `offset`."""
        return Run(offset + self.start * size, ((1, size), *((stride * size, extent) for stride, extent in self.dims)))

    def _mask(self, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of the elements in [low, high) it has."""
        length, outer = _blocks(self.dims)
        mask = np.zeros(self.end - self.start, np.bool_)
        starts = np.zeros(1, np.int64)
        for stride, extent in outer:
            starts = np.unique(starts[:, None] + np.arange(extent) * stride)
        for start in starts:
            mask[start : start + length] = True
        return mask[low - self.start : high - self.start]


@dataclass(frozen=True)
class Access:
    """A read or a write of the buffer that is argument `argument` of a kernel; without run it covers the whole."""

    argument: int
    is_write: bool
    run: Run | None
    op: ir.Operation
    loops: tuple[tuple[ir.Operation, int], ...]
    """The loops around it that move it, and by how much in an iteration."""
    extent: int
    """Elements of the buffer."""


def accesses(function: ir.Operation) -> list[Access]:
    """All accesses of the kernel `function` to its buffers; of an op that may touch any memory one to each of them."""
    found, unknown = known_accesses(function, ops_of(function))
    whole = [_Use(op, -1, argument) for op in unknown for argument in _buffers(function)]
    return [*found, *(access for use in whole for access in use.accesses())]


def known_accesses(function: ir.Operation, ops: Sequence[ir.Operation]) -> tuple[list[Access], list[ir.Operation]]:
    """The accesses of what `function` gives to its `ops`, and those of them that may touch any memory."""
    found = [access for argument in _buffers(function) for access in _of_buffer(argument, argument)]
    # Finding the buffer behind a view takes time; for most it is known already.
    given = {access.op for access in found}
    return found, [op for op in ops if _touches_anything(op, op in given)]


def _buffers(function: ir.Operation) -> list[ir.BlockArgument]:
    return [one for one in function.regions[0].blocks[0].arguments if isinstance(one.type, ir.MemRefType)]


def _touches_anything(op: ir.Operation, is_given: bool) -> bool:
    """Whether `op` may read or write other memory than its operands, or has an operand that may be any memory.

    `is_given` tells whether one of the buffers that it touches is known to be an argument.
    """
    effects = effects_of(op)
    if effects is NONE or (is_given and len({*effects.reads, *effects.writes}) == 1):
        return False
    if not effects.is_known and op.name != _CALL:
        return True
    touched = (*effects.reads, *effects.writes) if effects.is_known else range(len(op.operands))
    buffers = [buffer_of(op.operands[number]) for number in touched if is_memory(op.operands[number])]
    # Another thread may read a global that one thread writes.
    return any(one is None for one in buffers) or (
        bool(effects.writes) and any(isinstance(one, str) for one in buffers)
    )


def ops_of(function: ir.Operation) -> list[ir.Operation]:
    """The ops inside, in program order."""
    return ops_in(function)[1:]


def _of_buffer(buffer: ir.Value, argument: ir.BlockArgument) -> Iterator[Access]:
    for use in buffer.uses:
        op, position = use.owner.operation, use.operand_number
        if is_view(op) and position == 0:
            yield from _of_buffer(op.results[0], argument)
            continue
        effects, found = effects_of(op), _Use(op, position, argument)
        if effects is NONE:
            # An op that takes the buffer itself may pass it on, unless it only queries it.
            yield from () if op.name in _QUESTIONS else found.accesses()
        elif effects.is_known and position in (*effects.reads, *effects.writes):
            yield from found.accesses(position in effects.reads, position in effects.writes, is_bound=True)
        else:
            yield from found.accesses()


@dataclass(frozen=True)
class _Use:
    """An op that has the buffer `argument`, or a view of it, as its operand number `position`."""

    op: ir.Operation
    position: int
    argument: ir.BlockArgument

    def accesses(self, reads: bool = True, writes: bool = True, *, is_bound: bool = False) -> Iterator[Access]:
        """Its accesses to the elements that its operands bound, where `is_bound`; else to the whole buffer."""
        is_known = is_bound and self.op.name in _INDEXED
        run, loops = (_extent_of(self.op, self.position, self.argument) if is_known else None) or (None, ())
        extent = math.prod(ir.MemRefType(self.argument.type).shape)
        if writes:
            yield Access(self.argument.arg_number, True, run, self.op, loops, extent)
        if reads:
            yield Access(self.argument.arg_number, False, run, self.op, loops, extent)


def _extent_of(
    op: ir.Operation, position: int, argument: ir.BlockArgument
) -> tuple[Run, tuple[tuple[ir.Operation, int], ...]] | None:
    """The elements of `argument` that a read or write touches, and the loops that move it."""
    buffer = op.operands[position]
    type_ = ir.MemRefType(buffer.type)
    size, unit = element_bytes(type_), element_bytes(ir.MemRefType(argument.type))
    strides, address = static_strides(type_), start_of(buffer)
    if address is None or strides is None or not size or not unit or not _has_plain_indices(op):
        return None
    is_copy = op.name == "memref.copy"
    values = [] if is_copy else list(op.operands)[position + 1 :][: type_.rank]
    for value, stride in zip(values, strides, strict=not is_copy):
        index = linear(value)
        if index is None:
            return None
        address = address.plus(index.times(stride * size))
    shown = list(zip(strides, type_.shape, strict=True)) if is_copy else _vector_dims(op, strides)
    dims = [(stride * size, extent) for stride, extent in shown]
    loops: list[tuple[ir.Operation, int]] = []
    start = address.constant
    for variable, factor in address.factors.items():
        loop = loop_of(variable)
        found = bounds(loop) if loop else None
        if loop is None or found is None:
            return None
        first, step, count = found
        start += factor * first
        dims.append((factor * step, count))
        if factor:
            loops.append((loop, factor * step))
    if any(stride < 0 or extent < 1 for stride, extent in dims):
        return None
    return _in_elements(start, [dim for dim in dims if dim[1] > 1], loops, size, unit)


def _in_elements(
    start: int, dims: Sequence[tuple[int, int]], loops: Sequence[tuple[ir.Operation, int]], size: int, unit: int
) -> tuple[Run, tuple[tuple[ir.Operation, int], ...]] | None:
    """Elements of `size` bytes as elements of `unit` bytes, if `size` is a multiple of `unit`."""
    strides = [start, *(stride for stride, _ in dims), *(step for _, step in loops)]
    if size % unit or any(stride % unit for stride in strides):
        return None
    own = [(1, size // unit)] if size > unit else []
    found = (*own, *((stride // unit, extent) for stride, extent in dims))
    return Run(start // unit, found), tuple((loop, step // unit) for loop, step in loops)


def _has_plain_indices(op: ir.Operation) -> bool:
    """Whether the operands after the buffer are the indices themselves."""
    if not op.name.startswith("affine."):
        return True
    map_ = ir.AffineMapAttr(op.attributes["map"]).value
    return map_ == ir.AffineMap.get_identity(map_.n_dims, op.context) and not map_.n_symbols


def _vector_dims(op: ir.Operation, strides: Sequence[int]) -> list[tuple[int, int]]:
    types = [value.type for value in (*op.results, *op.operands)]
    vectors = [ir.VectorType(type_) for type_ in types if isinstance(type_, ir.VectorType)]
    if not vectors:
        return []
    extents = list(vectors[0].shape)
    if "permutation_map" not in op.attributes:
        return list(zip(strides[len(strides) - len(extents) :], extents, strict=True))
    pairs = zip(loops_of(op.attributes["permutation_map"]), extents, strict=True)
    # A constant result is a broadcast: it reads one element.
    return [(strides[dimension], extent) for dimension, extent in pairs if dimension is not None]


def _blocks(dims: tuple[tuple[int, int], ...]) -> tuple[int, list[tuple[int, int]]]:
    """Length of the contiguous ranges, and the dimensions that repeat them."""
    length = 1
    outer: list[tuple[int, int]] = []
    for stride, extent in sorted(dims):
        if stride <= length:
            length += stride * (extent - 1)
        else:
            outer.append((stride, extent))
    return length, outer
